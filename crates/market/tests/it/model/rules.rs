//! Basic rules of the model for names, fixtures and scores.

use domain::message::Fixture;
use domain::{Side, Status, Timestamp};

use super::{Happening, Pricing, Reading, Report};
use crate::vocabulary::{person, tournament};

/// A heartbeat confirms every open market of the bookmaker in the sport.
pub(super) fn confirm_all(
    prices: &mut [Pricing],
    events: &[Happening],
    source: &Reading,
    ts: Timestamp,
) {
    for price in prices.iter_mut().filter(|price| price.bookmaker == source.bookmaker) {
        let event = events.iter().find(|event| event.id == price.event).unwrap();
        if event.sport == source.sport {
            price.confirmed = price.confirmed.max(ts);
        }
    }
}

pub(super) fn means_draw(name: &str) -> bool {
    ["draw", "tie"].contains(&&*name.to_lowercase())
}

pub(super) fn goes_back(held: &Report, new: &Report) -> bool {
    let lower = |held: Option<i32>, new: Option<i32>| match (held, new) {
        (Some(held), Some(new)) => new < held,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let order = [Status::Scheduled, Status::Live, Status::Final];
    let step = |status: Status| order.iter().position(|s| *s == status);
    step(new.status) < step(held.status)
        || lower(held.home, new.home)
        || lower(held.away, new.away)
        || (held.status == Status::Final && held.winner.is_some() && held.winner != new.winner)
}

/// The participants of a fixture, the lower number first; a tournament is one number.
pub(super) fn participants(fixture: &Fixture) -> (usize, Option<usize>) {
    match fixture {
        Fixture::HeadToHead { home, away } => {
            let (home, away) = (person(home).unwrap(), person(away).unwrap());
            (home.min(away), Some(home.max(away)))
        }
        Fixture::Field { title } => (tournament(title).unwrap(), None),
    }
}

pub(super) fn same_participants(one: &Fixture, other: &Fixture) -> bool {
    participants(one) == participants(other)
}

pub(super) fn first_person(fixture: &Fixture) -> Option<usize> {
    match fixture {
        Fixture::HeadToHead { home, .. } => person(home),
        Fixture::Field { .. } => None,
    }
}

pub(super) fn side_of(fixture: &Fixture, name: &str) -> Option<Side> {
    let Fixture::HeadToHead { home, away } = fixture else {
        return None;
    };
    let who = person(name)?;
    if person(home) == Some(who) {
        Some(Side::Home)
    } else if person(away) == Some(who) {
        Some(Side::Away)
    } else {
        None
    }
}
