//! The events of a body, as upstream writes them.

use std::borrow::Cow;
use std::ops::Range;

use crate::adapter::pull::Pull;

/// One event of a body, in flat lists whose memory is reused for the next.
#[derive(Default)]
pub(super) struct Event<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) sport_key: Cow<'a, str>,
    pub(super) sport_title: Cow<'a, str>,
    pub(super) commence_time: Cow<'a, str>,
    pub(super) home_team: Option<Cow<'a, str>>,
    pub(super) away_team: Option<Cow<'a, str>>,
    pub(super) bookmakers: Vec<Bookmaker<'a>>,
    pub(super) markets: Vec<MarketOf<'a>>,
    pub(super) outcomes: Vec<Outcome<'a>>,
    pub(super) completed: bool,
    pub(super) scores: Option<Vec<Score<'a>>>,
    pub(super) last_update: Option<Cow<'a, str>>,
    /// A required field that an item lacks.
    missing: Option<&'static str>,
}

#[derive(Default)]
pub(super) struct Bookmaker<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) last_update: Option<Cow<'a, str>>,
    /// Range of its markets in the event's list.
    pub(super) markets: Range<usize>,
}

#[derive(Default)]
pub(super) struct MarketOf<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) last_update: Option<Cow<'a, str>>,
    /// Range of its outcomes in the event's list.
    pub(super) outcomes: Range<usize>,
}

/// Numbers are as written.
pub(super) struct Outcome<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) price: &'a str,
    pub(super) point: Option<&'a str>,
}

pub(super) struct Score<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) score: Cow<'a, str>,
}

impl<'a> Event<'a> {
    /// Reads the next event into this; `None` if it is not a valid event.
    pub(super) fn read(&mut self, pull: &mut Pull<'a>) -> Option<()> {
        let (mut bookmakers, mut markets, mut outcomes) = (
            std::mem::take(&mut self.bookmakers),
            std::mem::take(&mut self.markets),
            std::mem::take(&mut self.outcomes),
        );
        bookmakers.clear();
        markets.clear();
        outcomes.clear();
        *self = Self { bookmakers, markets, outcomes, ..Self::default() };
        let (mut id, mut sport_key, mut commence_time) = (None, None, None);
        pull.object(|pull, key| {
            match key {
                b"id" => id = Some(pull.text()?),
                b"sport_key" => sport_key = Some(pull.text()?),
                b"sport_title" => self.sport_title = pull.text()?,
                b"commence_time" => commence_time = Some(pull.text()?),
                b"home_team" => self.home_team = pull.text_or_null()?,
                b"away_team" => self.away_team = pull.text_or_null()?,
                b"bookmakers" => pull.list(|pull| self.bookmaker(pull))?,
                b"completed" => self.completed = pull.flag()?,
                b"scores" if pull.is_null() => pull.skip()?,
                b"scores" => pull.list(|pull| self.score(pull))?,
                b"last_update" => self.last_update = pull.text_or_null()?,
                _ => pull.skip()?,
            }
            Some(())
        })?;
        self.id = self.needs("id", id)?;
        self.sport_key = self.needs("sport_key", sport_key)?;
        self.commence_time = self.needs("commence_time", commence_time)?;
        Some(())
    }

    fn bookmaker(&mut self, pull: &mut Pull<'a>) -> Option<()> {
        let mut bookmaker = Bookmaker::default();
        let (mut name, from) = (None, self.markets.len());
        pull.object(|pull, key| {
            match key {
                b"key" => name = Some(pull.text()?),
                b"last_update" => bookmaker.last_update = pull.text_or_null()?,
                b"markets" => pull.list(|pull| self.market(pull))?,
                _ => pull.skip()?,
            }
            Some(())
        })?;
        bookmaker.key = self.needs("key", name)?;
        bookmaker.markets = from..self.markets.len();
        self.bookmakers.push(bookmaker);
        Some(())
    }

    fn market(&mut self, pull: &mut Pull<'a>) -> Option<()> {
        let mut market = MarketOf::default();
        let (mut name, from) = (None, self.outcomes.len());
        pull.object(|pull, key| {
            match key {
                b"key" => name = Some(pull.text()?),
                b"last_update" => market.last_update = pull.text_or_null()?,
                b"outcomes" => pull.list(|pull| self.outcome(pull))?,
                _ => pull.skip()?,
            }
            Some(())
        })?;
        market.key = self.needs("key", name)?;
        market.outcomes = from..self.outcomes.len();
        self.markets.push(market);
        Some(())
    }

    fn outcome(&mut self, pull: &mut Pull<'a>) -> Option<()> {
        let (mut name, mut price, mut point) = (None, None, None);
        pull.object(|pull, key| {
            match key {
                b"name" => name = Some(pull.text()?),
                b"price" => price = Some(pull.raw()?),
                b"point" => point = Some(pull.raw()?),
                _ => pull.skip()?,
            }
            Some(())
        })?;
        let (name, price) = (self.needs("name", name)?, self.needs("price", price)?);
        self.outcomes.push(Outcome { name, price, point });
        Some(())
    }

    fn score(&mut self, pull: &mut Pull<'a>) -> Option<()> {
        let (mut name, mut score) = (None, None);
        pull.object(|pull, key| {
            match key {
                b"name" => name = Some(pull.text()?),
                b"score" => score = Some(pull.text()?),
                _ => pull.skip()?,
            }
            Some(())
        })?;
        let (name, score) = (self.needs("name", name)?, self.needs("score", score)?);
        self.scores.get_or_insert_default().push(Score { name, score });
        Some(())
    }

    fn needs<T>(&mut self, field: &'static str, found: Option<T>) -> Option<T> {
        if found.is_none() {
            self.missing = Some(field);
        }
        found
    }

    /// The reason why the event could not be read; reading stopped at this byte of the body.
    pub(super) fn fault(&self, offset: usize) -> String {
        match self.missing {
            Some(field) => format!("`{field}` is missing before byte {offset}"),
            None => format!("unexpected content at byte {offset}"),
        }
    }
}
