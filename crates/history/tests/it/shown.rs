//! `odds` and `scores` describe every publication completely, including changes that were not reported.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use archive::{Archive, Compact, Entry, Part, Table};
use domain::message::Fixture;
use domain::{EventId, Format, Market, Price, Quote, Side, Status, Timestamp};
use market::change::{Listed, MarketKey, Quoted, QuotedOutcome, Reported, Who};
use market::{Book, By, Change};

use crate::log::{FROM, LOG, archive_log, assert_holds, checksum, new_book};
use crate::rows::{cell, rows};

/// Name and exact profit of each outcome, by record.
pub(crate) type Shown = BTreeMap<String, BTreeSet<(String, String, String)>>;

type Row = Vec<(String, String)>;

/// The prices that a book shows.
pub(crate) fn shown_of(book: &Book) -> Shown {
    let mut shown = Shown::new();
    for event in book.events().filter(|event| event.is_listed()) {
        for open in event.open_records() {
            let outcomes = open.record.outcomes.iter().map(|outcome| {
                let (name, price) = (event.outcome_text(outcome.name), outcome.quote.price);
                (name.to_owned(), price.profit().to_string(), price.stake().to_string())
            });
            shown.insert(open.id.to_string(), outcomes.collect());
        }
    }
    shown
}

/// The prices that the table shows at each publication: of each record the last shown rows.
fn shown_in_table(archive: &Archive, root: &Path, publications: &[Timestamp]) -> Vec<Shown> {
    let mut odds = rows(archive, root, Table::Odds);
    odds.retain(|row| cell(row, "shown") == "true");
    odds.sort_by_key(|row| cell(row, "seq").parse::<u64>().unwrap());
    let published = |row: &[(String, String)]| {
        let text = cell(row, "published_at").replace(' ', "T").replace("T+00:00", "Z");
        Timestamp::parse(&text).unwrap()
    };
    let mut all = Vec::new();
    for at in publications {
        let mut last: BTreeMap<String, (String, Vec<&Row>)> = BTreeMap::new();
        for row in odds.iter().filter(|row| published(row) <= *at) {
            let seq = cell(row, "seq").to_owned();
            let held = last.entry(cell(row, "record_id").to_owned()).or_default();
            if held.0 != seq {
                *held = (seq, Vec::new());
            }
            held.1.push(row);
        }
        let priced = last.into_iter().filter(|(_, (_, rows))| cell(rows[0], "outcomes") != "0");
        let outcome = |row: &Row| {
            let [name, num, den] = ["name", "num", "den"].map(|name| cell(row, name).to_owned());
            (name, num, den)
        };
        let shown =
            priced.map(|(record, (_, rows))| (record, rows.into_iter().map(outcome).collect()));
        all.push(shown.collect());
    }
    all
}

/// Status and scores of each listed event, and the time of their last change.
type Scores = BTreeMap<String, [String; 4]>;

fn scores_of(book: &Book) -> Scores {
    let number =
        |number: Option<i32>| number.map_or("null".to_owned(), |number| number.to_string());
    let listed = book.events().filter(|event| event.is_listed());
    let told = listed.map(|event| {
        let (score, changed) = (&event.score, event.details().score_changed);
        let status = score.status.key().to_owned();
        (event.id.to_string(), [status, number(score.home), number(score.away), text(changed)])
    });
    told.collect()
}

fn text(at: Timestamp) -> String {
    String::from_utf8_lossy(&at.millis_text()).into_owned()
}

fn time_of(row: &Row, name: &str) -> Timestamp {
    let text = cell(row, name).replace(' ', "T").replace("T+00:00", "Z");
    Timestamp::parse(&text).unwrap()
}

