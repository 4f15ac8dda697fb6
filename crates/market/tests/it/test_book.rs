//! A book with a clock, and short functions for sending messages to it and querying it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::message::{
    Body, Correction, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome, RejectCode,
    ScoreBody,
};
use domain::{
    BookmakerId, BookmakerSet, Catalogue, EventId, Format, Line, Market, Period, Quote, SportId,
    Status, Timestamp,
};
use linesman_market::select::Cursor;
use linesman_market::{
    Book, BoutSelection, CHANGE_VERSION, Change, EventSelection, Ids, Lifetimes, Limits, NotDone,
    Oddity, OddsSelection, Operation, Profile, ScoreSelection, Snapshot, Verdict, book,
};
use proptest::test_runner::Config as ProptestConfig;
use serde_json::Value;

use crate::shown::{self, AllFields};

/// 2026-11-14T12:00:00Z, the start of every test.
pub(crate) const START_S: i64 = 1_794_657_600;
/// D22.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(90);
pub(crate) const LIFETIMES: Lifetimes = Lifetimes {
    final_retention: Duration::from_secs(72 * 3600),
    forget_after: Duration::from_secs(48 * 3600),
};
/// Most tests send scores of events without waiting for their start.
const LIMITS: Limits = Limits { begin_early_max: Duration::MAX, ..Limits::DEFAULT };
pub(crate) const SALT: u64 = 7;
/// A page limit that no test reaches.
const LIMIT: usize = 500;

pub(crate) type Outcome = Result<Verdict, RejectCode>;

pub(crate) const ACCEPTED: Outcome = Ok(Verdict::Accepted);
pub(crate) const UNCHANGED: Outcome = Ok(Verdict::Unchanged);
pub(crate) const SUPERSEDED: Outcome = Ok(Verdict::Superseded);

/// A book and everything needed to use it.
#[derive(Debug)]
pub(crate) struct TestBook {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) book: Book,
    pub(crate) now: Timestamp,
    pub(crate) changes: Vec<(Change, Timestamp)>,
    pub(crate) oddities: Vec<Oddity>,
}

impl TestBook {
    pub(crate) fn open() -> Self {
        Self::with(Ids::Minted { salt: SALT }, None)
    }

    pub(crate) fn with(ids: Ids, operators_file: Option<&str>) -> Self {
        let catalogue = Arc::new(Catalogue::load(operators_file).unwrap());
        let mut book = Book::new(Arc::clone(&catalogue), ids);
        book.set_limits(LIMITS);
        Self { catalogue, book, now: at(0), changes: Vec::new(), oddities: Vec::new() }
    }

    pub(crate) fn wait(&mut self, secs: u64) {
        self.now = self.now.plus(Duration::from_secs(secs));
    }

    /// Sends a message without a `ts`.
    pub(crate) fn say(&mut self, feed: &str, body: Body) -> Outcome {
        self.hear(feed, &FeedMessage { ts: None, fresh_for_s: None, body })
    }

    /// Sends a message with a `ts` this number of seconds after the start of the test.
    pub(crate) fn say_at(&mut self, feed: &str, secs: i64, body: Body) -> Outcome {
        self.hear(feed, &FeedMessage { ts: Some(at(secs)), fresh_for_s: None, body })
    }

    pub(crate) fn hear(&mut self, feed: &str, message: &FeedMessage) -> Outcome {
        let decision = self.book.apply(feed, message, self.now).map_err(|reject| reject.code)?;
        let changes = decision.change.into_iter().chain(decision.follow);
        self.changes.extend(changes.map(|change| (change, self.now)));
        self.oddities.extend(decision.oddity);
        Ok(decision.verdict)
    }

    /// Carries out an operation; returns the number of changes.
    pub(crate) fn operate(&mut self, operation: &Operation) -> Result<usize, NotDone> {
        let changes = self.book.operate(operation, self.now)?;
        let made = changes.len();
        self.changes.extend(changes.into_iter().map(|change| (change, self.now)));
        Ok(made)
    }

    /// Expires whatever is overdue; returns the number of changes.
    pub(crate) fn expire(&mut self) -> usize {
        let overdue = self.book.overdue(self.now, LIFETIMES);
        for change in &overdue {
            self.book.absorb(change, self.now);
            self.changes.push((change.clone(), self.now));
        }
        overdue.len()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        cut(&self.book, self.now)
    }

