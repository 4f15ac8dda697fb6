//! Price histories, compared with a model that reads every publication.

mod starts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use archive::{
    Archive, Commit, Compact, Entry, EventPast, Export, ExportFormat, Hold, Part, PathPlace,
    RecordPath, Rows, StartBy, Table, Wanted,
};
use domain::message::Body;
use domain::{EventId, Status, Timestamp};
use feeds::sandbox::Simulation;
use market::book::ImagePart;
use market::change::{MarketKey, Quoted};
use market::{Book, Change, Ids, Lifetimes, Snapshot};

use crate::log::{CATALOGUE, FROM, archive_log, book_at_end, checksum, go_on, new_book, next_part};
use crate::shown::Log;

const EPOCH: Duration = Duration::from_secs(60);

/// Some events of the sandbox for two hours.
static HOURS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let simulation = Simulation::new(7, Arc::clone(&CATALOGUE));
    let ids = Ids::Derived { salt: 7 };
    let mut book = Book::new(Arc::clone(&CATALOGUE), ids);
    let mut entries = Vec::new();
    let mut log = |at: Timestamp, change: Change| {
        let seq = u64::try_from(entries.len()).unwrap() + 1;
        entries.push(Entry { seq, at, change });
    };
    log(FROM, Change::Founded { ids });
    let mut messages = simulation.world_at(FROM);
    let mut count = 0_u32;
    messages.retain(|message| {
        let Body::Event { listing, .. } = &message.body else { return true };
        let soon = listing.commence_time < FROM.plus(Duration::from_secs(7200));
        count += u32::from(soon);
        soon && listing.commence_time > FROM && count.is_multiple_of(3)
    });
    let lifetimes = Lifetimes {
        final_retention: Duration::from_secs(1800),
        forget_after: Duration::from_secs(24 * 3600),
    };
    for epoch in 0..120 {
        let at = FROM.plus(EPOCH * epoch);
        if epoch > 0 {
            messages = simulation.between(at.minus(EPOCH), at);
            messages.retain(|message| !matches!(message.body, Body::Event { .. }));
        }
        for message in &messages {
            let Ok(decision) = book.apply("sandbox", message, at) else { continue };
            decision.change.into_iter().chain(decision.follow).for_each(|change| log(at, change));
        }
        if epoch == 2 {
            for change in withdrawals(&book, at) {
                book.absorb(&change, at);
                log(at, change);
            }
        }
        for change in book.overdue(at, lifetimes) {
            book.absorb(&change, at);
            log(at, change);
        }
        log(at, Change::Cut { at });
    }
    entries
});

/// One bookmaker of each event withdraws its prices.
fn withdrawals(book: &Book, ts: Timestamp) -> Vec<Change> {
    let first = |event: &market::book::Event| {
        let open = event.open_records().next()?;
        let bookmaker = book.catalogue().bookmaker(open.bookmaker).key.clone();
        let group = open.group.map(Into::into);
        let market = MarketKey { bookmaker, market: open.market, group };
        let (event, feed, outcomes) = (event.id, "sandbox".into(), Vec::new());
        Some(Change::Quoted(Quoted { event, market, feed, outcomes, ts }))
    };
    book.events().filter_map(first).collect()
}

/// Name and price of each outcome, and its point with the exact price, which may change without the price.
type Prices = Vec<(String, String, String)>;

/// The history of a record: the published changes, and the closing line.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecordHistory {
    points: Vec<(Timestamp, Prices)>,
    close: Option<(Timestamp, &'static str, bool, Timestamp, Timestamp, Prices)>,
}

/// The same, derived from every publication in order.
#[derive(Debug, Default)]
struct Model {
    records: BTreeMap<(EventId, String), RecordHistory>,
    fresh: BTreeMap<(EventId, String), Timestamp>,
    starts: BTreeMap<EventId, (Timestamp, StartBy)>,
}

impl Model {
    fn of(log: &[Entry]) -> Self {
        let mut model = Self::default();
        let mut book = new_book();
        for entry in log {
            book.absorb(&entry.change, entry.at);
            if let Change::Cut { at } = entry.change {
                model.publish(&Snapshot::cut(&book, entry.seq, at, EPOCH, &[]));
            }
        }
        model
    }

