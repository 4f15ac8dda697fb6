//! The answers of the model: every record, event and score, sorted and written again each time.

use std::time::Duration;

use domain::message::Fixture;
use domain::{
    BookmakerId, EventId, Format, Line, Market, Quote, RecordId, Side, SportId, Status, Timestamp,
};
use serde_json::{Value, json};

use crate::model::{Happening, Model, Pricing, Reading, Who};
use crate::vocabulary::{LINES, PRICES};

/// Start, event id, bookmaker and market.
type Place = (Timestamp, String, String, &'static str);

/// A record with the fields used by filters.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) event: EventId,
    pub(crate) bookmaker: BookmakerId,
    pub(crate) market: Market,
    pub(crate) id: String,
    /// In American, decimal and fractional form.
    pub(crate) answers: [Value; 3],
}

impl Model {
    /// Every record of the sport in the order of answers.
    pub(crate) fn records(&self, sport: SportId) -> Vec<Row> {
        let mut rows: Vec<(Place, Row)> = vec![];
        for price in self.prices.iter().filter(|price| !price.outcomes.is_empty()) {
            let event = self.event(price.event);
            if event.sport != sport {
                continue;
            }
            let bookmaker = self.catalogue.bookmaker(price.bookmaker).key.to_string();
            let market = price.market.key();
            let group = price.group.as_deref();
            let id = RecordId::new(event.id, &bookmaker, price.market, group).to_string();
            let answers = Format::ALL.map(|format| {
                json!({
                    "id": id,
                    "sport_key": &*self.catalogue.sport(sport).key,
                    "event_id": event.id.to_string(),
                    "bookmaker": bookmaker,
                    "market": market,
                    "format": format.key(),
                    "last_update": price.confirmed.to_string(),
                    "outcomes": outcomes_json(event, price, format, Points::Shown),
                })
            });
            let place = (event.start, event.id.to_string(), bookmaker, market);
            let (event, bookmaker, market) = (event.id, price.bookmaker, price.market);
            rows.push((place, Row { event, bookmaker, market, id, answers }));
        }
        rows.sort_by(|(place, row), (other_place, other)| {
            (place, &row.id).cmp(&(other_place, &other.id))
        });
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Listed events in the order of answers.
    pub(crate) fn listed_events(&self, sport: SportId) -> Vec<&Happening> {
        let shown = |event: &&Happening| event.sport == sport && !event.listers.is_empty();
        let mut events: Vec<&Happening> = self.events.iter().filter(shown).collect();
        events.sort_by_key(|event| (event.start, event.id.to_string()));
        events
    }

    pub(crate) fn event_json(&self, event: &Happening) -> Value {
        let mut markets: Vec<&str> = self
            .prices
            .iter()
            .filter(|price| price.event == event.id && !price.outcomes.is_empty())
            .map(|price| price.market.key())
            .collect();
        markets.sort_unstable();
        markets.dedup();
        let mut json = json!({
            "id": event.id.to_string(),
            "sport_key": &*self.catalogue.sport(event.sport).key,
            "competition": event.competition,
            "commence_time": event.start.to_string(),
            "home_team": null,
            "away_team": null,
            "status": event.report.status.key(),
            "markets": markets,
        });
        match &event.fixture {
            Fixture::HeadToHead { home, away } => {
                json["home_team"] = json!(home);
                json["away_team"] = json!(away);
            }
            Fixture::Field { title } => json["title"] = json!(title),
        }
        json
    }

    pub(crate) fn score_json(&self, event: &Happening) -> Value {
        let report = &event.report;
        let leader = |place: usize| {
            let name = report.leaders.get(place).map(|(who, _)| event.player(*who));
            name.unwrap_or("TBD").to_owned()
        };
        let (home, away) = match &event.fixture {
            Fixture::HeadToHead { home, away } => (home.to_string(), away.to_string()),
            Fixture::Field { .. } => (leader(0), leader(1)),
        };
        let mut periods: Vec<Value> = vec![];
        for period in &report.periods {
            periods.push(json!({
                "number": period.number, "home_score": period.home, "away_score": period.away
            }));
        }
        if report.leaders.len() >= 2 {
            let (first, second) = (&report.leaders[0].1, &report.leaders[1].1);
            for round in 0..first.len().min(second.len()) {
                periods.push(json!({
                    "number": round + 1, "home_score": first[round], "away_score": second[round]
                }));
            }
        }
        let mut json = json!({
            "event_id": event.id.to_string(),
            "sport_key": &*self.catalogue.sport(event.sport).key,
            "status": report.status.key(),
            "home_team": home,
            "away_team": away,
            "home_score": report.home,
            "away_score": report.away,
            "periods": periods,
            "updated_at": event.changed.to_string(),
        });
        let fight = self.catalogue.sport(event.sport).bouts;
        if let (true, Status::Final, Some(winner)) = (fight, report.status, report.winner) {
            json["winner"] = json!(if winner == Side::Home { home } else { away });
        }
        json
    }

    /// The grouped form, for the bookmakers that pass.
    pub(crate) fn grouped_json(
        &self,
        sport: SportId,
        passes: impl Fn(BookmakerId) -> bool,
        format: Format,
        now: Timestamp,
        stale_after: Duration,
    ) -> Value {
        let mut sources: Vec<(&str, Value)> = vec![];
        for s in self.sources.iter().filter(|s| s.sport == sport && passes(s.bookmaker)) {
            let book = &*self.catalogue.bookmaker(s.bookmaker).key;
            let json = json!({
                "book": book,
                "last_update": s.read.unwrap().to_string(),
                "stale": s.is_stale(now, stale_after),
                "latency_ms": s.latency_ms,
            });
            sources.push((book, json));
        }
        sources.sort_by_key(|(book, _)| *book);
        let mut bouts: Vec<Value> = vec![];
        for event in self.listed_events(sport) {
            let mut books: Vec<(&str, Value)> = vec![];
            for price in self.prices.iter().filter(|price| {
                price.event == event.id
                    && price.market == Market::Moneyline
                    && !price.outcomes.is_empty()
                    && passes(price.bookmaker)
            }) {
                let book = &*self.catalogue.bookmaker(price.bookmaker).key;
                let json = json!({
                    "book": book,
                    "last_update": price.confirmed.to_string(),
                    "outcomes": outcomes_json(event, price, format, Points::LeftOut),
                });
                books.push((book, json));
            }
            books.sort_by_key(|(book, _)| *book);
            let Fixture::HeadToHead { home, away } = &event.fixture else { continue };
            if !books.is_empty() {
                let books: Vec<Value> = books.into_iter().map(|(_, json)| json).collect();
                bouts.push(json!({
                    "home": home,
                    "away": away,
                    "commence_time": event.start.to_string(),
                    "books": books,
                }));
            }
        }
        json!({
            "sport": &*self.catalogue.sport(sport).key,
            "generated_at": String::from_utf8(now.millis_text().to_vec()).unwrap(),
            "sources": sources.into_iter().map(|(_, json)| json).collect::<Vec<Value>>(),
            "bouts": bouts,
        })
    }

    /// Whether the sport is active, its number of open events, and of bookmakers with prices.
    pub(crate) fn summary(
        &self,
        sport: SportId,
        now: Timestamp,
        stale_after: Duration,
    ) -> (bool, usize, usize) {
        let fresh = |s: &Reading| s.sport == sport && !s.is_stale(now, stale_after);
        let open = |event: &&&Happening| event.report.status != Status::Final;
        let mut pricing: Vec<BookmakerId> =
            self.records(sport).iter().map(|row| row.bookmaker).collect();
        pricing.sort_unstable();
        pricing.dedup();
        let events = self.listed_events(sport);
        (self.sources.iter().any(fresh), events.iter().filter(open).count(), pricing.len())
    }

    pub(crate) fn is_degraded(&self, now: Timestamp, stale_after: Duration) -> bool {
        self.sources.iter().any(|source| source.is_stale(now, stale_after))
    }
}

/// Kind of outcome, player, line.
type Rank = (usize, String, Option<Line>);

#[derive(Clone, Copy, PartialEq)]
enum Points {
    Shown,
    LeftOut,
}

/// Sides first, then draw, over, under; players by name; lines ascending.
fn outcomes_json(event: &Happening, price: &Pricing, format: Format, points: Points) -> Value {
    let (home, away) = match &event.fixture {
        Fixture::HeadToHead { home, away } => (&**home, &**away),
        Fixture::Field { .. } => ("", ""),
    };
    let mut rows: Vec<(Rank, Value)> = vec![];
    for outcome in &price.outcomes {
        let (rank, name) = match outcome.who {
            Who::Side(Side::Home) => (0, home),
            Who::Side(Side::Away) => (1, away),
            Who::Draw => (2, "Draw"),
            Who::Over => (3, "Over"),
            Who::Under => (4, "Under"),
            Who::Person(who) => (5, event.player(who)),
        };
        let quoted = PRICES
            .iter()
            .find(|p| Quote::parse(p.text, p.format).unwrap() == outcome.quote)
            .unwrap();
        let at = Format::ALL.iter().position(|f| *f == format).unwrap();
        let mut json = json!({
            "name": name,
            "price": serde_json::from_str::<Value>(quoted.answers[at]).unwrap(),
        });
        if points == Points::Shown {
            let written = |line: &&&str| Line::parse(line).ok() == outcome.point;
            let line = LINES.iter().find(written).filter(|_| outcome.point.is_some());
            json["point"] = line.map_or(Value::Null, |line| serde_json::from_str(line).unwrap());
        }
        let player = if rank == 5 { name.to_owned() } else { String::new() };
        rows.push(((rank, player, outcome.point), json));
    }
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    rows.into_iter().map(|(_, json)| json).collect()
}
