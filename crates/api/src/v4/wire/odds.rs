//! Bookmakers, markets and outcomes.
//!
//! A market is rendered when its prices change, in both formats, without its freshness: that changes with every
//! heartbeat and is inserted when a response is built. Markets of several pairings and markets with rarely requested
//! fields are written from the rows.

use domain::{Catalogue, Format, Market as MarketId, OutcomeRule, Sport, Timestamp};
use market::book::{Outcome as Offer, OutcomeName};
use market::rendered::Rendered;
use market::snapshot::{EventRow, RecordRow};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::v1::wire::object::{list, object, push_plain, push_text, schema, text};
use crate::v4::selection::Style;
use crate::v4::wire::event::{bookmakers, end, event_id, put_time, text_or_null};

object!(OddsEvent: "An event with its prices." {
    ID: "id" = event_id(),
    SPORT_KEY: "sport_key" = text("Sport key."),
    SPORT_TITLE: "sport_title" = text("Display name of the sport."),
    COMMENCE_TIME: "commence_time" = schema("Time", "Start time."),
    HOME_TEAM: "home_team" = text_or_null("The home side; null for golf."),
    AWAY_TEAM: "away_team" = text_or_null("The away side; null for golf."),
    HOME_ROTATION: "home_rotation" optional = null(),
    AWAY_ROTATION: "away_rotation" optional = null(),
    BOOKMAKERS: "bookmakers" = bookmakers("Bookmaker"),
});

object!(EventOdds: "An event with its prices; its bookmakers have no `last_update`." {
    ID: "id" = event_id(),
    SPORT_KEY: "sport_key" = text("Sport key."),
    SPORT_TITLE: "sport_title" = text("Display name of the sport."),
    COMMENCE_TIME: "commence_time" = schema("Time", "Start time."),
    HOME_TEAM: "home_team" = text_or_null("The home side; null for golf."),
    AWAY_TEAM: "away_team" = text_or_null("The away side; null for golf."),
    HOME_ROTATION: "home_rotation" optional = null(),
    AWAY_ROTATION: "away_rotation" optional = null(),
    BOOKMAKERS: "bookmakers" = bookmakers("EventBookmaker"),
});

object!(EventMarkets: "An event with the markets that are offered for it." {
    ID: "id" = event_id(),
    SPORT_KEY: "sport_key" = text("Sport key."),
    SPORT_TITLE: "sport_title" = text("Display name of the sport."),
    COMMENCE_TIME: "commence_time" = schema("Time", "Start time."),
    HOME_TEAM: "home_team" = text_or_null("The home side; null for golf."),
    AWAY_TEAM: "away_team" = text_or_null("The away side; null for golf."),
    BOOKMAKERS: "bookmakers" = bookmakers("MarketsBookmaker"),
});

object!(Bookmaker: "A bookmaker's prices of an event." {
    KEY: "key" = text("Bookmaker key."),
    TITLE: "title" = text("Display name."),
    LAST_UPDATE: "last_update" = schema("Time", "The latest of its markets' times."),
    MARKETS: "markets" = list("Market", "In the order of their keys."),
    LINK: "link" optional = null(),
    SID: "sid" optional = null(),
});

object!(EventBookmaker: "A bookmaker's prices of one event." {
    KEY: "key" = text("Bookmaker key."),
    TITLE: "title" = text("Display name."),
    MARKETS: "markets" = list("Market", "In the order of their keys."),
    LINK: "link" optional = null(),
    SID: "sid" optional = null(),
});

object!(MarketsBookmaker: "A bookmaker's markets of one event." {
    KEY: "key" = text("Bookmaker key."),
    TITLE: "title" = text("Display name."),
    MARKETS: "markets" = list("MarketName", "In the order of their keys."),
});

object!(Market: "A bookmaker's market." {
    KEY: "key" = text("Market key."),
    LAST_UPDATE: "last_update" = schema("Time", "Time at which these prices were last confirmed, changed or not."),
    OUTCOMES: "outcomes" = list("Outcome", "In the order of their names, the draw last."),
    LINK: "link" optional = null(),
    SID: "sid" optional = null(),
});

