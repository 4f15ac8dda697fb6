//! A book under attack, and names that are expensive to compare.

use std::sync::Arc;
use std::time::Duration;

use domain::message::{
    Body, Correction, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome, Reject, ScoreBody,
};
use domain::{Catalogue, Format, Line, Market, Quote, Status, Timestamp};
use linesman_market::{Book, Decision, Ids, Limits};

/// 2026-11-14T12:00:00Z.
pub(crate) const START: Timestamp = Timestamp::from_secs(1_794_657_600);

/// The target of a shape.
pub(crate) struct World {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) book: Book,
    pub(crate) now: Timestamp,
}

impl World {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let catalogue = Arc::new(Catalogue::load(None)?);
        let mut book = Book::new(Arc::clone(&catalogue), Ids::Minted { salt: 7 });
        book.set_limits(Limits::NONE);
        Ok(Self { catalogue, book, now: START })
    }

    pub(crate) fn apply(&mut self, feed: &str, message: &FeedMessage) -> Result<Decision, Reject> {
        self.now = self.now.plus(Duration::from_millis(1));
        self.book.apply(feed, message, self.now)
    }

    /// Sends a message while the world is built; rejected ones are ignored.
    pub(crate) fn say(&mut self, feed: &str, message: &FeedMessage) {
        drop(self.apply(feed, message));
    }

    pub(crate) fn event(
        &self,
        sport: &str,
        reference: &str,
        fixture: Fixture,
        hours: i64,
    ) -> FeedMessage {
        let sport = self.catalogue.sport_id(sport).or_else(|| self.catalogue.sport_id("mma"));
        let Some(sport) = sport else { return self.beat() };
        let commence_time = Timestamp::from_millis(START.as_millis() + hours * 3_600_000);
        let listing = Listing { sport, competition: "Harbour Open".into(), commence_time, fixture };
        said(Body::Event { reference: reference.into(), listing })
    }

    pub(crate) fn odds(
        &self,
        reference: &str,
        (bookmaker, market, group): (usize, Market, Option<&str>),
        names: impl Iterator<Item = (String, Option<i32>)>,
        price: i32,
    ) -> FeedMessage {
        let outcome = |(name, point): (String, Option<i32>)| {
            let quote = Quote::parse(&price.to_string(), Format::American).ok()?;
            let point = point.and_then(|point| Line::parse(&point.to_string()).ok());
            Some(OfferedOutcome { name: name.into(), quote, point })
        };
        let bookmaker = self.catalogue.bookmakers().nth(bookmaker).map(|(id, _)| id);
        let Some(bookmaker) = bookmaker else { return self.beat() };
        said(Body::Odds(OddsBody {
            reference: reference.into(),
            bookmaker,
            market,
            group: group.map(Into::into),
            outcomes: names.filter_map(outcome).collect(),
        }))
    }

    pub(crate) fn beat(&self) -> FeedMessage {
        let (bookmaker, _) = self.catalogue.bookmakers().next().unzip();
        let body = bookmaker.map(|bookmaker| Body::Heartbeat { bookmaker, sport: None });
        said(body.unwrap_or(Body::Remove { reference: "none".into() }))
    }

    /// Adds the next players to a field.
    pub(crate) fn fill_field(&mut self, reference: &str, names: impl Iterator<Item = String>) {
        let names: Vec<String> = names.collect();
        for names in names.chunks(8) {
            let names = names.iter().map(|name| (name.clone(), None));
            let odds = self.odds(reference, (0, Market::Outright, None), names, 140);
            self.say("evil", &odds);
        }
    }

    /// Ordinary events of people, from two feeds.
    pub(crate) fn fill(&mut self, events: usize) {
        for n in 0..events {
            let person = |n: usize| format!("{} {}", word(n % 300), word(1000 + n));
            let fixture = bout(&person(2 * n), &person(2 * n + 1));
            for feed in ["north", "south"] {
                let hours = i64::try_from(n % 600).unwrap_or(0);
                let message = self.event("tennis", &format!("f-{n}"), fixture.clone(), hours);
                self.say(feed, &message);
            }
        }
    }
}

pub(crate) fn said(body: Body) -> FeedMessage {
    FeedMessage { ts: None, fresh_for_s: None, body }
}

pub(crate) fn remove(reference: &str) -> FeedMessage {
    said(Body::Remove { reference: reference.into() })
}

pub(crate) fn score(
    reference: &str,
    status: Status,
    leaders: Vec<(Box<str>, Vec<i32>)>,
) -> FeedMessage {
    said(Body::Score(ScoreBody {
        reference: reference.into(),
        status,
        home: None,
        away: None,
        periods: Vec::new(),
        winner: None,
        leaders,
        correction: Correction::No,
    }))
}

pub(crate) fn bout(home: &str, away: &str) -> Fixture {
    Fixture::HeadToHead { home: home.into(), away: away.into() }
}

pub(crate) fn title(title: &str) -> Fixture {
    Fixture::Field { title: title.into() }
}

/// A word that is unique for each number.
pub(crate) fn word(n: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "dra", "pel", "gor", "han",
        "fis", "wol",
    ];
    let mut rest = n;
    let mut word = String::new();
    for _ in 0..4 {
        word.push_str(SYLLABLES.get(rest % SYLLABLES.len()).copied().unwrap_or("x"));
        rest /= SYLLABLES.len();
    }
    word
}

/// Words of one length that begin alike, have the same letters and differ in three places at the end: each must be
/// compared with each.
pub(crate) fn near_words(from: usize, count: usize, len: usize) -> String {
    let words = (from..from + count).map(|n| {
        let mut word: Vec<u8> =
            (0..len).map(|at| b'a' + u8::try_from(at % 13).unwrap_or(0)).collect();
        // The last letters in an order that depends on the number.
        let tail = len.saturating_sub(7);
        let mut rest = n;
        for at in (tail..len).rev() {
            let range = at - tail + 1;
            word.swap(at, tail + rest % range);
            rest /= range;
        }
        String::from_utf8(word).unwrap_or_default()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Ten long words that no other name has.
pub(crate) fn own_words(n: usize) -> String {
    let words: Vec<String> =
        (0..10).map(|at| format!("{}{}", word(n * 10 + at), word(n + at * 77))).collect();
    words.join(" ")
}

/// Nine long words shared by all, and one unique word.
pub(crate) fn shared_words(n: usize) -> String {
    let shared: Vec<String> = (0..9).map(|n| format!("{}{}", word(n), word(n + 77))).collect();
    format!("{} {}", shared.join(" "), word(5000 + n))
}
