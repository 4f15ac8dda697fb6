//! Sports and participants.

use std::collections::BTreeMap;

use domain::{Catalogue, OutcomeRule, Shape, SportId, v4};
use market::plain_letters;
use market::snapshot::EventRow;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::answers::Answer;
use crate::v1::wire::object::{flag, object, push_plain, push_text, text};
use crate::v4::selection::SportFilter;
use crate::v4::wire::index::KeyEvents;
use crate::v4::wire::{Source, array};

object!(Sport: "A sport: a league, a tour's tournament, or all of a fight sport." {
    KEY: "key" = text("Sport key."),
    GROUP: "group" = text("Group of the sport."),
    TITLE: "title" = text("Display name."),
    DESCRIPTION: "description" = text("A further description."),
    ACTIVE: "active" = flag("True if it has scheduled or live events."),
    HAS_OUTRIGHTS: "has_outrights" = flag("True if its market is the winner of a tournament."),
});

object!(Participant: "A team or a player." {
    FULL_NAME: "full_name" = text("Display name."),
    ID: "id" = participant_id(),
});

fn participant_id() -> Value {
    json!({
        "type": "string",
        "pattern": "^par_[0-9a-hjkmnp-tv-z]{26}$",
        "description": "Derived from the sport and the name.",
    })
}

/// Data of a sport in the list of sports.
struct Listed<'a> {
    sport: SportId,
    title: std::borrow::Cow<'a, str>,
    description: std::borrow::Cow<'a, str>,
    active: bool,
}

pub(super) fn sports(source: &Source<'_>, all: bool) -> Answer {
    let catalogue = source.snapshot.catalogue();
    let mut listed: BTreeMap<&str, Listed<'_>> = BTreeMap::new();
    for entry in catalogue.v4().sports().filter(|entry| all && !entry.whole) {
        let of_table = Listed {
            sport: entry.sport,
            title: (&*entry.title).into(),
            description: (&*entry.description).into(),
            active: false,
        };
        listed.insert(&entry.key, of_table);
    }
    for (key, events) in source.index().keys().filter(|(_, events)| all || events.active) {
        if let Some(of_events) = describe(source, catalogue, events) {
            listed.insert(key, of_events);
        }
    }
    let count = listed.len();
    let mut out = String::with_capacity(160 * count);
    for (key, Listed { sport, title, description, active }) in listed {
        let rules = catalogue.sport(sport);
        out.push_str(Sport::KEY.first);
        push_plain(key, &mut out);
        let texts = [
            (Sport::GROUP, &*rules.title),
            (Sport::TITLE, &*title),
            (Sport::DESCRIPTION, &*description),
        ];
        for (key, text) in texts {
            out.push_str(key.next);
            push_text(text, &mut out);
        }
        let flags = [(Sport::ACTIVE, active), (Sport::HAS_OUTRIGHTS, rules.shape == Shape::Field)];
        for (key, flag) in flags {
            out.push_str(key.next);
            out.push_str(if flag { "true" } else { "false" });
        }
        out.push_str("},");
    }
    array(out.into_bytes(), count)
}

/// The names of a sport, taken from its first event.
fn describe<'a>(
    source: &Source<'a>,
    catalogue: &'a Catalogue,
    events: &KeyEvents,
) -> Option<Listed<'a>> {
    let first = usize::try_from(*events.events.first()?).ok()?;
    let details = &source.snapshot.sport(events.sport).events.get(first)?.details;
    let called = (&*details.competition, details.title.as_deref());
    let v4::SportName { title, description, .. } =
        v4::sport_name(catalogue, source.wire.0, events.sport, called);
    Some(Listed { sport: events.sport, title, description, active: events.active })
}

pub(super) fn participants(source: &Source<'_>, filter: &SportFilter) -> Answer {
    let (sport, key) = match filter {
        SportFilter::Whole(sport) => (*sport, None),
        SportFilter::Key(sport, key) => (*sport, Some(&**key)),
        SportFilter::All | SportFilter::Upcoming(_) => return array(Vec::new(), 0),
    };
    let catalogue = source.snapshot.catalogue();
    let view = source.snapshot.sport(sport);
    let rules = catalogue.sport(sport);
    let mut names: Vec<&str> = Vec::new();
    let has_clubs = |key| catalogue.v4().sport(key).is_some_and(|entry| entry.clubs);
    if key.is_none_or(has_clubs) {
        names.extend(rules.clubs.iter().map(|club| &*club.name));
    }
    for (at, event) in view.events.iter().enumerate() {
        if key.is_some_and(|key| !source.index().contains(key, at)) {
            continue;
        }
        match rules.shape {
            Shape::HeadToHead => {
                let sides = [&event.details.home, &event.details.away];
                names.extend(sides.into_iter().flatten().map(|name| &**name));
            }
            Shape::Field => names.extend(priced_players(source, sport, event)),
        }
    }
    names.sort_unstable();
    names.dedup();
    let mut out = String::with_capacity(72 * names.len());
    let mut count = 0;
    let mut seen = std::collections::HashSet::new();
    for name in names {
        let id = id_of(&rules.key, name);
        // Spellings of one name have the same id.
        if !seen.insert(id) {
            continue;
        }
        count += 1;
        out.push_str(Participant::FULL_NAME.first);
        push_text(name, &mut out);
        out.push_str(Participant::ID.next);
        out.push_str("\"par_");
        push_base32(id, &mut out);
        out.push_str("\"},");
    }
    array(out.into_bytes(), count)
}

/// The players of a tournament with a price.
fn priced_players<'a>(
    source: &Source<'a>,
    sport: SportId,
    event: &'a EventRow,
) -> impl Iterator<Item = &'a str> {
    let view = source.snapshot.sport(sport);
    let rows = event.records.clone().filter_map(|at| view.record(at));
    let of_players = rows.filter(|row| {
        matches!(row.market.outcome_rule(), OutcomeRule::Entrants | OutcomeRule::Pairing)
    });
    let mut entrants: Vec<u16> = of_players
        .flat_map(|row| row.record.outcomes.iter())
        .filter_map(|outcome| outcome.name.entrant())
        .collect();
    entrants.sort_unstable();
    entrants.dedup();
    entrants.into_iter().filter_map(|at| event.entrants.get(usize::from(at)).map(|name| &**name))
}

/// Hash of our sport and the name without the parts that differ between sources.
fn id_of(sport: &str, name: &str) -> u128 {
    let text = format!("{sport}\u{1f}{}", plain_letters(name));
    xxh3_128(text.as_bytes())
}

/// Appends 26 digits of five bits.
fn push_base32(number: u128, out: &mut String) {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    for place in (0..26).rev() {
        let digit = usize::try_from(number >> (5 * place) & 31).unwrap_or(0);
        out.push(char::from(DIGITS.get(digit).copied().unwrap_or(b'0')));
    }
}
