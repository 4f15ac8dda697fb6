//! Random logs (H25): archived entries are read back unchanged, and every publication can be rebuilt from them,
//! whatever the parts, before and after merging, and after the log was restored from an older copy.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive::{Archive, Compact, Entry, Outcome, Part};
use domain::message::Fixture;
use domain::{EventId, Format, Line, Market, Price, Quote, Side, Status, Timestamp};
use market::change::{Listed, MarketKey, Quoted, QuotedOutcome, Reported, Who};
use market::{Book, By, Change, Configured, Ids};

use crate::log::{CATALOGUE, FROM, archive_log, book_at_end, checksum, go_on, new_book};
use crate::shown;

const SEEDS: u64 = 2;
const ENTRIES: usize = 300;
/// Average time between two entries, so that a log covers several days.
const STEP_S: u64 = 900;

/// Sports with the markets that are quoted there; events alternate between them.
const SPORTS: [(&str, &[Market]); 4] = [
    ("mma", &[Market::Moneyline, Market::TotalRounds]),
    ("american_football", &[Market::Moneyline, Market::Spread]),
    ("golf", &[Market::Outright, Market::Matchup]),
    ("tennis", &[Market::Moneyline]),
];
const BOOKMAKERS: [&str; 3] = ["fanduel", "draftkings", "pinnacle"];
const NAMES: [&str; 3] = ["Ann Archer", "Bea Bowen", "Zoë Zhu"];

/// A generator with the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A log under construction, with the book at its end.
struct Making {
    random: Random,
    log: Vec<Entry>,
    book: Book,
    at: Timestamp,
}

impl Making {
    fn push(&mut self, change: Change) {
        self.book.absorb(&change, self.at);
        let seq = u64::try_from(self.log.len()).unwrap() + 1;
        self.log.push(Entry { seq, at: self.at, change });
    }

    /// Adds entries, a publication last.
    fn go_on(&mut self, entries: usize) {
        for _ in 0..entries {
            let wait = u64::try_from(self.random.below(2000)).unwrap() * STEP_S;
            self.at = self.at.plus(Duration::from_millis(wait + 1));
            if let Some(change) = self.change() {
                self.push(change);
            }
        }
        let at = self.at.plus(Duration::from_millis(1));
        self.at = at;
        self.push(Change::Cut { at });
    }

    fn change(&mut self) -> Option<Change> {
        let (at, random) = (self.at, &mut self.random);
        let number = random.below(10);
        let event = EventId::from_number(u64::try_from(number).unwrap() + 1);
        let (sport, markets) = SPORTS[number % SPORTS.len()];
        let bookmaker = random.of(&BOOKMAKERS);
        let market = MarketKey {
            bookmaker: bookmaker.into(),
            market: random.of(markets),
            group: (sport == "golf").then(|| random.of(&["pair 1", "pair 2"]).into()),
        };
        let is_known = self.book.event(event).is_some();
        Some(match random.below(24) {
            0..4 => self.listing(event, sport),
            4..12 if is_known => Change::Quoted(self.quoted(event, market)),
            12 | 13 if is_known => Change::Confirmed { event, market, ts: at },
            14 | 15 => {
                let sport = (!random.one_in(3)).then(|| sport.into());
                Change::Beat { bookmaker: bookmaker.into(), sport, ts: at }
            }
            16 | 17 if is_known => self.scored(event),
            18 => {
                let reference = event.to_string().into();
                Change::Withdrawn { feed: bookmaker.into(), reference, ts: at }
            }
            19 if is_known && random.one_in(2) => Change::Expired { event },
            // The other one is of the same sport, because there are four sports.
            20 if is_known && number >= 4 => {
                let elder = EventId::from_number(u64::try_from(number).unwrap() - 3);
                self.book.event(elder)?;
                Change::Merged { elder, younger: event, swapped: false, by: By::Operator }
            }
            21 => self.restarted(),
            22 | 23 => Change::Cut { at },
            _ => return None,
        })
    }

