//! A generated archive, of a past that would take a week to happen: prices of records that move independently, each at
//! its own pace, and are confirmed in between.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use archive::{Archive, Commit, Compact, Entry, Outcome, Part, Table};
use domain::message::Fixture;
use domain::{Catalogue, EventId, Format, Line, Market, Price, Quote, Side, Status, Timestamp};
use market::change::{Listed, MarketKey, Quoted, QuotedOutcome, Reported, Who};
use market::{Book, Change, Configured, Ids};

/// Number of bookmakers, each with prices for every event.
const BOOKMAKERS: usize = 50;
/// Number of markets of each bookmaker, and of all records of an event.
const MARKETS: usize = 3;
pub(super) const EVENT_RECORDS: usize = BOOKMAKERS * MARKETS;
/// Interval of publications.
const EPOCH: Duration = Duration::from_secs(30);
const EPOCHS_A_DAY: u32 = 2_880;
/// Ratio of the paces of the most and the least active records.
const PACES: u64 = 200;

/// Size and properties of a generated archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) sport: &'static str,
    pub(super) records: usize,
    pub(super) from: Timestamp,
    pub(super) time: Duration,
    /// Number of price changes in that time, without the first prices.
    pub(super) changes: usize,
    pub(super) reads: Reads,
    pub(super) outcomes: Outcomes,
    /// Number of events that start in that time.
    pub(super) starts: usize,
}

/// Frequency of confirmations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    Never,
    /// Each bookmaker once between two publications: its records that have not changed are confirmed, in document
    /// order.
    Often,
}

/// Number of outcomes of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcomes {
    Two,
    /// With a draw.
    Three,
}

/// The generated archive.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) commit: Commit,
    pub(super) changes: u64,
    pub(super) confirmations: u64,
}

impl Made {
    /// Total bytes of all tables.
    pub(super) fn bytes(&self) -> u64 {
        self.commit.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn rows(&self, table: Table) -> u64 {
        let files = self.commit.files.iter().filter(|file| file.table == table);
        files.map(|file| file.rows).sum()
    }
}

/// Pseudo-random numbers, the same each time.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// The state of a record's prices.
#[derive(Clone, Copy, Debug)]
struct Walk {
    /// The probability of the first outcome, in thousandths, and the line in quarters.
    chance: u64,
    quarters: i32,
    /// Relative frequency of changes.
    pace: u64,
}

impl Walk {
    fn new(random: &mut Random) -> Self {
        // Few records change often, and many rarely.
        let pace = PACES / (1 + random.below(PACES));
        let quarters = i32::try_from(random.below(60)).unwrap_or_default() - 30;
        Self { chance: 150 + random.below(700), quarters, pace }
    }

    fn step(&mut self, random: &mut Random) {
        let by = 1 + random.below(12);
        let up = random.below(2) == 0;
        let chance = if up { self.chance + by } else { self.chance.saturating_sub(by) };
        self.chance = if chance == self.chance { chance + 1 } else { chance }.clamp(40, 940);
        if random.below(20) == 0 {
            self.quarters += if up { 2 } else { -2 };
        }
    }
}

struct Maker {
    archive: Archive,
    commit: Commit,
    part: Option<Part>,
    seq: u64,
    random: Random,
    bookmakers: Vec<Box<str>>,
    walks: Vec<Walk>,
    plan: Plan,
    made: (u64, u64),
}

/// Generates an archive in a folder, with its files merged.
pub(super) fn make(root: &Path, plan: Plan) -> Result<Made> {
    let catalogue = Arc::new(Catalogue::load(None)?);
    let bookmakers = catalogue.bookmakers().map(|(_, bookmaker)| bookmaker.key.clone());
    let bookmakers: Vec<Box<str>> = bookmakers.take(BOOKMAKERS).collect();
    ensure!(bookmakers.len() == BOOKMAKERS, "the catalogue is too small");
    let ids = Ids::Minted { salt: 0 };
    let configured = Configured {
        writer: 1,
        refresh_interval_ms: 30_000,
        stale_after_ms: 7_200_000,
        catalogue: catalogue.version().into(),
        program: env!("CARGO_PKG_VERSION").into(),
    };
    let mut random = Random(7);
    let records = plan.records.div_ceil(EVENT_RECORDS) * EVENT_RECORDS;
    let walks = (0..records).map(|_| Walk::new(&mut random)).collect();
    let archive = Archive::create(root)?;
    let commit = archive.newest()?;
    let part = Some(Part::founding(&commit, Book::new(catalogue, ids), 0));
    let mut maker =
        Maker { archive, commit, part, seq: 0, random, bookmakers, walks, plan, made: (0, 0) };
    maker.add(plan.from, Change::Founded { ids })?;
    maker.add(plan.from, Change::Configured(configured))?;
    maker.fill()?;
    maker.play()?;
    maker.finish()
}

impl Maker {
    fn add(&mut self, at: Timestamp, change: Change) -> Result<()> {
        self.seq += 1;
        let part = self.part.as_mut().context("there is no part")?;
        part.push(&Entry { seq: self.seq, at, change }, 1);
        if part.is_full() { self.close() } else { Ok(()) }
    }

