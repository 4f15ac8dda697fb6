//! A day of the sandbox from its messages: prices over time, scores, samples of margins and arbitrage.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use domain::message::{Body, FeedMessage, Fixture, Listing, OddsBody, ScoreBody};
use domain::{
    BookmakerId, Catalogue, Format, Line, Market, Price, Quote, SportId, Status, Timestamp,
};
use linesman_feeds::sandbox::Simulation;

use crate::book::Book;
use crate::promises;
use crate::svg::number;

/// Interval at which the day is sampled.
const STEP_S: i64 = 120;
pub(crate) const DAY_S: i64 = 86_400;
/// Interval of the samples of margins and counts.
const SAMPLE_S: i64 = 3600;

/// The home side's price of one market at one bookmaker, from an instant on; `None` while there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) at: i64,
    pub(crate) held: Option<(Price, Option<Line>)>,
}

/// The family of a bookmaker in charts: by its grid or by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Sharp,
    American,
    Decimal,
    Fractional,
    Late,
}

/// The result of one arbitrage sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) at: i64,
    pub(crate) markets: usize,
    pub(crate) beaten: usize,
}

/// The count of something in a sport over the samples: now, minimum, maximum.
pub(crate) type Range = (usize, usize, usize);

pub(crate) type Paths = BTreeMap<(Market, BookmakerId), Vec<Point>>;

#[derive(Debug)]
pub(crate) struct Tape {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) listings: BTreeMap<Box<str>, Listing>,
    pub(crate) paths: BTreeMap<Box<str>, Paths>,
    pub(crate) scores: BTreeMap<Box<str>, Vec<(i64, ScoreBody)>>,
    /// Every price that a bookmaker quoted.
    pub(crate) boards: BTreeMap<BookmakerId, BTreeMap<Price, Quote>>,
    /// Overrounds of the winner market.
    pub(crate) margins: BTreeMap<(SportId, BookmakerId), Vec<f64>>,
    pub(crate) looks: Vec<Look>,
    /// Number of samples for which each arbitrage lasted.
    pub(crate) lives: Vec<u32>,
    pub(crate) counts: BTreeMap<(SportId, &'static str), Range>,
}

impl Tape {
    pub(crate) fn record(
        simulation: &Simulation,
        catalogue: &Arc<Catalogue>,
        day: Timestamp,
    ) -> Self {
        let from = day.as_secs();
        let mut tape = Self {
            catalogue: Arc::clone(catalogue),
            from,
            to: from + DAY_S,
            listings: BTreeMap::new(),
            paths: BTreeMap::new(),
            scores: BTreeMap::new(),
            boards: BTreeMap::new(),
            margins: BTreeMap::new(),
            looks: Vec::new(),
            lives: Vec::new(),
            counts: BTreeMap::new(),
        };
        let mut book = Book::default();
        let mut lasting = HashMap::new();
        let mut now = day;
        let mut messages = simulation.world_at(day);
        loop {
            for message in &messages {
                tape.take(message, now.as_secs() - STEP_S);
            }
            book.take(messages, now);
            tape.look(&book, now, &mut lasting);
            if (now.as_secs() - from) % SAMPLE_S == 0 {
                tape.sample(&book);
            }
            if now.as_secs() >= tape.to {
                break;
            }
            let next = now.plus(Duration::from_secs(STEP_S.unsigned_abs()));
            messages = simulation.between(now, next);
            now = next;
        }
        tape.lives.extend(lasting.into_values());
        assert!(book.faults.is_empty(), "{:?}", book.faults);
        tape
    }

    /// Messages of a late bookmaker are older than the step in which they arrive; they are counted in that step.
    fn take(&mut self, message: &FeedMessage, since: i64) {
        let at = message.ts.map_or(since, Timestamp::as_secs).max(since);
        match &message.body {
            Body::Event { reference, listing } => {
                let held = self.listings.insert(reference.clone(), listing.clone());
                if held.is_some_and(|held| held.fixture != listing.fixture) {
                    self.close(reference, at);
                }
            }
            Body::Odds(odds) => self.price(odds, at),
            Body::Score(score) => {
                if score.status == Status::Final {
                    self.close(&score.reference, at);
                }
                self.scores.entry(score.reference.clone()).or_default().push((at, score.clone()));
            }
            Body::Remove { reference } => self.close(reference, at),
            Body::Heartbeat { .. } => {}
        }
    }

    fn price(&mut self, odds: &OddsBody, at: i64) {
        let board = self.boards.entry(odds.bookmaker).or_default();
        for outcome in &odds.outcomes {
            board.insert(outcome.quote.price, outcome.quote);
        }
        if !matches!(odds.market, Market::Moneyline | Market::Spread) {
            return;
        }
        let held = odds.outcomes.first().map(|home| (home.quote.price, home.point));
        let event = self.paths.entry(odds.reference.clone()).or_default();
        event.entry((odds.market, odds.bookmaker)).or_default().push(Point { at, held });
    }