    fn publish(&mut self, snapshot: &Snapshot) {
        let at = snapshot.cut_at;
        let mut shown = BTreeMap::new();
        let mut fresh = BTreeMap::new();
        for (sport, _) in CATALOGUE.sports() {
            let view = snapshot.sport(sport);
            for event in &view.events {
                let start = match event.status {
                    Status::Scheduled if event.commence_time <= at => {
                        Some((event.commence_time, StartBy::CommenceTime))
                    }
                    Status::Scheduled => None,
                    Status::Live | Status::Final => Some((at, StartBy::Live)),
                };
                self.note_start(event.id, start);
                for row in event.records.clone() {
                    let row = view.record(row).unwrap();
                    let outcome = |outcome: &market::book::Outcome| {
                        let mut price = String::new();
                        outcome.quote.write_json(domain::Format::American, &mut price);
                        let point = format!("{:?} {:?}", outcome.point, outcome.quote);
                        (event.outcome_text(outcome.name).to_owned(), price, point)
                    };
                    let prices: Prices = row.record.outcomes.iter().map(outcome).collect();
                    shown.insert((event.id, row.id.to_string()), prices);
                    fresh.insert((event.id, row.id.to_string()), row.last_update);
                }
            }
        }
        let keys: BTreeSet<_> = shown.keys().chain(self.records.keys()).cloned().collect();
        for key in keys {
            let prices = shown.remove(&key).unwrap_or_default();
            let said = self.records.entry(key).or_default();
            if said.points.last().map_or(!prices.is_empty(), |(_, last)| *last != prices) {
                said.points.push((at, prices));
            }
        }
        // A price that is not offered any more was last confirmed while it was.
        self.fresh.extend(fresh);
    }

    /// Notes a start before the model reads the publication that shows it.
    fn note_start(&mut self, event: EventId, start: Option<(Timestamp, StartBy)>) {
        let before = self.starts.get(&event).copied();
        if before.map(|(_, by)| by) == start.map(|(_, by)| by) {
            return;
        }
        match start {
            Some(start) => self.starts.insert(event, start),
            None => self.starts.remove(&event),
        };
        for (key, said) in self.records.iter_mut().filter(|(key, _)| key.0 == event) {
            let priced = said.points.iter().rfind(|(_, prices)| !prices.is_empty());
            said.close = start.zip(priced).map(|((start, by), (published_at, prices))| {
                let active = said.points.last().is_some_and(|(_, last)| !last.is_empty());
                let fresh = self.fresh[key];
                (start, by.key(), active, *published_at, fresh, prices.clone())
            });
        }
    }
}

fn prices_of(outcomes: &[archive::PointOutcome]) -> Prices {
    let text = |outcome: &archive::PointOutcome| {
        let mut price = String::new();
        outcome.quote.write_json(domain::Format::American, &mut price);
        (outcome.name.to_string(), price, format!("{:?} {:?}", outcome.point, outcome.quote))
    };
    outcomes.iter().map(text).collect()
}

fn history_of(path: &RecordPath) -> RecordHistory {
    let points = path.points.iter().map(|point| (point.published_at, prices_of(&point.outcomes)));
    let close = path.closing.as_ref().and_then(|line| {
        let (start, by) = line.start?;
        let prices = prices_of(&line.prices.outcomes);
        let published_at = line.prices.published_at;
        Some((start, by.key(), line.active, published_at, line.last_update, prices))
    });
    RecordHistory { points: points.collect(), close }
}

fn wanted(event: EventId) -> Wanted<'static> {
    let (bookmaker, market, hold) = (&|_: &str| true, None, Hold::MOST);
    Wanted { event, bookmaker, market, from: None, to: None, all: false, hold }
}

/// The past of an event from an archive and the entries after it.
fn past(archive: &Archive, commit: &Commit, part: Option<&Part>, wanted: &Wanted<'_>) -> EventPast {
    past_in(EventPast::default(), (archive, commit), part, wanted)
}