    fn listing(&mut self, event: EventId, sport: &str) -> Change {
        let random = &mut self.random;
        let fixture = match sport {
            "golf" => Fixture::Field { title: random.of(&["Open", "The Open"]).into() },
            _ => Fixture::HeadToHead { home: random.of(&NAMES[..2]).into(), away: NAMES[2].into() },
        };
        let hours = u32::try_from(random.below(30)).unwrap();
        let commence_time = self.at.plus(Duration::from_secs(3600) * hours);
        Change::Listed(Listed {
            event,
            feed: random.of(&BOOKMAKERS).into(),
            reference: event.to_string().into(),
            sport: sport.into(),
            competition: random.of(&["Cup", "League"]).into(),
            commence_time,
            fixture,
            swapped: random.one_in(2),
            ts: self.at,
        })
    }

    fn quoted(&mut self, event: EventId, market: MarketKey) -> Quoted {
        let random = &mut self.random;
        let line = Line::from_quarters(i32::try_from(random.below(40)).unwrap() * 2);
        let has_point = matches!(market.market, Market::Spread | Market::TotalRounds);
        let who = if matches!(market.market, Market::Moneyline | Market::Spread) {
            vec![Who::Side(Side::Home), Who::Side(Side::Away)]
        } else if market.market == Market::TotalRounds {
            vec![Who::Over, Who::Under]
        } else {
            NAMES.map(|name| Who::Player(name.into())).into()
        };
        let format = random.of(&[Format::American, Format::Decimal]);
        let outcomes = match random.one_in(6) {
            true => Vec::new(),
            false => {
                let quoted = who.into_iter().map(|who| {
                    let profit = u64::try_from(random.below(900)).unwrap() + 1;
                    let price = Price::from_ratio(profit, 100).unwrap();
                    let quote = Quote { price, format };
                    QuotedOutcome { who, quote, point: has_point.then_some(line) }
                });
                quoted.collect()
            }
        };
        Quoted { event, feed: market.bookmaker.clone(), market, outcomes, ts: self.at }
    }

    fn scored(&mut self, event: EventId) -> Change {
        let random = &mut self.random;
        let status = random.of(&[Status::Scheduled, Status::Live, Status::Live, Status::Final]);
        let number = |random: &mut Random| Some(i32::try_from(random.below(9)).unwrap());
        let (home, away) = (number(random), number(random));
        let (periods, leaders, winner) = (vec![], vec![], None);
        let score = Reported { status, home, away, periods, winner, leaders };
        Change::Scored { event, score, ts: self.at }
    }

    /// Another process continues with the book of a checkpoint.
    fn restarted(&mut self) -> Change {
        let image = self.book.to_image();
        let version = market::book::IMAGE_VERSION;
        self.book = Book::from_image(version, &image, Arc::clone(&CATALOGUE)).unwrap();
        Change::Configured(Configured {
            writer: u64::try_from(self.log.len()).unwrap(),
            refresh_interval_ms: 30_000,
            stale_after_ms: 90_000,
            catalogue: CATALOGUE.version().into(),
            program: "0.1.0".into(),
        })
    }
}

fn random_log(seed: u64) -> Making {
    let mut making = Making { random: Random(seed), log: vec![], book: new_book(), at: FROM };
    making.push(Change::Founded { ids: Ids::Minted { salt: seed } });
    making.go_on(ENTRIES);
    making
}

/// Everything that answers are made from.
fn look_of(book: &Book) -> String {
    let mut lines = Vec::new();
    for event in book.events() {
        let (id, details) = (event.id, event.details());
        lines.push(format!("{id} {} {details:?} {:?}", event.is_listed(), event.score));
        for open in event.open_records() {
            let beat_at = book.beat_at(event.sport, open.bookmaker);
            let fresh = event.confirmed_of(open.bookmaker, open.market, open.id);
            let fresh = fresh.map(|confirmed| confirmed.last_update(beat_at));
            let outcomes = open.record.outcomes.iter();
            let outcomes = outcomes.map(|one| (event.outcome_text(one.name), one.quote, one.point));
            let outcomes = outcomes.collect::<Vec<_>>();
            lines.push(format!("{id} {} {:?} {fresh:?} {outcomes:?}", open.id, open.bookmaker));
        }
    }
    lines.sort();
    lines.join("\n")
}

