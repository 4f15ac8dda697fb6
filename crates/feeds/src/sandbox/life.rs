//! One event of the sandbox from its listing on, without the others.

use domain::{BookmakerId, SportId, Timestamp};

use domain::message::{Body, FeedMessage};

use super::event::Event;
use super::noise::to_tick;
use super::{KEPT_S, Outbox, Rank, Simulation};

/// All that is said about an event.
#[derive(Debug)]
pub struct Life {
    pub sport: SportId,
    pub listed: Timestamp,
    /// When each message goes out, in this order.
    pub messages: Vec<(Timestamp, FeedMessage)>,
}

impl Simulation {
    /// Events of a sport that were shown at `from` or later and have started by `to`: the reference of each, and when
    /// it was last announced for.
    pub fn started(
        &self,
        sport: SportId,
        from: Timestamp,
        to: Timestamp,
    ) -> Vec<(Box<str>, Timestamp)> {
        let (from, to) = (to_tick(from.as_secs()), to_tick(to.as_secs()));
        let events = self.events_of(sport, from, to).into_iter();
        let announced = |event: &Event| {
            let mut revisions = event.revisions.iter().filter(|revision| revision.at <= to);
            revisions.next_back().map(|last| last.commence)
        };
        let started = events.filter_map(|event| {
            let commence = announced(&event)?;
            let begun = event.start().min(commence) <= to;
            let removed = event.removed.is_some_and(|removed| removed <= from);
            let shown = event.over().saturating_add(KEPT_S) > from && !removed;
            (begun && shown).then(|| (event.reference.clone(), Timestamp::from_secs(commence)))
        });
        started.collect()
    }

    /// The events of a sport that were shown at `from` or later, to look up what was said about them up to `to`.
    pub fn lives(&self, sport: SportId, from: Timestamp, to: Timestamp) -> Lives<'_> {
        let (from, to) = (to_tick(from.as_secs()), to_tick(to.as_secs()));
        Lives { simulation: self, events: self.events_of(sport, from, to), from, to }
    }

    fn events_of(&self, sport: SportId, from: i64, to: i64) -> Vec<Event> {
        let own = self.sports.iter().filter(|(_, id)| *id == sport);
        own.flat_map(|(own, _)| self.schedule.events_of(*own, from - KEPT_S, to)).collect()
    }

    fn life_of(&self, event: &Event, from: i64, to: i64) -> Option<Life> {
        let sport = self.sport_id(event.discipline)?;
        let listed = event.listed();
        if listed > to || event.removed.is_some_and(|removed| removed <= from) {
            return None;
        }
        let mut outbox = Outbox::default();
        for revision in event.revisions.iter().filter(|revision| revision.at <= to) {
            outbox.list(event, revision, sport);
        }
        if let Some(removed) = event.removed.filter(|removed| *removed <= to) {
            let reference = event.reference.clone();
            outbox.push(removed, Rank::Listing, removed, Body::Remove { reference });
        }
        outbox.scores_between(event, listed - 1, to);
        self.moving_odds(event, listed - 1, to, &mut outbox);
        let end = to.min(event.removed.unwrap_or(event.over()));
        let carried: Vec<BookmakerId> = self.pricers_on(event).map(|(id, _)| id).collect();
        for (id, profile, _) in self.pricers.iter().filter(|(id, ..)| carried.contains(id)) {
            for arrival in profile.reads(event.discipline, listed - 1, end) {
                outbox.heartbeat(*id, sport, arrival, arrival - profile.lag_s());
            }
        }
        let messages = outbox.timed();
        Some(Life { sport, listed: Timestamp::from_secs(listed), messages })
    }
}

/// The events of a span of time.
#[derive(Debug)]
pub struct Lives<'a> {
    simulation: &'a Simulation,
    events: Vec<Event>,
    from: i64,
    to: i64,
}

impl Lives<'_> {
    /// What was said about the event with a reference, if it was shown in that time.
    pub fn find(&self, is: impl Fn(&str) -> bool) -> Option<Life> {
        let event = self.events.iter().find(|event| is(&event.reference))?;
        self.simulation.life_of(event, self.from, self.to)
    }
}