fn past_in(
    mut past: EventPast,
    (archive, commit): (&Archive, &Commit),
    part: Option<&Part>,
    wanted: &Wanted<'_>,
) -> EventPast {
    for (_, sport) in CATALOGUE.sports() {
        archive.event_past(commit, &sport.key, wanted, &mut past).unwrap();
    }
    if let Some(part) = part {
        part.event_past(Some((archive, commit)), wanted, &mut past).unwrap();
    }
    past
}

fn check(model: &Model, archive: &Archive, part: Option<&Part>) {
    let commit = archive.newest().unwrap();
    let events: BTreeSet<EventId> = model.records.keys().map(|(event, _)| *event).collect();
    for event in events {
        let paths = past(archive, &commit, part, &wanted(event)).into_paths();
        let said: BTreeMap<_, _> =
            paths.iter().map(|path| (path.head.record.to_string(), history_of(path))).collect();
        let expected = model.records.iter().filter(|((own, _), _)| *own == event);
        let expected: BTreeMap<_, _> = expected.map(|((_, record), said)| (record, said)).collect();
        assert_eq!(said.len(), expected.len());
        for (record, said) in &said {
            assert_eq!(Some(&said), expected.get(record), "{event} {record}");
        }
    }
}

/// A part for reading with the entries after those that are archived.
fn rest_of(archive: &Archive, log: &[Entry], rows: Rows) -> Part {
    let commit = archive.newest().unwrap();
    let part = match commit.lineages.is_empty() {
        true => Part::founding(&commit, new_book(), 0),
        false => Part::after(&commit, book_at_end(archive, &commit)).unwrap(),
    };
    let mut part = part.of_rows(rows);
    for entry in log.iter().skip_while(|entry| entry.seq < part.next_seq()).collect::<Vec<_>>() {
        part.push(entry, checksum(entry));
    }
    part
}

fn check_everywhere(root: &Path, log: &[Entry]) {
    let model = Model::of(log);
    for entries in [2000, usize::MAX] {
        let archive = archive_log(&root.join(format!("whole{entries}")), log, entries);
        check(&model, &archive, None);
        let commit = archive.newest().unwrap();
        archive.compact(&commit, &Compact::All, FROM).unwrap();
        check(&model, &archive, None);
    }
    let begun = Archive::create(&root.join("begun")).unwrap();
    for _ in 0..3 {
        check(&model, &begun, Some(&rest_of(&begun, log, Rows::Prices)));
        let commit = begun.newest().unwrap();
        let Some(part) = next_part(&begun, &commit, log, log.len() / 3) else { break };
        part.commit(&begun, &commit).unwrap();
    }
}

#[test]
fn paths_and_closing_lines_are_what_publications_showed() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::of(&HOURS);
    let closes = || model.records.values().filter_map(|said| said.close.as_ref());
    assert!(closes().count() > 20, "{}", closes().count());
    assert!(closes().any(|close| !close.2), "some were withdrawn before the start");
    check_everywhere(dir.path(), &HOURS);
}

/// The first prices and the closing line of each record that has one.
fn closes_of(past: EventPast) -> Vec<String> {
    let paths = past.into_paths().into_iter();
    let closes =
        paths.filter(|path| path.closing.as_ref().is_some_and(|line| line.start.is_some()));
    closes.map(|path| format!("{:?} {:?} {:?}", path.head, path.open, path.closing)).collect()
}

#[test]
fn the_closing_lines_of_many_events_are_those_of_each() {
    let dir = tempfile::tempdir().unwrap();
    for (group_rows, bookmaker) in [(50, "fanduel"), (5_000, ""), (100_000, "")] {
        let root = dir.path().join(group_rows.to_string());
        let archive = archive_log(&root, &HOURS, 2000).with_group_rows(group_rows);
        let of_one = |key: &str| bookmaker.is_empty() || key == bookmaker;
        // Before and after merging.
        for _ in 0..2 {
            let commit = archive.newest().unwrap();
            let mut found = 0;
            for (_, sport) in CATALOGUE.sports() {
                let events: Vec<EventId> =
                    archive.started(&commit, &sport.key).unwrap().into_keys().collect();
                let wanted = |event| {
                    let to = Some(Timestamp::from_millis(i64::MIN));
                    let (bookmaker, market, hold) = (&of_one, None, Hold::MOST);
                    Wanted { event, bookmaker, market, from: None, to, all: false, hold }
                };
                let first = wanted(EventId::from_number(1));
                let mut many = archive.closing_pasts(&commit, &sport.key, &events, &first).unwrap();
                assert_eq!(many.len(), events.len());
                for event in events {
                    let mut alone = EventPast::default();
                    archive.event_past(&commit, &sport.key, &wanted(event), &mut alone).unwrap();
                    let own = many.remove(&event).unwrap();
                    assert_eq!(own.new_at(), alone.new_at());
                    let (own, alone) = (closes_of(own), closes_of(alone));
                    assert_eq!(own, alone, "{event} {group_rows}");
                    found += own.len();
                }
            }
            assert!(found > 20 || bookmaker == "fanduel" && found > 0, "{found}");
            archive.compact(&commit, &Compact::All, FROM).unwrap();
        }
    }
}

