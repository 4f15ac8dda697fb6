//! The board: a live odds screen. Events are rows, bookmakers columns; the best price of each outcome is marked,
//! prices of a bookmaker that is late are greyed.
//!
//! Made from the snapshot in force, as the API's answers are. The page works as it stands; its script asks for the
//! prices again when the next snapshot is due and changes the cells that moved.

use std::collections::BTreeMap;

use askama::Template;
use bytes::Bytes;
use domain::{BookmakerId, Format, Line, Market, Price, Region, SportId, Status, World};
use market::SportView;
use market::book::{Outcome, OutcomeName};
use serde_json::json;

use crate::dashboard::asset;
use crate::dashboard::moment::{Moment, span};
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::route::BoardAct;
use crate::dashboard::visit::Visit;
use crate::encoding::Encoding;
use crate::reply::Reply;

/// Events on one board: the next ones.
const EVENTS_MAX: usize = 100;
/// Markets between two sides, or over and under a line. A field's markets have a hundred outcomes each, which is
/// another page.
const MARKETS: [Market; 4] =
    [Market::Moneyline, Market::Spread, Market::TotalPoints, Market::TotalRounds];

/// What to show, as the address says; anything else in it means the default.
struct Choice {
    sport: SportId,
    market: Market,
    format: Format,
    region: Option<Region>,
}

struct Link {
    title: String,
    query: String,
    current: bool,
}

struct Column {
    id: BookmakerId,
    title: String,
    /// How late the bookmaker is, where it is.
    late: Option<String>,
}

struct Cell {
    key: String,
    price: String,
    point: String,
    best: bool,
    stale: bool,
}

struct Row {
    outcome: String,
    cells: Vec<Option<Cell>>,
}

struct Match {
    title: String,
    live: bool,
    starts: Moment,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "board.html")]
struct BoardPage {
    shell: Shell,
    script: &'static str,
    sandbox: bool,
    sport: String,
    sport_key: String,
    sports: Vec<Link>,
    markets: Vec<Link>,
    formats: Vec<Link>,
    regions: Vec<Link>,
    columns: Vec<Column>,
    matches: Vec<Match>,
    query: String,
    cut: Moment,
    every_ms: u128,
}

pub(crate) fn answer(visit: &Visit<'_>, page: BoardAct) -> Result<Reply, Trouble> {
    let world = visit.app.settings.dashboard.board.ok_or(Trouble::NotFound)?;
    if page == BoardAct::Front {
        let first = sports(visit).next().ok_or(Trouble::NotFound)?;
        return Ok(page::redirect(&format!("/board/{}", visit.app.catalogue.sport(first).key)));
    }
    let choice = Choice::read(visit)?;
    let published = visit.app.world(world).published();
    let cut_at = published.snapshot.cut_at;
    let view = published.snapshot.sport(choice.sport);
    let columns = columns(visit, &choice, view);
    let matches = matches(visit, &choice, view, &columns);
    if page == BoardAct::Prices {
        return Ok(prices(visit, cut_at.as_millis(), &matches));
    }
    let sport = visit.app.catalogue.sport(choice.sport);
    let (links, query) = (choice.links(visit), choice.query());
    let [markets, formats, regions] = links;
    let page = BoardPage {
        shell: Shell::new(visit, "Board", "board"),
        script: asset::board_path(),
        sandbox: world == World::Sandbox,
        sport: sport.title.to_string(),
        sport_key: sport.key.to_string(),
        sports: sports(visit)
            .map(|id| {
                let own = visit.app.catalogue.sport(id);
                // The format and the region go along; a market that the sport does not have does not.
                Link {
                    title: own.title.to_string(),
                    query: format!("/board/{}{query}", own.key),
                    current: id == choice.sport,
                }
            })
            .collect(),
        markets,
        formats,
        regions,
        columns,
        matches,
        query,
        cut: Moment::new(cut_at, visit.now),
        every_ms: visit.app.world(world).refresh_interval().as_millis().max(1000),
    };
    Ok(packed(visit, page::render(200, &page)?))
}

/// Sports that have a market the board can show.
fn sports<'a>(visit: &'a Visit<'_>) -> impl Iterator<Item = SportId> + 'a {
    let shown = |markets: &[Market]| markets.iter().any(|market| MARKETS.contains(market));
    visit.app.catalogue.sports().filter(move |(_, sport)| shown(&sport.markets)).map(|(id, _)| id)
}

