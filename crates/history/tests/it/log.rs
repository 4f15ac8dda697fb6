//! A log to archive: some minutes of the sandbox, and an entry of each other kind.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use archive::{Archive, ArchiveError, Commit, Entry, Outcome, Part};
use domain::message::{Body, FeedMessage, Fixture};
use domain::score::Period;
use domain::{Catalogue, EventId, Market, Side, Status, Timestamp};
use feeds::sandbox::Simulation;
use market::change::{Listed, MarketKey, Reported};
use market::{Alias, Book, By, Change, Configured, Ids, Meaning};

pub(crate) const FROM: Timestamp = Timestamp::from_secs(1_794_000_000);
const EPOCH: Duration = Duration::from_secs(30);
const EPOCHS: u32 = 6;

pub(crate) static CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::load(None).unwrap()));

pub(crate) static LOG: LazyLock<Vec<Entry>> = LazyLock::new(make_log);

/// The same with publications eight hours apart: one, three and two on a day.
pub(crate) static DAYS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let (mut log, mut cuts) = (LOG.clone(), 0);
    for entry in &mut log {
        if let Change::Cut { at } = &mut entry.change {
            *at = FROM.plus(Duration::from_secs(8 * 3600) * cuts);
            cuts += 1;
        }
    }
    log
});

pub(crate) fn new_book() -> Book {
    Book::new(Arc::clone(&CATALOGUE), Ids::Minted { salt: 0 })
}

fn make_log() -> Vec<Entry> {
    let simulation = Simulation::new(7, Arc::clone(&CATALOGUE));
    let ids = Ids::Derived { salt: 7 };
    let mut book = Book::new(Arc::clone(&CATALOGUE), ids);
    let mut entries = Vec::new();
    let mut log = |at: Timestamp, change: Change| {
        let seq = u64::try_from(entries.len()).unwrap() + 1;
        entries.push(Entry { seq, at, change });
    };
    log(FROM, Change::Founded { ids });
    log(FROM, configured());
    let mut messages = simulation.world_at(FROM);
    // Some events of every sport. Messages about others are rejected, because they were not listed.
    let listed = |message: &FeedMessage| matches!(message.body, Body::Event { .. });
    let mut count = 0_u32;
    messages.retain(|message| {
        count += u32::from(listed(message));
        !listed(message) || count.is_multiple_of(40)
    });
    for epoch in 0..EPOCHS {
        let at = FROM.plus(EPOCH * epoch);
        if epoch > 0 {
            messages = simulation.between(at.minus(EPOCH), at);
            messages.retain(|message| !listed(message));
        }
        for message in &messages {
            let at = message.ts.unwrap_or(at);
            let Ok(decision) = book.apply("sandbox", message, at) else { continue };
            decision.change.into_iter().chain(decision.follow).for_each(|change| log(at, change));
            if let Body::Odds(_) = &message.body {
                // Unchanged data is confirmed.
                let mut again = message.clone();
                again.ts = Some(at.plus(Duration::from_millis(1)));
                let Ok(again) = book.apply("sandbox", &again, at) else { continue };
                again.change.into_iter().for_each(|change| log(at, change));
            }
        }
        if epoch == 2 {
            other_kinds().into_iter().for_each(|change| {
                book.absorb(&change, at);
                log(at, change);
            });
        }
        log(at, Change::Cut { at });
    }
    entries
}

fn configured() -> Change {
    Change::Configured(Configured {
        writer: 77,
        refresh_interval_ms: 30_000,
        stale_after_ms: 90_000,
        catalogue: CATALOGUE.version().into(),
        program: "0.1.0".into(),
    })
}

pub(crate) const GOLF: EventId = EventId::from_number(1);
pub(crate) const FIGHT: EventId = EventId::from_number(2);

fn listed(event: EventId, sport: &str, fixture: Fixture) -> Change {
    Change::Listed(Listed {
        event,
        feed: "other".into(),
        reference: event.to_string().into(),
        sport: sport.into(),
        competition: "Cup".into(),
        commence_time: FROM.plus(EPOCH),
        fixture,
        swapped: false,
        ts: FROM,
    })
}

