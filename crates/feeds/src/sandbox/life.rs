//! The messages of one event of the sandbox, from its listing on, without the other events.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::message::{Body, FeedMessage};
use domain::{BookmakerId, SportId, Timestamp};

use super::event::Event;
use super::noise::to_tick;
use super::rows::Pricer;
use super::{KEPT_S, Outbox, Rank, Simulation};

/// All messages about an event, but only those heartbeats that matter for a change of prices or the start.
#[derive(Debug)]
pub struct Life {
    pub sport: SportId,
    pub listed: Timestamp,
    /// The announced starts in order, then the actual start.
    pub starts: Vec<Timestamp>,
    /// The messages in order, each with its sending time.
    pub messages: Vec<(Timestamp, FeedMessage)>,
}

impl Simulation {
    /// The events of a sport that started after `from`, by `to`: the reference and the last announced start of each.
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
            let begun = begun && event.start().max(commence) > from && !removed;
            begun.then(|| (event.reference.clone(), Timestamp::from_secs(commence)))
        });
        started.collect()
    }

    /// The events of a sport that were shown at `from` or later, for looking up their messages up to `to`.
    pub fn lives(&self, sport: SportId, from: Timestamp, to: Timestamp) -> Lives<'_> {
        let (from, to) = (to_tick(from.as_secs()), to_tick(to.as_secs()));
        Lives { simulation: self, events: self.events_of(sport, from, to), from, to }
    }

    fn events_of(&self, sport: SportId, from: i64, to: i64) -> Vec<Event> {
        let own = self.sports.iter().filter(|(_, id)| *id == sport);
        own.flat_map(|(own, _)| self.schedule.events_of(*own, from - KEPT_S, to)).collect()
    }

    fn life_of(&self, event: &Event, span: (i64, i64), wanted: &LifeRequest<'_>) -> Option<Life> {
        let (from, to) = span;
        let sport = self.sport_id(event.discipline)?;
        let listed = event.listed();
        if listed > to || event.removed.is_some_and(|removed| removed <= from) {
            return None;
        }
        let to = if wanted.until_start { to.min(wanted.start_shown(event)) } else { to };
        let mut outbox = Outbox::default();
        for revision in event.revisions.iter().filter(|revision| revision.at <= to) {
            outbox.list(event, revision, sport);
        }
        if let Some(removed) = event.removed.filter(|removed| *removed <= to) {
            let reference = event.reference.clone();
            outbox.push(removed, Rank::Listing, removed, Body::Remove { reference });
        }
        outbox.scores_between(event, listed - 1, to);
        let carried: Vec<_> =
            self.pricers_on(event).filter(|(id, _)| (wanted.bookmaker)(*id)).collect();
        self.moving_odds(event, &carried, (listed - 1, to), &mut outbox);
        let end = to.min(event.removed.unwrap_or(event.over()));
        let looked_at = wanted.looked_at(event, &outbox);
        for (id, Pricer { profile, .. }) in carried {
            let own = looked_at.iter().filter(|(of, _)| of.is_none_or(|of| of == id));
            let before = own.map(|(_, at)| profile.last_read(event.discipline, *at));
            let beats: BTreeSet<i64> = before.collect();
            for arrival in beats.range(listed..=end) {
                outbox.heartbeat(id, sport, *arrival, *arrival - profile.lag_s());
            }
        }
        let announced = event.revisions.iter().map(|revision| revision.commence);
        let starts = announced.chain([event.start()]).map(Timestamp::from_secs).collect();
        let messages = outbox.timed();
        Some(Life { sport, listed: Timestamp::from_secs(listed), starts, messages })
    }
}

impl LifeRequest<'_> {
    /// Time by which a publication shows the event as started.
    fn start_shown(&self, event: &Event) -> i64 {
        let announced = event.revisions.iter().map(|revision| revision.commence);
        let start = announced.fold(event.start(), i64::max);
        start.saturating_add(2 * i64::try_from(self.interval.as_secs()).unwrap_or(i64::MAX) + 1)
    }

    /// The instants at which the freshness of a bookmaker (or, with `None`, of all) matters: the publications around
    /// a change of its prices, and around a start.
    fn looked_at(&self, event: &Event, outbox: &Outbox) -> BTreeSet<(Option<BookmakerId>, i64)> {
        let interval_ms = i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let around = |at: i64| {
            let before = at.saturating_mul(1000).div_euclid(interval_ms);
            let cuts = (-1..=1).map(move |n| before.saturating_add(n).saturating_mul(interval_ms));
            cuts.map(|ms| ms.div_euclid(1000)).chain([at])
        };
        let said = outbox.0.iter().filter_map(|(out, _, message)| match &message.body {
            Body::Odds(odds) => Some((Some(odds.bookmaker), *out)),
            Body::Event { .. } | Body::Remove { .. } => Some((None, *out)),
            Body::Score(_) | Body::Heartbeat { .. } => None,
        });
        let announced = event.revisions.iter().map(|revision| revision.commence);
        let starts = announced.chain([event.start()]).map(|at| (None, at));
        said.chain(starts).flat_map(|(of, at)| around(at).map(move |at| (of, at))).collect()
    }
}

/// A request for the messages of an event.
#[expect(missing_debug_implementations, reason = "it asks a function")]
pub struct LifeRequest<'a> {
    /// Selects the bookmakers whose prices are included.
    pub bookmaker: &'a dyn Fn(BookmakerId) -> bool,
    /// Interval of publications.
    pub interval: Duration,
    /// True to include only messages up to the publication that shows the start.
    pub until_start: bool,
}

/// The events of a time span.
#[derive(Debug)]
pub struct Lives<'a> {
    simulation: &'a Simulation,
    events: Vec<Event>,
    from: i64,
    to: i64,
}

impl Lives<'_> {
    /// The messages about the event with a matching reference, if it was shown in that time.
    pub fn find(&self, is: impl Fn(&str) -> bool, wanted: &LifeRequest<'_>) -> Option<Life> {
        let event = self.events.iter().find(|event| is(&event.reference))?;
        self.simulation.life_of(event, (self.from, self.to), wanted)
    }
}