    /// Closes a part that ends with a publication.
    fn close(&mut self) -> Result<()> {
        let part = self.part.take().filter(|part| !part.is_empty());
        let Some(part) = part else { return Ok(()) };
        let (commit, outcome, book) = part.commit(&self.archive, &self.commit)?;
        ensure!(outcome == Outcome::Committed, "somebody else writes the archive");
        self.part = Part::after(&commit, book.context("the part does not end with a publication")?);
        self.commit = commit;
        Ok(())
    }

    fn event(&self, record: usize) -> EventId {
        EventId::from_number(1 + super::count(record / EVENT_RECORDS))
    }

    fn key(&self, record: usize) -> MarketKey {
        let bookmaker = record / MARKETS % BOOKMAKERS;
        let bookmaker = self.bookmakers.get(bookmaker).cloned().unwrap_or_default();
        let market = match record % MARKETS {
            0 => Market::Moneyline,
            1 => Market::Spread,
            _ => Market::TotalPoints,
        };
        MarketKey { bookmaker, market, group: None }
    }

    fn quote(&mut self, record: usize, at: Timestamp) -> Result<()> {
        let market = self.key(record);
        let walk = *self.walks.get(record).context("no such record")?;
        // Sources are read some time before their prices arrive.
        let ts = at.minus(Duration::from_millis(50 + self.random.below(2_000)));
        let decimal = (record / MARKETS % BOOKMAKERS).is_multiple_of(3);
        let price = |chance: u64| {
            // With a margin of five percent.
            let chance = (chance * 105 / 100).clamp(20, 980);
            let (profit, stake) = match decimal {
                true => ((1000 - chance) * 100 / chance, 100),
                false if chance >= 500 => (100, chance * 100 / (1000 - chance)),
                false => ((1000 - chance) * 100 / chance, 100),
            };
            let format = if decimal { Format::Decimal } else { Format::American };
            Some(Quote { price: Price::from_ratio(profit.max(1), stake)?, format })
        };
        let line = |quarters: i32| Some(Line::from_quarters(quarters));
        let (home, away) = (Who::Side(Side::Home), Who::Side(Side::Away));
        let mut sides: Vec<(Who, u64, Option<Line>)> = match record % MARKETS {
            0 => vec![(home, walk.chance, None), (away, 1000 - walk.chance, None)],
            1 => vec![
                (home, walk.chance, line(walk.quarters)),
                (away, 1000 - walk.chance, line(-walk.quarters)),
            ],
            _ => {
                let total = line(180 + walk.quarters);
                vec![(Who::Over, walk.chance, total), (Who::Under, 1000 - walk.chance, total)]
            }
        };
        if self.plan.outcomes == Outcomes::Three {
            sides.push((Who::Draw, 120 + walk.chance * 7 % 200, None));
        }
        let outcome =
            |(who, chance, point)| Some(QuotedOutcome { who, quote: price(chance)?, point });
        let outcomes: Vec<QuotedOutcome> = sides.into_iter().filter_map(outcome).collect();
        let (event, feed) = (self.event(record), "bench".into());
        self.made.0 += 1;
        self.add(at, Change::Quoted(Quoted { event, market, feed, outcomes, ts }))
    }

    /// Adds events and their first prices.
    fn fill(&mut self) -> Result<()> {
        let Plan { from, time, starts, .. } = self.plan;
        let events = self.walks.len() / EVENT_RECORDS;
        for n in 0..events {
            let event = EventId::from_number(1 + super::count(n));
            // Some events start during the generated time, at equal intervals, the others later.
            let share = u32::try_from(n + 1).unwrap_or(u32::MAX);
            let commence_time = match n < starts {
                true => from.plus(time / u32::try_from(starts + 1).unwrap_or(1) * share),
                false => from.plus(time).plus(Duration::from_secs(3600) * (1 + share % 500)),
            };
            let fixture = Fixture::HeadToHead {
                home: format!("Alexander Homeson {n}").into(),
                away: format!("Daniil Guestov {n}").into(),
            };
            let listed = Listed {
                event,
                feed: "bench".into(),
                reference: format!("e{n}").into(),
                sport: self.plan.sport.into(),
                competition: "Open Cup".into(),
                commence_time,
                fixture,
                swapped: false,
                ts: from,
            };
            self.add(from, Change::Listed(listed))?;
        }
        for record in 0..self.walks.len() {
            self.quote(record, from)?;
        }
        self.made = (0, 0);
        self.add(from, Change::Cut { at: from })
    }

