//! Responses compared byte for byte: every field of the interface, in order, with its nulls (D12); and pages of
//! fragments compared with a plain selection of rows.

use std::sync::Arc;
use std::time::Duration;

use domain::{BookmakerSet, Catalogue, EventId, Format, Market, RecordId, SportId, Timestamp};
use feeds::push;
use feeds::sandbox::Simulation;
use market::select::{BoutSelection, EventSelection, OddsSelection, ScoreSelection};
use market::{Book, Ids};

use super::record::RecordText;
use super::*;
use crate::answers::CatalogueTerms;

const SALT: u64 = 7;
const STALE_AFTER: Duration = Duration::from_secs(90);
/// 2026-11-14T12:00:00Z, the start time of every test.
const START: Timestamp = Timestamp::from_secs(1_794_657_600);

const BOUT: &str = r#"{"type":"event","ref":"n-1","sport":"mma","competition":"Northern Cage 12","commence_time":"2026-11-15T12:00:00Z","home":"Tomas \"Tank\" Veldt","away":"Oren Castellane"}"#;
const MONEYLINE: &str = r#"{"type":"odds","ref":"n-1","bookmaker":"fanduel","market":"moneyline","format":"american","outcomes":[{"name":"Tomas \"Tank\" Veldt","price":150},{"name":"Oren Castellane","price":-110},{"name":"draw","price":6600}]}"#;
const OPEN: &str = r#"{"type":"event","ref":"g-1","sport":"golf","competition":"Northern Cage 12","commence_time":"2026-11-15T12:00:00Z","title":"The Harbour Open"}"#;

/// A book with the objects it needs.
struct TestBook {
    book: Book,
    now: Timestamp,
}

impl TestBook {
    fn new(lines: &[&str]) -> Self {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let book = Book::new(catalogue, Ids::Minted { salt: SALT });
        let mut book = Self { book, now: START };
        lines.iter().for_each(|line| book.push(line));
        book
    }

    fn push(&mut self, line: &str) {
        let message = push::parse_line(line.as_bytes(), self.book.catalogue(), None).unwrap();
        self.book.apply("north", &message, self.now).unwrap();
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::cut(&self.book, 0, self.now, STALE_AFTER, crate::wires(World::Live))
    }

    fn sport(&self, key: &str) -> SportId {
        self.book.catalogue().sport_id(key).unwrap()
    }

    fn odds(&self, sport: &str, format: Format) -> String {
        self.body(&Selector::List(List::Odds(
            all_odds(self.sport(sport)),
            format,
            CatalogueTerms::default(),
        )))
    }

    fn scores(&self, sport: &str) -> String {
        let (sport, limit) = (self.sport(sport), 500);
        let all = ScoreSelection { sport, status: None, events: None, limit, after: None };
        self.body(&Selector::List(List::Scores(all)))
    }

    fn events(&self, sport: &str) -> String {
        let (sport, limit) = (self.sport(sport), 500);
        let (status, events, from, to, name, after) = Default::default();
        let all = EventSelection { sport, status, events, from, to, name, limit, after };
        self.body(&Selector::List(List::Events(all)))
    }

    fn bouts(&self, sport: &str) -> String {
        let (sport, bookmakers, limit) = (self.sport(sport), BookmakerSet::ALL, 500);
        let all = BoutSelection { sport, bookmakers, events: None, limit, after: None };
        self.body(&Selector::Bouts(all, Format::American))
    }

    fn body(&self, selector: &Selector) -> String {
        text(&make(selector, &self.snapshot(), &Fragments::default()))
    }
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.encoded(None).body.whole().to_vec()).unwrap()
}

fn all_odds(sport: SportId) -> OddsSelection {
    OddsSelection {
        sport,
        bookmakers: BookmakerSet::ALL,
        bookmaker: None,
        market: None,
        events: None,
        limit: 500,
        after: None,
    }
}

fn event_id() -> EventId {
    EventId::minted(SALT, 0)
}

fn record_id(bookmaker: &str, market: Market) -> RecordId {
    RecordId::new(event_id(), bookmaker, market, None)
}

