//! Converts markets of the stream to our offers: events with their names, outcomes and status.

use domain::catalogue::{Shape, SportId};
use domain::line::Line;
use domain::market::{Market as OurMarket, OutcomeRule, PointRule};
use domain::message::{Correction, Fixture, Listing, OfferedOutcome, ScoreBody};
use domain::score::Status;

use super::cache::{Market, Runner, State};
use super::catalogue::Entry;
use crate::adapter::Settings;
use crate::adapter::gather::check_name;
use crate::adapter::names::Known;

/// Our market for a market type. Types of totals are recognised by their prefix, as they end in the line.
pub(super) fn find_market(
    market_type: &str,
    sport: SportId,
    settings: &Settings,
) -> Known<OurMarket> {
    let catalogue = &settings.catalogue;
    let totals = ["OVER_UNDER_", "TOTAL"].iter().any(|prefix| market_type.starts_with(prefix));
    let name = if totals && !settings.names.markets.contains_key(market_type) {
        "totals"
    } else {
        market_type
    };
    settings.names.market(name, sport, catalogue)
}

/// A runner's name: from the catalogue, or else from the stream.
pub(super) fn runner_name<'n>(runner: &'n Runner, entry: Option<&'n Entry>) -> Option<&'n str> {
    let listed = entry.and_then(|entry| entry.runners.get(&runner.key.0)).map(|name| &**name);
    listed.or(runner.name.as_deref())
}

/// Appends the outcomes of an open market to those of ours.
pub(super) fn outcomes(
    market: &Market,
    ours: OurMarket,
    entry: Option<&Entry>,
    out: &mut Vec<OfferedOutcome>,
) {
    let definition = &market.definition;
    if definition.state != State::Open {
        return;
    }
    for runner in definition.runners.iter().filter(|runner| runner.active) {
        let Some((quote, name)) = runner.quote().zip(runner_name(runner, entry)) else {
            continue;
        };
        let name = outcome_name(name, ours);
        let point = match ours.point_rule() {
            PointRule::None => None,
            PointRule::Signed => Some(Line::from_quarters(runner.key.1 / 25)),
            PointRule::Total => match total_line(runner, entry, &definition.market_type) {
                Some(line) => Some(line),
                None => continue,
            },
        };
        let same = |held: &OfferedOutcome| *held.name == *name && held.point == point;
        if check_name(name).is_ok() && !out.iter().any(same) {
            out.push(OfferedOutcome { name: name.into(), quote, point });
        }
    }
}

fn outcome_name(name: &str, ours: OurMarket) -> &str {
    match ours.outcome_rule() {
        OutcomeRule::OverUnder if name.starts_with("Over") => "Over",
        OutcomeRule::OverUnder if name.starts_with("Under") => "Under",
        OutcomeRule::Sides if name == "The Draw" => "Draw",
        OutcomeRule::Sides
        | OutcomeRule::OverUnder
        | OutcomeRule::Entrants
        | OutcomeRule::Pairing => name,
    }
}

/// The line of a total: the handicap, or the number in the runner's name, or the tenths in the market's type.
fn total_line(runner: &Runner, entry: Option<&Entry>, market_type: &str) -> Option<Line> {
    if runner.key.1 > 0 {
        return Some(Line::from_quarters(runner.key.1 / 25));
    }
    let named =
        runner_name(runner, entry)?.split_whitespace().find_map(|word| Line::parse(word).ok());
    let typed = || {
        let tenths: i32 = market_type.rsplit('_').next()?.parse().ok()?;
        (tenths % 5 == 0).then(|| Line::from_quarters(tenths * 4 / 10))
    };
    named.or_else(typed).filter(|line| line.quarters() > 0)
}

/// The listing of a market's event, if enough names are known.
pub(super) fn listing(
    market: &Market,
    ours: OurMarket,
    sport: SportId,
    entry: Option<&Entry>,
    settings: &Settings,
) -> Option<Listing> {
    let definition = &market.definition;
    let event_name = entry.and_then(|entry| entry.event_name.as_deref());
    let event_name = event_name.or(definition.event_name.as_deref());
    let sport_of = settings.catalogue.sport(sport);
    let fixture = match sport_of.shape {
        Shape::Field => Fixture::Field { title: event_name?.into() },
        Shape::HeadToHead => {
            let by_runners =
                (ours == OurMarket::Moneyline).then(|| sides_of_runners(market, entry)).flatten();
            let (home, away) = by_runners.or_else(|| sides_of_name(event_name?))?;
            Fixture::HeadToHead { home, away }
        }
    };
    let competition = entry.and_then(|entry| entry.competition.clone());
    let start = entry.and_then(|entry| entry.start).or(definition.start)?;
    Some(Listing {
        sport,
        competition: competition.unwrap_or_else(|| sport_of.title.clone()),
        commence_time: start,
        fixture,
    })
}

/// The two participants, in the order of the exchange.
fn sides_of_runners(market: &Market, entry: Option<&Entry>) -> Option<(Box<str>, Box<str>)> {
    let runners = &market.definition.runners;
    let named =
        runners.iter().filter_map(|runner| Some((runner.priority, runner_name(runner, entry)?)));
    let mut sides: Vec<(u64, &str)> = named.filter(|(_, name)| *name != "The Draw").collect();
    sides.sort_by_key(|(priority, _)| *priority);
    match &*sides {
        [(_, home), (_, away)] if home != away => Some(((*home).into(), (*away).into())),
        _ => None,
    }
}

/// The participants in `A v B`; in `A @ B`, B is at home.
fn sides_of_name(name: &str) -> Option<(Box<str>, Box<str>)> {
    let split = |word: &str| name.split_once(word).map(|(a, b)| (a.trim(), b.trim()));
    let (home, away) = match split(" @ ") {
        Some((away, home)) => (home, away),
        None => split(" v ").or_else(|| split(" vs "))?,
    };
    (!home.is_empty() && !away.is_empty() && home != away).then(|| (home.into(), away.into()))
}

/// The event's status according to a market, if that is the result market.
pub(super) fn score(
    market: &Market,
    ours: OurMarket,
    entry: Option<&Entry>,
    shape: Shape,
) -> Option<ScoreBody> {
    let definition = &market.definition;
    if !matches!(ours, OurMarket::Moneyline | OurMarket::Outright) {
        return None;
    }
    let winner = definition.runners.iter().find(|runner| runner.winner);
    let (status, winner) = match (definition.state, winner) {
        (State::Closed, Some(winner)) => {
            let name = runner_name(winner, entry).map(|name| outcome_name(name, ours));
            let name = name.filter(|_| shape == Shape::HeadToHead);
            (Status::Final, name.map(Box::from))
        }
        (State::Open | State::Suspended, _) if definition.in_play => (Status::Live, None),
        (State::Open | State::Suspended | State::Closed, _) => return None,
    };
    Some(ScoreBody {
        reference: definition.event.clone(),
        status,
        home: None,
        away: None,
        periods: Vec::new(),
        winner,
        leaders: Vec::new(),
        correction: Correction::No,
    })
}