/// The content of each publication of a log.
fn looks(log: &[Entry]) -> Vec<(u64, String)> {
    let mut book = new_book();
    let mut looks = Vec::new();
    for entry in log {
        book.absorb(&entry.change, entry.at);
        if matches!(entry.change, Change::Cut { .. }) {
            looks.push((entry.seq, look_of(&book)));
        }
    }
    looks
}

/// Checks that a lineage has the entries of a log after the first ones, and that every publication can be rebuilt from
/// it.
fn check(archive: &Archive, lineage: usize, log: &[Entry], common: u64) {
    let commit = archive.newest().unwrap();
    let verified = archive.verify(&commit);
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    let read: Result<Vec<Entry>, _> = archive.entries(&commit, lineage, 1..=u64::MAX).collect();
    let own: Vec<&Entry> = log.iter().filter(|entry| entry.seq > common).collect();
    assert_eq!(read.unwrap().iter().collect::<Vec<_>>(), own);
    for (seq, expected) in looks(log).into_iter().filter(|(seq, _)| *seq > common) {
        let image = commit.image_up_to(lineage, seq);
        let (mut book, base) = match image {
            Some(image) => {
                let bytes = archive.image(image).unwrap();
                let catalogue = Arc::clone(&CATALOGUE);
                (Book::from_image(image.version, &bytes, catalogue).unwrap(), image.seq)
            }
            None => (new_book(), 0),
        };
        for entry in archive.entries(&commit, lineage, base + 1..=seq) {
            let entry = entry.unwrap();
            book.absorb(&entry.change, entry.at);
        }
        assert_eq!(look_of(&book), expected, "lineage {lineage}, publication {seq}");
    }
}

/// Resets the log to one of its publications, and continues differently.
fn restore(archive: &Archive, mut making: Making) -> (Making, u64) {
    let cuts = looks(&making.log);
    let common = cuts[cuts.len() / 3 + making.random.below(cuts.len() / 3)].0;
    making.log.truncate(usize::try_from(common).unwrap());
    let book_of = |log: &[Entry]| {
        let mut book = new_book();
        log.iter().for_each(|entry| book.absorb(&entry.change, entry.at));
        book
    };
    making.book = book_of(&making.log);
    let base = book_of(&making.log);
    making.go_on(ENTRIES / 4);
    let commit = archive.newest().unwrap();
    let before = book_at_end(archive, &commit);
    let mut part = Part::founding(&commit, base, common).replacing(&commit, &before);
    for entry in making.log.iter().filter(|entry| entry.seq > common) {
        part.push(entry, checksum(entry));
        if matches!(entry.change, Change::Cut { .. }) {
            break;
        }
    }
    let (_, outcome, _) = part.commit(archive, &commit).unwrap();
    assert_eq!(outcome, Outcome::Committed);
    (making, common)
}

fn check_seed(seed: u64, root: &Path) {
    let making = random_log(seed);
    shown::check(&making.log);
    for entries in [7, 150] {
        let archive = archive_log(&root.join(entries.to_string()), &making.log, entries);
        check(&archive, 0, &making.log, 0);
        let lost = making.log.clone();
        let (restored, common) = restore(&archive, random_log(seed));
        go_on(&archive, &restored.log, entries).unwrap();
        for _ in 0..2 {
            check(&archive, 0, &lost, 0);
            check(&archive, 1, &restored.log, common);
            while let Some(compacted) =
                archive.compact(&archive.newest().unwrap(), &Compact::All, FROM).unwrap()
            {
                assert_eq!(compacted.outcome, Outcome::Committed);
            }
        }
    }
}

#[test]
fn a_random_log_comes_back_and_every_publication_can_be_made_again() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..SEEDS {
        check_seed(seed, &dir.path().join(seed.to_string()));
    }
}