impl Choice {
    fn read(visit: &Visit<'_>) -> Result<Self, Trouble> {
        let catalogue = &visit.app.catalogue;
        let sport = catalogue.sport_id(visit.id).ok_or(Trouble::NotFound)?;
        let offered = offered(&catalogue.sport(sport).markets);
        let market = Market::parse(visit.query.get("market")).filter(|own| offered.contains(own));
        let market = market.or(offered.first().copied()).ok_or(Trouble::NotFound)?;
        let format = Format::ALL.into_iter().find(|own| own.key() == visit.query.get("format"));
        let region = Region::ALL.into_iter().find(|own| own.key() == visit.query.get("region"));
        Ok(Self { sport, market, format: format.unwrap_or(Format::Decimal), region })
    }

    fn query(&self) -> String {
        let region = self.region.map_or("all", Region::key);
        format!("?market={}&format={}&region={region}", self.market.key(), self.format.key())
    }

    /// The other ways to look at it: markets, formats, regions.
    fn links(&self, visit: &Visit<'_>) -> [Vec<Link>; 3] {
        let link = |title: &str, other: Self, current: bool| Link {
            title: title.replace('_', " "),
            query: other.query(),
            current,
        };
        let markets = offered(&visit.app.catalogue.sport(self.sport).markets);
        let markets = markets
            .into_iter()
            .map(|market| link(market.key(), Self { market, ..*self }, market == self.market));
        let formats = Format::ALL
            .into_iter()
            .map(|format| link(format.key(), Self { format, ..*self }, format == self.format));
        let all = [None].into_iter().chain(Region::ALL.map(Some));
        let regions = all.map(|region| {
            let title = region.map_or("all", Region::key);
            link(title, Self { region, ..*self }, region == self.region)
        });
        [markets.collect(), formats.collect(), regions.collect()]
    }
}

fn offered(markets: &[Market]) -> Vec<Market> {
    MARKETS.into_iter().filter(|market| markets.contains(market)).collect()
}

fn columns(visit: &Visit<'_>, choice: &Choice, view: &SportView) -> Vec<Column> {
    let catalogue = &visit.app.catalogue;
    let here = |id: BookmakerId| {
        choice.region.is_none_or(|region| catalogue.bookmaker(id).regions.contains(&region))
    };
    let mut columns: Vec<Column> = view
        .sources
        .iter()
        .filter(|source| here(source.bookmaker))
        .map(|source| Column {
            id: source.bookmaker,
            title: catalogue.bookmaker(source.bookmaker).title.to_string(),
            late: source.stale.then(|| span(visit.now.since(source.source.read_at))),
        })
        .collect();
    // Where there is little room, what is seen first is fresh.
    columns.sort_by_key(|column| (column.late.is_some(), column.title.to_lowercase()));
    columns
}

fn matches(visit: &Visit<'_>, choice: &Choice, view: &SportView, columns: &[Column]) -> Vec<Match> {
    let open = view.events.iter().filter(|event| event.status != Status::Final);
    let priced = open.filter_map(|event| {
        let range =
            usize::try_from(event.records.start).ok()?..usize::try_from(event.records.end).ok()?;
        let records = view.records.get(range)?;
        let mut lines: BTreeMap<OutcomeName, BTreeMap<BookmakerId, Outcome>> = BTreeMap::new();
        for record in records.iter().filter(|record| record.market == choice.market) {
            for outcome in &record.record.outcomes {
                lines.entry(outcome.name).or_default().insert(record.bookmaker, *outcome);
            }
        }
        if lines.is_empty() {
            return None;
        }
        let (home, away) = (plain(&event.texts.home), plain(&event.texts.away));
        let rows = lines.iter().map(|(name, offers)| Row {
            outcome: outcome_text(*name, &home, &away),
            cells: cells(choice, columns, offers, &format!("{}-{}", event.id, short(*name))),
        });
        Some(Match {
            title: format!("{home} v {away}"),
            live: event.status == Status::Live,
            starts: Moment::new(event.commence_time, visit.now),
            rows: rows.collect(),
        })
    });
    priced.take(EVENTS_MAX).collect()
}

