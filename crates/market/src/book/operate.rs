//! Operators' decisions about identities, and what they are shown. A decision of an operator takes precedence over
//! everything and is remembered: it teaches names, and events that it separated are not merged again.

use std::fmt;

use domain::message::Fixture;
use domain::{EventId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::book::event::{Event, FeedIx};
use crate::book::settle::{merge, ordered};
use crate::book::{Book, Offer, Placed};
use crate::change::{By, Change};
use crate::matching::{Alias, Contest, Doubt, Evidence, Likeness, Meaning, Name, Party};

/// A decision of an operator about events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Two events are one.
    Merge { one: EventId, other: EventId },
    /// A feed's ref is not the event it is in.
    Split { event: EventId, feed: Box<str>, reference: Box<str> },
    /// Two events are different, however similar.
    Part { one: EventId, other: EventId },
    /// Names that mean, or do not mean, a participant.
    Teach { aliases: Vec<Alias> },
    /// Remove everything that a feed listed.
    Drop { feed: Box<str> },
}

impl fmt::Display for Operation {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Merge { one, other } => write!(f, "merge {one} {other}"),
            Self::Split { event, feed, reference } => write!(f, "split {event} {feed}:{reference}"),
            Self::Part { one, other } => write!(f, "apart {one} {other}"),
            Self::Teach { aliases } => write!(f, "import {} aliases", aliases.len()),
            Self::Drop { feed } => write!(f, "drop {feed}"),
        }
    }
}

/// The operation cannot be done; the text says why and what is possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotDone(pub String);

/// One event with everything known about its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub event: EventId,
    pub sport: Box<str>,
    pub competition: Box<str>,
    pub commence_time: Timestamp,
    pub fixture: Fixture,
    /// Ids of events that were merged into this one.
    pub also: Vec<EventId>,
    pub refs: Vec<ProfileRef>,
    pub unsure: Vec<Unsure>,
}

/// A feed's ref of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRef {
    pub feed: Box<str>,
    pub reference: Box<str>,
    pub competition: Box<str>,
    pub commence_time: Timestamp,
    pub fixture: Fixture,
    pub swapped: bool,
    /// The reason why it is taken for this event.
    pub why: String,
}

/// Two events that may be one.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsure {
    pub one: EventId,
    pub other: EventId,
    pub doubt: Doubt,
    pub evidence: Evidence,
}

impl Book {
    /// The changes of an operation.
    ///
    /// # Errors
    /// It cannot be done, with the reason.
    pub fn decide_operation(&self, operation: &Operation) -> Result<Vec<Change>, NotDone> {
        match operation {
            Operation::Merge { one, other } => self.decide_merge(*one, *other),
            Operation::Split { event, feed, reference } => {
                self.decide_split(*event, feed, reference)
            }
            Operation::Part { one, other } => {
                let (one, other) = (self.known(*one)?.id, self.known(*other)?.id);
                if one == other {
                    return Err(NotDone(format!(
                        "both ids are event {one}; `events split` moves a ref out of it"
                    )));
                }
                let (one, other) = ordered(one, other);
                Ok(vec![Change::Parted { one, other }])
            }
            Operation::Teach { aliases } => aliases
                .iter()
                .map(|alias| {
                    if self.catalogue.sport_id(&alias.sport).is_none() {
                        return Err(NotDone(format!("there is no sport `{}`", alias.sport)));
                    }
                    Ok(Change::Taught { alias: alias.clone(), by: By::Operator })
                })
                .collect(),
            Operation::Drop { feed } => match self.feed_ix(feed) {
                Some(_) => Ok(vec![Change::Dropped { feed: feed.clone() }]),
                None => Err(NotDone(format!("no feed `{feed}` has listed anything"))),
            },
        }
    }

    fn known(&self, id: EventId) -> Result<&Event, NotDone> {
        self.event(self.resolve(id)).ok_or_else(|| NotDone(format!("there is no event {id}")))
    }

    fn decide_merge(&self, one: EventId, other: EventId) -> Result<Vec<Change>, NotDone> {
        let (one, other) = (self.known(one)?, self.known(other)?);
        if one.id == other.id {
            return Err(NotDone(format!("both ids are event {} already", one.id)));
        }
        if one.sport != other.sport {
            return Err(NotDone("the two events are of different sports".to_owned()));
        }
        let agreement = self.contest_of(one).compare(&self.contest_of(other));
        let mut changes = vec![merge(one, other, agreement.swapped, By::Operator)];
        changes.extend(self.taught_by_merge(one, other, agreement.swapped));
        Ok(changes)
    }

    /// The contest as displayed, which may differ from every listing's wording.
    pub(super) fn contest_of(&self, event: &Event) -> Contest {
        Contest::parse(&self.lexicon, event.sport, &event.fixture)
    }