/// The book of one event at the end of an archive, without others.
fn book_of(archive: &Archive, commit: &Commit, event: EventId) -> Book {
    let Some(image) = commit.image_up_to(0, u64::MAX) else { return new_book() };
    let (bytes, part) = (archive.image(image).unwrap(), [event]);
    let (version, part) = (image.version, ImagePart::Events(&part));
    let mut book = Book::from_image_of(version, &bytes, Arc::clone(&CATALOGUE), part).unwrap();
    for entry in archive.entries(commit, 0, image.seq + 1..=u64::MAX).of_events(&[event]) {
        let Entry { at, change, .. } = entry.unwrap();
        assert!(!matches!(&change, Change::Quoted(quoted) if quoted.event != event));
        book.absorb(&change, at);
    }
    book
}

#[test]
fn the_book_of_one_event_is_enough_for_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::create(dir.path()).unwrap();
    let model = Model::of(&HOURS);
    let events: BTreeSet<EventId> = model.records.keys().map(|(event, _)| *event).collect();
    assert!(events.len() > 2);
    for parts in 0..3 {
        let commit = archive.newest().unwrap();
        let whole = rest_of(&archive, &HOURS, Rows::Prices);
        for event in &events {
            let only = match commit.lineages.is_empty() {
                true => Part::founding(&commit, new_book(), 0),
                false => Part::after(&commit, book_of(&archive, &commit, *event)).unwrap(),
            };
            let mut only = only.of_rows(Rows::PricesOf([*event].into()));
            let from = only.next_seq();
            for entry in HOURS.iter().filter(|entry| entry.seq >= from) {
                only.push(entry, checksum(entry));
            }
            let [all, only] = [&whole, &only].map(|part| {
                let paths = past(&archive, &commit, Some(part), &wanted(*event)).into_paths();
                paths.iter().map(history_of).collect::<Vec<_>>()
            });
            assert!(!all.is_empty());
            assert_eq!(all, only, "{event} after {parts} parts");
        }
        let part = next_part(&archive, &commit, &HOURS, HOURS.len() / 4).unwrap();
        part.commit(&archive, &commit).unwrap();
    }
}

#[test]
fn changes_that_were_replaced_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log(vec![]);
    log.list(1, "fanduel", "Ann");
    for profit in [150, 160, 170] {
        log.quote(1, "fanduel", profit);
    }
    log.publish();
    log.quote(1, "fanduel", 180);
    log.quote(1, "fanduel", 170);
    log.publish();
    log.quote(1, "fanduel", 0);
    log.publish();
    let archive = archive_log(dir.path(), &log.0, 1);
    let commit = archive.newest().unwrap();
    let prices = |wanted: Wanted<'_>| -> Vec<(bool, Option<String>)> {
        let paths = past(&archive, &commit, None, &wanted).into_paths();
        let point = |point: &archive::Point| {
            let first = prices_of(&point.outcomes).first().map(|(_, price, _)| price.clone());
            (point.shown, first)
        };
        paths[0].points.iter().map(point).collect()
    };
    let price = |shown: bool, price: &str| (shown, Some(price.to_owned()));
    let event = wanted(EventId::from_number(1));
    assert_eq!(prices(event), [price(true, "170"), (true, None)]);
    assert_eq!(
        prices(Wanted { all: true, ..event }),
        [
            price(false, "150"),
            price(false, "160"),
            price(true, "170"),
            price(false, "180"),
            price(true, "170"),
            (true, None)
        ],
    );
    let first = log.0.iter().find(|entry| matches!(entry.change, Change::Cut { .. })).unwrap().at;
    let later = Some(first.plus(Duration::from_millis(1)));
    assert_eq!(prices(Wanted { from: later, ..event }), [(true, None)]);
    assert_eq!(prices(Wanted { to: later, ..event }), [price(true, "170")]);
}