/// One outcome at every bookmaker. The best is the best price that is not late, among those on the line that
/// most bookmakers have: prices on other lines are prices of other bets.
fn cells(
    choice: &Choice,
    columns: &[Column],
    offers: &BTreeMap<BookmakerId, Outcome>,
    key: &str,
) -> Vec<Option<Cell>> {
    let fresh = |column: &&Column| column.late.is_none();
    let usual = usual_line(offers.values().map(|offer| offer.point));
    let best: Option<Price> = columns
        .iter()
        .filter(fresh)
        .filter_map(|column| offers.get(&column.id))
        .filter(|offer| Some(offer.point) == usual)
        .map(|offer| offer.quote.price)
        .max();
    let cell = |column: &Column| {
        let offer = offers.get(&column.id)?;
        let stale = column.late.is_some();
        let price = offer.quote.price;
        Some(Cell {
            key: format!("{key}-{}", column.id.index()),
            price: shown(offer, choice.format),
            point: offer.point.map(signed).unwrap_or_default(),
            best: !stale && best == Some(price) && Some(offer.point) == usual,
            stale,
        })
    };
    columns.iter().map(cell).collect()
}

fn usual_line(points: impl Iterator<Item = Option<Line>>) -> Option<Option<Line>> {
    let mut counts: BTreeMap<Option<i32>, (u32, Option<Line>)> = BTreeMap::new();
    for point in points {
        counts.entry(point.map(Line::quarters)).or_insert((0, point)).0 += 1;
    }
    counts.into_values().max_by_key(|(count, _)| *count).map(|(_, point)| point)
}

/// A price as the board writes it: with its sign, and with at least two places, so that columns line up.
fn shown(offer: &Outcome, format: Format) -> String {
    let text = offer.quote.to_json(format);
    let text = text.trim_matches('"');
    match format {
        Format::American if !text.starts_with('-') => format!("+{text}"),
        Format::American | Format::Fractional => text.to_owned(),
        Format::Decimal => {
            let places = text.split_once('.').map_or(0, |(_, places)| places.len());
            let dot = if places == 0 { "." } else { "" };
            format!("{text}{dot}{}", "0".repeat(2_usize.saturating_sub(places)))
        }
    }
}

fn signed(line: Line) -> String {
    let mut text = String::new();
    line.write_json(&mut text);
    if line.quarters() > 0 { format!("+{text}") } else { text }
}

fn outcome_text(name: OutcomeName, home: &str, away: &str) -> String {
    match name {
        OutcomeName::Home => home.to_owned(),
        OutcomeName::Away => away.to_owned(),
        OutcomeName::Draw => "Draw".to_owned(),
        OutcomeName::Over => "Over".to_owned(),
        OutcomeName::Under => "Under".to_owned(),
        OutcomeName::Entrant(number) => format!("Entrant {number}"),
    }
}

fn short(name: OutcomeName) -> String {
    match name {
        OutcomeName::Home => "h".to_owned(),
        OutcomeName::Away => "a".to_owned(),
        OutcomeName::Draw => "d".to_owned(),
        OutcomeName::Over => "o".to_owned(),
        OutcomeName::Under => "u".to_owned(),
        OutcomeName::Entrant(number) => format!("e{number}"),
    }
}

/// A name out of its JSON text.
fn plain(text: &str) -> String {
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}

/// Every price that is shown, for the page's script: it changes what moved.
fn prices(visit: &Visit<'_>, cut_ms: i64, matches: &[Match]) -> Reply {
    let rows = matches.iter().flat_map(|own| &own.rows);
    let cells: serde_json::Map<String, serde_json::Value> = rows
        .flat_map(|row| row.cells.iter().flatten())
        .map(|cell| (cell.key.clone(), json!([cell.price, cell.point, cell.best, cell.stale])))
        .collect();
    let tag = format!("\"{cut_ms}\"");
    let mut reply = if visit.asked.holds(&tag) {
        Reply::new(304, "application/json", "")
    } else {
        Reply::new(200, "application/json", json!({ "cut": cut_ms, "cells": cells }).to_string())
    };
    reply.head.put("etag", tag);
    reply.head.put("cache-control", "no-cache");
    reply.head.put("x-content-type-options", "nosniff");
    packed(visit, reply)
}

/// Packed as the browser likes. Only for pages on which nothing that a visitor sent is shown again beside a
/// secret of theirs: the size of such a page would tell about the secret.
fn packed(visit: &Visit<'_>, mut reply: Reply) -> Reply {
    reply.head.put("vary", "Accept-Encoding");
    let encoding = Encoding::negotiate(visit.asked.accept_encoding.as_deref(), reply.body.len());
    if let Some(body) = encoding.encode(&reply.body) {
        reply.body = Bytes::from(body);
        reply.head.put("content-encoding", encoding.token());
    }
    reply
}