fn other_kinds() -> Vec<Change> {
    let market = || MarketKey {
        bookmaker: "fanduel".into(),
        market: Market::Matchup,
        group: Some("pair 1".into()),
    };
    let score = |leaders| Reported {
        status: Status::Live,
        home: Some(-3),
        away: None,
        periods: vec![
            Period { number: 1, home: 2, away: 3 },
            Period { number: 2, home: 4, away: -5 },
        ],
        winner: Some(Side::Away),
        leaders,
    };
    let alias = || Alias {
        sport: "mma".into(),
        feed: None,
        name: "A. Silva".into(),
        meaning: Meaning::Is("Anderson Silva".into()),
    };
    let other = EventId::from_number(3);
    let sides = || Fixture::HeadToHead { home: "Ann".into(), away: "Zoë".into() };
    vec![
        listed(GOLF, "golf", Fixture::Field { title: "Open".into() }),
        listed(FIGHT, "mma", sides()),
        listed(other, "mma", sides()),
        Change::Scored {
            event: GOLF,
            score: score(vec![("Ann".into(), vec![70, 71]), ("Ben".into(), vec![])]),
            ts: FROM,
        },
        Change::Scored { event: FIGHT, score: score(vec![]), ts: FROM },
        Change::Confirmed { event: GOLF, market: market(), ts: FROM },
        Change::Beat { bookmaker: "fanduel".into(), sport: None, ts: FROM },
        Change::Beat { bookmaker: "fanduel".into(), sport: Some("mma".into()), ts: FROM },
        Change::SourceForgotten { bookmaker: "fanduel".into(), sport: "golf".into() },
        Change::Paced { bookmaker: "fanduel".into(), sport: "mma".into(), fresh_for_s: 600 },
        Change::Merged { elder: FIGHT, younger: other, swapped: true, by: By::Operator },
        Change::Taught { alias: alias(), by: By::Operator },
        Change::Untaught { alias: alias() },
        Change::Unlogged { from: FROM, to: FROM.plus(EPOCH) },
        Change::Expired { event: GOLF },
        Change::Withdrawn { feed: "other".into(), reference: "none".into(), ts: FROM },
        Change::Dropped { feed: "nobody".into() },
    ]
}

/// A hash of an entry.
pub(crate) fn checksum(entry: &Entry) -> u32 {
    let text = format!("{entry:?}");
    text.bytes().fold(7, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

/// The book at the end of an archive.
pub(crate) fn book_at_end(archive: &Archive, commit: &Commit) -> Book {
    let lineage = commit.lineages.len() - 1;
    let (mut book, base) = match commit.image_up_to(lineage, u64::MAX) {
        Some(image) => {
            let bytes = archive.image(image).unwrap();
            let book = Book::from_image(image.version, &bytes, Arc::clone(&CATALOGUE)).unwrap();
            (book, image.seq)
        }
        None => (new_book(), 0),
    };
    for entry in archive.entries(commit, lineage, base + 1..=u64::MAX) {
        let entry = entry.unwrap();
        book.absorb(&entry.change, entry.at);
    }
    book
}

/// A part with the entries up to the next publication after `entries` of them.
pub(crate) fn next_part(
    archive: &Archive,
    commit: &Commit,
    log: &[Entry],
    entries: usize,
) -> Option<Part> {
    let mut part = match commit.lineages.is_empty() {
        true => Part::founding(commit, new_book(), 0),
        false => Part::after(commit, book_at_end(archive, commit)).unwrap(),
    };
    let next = usize::try_from(part.next_seq()).unwrap() - 1;
    let mut taken = 0;
    for entry in log.get(next..)? {
        part.push(entry, checksum(entry));
        taken += 1;
        if taken >= entries && matches!(entry.change, Change::Cut { .. }) {
            break;
        }
    }
    (!part.is_empty()).then_some(part)
}

/// Archives a log, continuing from the end of the archive.
pub(crate) fn archive_log(root: &Path, log: &[Entry], entries: usize) -> Archive {
    let archive = Archive::create(root).unwrap();
    go_on(&archive, log, entries).unwrap();
    archive
}

/// The same for an open archive.
pub(crate) fn go_on(archive: &Archive, log: &[Entry], entries: usize) -> Result<(), ArchiveError> {
    loop {
        let commit = archive.newest()?;
        let Some(part) = next_part(archive, &commit, log, entries) else { return Ok(()) };
        let (_, outcome, _) = part.commit(archive, &commit)?;
        assert_eq!(outcome, Outcome::Committed);
    }
}

/// Everything is there once, and equals the log.
pub(crate) fn assert_holds(archive: &Archive, log: &[Entry]) {
    let commit = archive.newest().unwrap();
    let verified = archive.verify(&commit);
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    let read: Vec<Entry> =
        archive.entries(&commit, 0, 1..=u64::MAX).collect::<Result<_, _>>().unwrap();
    assert_eq!(read.len(), log.len());
    for (read, entry) in read.iter().zip(log) {
        assert_eq!(read, entry);
    }
}