object!(MarketName: "A market that a bookmaker offers." {
    KEY: "key" = text("Market key."),
    LAST_UPDATE: "last_update" = schema("Time", "Time at which its prices were last confirmed."),
});

object!(Outcome: "One outcome and its price." {
    NAME: "name" = text("Participant or side; `Over` and `Under` for totals."),
    DESCRIPTION: "description" optional = text(
        "The players of the pairing; present only for matchup and three_ball.",
    ),
    PRICE: "price" = json!({ "type": "number", "description": "The price, in the requested format." }),
    POINT: "point" optional = json!({
        "type": "number",
        "multipleOf": 0.25,
        "description": "The signed handicap or the total.",
    }),
    LINK: "link" optional = null(),
    SID: "sid" optional = null(),
    BET_LIMIT: "bet_limit" optional = null(),
});

fn null() -> Value {
    json!({ "type": "null", "description": "Not offered." })
}

/// The prior interface's key of a market.
pub(super) fn market_key(sport: &Sport, market: MarketId) -> &'static str {
    if sport.totals == Some(market) {
        return "totals";
    }
    match market {
        MarketId::Moneyline => "h2h",
        MarketId::Spread => "spreads",
        MarketId::Outright => "outrights",
        MarketId::Matchup
        | MarketId::RoundLeader
        | MarketId::ThreeBall
        | MarketId::Top10
        | MarketId::Top20
        | MarketId::Top5
        | MarketId::TotalPoints
        | MarketId::TotalRounds => market.key(),
    }
}

/// A rendered market: the part up to its freshness, then the rest in decimal and in American prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarketText<'a>(pub(super) &'a Rendered);

pub(super) fn render(catalogue: &Catalogue, event: &EventRow, row: &RecordRow) -> Rendered {
    if row.market.outcome_rule() == OutcomeRule::Pairing {
        // Written from the rows: all pairings are one market.
        return Rendered { bytes: Box::default(), ends: [0; 3], hash: 0 };
    }
    let mut out = String::with_capacity(320);
    push_market_head(catalogue.sport(event.details.sport), row.market, &mut out);
    let head_end = end(&out);
    let [decimal, american] = [Style::default(), Style::AMERICAN];
    push_outcomes(event, &[row], decimal, &mut out);
    out.push('}');
    let decimal_end = end(&out);
    push_outcomes(event, &[row], american, &mut out);
    out.push('}');
    let hash = xxh3_64(out.as_bytes());
    let bytes = out.into_boxed_str().into_boxed_bytes();
    Rendered { bytes, ends: [head_end, decimal_end, 0], hash }
}

fn push_market_head(sport: &Sport, market: MarketId, out: &mut String) {
    out.push_str(Market::KEY.first);
    push_plain(market_key(sport, market), out);
    out.push_str(Market::LAST_UPDATE.next);
}

/// Appends the outcomes of a market, which may have several pairings.
fn push_outcomes(event: &EventRow, rows: &[&RecordRow], style: Style, out: &mut String) {
    let format = if style.has(Style::AMERICAN) { Format::American } else { Format::Decimal };
    let described: Vec<Option<String>> = rows.iter().map(|row| description(event, row)).collect();
    let mut outcomes: Vec<(&Offer, Option<&str>)> = rows
        .iter()
        .zip(&described)
        .flat_map(|(row, of)| row.record.outcomes.iter().map(|offer| (offer, of.as_deref())))
        .collect();
    let order = |(one, of_one): &(&Offer, Option<&str>),
                 (other, of_other): &(&Offer, Option<&str>)| {
        let is_draw = |offer: &Offer| offer.name == OutcomeName::Draw;
        let name = |offer: &Offer| event.outcome_text(offer.name);
        is_draw(one)
            .cmp(&is_draw(other))
            .then_with(|| name(one).cmp(name(other)))
            .then_with(|| of_one.cmp(of_other))
            .then(one.point.cmp(&other.point))
    };
    outcomes.sort_by(order);
    out.push_str(Market::OUTCOMES.next);
    out.push('[');
    for (i, (offer, of)) in outcomes.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(Outcome::NAME.first);
        push_text(event.outcome_text(offer.name), out);
        if let Some(of) = of {
            out.push_str(Outcome::DESCRIPTION.next);
            push_text(of, out);
        }
        out.push_str(Outcome::PRICE.next);
        offer.quote.write_json(format, out);
        if let Some(point) = offer.point {
            out.push_str(Outcome::POINT.next);
            point.write_json(out);
        }
        push_links(style, out);
        if style.has(Style::BET_LIMITS) {
            out.push_str(Outcome::BET_LIMIT.next);
            out.push_str("null");
        }
        out.push('}');
    }
    out.push(']');
}