    /// Every name of the younger event that differs from the elder's becomes an alias of the elder's.
    fn taught_by_merge(&self, one: &Event, other: &Event, swapped: bool) -> Vec<Change> {
        let (elder, younger) = if one.born <= other.born { (one, other) } else { (other, one) };
        let Fixture::HeadToHead { home, away } = &elder.fixture else { return Vec::new() };
        let mut taught = Vec::new();
        for (_, _, offer) in self.offers_of(younger) {
            let Fixture::HeadToHead { home: their_home, away: their_away } = &offer.fixture else {
                continue;
            };
            let turned = swapped != offer.swapped;
            let pairs = if turned {
                [(home, their_away), (away, their_home)]
            } else {
                [(home, their_home), (away, their_away)]
            };
            for (ours, theirs) in pairs {
                let (our_party, their_party) = (self.party(elder, ours), self.party(elder, theirs));
                if their_party.is_full() && !our_party.like(&their_party).is_firm() {
                    let alias = self.alias(elder, None, theirs, Meaning::Is(ours.clone()));
                    taught.push(Change::Taught { alias, by: By::Operator });
                }
            }
        }
        taught.dedup();
        taught
    }

    fn party(&self, event: &Event, name: &str) -> Party {
        Party::parse(&self.lexicon, event.sport, name)
    }

    fn alias(&self, event: &Event, feed: Option<&str>, name: &str, meaning: Meaning) -> Alias {
        let sport = self.catalogue.sport(event.sport).key.clone();
        Alias { sport, feed: feed.map(Into::into), name: name.into(), meaning }
    }

    /// Aliases learned for a feed from a listing that was taken for an event under another name.
    pub(super) fn taught_by_join(
        &self,
        feed: &str,
        event: &Event,
        theirs: &Fixture,
        fit: &super::place::Fit,
    ) -> Vec<Change> {
        let (
            Fixture::HeadToHead { home, away },
            Fixture::HeadToHead { home: their_home, away: their_away },
        ) = (&event.fixture, theirs)
        else {
            return Vec::new();
        };
        // A firm match with the eldest listing, whose names are the event's, teaches nothing.
        let eldest = event.listed_by.first() == Some(&fit.with);
        if eldest && fit.evidence.weaker().is_firm() {
            return Vec::new();
        }
        let pairs = if fit.swapped {
            [(home, their_away), (away, their_home)]
        } else {
            [(home, their_home), (away, their_away)]
        };
        let mut taught = Vec::new();
        for (ours, theirs) in pairs {
            let (our_party, their_party) = (self.party(event, ours), self.party(event, theirs));
            let likeness = our_party.like(&their_party);
            let sport = &self.catalogue.sport(event.sport).key;
            let known = self.memory.aliases.meaning(sport, feed, &Name::parse(theirs));
            // A firm match needs no alias, and a short name means many people.
            let worth = likeness < Likeness::Within && our_party.is_full() && their_party.is_full();
            let room =
                self.memory.aliases.has_room(Some(feed)) && self.has_room(self.feed_ix(feed), 1);
            if worth && known != Some(&**ours) && room {
                let alias = self.alias(event, Some(feed), theirs, Meaning::Is(ours.clone()));
                taught.push(Change::Taught { alias, by: By::Evidence });
            }
        }
        taught
    }

    fn decide_split(
        &self,
        event: EventId,
        feed: &str,
        reference: &str,
    ) -> Result<Vec<Change>, NotDone> {
        let event = self.known(event)?;
        let ix = self.feed_ix(feed);
        let listed =
            |(lister, held): &(FeedIx, Box<str>)| Some(*lister) == ix && &**held == reference;
        if !event.listed_by.iter().any(listed) {
            let refs: Vec<String> = self.refs_text(event).collect();
            let text = format!(
                "event {} is not listed as {feed}:{reference}; it is listed as {}",
                event.id,
                refs.join(", ")
            );
            return Err(NotDone(text));
        }
        if event.listed_by.len() < 2 {
            return Err(NotDone(format!(
                "{feed}:{reference} is the only ref of event {}",
                event.id
            )));
        }
        let offer = ix.and_then(|ix| self.feed(ix)?.offer(reference));
        let before = offer
            .and_then(|offer| offer.came_from)
            .filter(|id| self.memory.merged.get(id) == Some(&event.id));
        let into = before.unwrap_or_else(|| self.new_id(reference));
        let mut changes = vec![Change::Split {
            event: event.id,
            feed: feed.into(),
            reference: reference.into(),
            into,
        }];
        changes.extend(
            offer
                .map(|offer| self.taught_by_split(event, (feed, reference), offer))
                .unwrap_or_default(),
        );
        Ok(changes)
    }