    pub(crate) fn sport(&self, key: &str) -> SportId {
        self.catalogue.sport_id(key).unwrap()
    }

    pub(crate) fn bookmaker(&self, key: &str) -> BookmakerId {
        self.catalogue.bookmaker_id(key).unwrap()
    }

    pub(crate) fn odds(&self, sport: &str) -> Vec<Value> {
        let all = all_odds(self.sport(sport));
        shown::records(&self.snapshot(), &all, Format::American).items
    }

    pub(crate) fn scores(&self, sport: &str) -> Vec<Value> {
        shown::scores(&self.snapshot(), &all_scores(self.sport(sport))).items
    }

    pub(crate) fn events(&self, sport: &str) -> Vec<Value> {
        shown::events(&self.snapshot(), &all_events(self.sport(sport))).items
    }

    /// The id of the `n`th event created.
    pub(crate) fn id(n: u64) -> String {
        EventId::minted(SALT, n).to_string()
    }

    /// The event of a feed's ref.
    pub(crate) fn event_of(&self, feed: &str, reference: &str) -> Profile {
        let listed = |profile: &Profile| {
            profile.refs.iter().any(|r| (&*r.feed, &*r.reference) == (feed, reference))
        };
        let mut profiles = self.book.events().map(|event| self.book.profile(event.id).unwrap());
        profiles.find(listed).unwrap()
    }

    /// True if two feeds' refs are one event.
    pub(crate) fn are_one(&self, one: (&str, &str), other: (&str, &str)) -> bool {
        self.event_of(one.0, one.1).event == self.event_of(other.0, other.1).event
    }

    /// The possible duplicates, as texts.
    pub(crate) fn doubts(&self) -> Vec<String> {
        self.book.unsure().map(|unsure| format!("{}: {}", unsure.doubt, unsure.evidence)).collect()
    }

    /// The body of an odds message of a bookmaker.
    pub(crate) fn quote(
        &self,
        reference: &str,
        bookmaker: &str,
        market: Market,
        outcomes: &[(&str, i32)],
    ) -> Body {
        let outcomes = outcomes.iter().map(|(name, price)| outcome(name, *price, None)).collect();
        self.odds_body(reference, bookmaker, market, None, outcomes)
    }

    pub(crate) fn odds_body(
        &self,
        reference: &str,
        bookmaker: &str,
        market: Market,
        group: Option<&str>,
        outcomes: Vec<OfferedOutcome>,
    ) -> Body {
        Body::Odds(OddsBody {
            reference: reference.into(),
            bookmaker: self.bookmaker(bookmaker),
            market,
            group: group.map(Into::into),
            outcomes,
        })
    }

    pub(crate) fn beat(&self, bookmaker: &str, sport: Option<&str>) -> Body {
        let sport = sport.map(|sport| self.sport(sport));
        Body::Heartbeat { bookmaker: self.bookmaker(bookmaker), sport }
    }

    /// A head-to-head event, this number of hours after the start of the test.
    pub(crate) fn bout(&self, reference: &str, home: &str, away: &str, hours: i64) -> Body {
        self.event("mma", reference, head_to_head(home, away), hours)
    }

    pub(crate) fn tournament(&self, reference: &str, title: &str, hours: i64) -> Body {
        self.event("golf", reference, Fixture::Field { title: title.into() }, hours)
    }

    pub(crate) fn event(&self, sport: &str, reference: &str, fixture: Fixture, hours: i64) -> Body {
        let listing = Listing {
            sport: self.sport(sport),
            competition: "Northern Cage 12".into(),
            commence_time: at(hours * 3600),
            fixture,
        };
        Body::Event { reference: reference.into(), listing }
    }
}

/// Sets of refs, each of which is one event.
pub(crate) type Partition = BTreeSet<BTreeSet<(String, String)>>;

/// The refs of a book's listed events, for the feeds that pass.
pub(crate) fn partition(book: &Book, passes: impl Fn(&str) -> bool) -> Partition {
    let refs = |id: EventId| {
        let refs = book.profile(id).unwrap().refs.into_iter();
        refs.filter(|listed| passes(&listed.feed))
            .map(|listed| (listed.feed.to_string(), listed.reference.to_string()))
            .collect::<BTreeSet<_>>()
    };
    book.events().map(|event| refs(event.id)).filter(|refs| !refs.is_empty()).collect()
}