/// The names in a pairing.
fn description(event: &EventRow, row: &RecordRow) -> Option<String> {
    if row.market.outcome_rule() != OutcomeRule::Pairing {
        return None;
    }
    let players = row.record.outcomes.iter().filter(|offer| offer.name != OutcomeName::Draw);
    let mut names: Vec<&str> = players.map(|offer| event.outcome_text(offer.name)).collect();
    names.sort_unstable();
    names.dedup();
    Some(names.join(" / "))
}

/// Appends the fields for links and ids of bookmakers if they are requested.
fn push_links(style: Style, out: &mut String) {
    for (with, key) in [(Style::LINKS, Outcome::LINK), (Style::SIDS, Outcome::SID)] {
        if style.has(with) {
            out.push_str(key.next);
            out.push_str("null");
        }
    }
}

impl MarketText<'_> {
    /// Appends the market with its freshness.
    pub(super) fn write(self, stamp: &[u8], style: Style, out: &mut Vec<u8>) {
        let [head_end, decimal_end, _] = self.0.ends.map(|end| usize::try_from(end).unwrap_or(0));
        let rest = if style.has(Style::AMERICAN) {
            self.0.bytes.get(decimal_end..)
        } else {
            self.0.bytes.get(head_end..decimal_end)
        };
        out.extend_from_slice(self.0.bytes.get(..head_end).unwrap_or_default());
        out.extend_from_slice(stamp);
        out.extend_from_slice(rest.unwrap_or_default());
    }
}

/// Appends a market from its rows.
pub(super) fn write_market(
    sport: &Sport,
    event: &EventRow,
    rows: &[&RecordRow],
    style: Style,
    out: &mut Vec<u8>,
) {
    let Some(first) = rows.first() else { return };
    let mut text = String::with_capacity(512);
    push_market_head(sport, first.market, &mut text);
    out.extend_from_slice(text.as_bytes());
    put_time(latest(rows), style, out);
    text.clear();
    if !style.has(Style::MARKETS_ONLY) {
        push_outcomes(event, rows, style, &mut text);
        push_links(style, &mut text);
    }
    text.push('}');
    out.extend_from_slice(text.as_bytes());
}

/// The latest confirmation among the rows.
pub(super) fn latest(rows: &[&RecordRow]) -> Timestamp {
    rows.iter().map(|row| row.last_update).max().unwrap_or_default()
}

/// Appends a bookmaker up to its time or its markets.
pub(super) fn write_bookmaker(key: &str, title: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(Bookmaker::KEY.first.as_bytes());
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.push(b'"');
    out.extend_from_slice(Bookmaker::TITLE.next.as_bytes());
    let mut text = String::with_capacity(title.len() + 2);
    push_text(title, &mut text);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the text after a bookmaker's markets.
pub(super) fn write_bookmaker_end(style: Style, out: &mut Vec<u8>) {
    out.push(b']');
    if style.has(Style::LINKS) || style.has(Style::SIDS) {
        let mut text = String::new();
        push_links(style, &mut text);
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'}');
}