    fn refs_text<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = String> + 'a {
        self.offers_of(event).filter_map(|(feed, reference, _)| {
            Some(format!("{}:{reference}", self.feed(feed)?.name))
        })
    }

    /// After a split: forgets aliases that confused two people, and records that they are two. If both names are in
    /// question, nothing is known of either.
    fn taught_by_split(
        &self,
        event: &Event,
        (feed, reference): (&str, &str),
        offer: &Offer,
    ) -> Vec<Change> {
        let Fixture::HeadToHead { home: their_home, away: their_away } = &offer.fixture else {
            return Vec::new();
        };
        let ix = self.feed_ix(feed);
        let stays = self
            .offers_of(event)
            .find(|(lister, held, _)| Some(*lister) != ix || &***held != reference);
        let Some((_, _, kept)) = stays else { return Vec::new() };
        let Fixture::HeadToHead { home, away } = &kept.fixture else { return Vec::new() };
        let turned = kept.swapped != offer.swapped;
        let pairs = if turned {
            [(home, their_away), (away, their_home)]
        } else {
            [(home, their_home), (away, their_away)]
        };
        let mut changes = Vec::new();
        let questionable: Vec<_> = pairs
            .into_iter()
            .filter(|(ours, theirs)| {
                !self.party(event, ours).like(&self.party(event, theirs)).is_firm()
            })
            .collect();
        for (ours, theirs) in &questionable {
            for feed in [Some(feed), None] {
                let alias = self.alias(event, feed, theirs, Meaning::Is((*ours).clone()));
                changes.push(Change::Untaught { alias });
            }
        }
        if let [(ours, theirs)] = &*questionable {
            let alias = self.alias(event, None, theirs, Meaning::IsNot((*ours).clone()));
            changes.push(Change::Taught { alias, by: By::Operator });
        }
        changes
    }

    /// The event that a feed's ref is currently listed for.
    pub fn listed_for(&self, feed: &str, reference: &str) -> Option<EventId> {
        self.stands_for(feed, reference)
    }

    /// The events that a feed lists.
    pub fn events_listed_by(&self, feed: &str) -> impl Iterator<Item = EventId> + '_ {
        let feed = self.feed_ix(feed).and_then(|feed| self.feed(feed));
        feed.into_iter().flat_map(|feed| feed.offers.values()).map(|offer| offer.event)
    }

    /// Every merged id, with the event it means.
    pub fn stand_ins(&self) -> impl Iterator<Item = (EventId, EventId)> + '_ {
        self.merged()
    }

    /// All refs of an event, with names and reason, the eldest first. The cost depends only on that event.
    pub fn refs(&self, event: &Event) -> Vec<ProfileRef> {
        let refs = self.offers_of(event).filter_map(|(feed, reference, offer)| {
            Some(ProfileRef {
                feed: self.feed(feed)?.name.clone(),
                reference: reference.clone(),
                competition: offer.competition.clone(),
                commence_time: offer.commence_time,
                fixture: offer.fixture.clone(),
                swapped: offer.swapped,
                why: offer.placed.to_string(),
            })
        });
        refs.collect()
    }

    /// An event with all its refs, names and reasons.
    pub fn profile(&self, id: EventId) -> Option<Profile> {
        let event = self.event(self.resolve(id))?;
        let also =
            self.memory.merged.iter().filter(|(_, elder)| **elder == event.id).map(|(id, _)| *id);
        Some(Profile {
            event: event.id,
            sport: self.catalogue.sport(event.sport).key.clone(),
            competition: event.competition.clone(),
            commence_time: event.commence_time,
            fixture: event.fixture.clone(),
            also: also.collect(),
            refs: self.refs(event),
            unsure: self
                .unsure()
                .filter(|unsure| [unsure.one, unsure.other].contains(&event.id))
                .collect(),
        })
    }

    /// Pairs of events that may be one.
    pub fn unsure(&self) -> impl Iterator<Item = Unsure> + '_ {
        self.memory.doubts.iter().map(|((one, other), (doubt, evidence))| Unsure {
            one,
            other,
            doubt,
            evidence,
        })
    }

    /// All aliases.
    pub fn aliases(&self) -> Vec<&Alias> {
        self.memory.aliases.all()
    }

    /// Number of merged ids, possible duplicates and aliases.
    pub fn remembered(&self) -> (usize, usize, usize) {
        (self.memory.merged.len(), self.memory.doubts.len(), self.memory.aliases.len())
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first listing: no other feed had a similar event"),
            Self::Matched { feed, reference, evidence } => {
                write!(f, "as {feed}:{reference}: {evidence}")
            }
            Self::ByOperator => f.write_str("operator decision"),
        }
    }
}