    fn close(&mut self, reference: &str, at: i64) {
        for path in self.paths.get_mut(reference).into_iter().flat_map(BTreeMap::values_mut) {
            path.push(Point { at, held: None });
        }
    }

    fn look(&mut self, book: &Book, now: Timestamp, lasting: &mut HashMap<String, u32>) {
        let (markets, found) = promises::arbitrages(book, now);
        self.looks.push(Look { at: now.as_secs(), markets, beaten: found.len() });
        let mut still = HashMap::new();
        for what in found.iter().filter_map(|what| what.split(" [").next()) {
            let looks = lasting.remove(what).unwrap_or(0) + 1;
            still.insert(what.to_owned(), looks);
        }
        self.lives.extend(lasting.drain().map(|(_, looks)| looks));
        *lasting = still;
    }

    fn sample(&mut self, book: &Book) {
        let mut counts: BTreeMap<(SportId, &'static str), usize> = BTreeMap::new();
        let mut shows = BTreeSet::new();
        for event in book.events.values() {
            let sport = event.listing.sport;
            *counts.entry((sport, event.status().key())).or_default() += 1;
            if event.status() != Status::Final && shows.insert((sport, &event.listing.competition))
            {
                *counts.entry((sport, "competitions")).or_default() += 1;
            }
        }
        let mut pricers = BTreeSet::new();
        for ((reference, bookmaker, market, _), record) in &book.odds {
            let sport = book.events[reference].listing.sport;
            *counts.entry((sport, "records")).or_default() += 1;
            if pricers.insert((sport, *bookmaker)) {
                *counts.entry((sport, "bookmakers")).or_default() += 1;
            }
            if matches!(market, Market::Moneyline | Market::Outright) {
                let sum: f64 = record.outcomes.iter().map(|o| implied(o.quote.price)).sum();
                self.margins.entry((sport, *bookmaker)).or_default().push(sum - 1.0);
            }
        }
        for (what, now) in counts {
            let range = self.counts.entry(what).or_insert((now, now, now));
            *range = (now, range.1.min(now), range.2.max(now));
        }
    }

    pub(crate) fn sport(&self, key: &str) -> SportId {
        self.catalogue.sport_id(key).expect("a sport of the catalogue")
    }

    pub(crate) fn key(&self, bookmaker: BookmakerId) -> &str {
        &self.catalogue.bookmaker(bookmaker).key
    }

    pub(crate) fn family(&self, bookmaker: BookmakerId) -> Family {
        let format = self.boards.get(&bookmaker).and_then(|board| board.values().next());
        match (self.key(bookmaker), format.map(|quote| quote.format)) {
            ("barstool", _) => Family::Late,
            ("pinnacle" | "betfair", _) => Family::Sharp,
            (_, Some(Format::American) | None) => Family::American,
            (_, Some(Format::Decimal)) => Family::Decimal,
            (_, Some(Format::Fractional)) => Family::Fractional,
        }
    }

    /// The event of a sport, played from start to end within the day, with the highest score.
    pub(crate) fn best<S: PartialOrd>(&self, sport: &str, score: impl Fn(&str) -> S) -> Box<str> {
        let sport = self.sport(sport);
        let whole = self.listings.iter().filter(|(reference, listing)| {
            let start = listing.commence_time.as_secs();
            let ended = self.scores.get(*reference).and_then(|scores| scores.last());
            let ended = ended.is_some_and(|(_, score)| score.status == Status::Final);
            listing.sport == sport && start - 6 * 3600 >= self.from && ended
        });
        let scored = whole.map(|(reference, _)| (score(reference), reference));
        let best = scored.max_by(|a, b| a.0.partial_cmp(&b.0).expect("comparable"));
        best.expect("something is played every day").1.clone()
    }

    /// Home and away.
    pub(crate) fn sides(&self, reference: &str) -> (&str, &str) {
        match &self.listings[reference].fixture {
            Fixture::HeadToHead { home, away } => (home, away),
            Fixture::Field { title } => (title, ""),
        }
    }
}

impl Family {
    pub(crate) const ALL: [Self; 5] =
        [Self::Sharp, Self::American, Self::Decimal, Self::Fractional, Self::Late];

    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Sharp => "sharp",
            Self::American => "american",
            Self::Decimal => "decimal",
            Self::Fractional => "fractional",
            Self::Late => "late",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Sharp => "low margin (Pinnacle, Betfair)",
            Self::American => "American grid",
            Self::Decimal => "decimal grid",
            Self::Fractional => "fractional grid",
            Self::Late => "always 15 minutes late (Barstool)",
        }
    }
}

/// The probability that a price implies, margin included.
pub(crate) fn implied(price: Price) -> f64 {
    1.0 / decimal(price)
}

pub(crate) fn decimal(price: Price) -> f64 {
    let part = |n: u64| number(usize::try_from(n).unwrap_or(usize::MAX));
    1.0 + part(price.profit()) / part(price.stake())
}