    /// Generates the changes.
    fn play(&mut self) -> Result<()> {
        let Plan { from, time, changes, starts, .. } = self.plan;
        let epochs = time.as_millis() / EPOCH.as_millis();
        let epochs = u32::try_from(epochs)?.max(1);
        // Each record occurs in proportion to its pace.
        let turns: Vec<u32> =
            (0_u32..).zip(&self.walks).fold(Vec::new(), |mut turns, (at, walk)| {
                turns.extend(std::iter::repeat_n(
                    at,
                    usize::try_from(walk.pace).unwrap_or(1).max(1),
                ));
                turns
            });
        let (mut changed, mut started) = (0, 0);
        for epoch in 1..=epochs {
            let cut = from.plus(EPOCH * epoch);
            let share = |all: usize| {
                let all = super::count(all) * u64::from(epoch) / u64::from(epochs);
                usize::try_from(all).unwrap_or(usize::MAX)
            };
            // At random times, in order.
            let mut now = cut.minus(EPOCH);
            let due = share(changes).saturating_sub(changed);
            let step = u64::try_from(EPOCH.as_millis() / u128::try_from(due + 1)?)?;
            let mut reads = self.reads_until(cut).into_iter().peekable();
            for _ in 0..due {
                now = now.plus(Duration::from_millis(self.random.below(2 * step)));
                let at = if now < cut { now } else { cut };
                while let Some((at, bookmaker)) = reads.next_if(|(read_at, _)| *read_at <= at) {
                    self.confirm(bookmaker, at)?;
                }
                let turn = self.random.below(super::count(turns.len()));
                let record = *turns.get(usize::try_from(turn)?).context("no record")?;
                let record = usize::try_from(record)?;
                if let Some(walk) = self.walks.get_mut(record) {
                    walk.step(&mut self.random);
                }
                self.quote(record, at)?;
                changed += 1;
            }
            for (at, bookmaker) in reads {
                self.confirm(bookmaker, at)?;
            }
            while started < share(starts).min(starts) {
                let score = Reported {
                    status: Status::Live,
                    home: Some(0),
                    away: Some(0),
                    periods: Vec::new(),
                    winner: None,
                    leaders: Vec::new(),
                };
                let event = EventId::from_number(1 + super::count(started));
                self.add(cut, Change::Scored { event, score, ts: cut })?;
                started += 1;
            }
            self.add(cut, Change::Cut { at: cut })?;
            // Ends a part each day, so that complete books exist at which retention can cut.
            if epoch % EPOCHS_A_DAY == 0 && self.part.as_ref().is_some_and(|part| !part.is_empty())
            {
                self.close()?;
            }
        }
        Ok(())
    }

    /// Times at which sources are read before a publication, in order.
    fn reads_until(&mut self, cut: Timestamp) -> Vec<(Timestamp, usize)> {
        let interval = u64::try_from(EPOCH.as_millis()).unwrap_or(u64::MAX);
        let bookmakers = match self.plan.reads {
            Reads::Never => 0,
            Reads::Often => BOOKMAKERS,
        };
        let random = &mut self.random;
        let read_at = |bookmaker: usize| {
            // At nearly the same time in each interval.
            let own = interval * super::count(bookmaker) / super::count(BOOKMAKERS);
            let before = Duration::from_millis((own + random.below(1_000)) % interval);
            (cut.minus(before), bookmaker)
        };
        let mut reads: Vec<_> = (0..bookmakers).map(read_at).collect();
        reads.sort_unstable();
        reads
    }

    /// Confirms all prices of a bookmaker, as one document.
    fn confirm(&mut self, bookmaker: usize, at: Timestamp) -> Result<()> {
        let ts = at.minus(Duration::from_millis(50 + self.random.below(2_000)));
        for first in (0..self.walks.len()).step_by(EVENT_RECORDS) {
            for record in (0..MARKETS).map(|market| first + bookmaker * MARKETS + market) {
                let (event, market) = (self.event(record), self.key(record));
                self.made.1 += 1;
                self.add(at, Change::Confirmed { event, market, ts })?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Made> {
        self.close()?;
        let oldest = Timestamp::from_millis(0);
        while let Some(compacted) = self.archive.compact(&self.commit, &Compact::All, oldest)? {
            ensure!(compacted.outcome == Outcome::Committed, "somebody else writes the archive");
            self.commit = compacted.commit;
        }
        let (changes, confirmations) = self.made;
        Ok(Made { commit: self.commit, changes, confirmations })
    }
}