#[test]
fn an_odds_record_in_each_format() {
    let book = TestBook::new(&[BOUT, MONEYLINE]);
    let (event, id) = (event_id(), record_id("fanduel", Market::Moneyline));
    for (format, key, [home, away, draw]) in [
        (Format::American, "american", ["150", "-110", "6600"]),
        (Format::Decimal, "decimal", ["2.5", "1.909", "67"]),
        (Format::Fractional, "fractional", ["\"3/2\"", "\"10/11\"", "\"66/1\""]),
    ] {
        let expected = format!(
            r#"[{{"id":"{id}","sport_key":"mma","event_id":"{event}","bookmaker":"fanduel","market":"moneyline","format":"{key}","last_update":"2026-11-14T12:00:00Z","outcomes":[{{"name":"Tomas \"Tank\" Veldt","price":{home},"point":null}},{{"name":"Oren Castellane","price":{away},"point":null}},{{"name":"Draw","price":{draw},"point":null}}]}}]"#
        );
        assert_eq!(book.odds("mma", format), expected);
    }
}

#[test]
fn a_record_with_points() {
    let total = r#"{"type":"odds","ref":"n-1","bookmaker":"bet365","market":"total_rounds","format":"american","outcomes":[{"name":"Over","price":-115,"point":2.5},{"name":"Under","price":-105,"point":2.5}]}"#;
    let book = TestBook::new(&[BOUT, total]);
    let (event, id) = (event_id(), record_id("bet365", Market::TotalRounds));
    let expected = format!(
        r#"[{{"id":"{id}","sport_key":"mma","event_id":"{event}","bookmaker":"bet365","market":"total_rounds","format":"american","last_update":"2026-11-14T12:00:00Z","outcomes":[{{"name":"Over","price":-115,"point":2.5}},{{"name":"Under","price":-105,"point":2.5}}]}}]"#
    );
    assert_eq!(book.odds("mma", Format::American), expected);
}

#[test]
fn a_head_to_head_event_has_no_title() {
    let expected = format!(
        r#"[{{"id":"{}","sport_key":"mma","competition":"Northern Cage 12","commence_time":"2026-11-15T12:00:00Z","home_team":"Tomas \"Tank\" Veldt","away_team":"Oren Castellane","status":"scheduled","markets":["moneyline"]}}]"#,
        event_id()
    );
    assert_eq!(TestBook::new(&[BOUT, MONEYLINE]).events("mma"), expected);
}

#[test]
fn a_golf_event_has_a_title_and_no_teams() {
    let mut book = TestBook::new(&[OPEN]);
    for market in ["top5", "top10", "outright"] {
        book.push(&format!(
            r#"{{"type":"odds","ref":"g-1","bookmaker":"fanduel","market":"{market}","format":"american","outcomes":[{{"name":"Kim Sato","price":900}}]}}"#
        ));
    }
    let expected = format!(
        r#"[{{"id":"{}","sport_key":"golf","title":"The Harbour Open","competition":"Northern Cage 12","commence_time":"2026-11-15T12:00:00Z","home_team":null,"away_team":null,"status":"scheduled","markets":["outright","top10","top5"]}}]"#,
        event_id()
    );
    assert_eq!(book.events("golf"), expected);
}