#[test]
fn an_archive_that_begins_later_says_what_was_there_already() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log(vec![]);
    log.list(1, "fanduel", "Ann");
    log.quote(1, "fanduel", 150);
    log.publish();
    let mut book = new_book();
    log.0.iter().for_each(|entry| book.absorb(&entry.change, entry.at));
    let archive = Archive::create(dir.path()).unwrap();
    let commit = archive.newest().unwrap();
    let base = u64::try_from(log.0.len()).unwrap();
    let mut part = Part::founding(&commit, book, base);
    log.publish();
    let entry = log.0.last().unwrap();
    part.push(entry, checksum(entry));
    let (commit, _, _) = part.commit(&archive, &commit).unwrap();
    let paths = past(&archive, &commit, None, &wanted(EventId::from_number(1))).into_paths();
    assert_eq!(prices_of(&paths[0].open.as_ref().unwrap().outcomes)[0].1, "150");
    assert_eq!(paths[0].points.len(), 1);
    assert!(archive.verify(&commit).faults.is_empty());
    // The book is read once for all pages of an event.
    let prices = |event| archive.base_prices(&commit, &CATALOGUE, &[EventId::from_number(event)]);
    assert!(prices(1).unwrap().is_some());
    std::fs::remove_file(dir.path().join(&commit.images[0].file.path)).unwrap();
    assert!(prices(1).unwrap().is_some());
    assert!(prices(2).is_err());
}

/// The points of a path with their places.
fn points_of(path: &RecordPath) -> impl Iterator<Item = (PathPlace, String)> {
    let place = |point| PathPlace::of(&path.head, point);
    path.points.iter().map(move |point| (place(point), format!("{:?} {point:?}", path.head)))
}

/// A page of points, and the start of the next one if there is one.
fn page_of(past: EventPast, limit: usize) -> (Vec<String>, Option<PathPlace>) {
    let end = past.end().cloned();
    let paths = past.into_paths();
    let mut points: Vec<(PathPlace, String)> = paths.iter().flat_map(points_of).collect();
    let is_all = points.len() <= limit;
    points.truncate(limit);
    let last = points.last().map(|(place, _)| place.clone());
    let next = if is_all { end } else { last };
    (points.into_iter().map(|(_, told)| told).collect(), next)
}

/// Whatever the memory bound, pages have the same content, and the next page starts where this one ended.
#[test]
fn pages_that_are_held_add_up_to_all_changes() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &HOURS, HOURS.len() / 3);
    let commit = archive.newest().unwrap();
    let started = |key: &str| archive.started(&commit, key).unwrap().into_keys().next();
    let event = CATALOGUE.sports().find_map(|(_, sport)| started(&sport.key)).unwrap();
    for (all, from) in [(false, None), (true, Some(FROM.plus(EPOCH * 30)))] {
        let first = Wanted { all, from, ..wanted(event) };
        let (whole, end) = page_of(past(&archive, &commit, None, &first), usize::MAX);
        assert!(whole.len() > 100 && end.is_none(), "{}", whole.len());
        let share = whole.len() / 4;
        for (held, limit) in [(4 * share, usize::MAX), (6 * share, share), (usize::MAX, share)] {
            let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
            while pages == 0 || after.is_some() {
                let wanted = Wanted { hold: Hold::First { after: after.as_ref(), limit }, ..first };
                let page = EventPast::holding(held);
                let page = past_in(page, (&archive, &commit), None, &wanted);
                let (points, next) = page_of(page, limit);
                seen.extend(points);
                (after, pages) = (next, pages + 1);
            }
            assert_eq!(seen, whole, "{held} {limit}");
            assert!(pages > 3, "{pages}");
        }
    }
}