/// This number of seconds after the start of the test.
pub(crate) fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(START_S + secs)
}

pub(crate) fn head_to_head(home: &str, away: &str) -> Fixture {
    Fixture::HeadToHead { home: home.into(), away: away.into() }
}

pub(crate) fn outcome(name: &str, american: i32, point: Option<&str>) -> OfferedOutcome {
    OfferedOutcome {
        name: name.into(),
        quote: Quote::parse(&american.to_string(), Format::American).unwrap(),
        point: point.map(|point| Line::parse(point).unwrap()),
    }
}

pub(crate) fn remove(reference: &str) -> Body {
    Body::Remove { reference: reference.into() }
}

/// A score with only a status.
pub(crate) fn report(reference: &str, status: Status) -> ScoreBody {
    ScoreBody {
        reference: reference.into(),
        status,
        home: None,
        away: None,
        periods: Vec::new(),
        winner: None,
        leaders: Vec::new(),
        correction: Correction::No,
    }
}

pub(crate) fn score(reference: &str, status: Status, home: i32, away: i32) -> ScoreBody {
    ScoreBody { home: Some(home), away: Some(away), ..report(reference, status) }
}

pub(crate) fn period(number: u32, home: i32, away: i32) -> Period {
    Period { number, home, away }
}

/// Every record of a sport.
pub(crate) fn all_odds(sport: SportId) -> OddsSelection {
    OddsSelection {
        sport,
        bookmakers: BookmakerSet::ALL,
        bookmaker: None,
        market: None,
        events: None,
        limit: LIMIT,
        after: None,
    }
}

pub(crate) fn all_bouts(sport: SportId) -> BoutSelection {
    let (bookmakers, events, after) = (BookmakerSet::ALL, None, None);
    BoutSelection { sport, bookmakers, events, limit: LIMIT, after }
}

pub(crate) fn all_scores(sport: SportId) -> ScoreSelection {
    ScoreSelection { sport, status: None, events: None, limit: LIMIT, after: None }
}

pub(crate) fn all_events(sport: SportId) -> EventSelection {
    let (from, to, name) = (None, None, None);
    EventSelection { sport, status: None, events: None, from, to, name, limit: LIMIT, after: None }
}

pub(crate) fn cut(book: &Book, now: Timestamp) -> Snapshot {
    Snapshot::cut(book, 0, now, STALE_AFTER, &[&AllFields])
}

/// Everything that can be queried of a book, as one text.
pub(crate) fn everything(book: &Book, now: Timestamp) -> String {
    let snapshot = cut(book, now);
    shown::check(&snapshot);
    let mut out = format!("{:?}\n", book.vitals());
    for (sport, _) in book.catalogue().sports() {
        out += &shown::all(&snapshot, sport).to_string();
        let view = snapshot.sport(sport);
        out += &format!("\n{} {} {}\n", view.active, view.events_open, view.bookmakers);
    }
    out
}

/// A book built from the encoded changes of another.
pub(crate) fn replayed(
    catalogue: &Arc<Catalogue>,
    ids: Ids,
    changes: &[(Change, Timestamp)],
) -> Book {
    let mut book = Book::new(Arc::clone(catalogue), ids);
    book.set_limits(LIMITS);
    for (change, at) in changes {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        book.absorb(&Change::decode(CHANGE_VERSION, &bytes).unwrap(), *at);
    }
    book
}

/// A book built from another's checkpoint.
pub(crate) fn restored(book: &Book) -> Book {
    let image = book.to_image();
    let mut again =
        Book::from_image(book::IMAGE_VERSION, &image, Arc::clone(book.catalogue())).unwrap();
    assert_eq!(again.load(), book.load(), "what was counted step by step is what is there");
    again.set_limits(LIMITS);
    again
}

/// Walks pages to the end.
pub(crate) fn walk<T>(mut page: impl FnMut(Option<Cursor>) -> (Vec<T>, Option<Cursor>)) -> Vec<T> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let (items, next) = page(after);
        assert!(!items.is_empty() || next.is_none(), "an empty page is the last");
        all.extend(items);
        if next.is_none() {
            return all;
        }
        after = next;
    }
}

/// The number of cases of a property test; ten times as many with `PROPTEST_CASES=2560`.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let chosen = ProptestConfig::default();
    let cases = usual * chosen.cases / 256;
    ProptestConfig { cases, failure_persistence: None, ..chosen }
}