#[test]
fn a_score_before_during_and_after() {
    let mut book = TestBook::new(&[BOUT]);
    let head = format!(r#"[{{"event_id":"{}","sport_key":"mma","status":"#, event_id());
    let teams = r#""home_team":"Tomas \"Tank\" Veldt","away_team":"Oren Castellane""#;
    assert_eq!(
        book.scores("mma"),
        format!(
            r#"{head}"scheduled",{teams},"home_score":null,"away_score":null,"periods":[],"updated_at":"2026-11-14T12:00:00Z"}}]"#
        )
    );
    book.now = START.plus(Duration::from_secs(60));
    book.push(
        r#"{"type":"score","ref":"n-1","status":"live","home_score":1,"away_score":0,"periods":[{"number":1,"home_score":10,"away_score":9}]}"#,
    );
    assert_eq!(
        book.scores("mma"),
        format!(
            r#"{head}"live",{teams},"home_score":1,"away_score":0,"periods":[{{"number":1,"home_score":10,"away_score":9}}],"updated_at":"2026-11-14T12:01:00Z"}}]"#
        )
    );
    book.push(
        r#"{"type":"score","ref":"n-1","status":"final","home_score":1,"away_score":2,"winner":"Oren Castellane"}"#,
    );
    assert_eq!(
        book.scores("mma"),
        format!(
            r#"{head}"final",{teams},"home_score":1,"away_score":2,"periods":[],"updated_at":"2026-11-14T12:01:00Z","winner":"Oren Castellane"}}]"#
        )
    );
}

#[test]
fn a_golf_score() {
    let mut book = TestBook::new(&[OPEN]);
    let head = format!(r#"[{{"event_id":"{}","sport_key":"golf","status":"#, event_id());
    let none = r#""home_score":null,"away_score":null,"periods":["#;
    let at = r#""updated_at":"2026-11-14T12:00:00Z"}]"#;
    assert_eq!(
        book.scores("golf"),
        format!(r#"{head}"scheduled","home_team":"TBD","away_team":"TBD",{none}],{at}"#)
    );
    book.push(
        r#"{"type":"score","ref":"g-1","status":"live","leaders":[{"name":"Kim Sato","rounds":[68,70]},{"name":"Ivo Brandt","rounds":[69,71]}]}"#,
    );
    assert_eq!(
        book.scores("golf"),
        format!(
            r#"{head}"live","home_team":"Kim Sato","away_team":"Ivo Brandt",{none}{{"number":1,"home_score":68,"away_score":69}},{{"number":2,"home_score":70,"away_score":71}}],{at}"#
        )
    );
}

#[test]
fn the_grouped_shape() {
    // A bout without a price is omitted; a source that only sends heartbeats is present, late and stale.
    let other = r#"{"type":"event","ref":"n-2","sport":"mma","competition":"Northern Cage 12","commence_time":"2026-11-15T00:00:00Z","home":"Milan Dray","away":"Pavel Orsk"}"#;
    let mut book = TestBook::new(&[BOUT, MONEYLINE, other]);
    book.now = START.plus(Duration::from_secs(90));
    book.push(
        r#"{"type":"heartbeat","bookmaker":"bet365","sport":"mma","ts":"2026-11-14T11:59:50Z"}"#,
    );
    book.now = book.now.plus(Duration::from_millis(250));
    book.push(&MONEYLINE.replace(r#""ref":"n-1""#, r#""ref":"n-1","ts":"2026-11-14T12:01:29Z""#));
    let expected = r#"{"sport":"mma","generated_at":"2026-11-14T12:01:30.250Z","sources":[{"book":"bet365","last_update":"2026-11-14T11:59:50Z","stale":true,"latency_ms":100000},{"book":"fanduel","last_update":"2026-11-14T12:01:29Z","stale":false,"latency_ms":1250}],"bouts":[{"home":"Tomas \"Tank\" Veldt","away":"Oren Castellane","commence_time":"2026-11-15T12:00:00Z","books":[{"book":"fanduel","last_update":"2026-11-14T12:01:29Z","outcomes":[{"name":"Tomas \"Tank\" Veldt","price":150},{"name":"Oren Castellane","price":-110},{"name":"Draw","price":6600}]}]}]}"#;
    assert_eq!(book.bouts("mma"), expected);
}

#[test]
fn nothing_is_an_empty_answer() {
    let book = TestBook::new(&[]);
    assert_eq!(book.odds("golf", Format::Decimal), "[]");
    assert_eq!(book.events("golf"), "[]");
    assert_eq!(book.scores("golf"), "[]");
    let grouped =
        r#"{"sport":"boxing","generated_at":"2026-11-14T12:00:00.000Z","sources":[],"bouts":[]}"#;
    assert_eq!(book.bouts("boxing"), grouped);
}

#[test]
fn a_snapshot_that_was_cut_for_no_wire_answers_the_same() {
    let book = TestBook::new(&[BOUT, MONEYLINE]);
    let bare = Snapshot::cut(&book.book, 0, book.now, STALE_AFTER, &[]);
    let odds = Selector::List(List::Odds(
        all_odds(book.sport("mma")),
        Format::Decimal,
        CatalogueTerms::default(),
    ));
    let event = Selector::Event(book.sport("mma"), event_id());
    for selector in [odds, event] {
        let answer = make(&selector, &bare, &Fragments::default());
        assert_eq!(text(&answer), book.body(&selector));
    }
}

/// A sandbox market: hundreds of events, a few dozen bookmakers.
fn simulated() -> TestBook {
    let mut book = TestBook::new(&[]);
    let simulation = Simulation::new(7, Arc::clone(book.book.catalogue()));
    for message in simulation.world_at(START) {
        book.book.apply("sandbox", &message, START).unwrap();
    }
    book
}

/// Many filters, limits and cursors, more than fragments are cached for: each page has exactly the records of a plain
/// selection of rows, and its tag depends only on its content.
#[test]
fn pages_of_fragments_have_the_rows_that_are_selected() {
    let book = simulated();
    let (snapshot, fragments) = (book.snapshot(), Fragments::default());
    let sport = book.sport("mma");
    let ids: Vec<_> = snapshot.catalogue().bookmakers().map(|(id, _)| id).collect();
    let events: Vec<EventId> = snapshot.sport(sport).events.iter().map(|event| event.id).collect();
    let mut pages = 0;
    for at in 0..60_usize {
        let mut bookmakers = BookmakerSet::default();
        ids.iter().skip(at % 3).step_by(1 + at % 5).for_each(|id| bookmakers.insert(*id));
        let mut some: Vec<EventId> = events.iter().copied().step_by(2 + at % 3).collect();
        some.sort_unstable();
        let mut selection = OddsSelection {
            bookmakers,
            market: [None, Some(Market::Moneyline), Some(Market::Spread)][at % 3],
            events: at.is_multiple_of(4).then(|| some.into()),
            limit: [500, 1 + at, 37][at % 3],
            ..all_odds(sport)
        };
        let format = Format::ALL[at % 3];
        for _ in 0..5 {
            let selector =
                Selector::List(List::Odds(selection.clone(), format, CatalogueTerms::default()));
            let answer = make(&selector, &snapshot, &fragments);
            let alone = make(&selector, &snapshot, &Fragments::default());
            assert_eq!(answer.encoded(None).etag, alone.encoded(None).etag);
            let page = selection.select(&snapshot);
            assert_eq!(text(&answer), written(&snapshot, sport, &page.items, format));
            let next = answer.next.as_deref();
            assert_eq!(next.map(ToOwned::to_owned), page.next.as_ref().map(cursor::encode));
            pages += 1;
            let Some(next) = next else { break };
            selection.after = cursor::decode(next, cursor::Paging::Records);
        }
    }
    assert!(pages > 150, "{pages}");
    // The last cached fragment may exceed the bound: one event's records, and the tables of positions.
    let bound = 512 * snapshot.sport(sport).records.len() + 256 * 1024;
    assert!((1..=bound).contains(&fragments.kept_bytes()), "{}", fragments.kept_bytes());
}

fn written(snapshot: &Snapshot, sport: SportId, rows: &[&RecordRow], format: Format) -> String {
    let texts = rows.iter().map(|row| {
        let event = &snapshot.sport(sport).events[usize::try_from(row.event).unwrap()];
        let mut out = Vec::new();
        let record = RecordText(snapshot.rendered_record(&V1, event, row));
        record.write(format, &row.last_update.seconds_text(), &mut out);
        String::from_utf8(out).unwrap()
    });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// Fragments built for one response are cached for the next, which has another limit or filter.
#[test]
fn tags_of_pages_differ_where_their_content_does() {
    let book = TestBook::new(&[BOUT, MONEYLINE, &MONEYLINE.replace("fanduel", "bet365")]);
    let (snapshot, fragments) = (book.snapshot(), Fragments::default());
    let of = |limit| {
        let all = OddsSelection { limit, ..all_odds(book.sport("mma")) };
        make(
            &Selector::List(List::Odds(all, Format::Decimal, CatalogueTerms::default())),
            &snapshot,
            &fragments,
        )
        .encoded(None)
        .etag
        .clone()
    };
    let before = of(1);
    assert_ne!(before, of(2));
    assert_eq!(before, of(1));
    assert_eq!(of(2), of(500), "both are all there is");
}