/// Checks the scores that `scores` has at a publication for the events listed then.
fn check_scores(scores: &[Row], at: Timestamp, expected: &Scores) {
    for (event, expected) in expected {
        let own = scores.iter().filter(|row| cell(row, "event_id") == event);
        let own =
            own.filter(|row| cell(row, "shown") == "true" && time_of(row, "published_at") <= at);
        let last = own.max_by_key(|row| cell(row, "seq").parse::<u64>().unwrap());
        assert!(last.is_some(), "{event} has no score at {at}");
        let last = last.unwrap();
        let [status, home, away] =
            ["status", "home_score", "away_score"].map(|name| cell(last, name));
        let changed = text(time_of(last, "updated_at"));
        assert_eq!(
            [status, home, away, &changed],
            expected.each_ref().map(|text| &**text),
            "{event}"
        );
    }
}

pub(crate) fn check(log: &[Entry]) -> BTreeSet<String> {
    let mut book = new_book();
    let (mut publications, mut expected, mut scored) = (Vec::new(), Vec::new(), Vec::new());
    for entry in log {
        book.absorb(&entry.change, entry.at);
        if let Change::Cut { at } = entry.change {
            publications.push(at);
            expected.push(shown_of(&book));
            scored.push(scores_of(&book));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut reasons = BTreeSet::new();
    for entries in [1, usize::MAX] {
        let root = dir.path().join(entries.to_string());
        let archive = archive_log(&root, log, entries);
        assert_holds(&archive, log);
        for compacted in [false, true] {
            let table = shown_in_table(&archive, &root, &publications);
            for (at, (table, expected)) in table.iter().zip(&expected).enumerate() {
                assert_eq!(table, expected, "publication {at}, compacted: {compacted}");
            }
            let scores = rows(&archive, &root, Table::Scores);
            for (at, scored) in publications.iter().zip(&scored) {
                check_scores(&scores, *at, scored);
            }
            let commit = archive.newest().unwrap();
            archive.compact(&commit, &Compact::All, FROM).unwrap();
        }
        assert_holds(&archive, log);
        reasons.extend(
            rows(&archive, &root, Table::Odds).iter().map(|row| cell(row, "reason").to_owned()),
        );
    }
    reasons
}

#[test]
fn the_table_shows_what_publications_of_the_sandbox_show() {
    check(&LOG);
}

/// A log written by hand.
pub(crate) struct Log(pub(crate) Vec<Entry>);

impl Log {
    pub(crate) fn push(&mut self, change: Change) {
        let seq = u64::try_from(self.0.len()).unwrap() + 1;
        let at = FROM.plus(Duration::from_secs(seq));
        self.0.push(Entry { seq, at, change });
    }

    /// Time of the last entry.
    fn time(&self) -> Timestamp {
        FROM.plus(Duration::from_secs(u64::try_from(self.0.len()).unwrap()))
    }

    pub(crate) fn publish(&mut self) {
        let seq = u64::try_from(self.0.len()).unwrap() + 1;
        self.publish_at(FROM.plus(Duration::from_secs(seq)));
    }

    /// Publishes at a time of its own.
    pub(crate) fn publish_at(&mut self, at: Timestamp) {
        self.push(Change::Cut { at });
    }

    pub(crate) fn list(&mut self, event: u64, feed: &str, home: &str) {
        self.list_for(event, feed, home, FROM.plus(Duration::from_secs(7200)));
    }

    /// Lists an event with a scheduled start.
    pub(crate) fn list_for(&mut self, event: u64, feed: &str, home: &str, at: Timestamp) {
        self.push(Change::Listed(Listed {
            event: EventId::from_number(event),
            feed: feed.into(),
            reference: format!("{event}").into(),
            sport: "mma".into(),
            competition: "Cup".into(),
            commence_time: at,
            fixture: Fixture::HeadToHead { home: home.into(), away: "Zoë".into() },
            swapped: false,
            ts: FROM,
        }));
    }

    pub(crate) fn withdraw(&mut self, event: u64, feed: &str) {
        let reference = format!("{event}").into();
        self.push(Change::Withdrawn { feed: feed.into(), reference, ts: FROM });
    }

    /// Prices at a bookmaker; 0: none.
    pub(crate) fn quote(&mut self, event: u64, bookmaker: &str, profit: u64) {
        let price = |who: Who, profit| QuotedOutcome {
            who,
            quote: Quote {
                price: Price::from_ratio(profit, 100).unwrap(),
                format: Format::American,
            },
            point: None,
        };
        let outcomes = match profit {
            0 => vec![],
            _ => vec![price(Who::Side(Side::Home), profit), price(Who::Side(Side::Away), 130)],
        };
        self.push(Change::Quoted(Quoted {
            event: EventId::from_number(event),
            market: MarketKey {
                bookmaker: bookmaker.into(),
                market: Market::Moneyline,
                group: None,
            },
            feed: bookmaker.into(),
            outcomes,
            ts: FROM.plus(Duration::from_secs(u64::try_from(self.0.len()).unwrap())),
        }));
    }

    pub(crate) fn score(&mut self, event: u64, status: Status) {
        let score = Reported {
            status,
            home: Some(1),
            away: Some(0),
            periods: vec![],
            winner: None,
            leaders: vec![],
        };
        self.push(Change::Scored { event: EventId::from_number(event), score, ts: FROM });
    }
}

/// The confirmation of prices may be in an earlier lineage, which the next one does not repeat.
#[test]
fn a_lineage_begins_with_how_fresh_it_shows_prices() {
    let mut log = Log(vec![]);
    for event in 1..=3 {
        log.list(event, "fanduel", "Ann");
        log.quote(event, "fanduel", 150);
    }
    let beat = log.time();
    log.push(Change::Beat { bookmaker: "fanduel".into(), sport: Some("mma".into()), ts: beat });
    log.quote(2, "fanduel", 160);
    log.publish();
    let base = log.0.len();
    log.quote(3, "fanduel", 170);
    log.publish();
    let mut book = new_book();
    log.0[..base].iter().for_each(|entry| book.absorb(&entry.change, entry.at));
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::create(dir.path()).unwrap();
    let commit = archive.newest().unwrap();
    let mut part = Part::founding(&commit, book, u64::try_from(base).unwrap());
    log.0[base..].iter().for_each(|entry| part.push(entry, checksum(entry)));
    part.commit(&archive, &commit).unwrap();
    let odds = rows(&archive, dir.path(), Table::Odds);
    let fresh = |event: u64| {
        let id = EventId::from_number(event).to_string();
        let row = odds.iter().find(|row| cell(row, "event_id") == id).unwrap();
        (cell(row, "last_update") != "null").then(|| time_of(row, "last_update"))
    };
    assert_eq!(fresh(1), Some(beat), "a heartbeat confirmed it");
    assert_eq!(fresh(2), Some(log.0[7].at.minus(Duration::from_secs(1))), "quoted since");
    assert_eq!(fresh(3), None, "its own row says so");
}

#[test]
fn prices_that_leave_without_a_word_of_the_bookmaker_say_why() {
    let mut log = Log(vec![]);
    for event in 1..=5 {
        log.list(event, "fanduel", "Ann");
        log.quote(event, "fanduel", 150);
    }
    log.list(2, "draftkings", "Ann");
    log.quote(2, "draftkings", 160);
    log.publish();
    // Renamed, joined with another, withdrawn by one of two feeds, final, removed, and taken back.
    log.list(1, "fanduel", "Anna");
    log.publish();
    let (elder, younger) = (EventId::from_number(1), EventId::from_number(2));
    log.push(Change::Merged { elder, younger, swapped: false, by: By::Operator });
    log.publish();
    log.withdraw(2, "draftkings");
    log.publish();
    log.quote(3, "fanduel", 170);
    log.score(3, Status::Final);
    log.publish();
    log.push(Change::Expired { event: EventId::from_number(4) });
    log.quote(5, "fanduel", 0);
    log.publish();
    log.quote(5, "fanduel", 180);
    log.quote(5, "fanduel", 190);
    log.publish();
    let reasons = check(&log.0);
    let wanted = ["final", "merged", "no_prices", "null", "removed"].map(str::to_owned);
    assert_eq!(reasons, wanted.into());
}
