//! The cached state of each market of the stream: its definition and the ladders of its runners.

use domain::price::{Format, Price, Quote};
use domain::time::Timestamp;

use crate::adapter::pull::{Pull, UNIT};

/// Maximum number of runners of one market: the largest fields have some hundreds.
pub(super) const RUNNERS_MAX: usize = 1_000;
/// Maximum number of levels of one ladder; there are 350 prices.
const LEVELS_MAX: usize = 400;

/// A price and the size offered at it, in millionths.
type Level = (u64, u64);

/// A change of one level of a runner's ladder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub(super) runner: RunnerKey,
    /// The position among the best offers (`batb`); `None`: the level of this price (`atb`).
    pub(super) place: Option<u64>,
    pub(super) price: u64,
    pub(super) size: u64,
}

/// A selection and its handicap in hundredths.
pub(super) type RunnerKey = (u64, i32);

/// One runner of a market.
#[derive(Clone, Debug, Default)]
pub(super) struct Runner {
    pub(super) key: RunnerKey,
    pub(super) active: bool,
    pub(super) winner: bool,
    pub(super) priority: u64,
    pub(super) name: Option<Box<str>>,
    /// Levels by position.
    best: Vec<Level>,
    /// Levels by price, lowest first.
    all: Vec<Level>,
    /// The best price with at least the minimum size.
    pub(super) back: Option<u64>,
}

impl Runner {
    fn put(&mut self, update: &Update) {
        match update.place.map(usize::try_from) {
            Some(Ok(place)) if place < LEVELS_MAX => {
                if self.best.len() <= place {
                    self.best.resize(place + 1, (0, 0));
                }
                if let Some(level) = self.best.get_mut(place) {
                    *level = (update.price, update.size);
                }
            }
            Some(_) => {}
            None => match self.all.binary_search_by_key(&update.price, |level| level.0) {
                Ok(at) if update.size == 0 => drop(self.all.remove(at)),
                Ok(at) => {
                    if let Some(level) = self.all.get_mut(at) {
                        level.1 = update.size;
                    }
                }
                Err(at) if update.size > 0 && self.all.len() < LEVELS_MAX => {
                    self.all.insert(at, (update.price, update.size));
                }
                Err(_) => {}
            },
        }
    }

    /// Recomputes the best price; returns whether it changed.
    fn settle(&mut self, size_min: u64) -> bool {
        let enough = |level: &&Level| level.1 > 0 && level.1 >= size_min && level.0 > UNIT;
        let best = self.best.iter().filter(enough).map(|level| level.0).max();
        let back = best.or_else(|| self.all.iter().rev().find(enough).map(|level| level.0));
        let changed = back != self.back;
        self.back = back;
        changed
    }

    pub(super) fn quote(&self) -> Option<Quote> {
        let price = Price::from_ratio(self.back?.checked_sub(UNIT)?, UNIT)?;
        Some(Quote { price, format: Format::Decimal })
    }
}

/// The status of a market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Suspended, inactive, or an unknown status.
    #[default]
    Suspended,
    Closed,
}

/// A market's definition; the stream always sends it as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Definition {
    pub(super) state: State,
    pub(super) in_play: bool,
    pub(super) market_type: Box<str>,
    pub(super) event: Box<str>,
    pub(super) event_type: Box<str>,
    pub(super) event_name: Option<Box<str>>,
    pub(super) start: Option<Timestamp>,
    pub(super) runners: Vec<Runner>,
}

/// A market of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Market {
    pub(super) definition: Definition,
    /// The number of the last image that contained it.
    pub(super) image: u64,
    /// Time at which upstream published the newest change.
    pub(super) published: Timestamp,
    /// The slot that it belongs to.
    pub(super) slot: Option<u64>,
}

impl Market {
    /// Replaces the definition; ladders stay.
    pub(super) fn define(&mut self, mut definition: Definition) {
        for runner in &mut definition.runners {
            let held = self.definition.runners.iter_mut().find(|held| held.key == runner.key);
            if let Some(held) = held {
                runner.best = std::mem::take(&mut held.best);
                runner.all = std::mem::take(&mut held.all);
                runner.back = held.back;
            }
        }
        // Keep handicap lines that the definition does not list, if it lists their selection.
        for mut held in std::mem::take(&mut self.definition.runners) {
            let like = definition.runners.iter().find(|runner| runner.key.0 == held.key.0);
            let listed = definition.runners.iter().any(|runner| runner.key == held.key);
            let Some(like) = like.filter(|_| !listed && definition.runners.len() < RUNNERS_MAX)
            else {
                continue;
            };
            held.active = like.active;
            held.name.clone_from(&like.name);
            definition.runners.push(held);
        }
        self.definition = definition;
    }

    /// Empties the ladders before an image.
    pub(super) fn clear(&mut self) {
        for runner in &mut self.definition.runners {
            runner.best.clear();
            runner.all.clear();
        }
    }

    /// Applies changes of ladders; returns whether a best price changed.
    pub(super) fn update(&mut self, updates: &[Update], image: bool, size_min: u64) -> bool {
        let mut changed = false;
        for runners in updates.chunk_by(|a, b| a.runner == b.runner) {
            let Some(key) = runners.first().map(|update| update.runner) else {
                continue;
            };
            let runners_of = &mut self.definition.runners;
            let runner = match runners_of.iter().position(|runner| runner.key == key) {
                Some(at) => runners_of.get_mut(at),
                // The definition does not list all lines of a handicap.
                None if runners_of.len() < RUNNERS_MAX => {
                    let like = runners_of.iter().find(|runner| runner.key.0 == key.0);
                    let mut runner = Runner { key, active: true, ..Runner::default() };
                    if let Some(like) = like {
                        runner.active = like.active;
                        runner.priority = like.priority;
                        runner.name.clone_from(&like.name);
                    }
                    runners_of.push(runner);
                    runners_of.last_mut()
                }
                None => None,
            };
            if let Some(runner) = runner {
                runners.iter().for_each(|update| runner.put(update));
                changed |= runner.settle(size_min);
            }
        }
        if image {
            for runner in &mut self.definition.runners {
                changed |= runner.settle(size_min);
            }
        }
        changed
    }
}

/// Reads a `marketDefinition`.
pub(super) fn read_definition(pull: &mut Pull<'_>) -> Option<Definition> {
    let mut definition = Definition::default();
    let (mut market_time, mut open_date) = (None, None);
    pull.object(|pull, key| {
        match key {
            b"status" => {
                definition.state = match &*pull.text()? {
                    "OPEN" => State::Open,
                    "CLOSED" => State::Closed,
                    _ => State::Suspended,
                }
            }
            b"inPlay" => definition.in_play = pull.flag()?,
            b"marketType" => definition.market_type = (&*pull.text()?).into(),
            b"eventId" => definition.event = (&*pull.text()?).into(),
            b"eventTypeId" => definition.event_type = (&*pull.text()?).into(),
            b"eventName" => {
                definition.event_name = pull.text_or_null()?.map(|name| (&*name).into());
            }
            b"marketTime" => {
                market_time = pull.text_or_null()?.and_then(|t| Timestamp::parse(&t).ok());
            }
            b"openDate" => open_date = pull.text_or_null()?.and_then(|t| Timestamp::parse(&t).ok()),
            b"runners" => pull.list(|pull| {
                let runner = read_runner(pull)?;
                if definition.runners.len() < RUNNERS_MAX {
                    definition.runners.push(runner);
                }
                Some(())
            })?,
            _ => pull.skip()?,
        }
        Some(())
    })?;
    definition.start = market_time.or(open_date);
    Some(definition)
}

fn read_runner(pull: &mut Pull<'_>) -> Option<Runner> {
    let mut runner = Runner::default();
    pull.object(|pull, key| {
        match key {
            b"id" => runner.key.0 = pull.integer()?,
            b"hc" => runner.key.1 = read_handicap(pull)?,
            b"sortPriority" => runner.priority = pull.integer()?,
            b"name" => runner.name = pull.text_or_null()?.map(|name| (&*name).into()),
            b"status" => match &*pull.text()? {
                "ACTIVE" => runner.active = true,
                "WINNER" => runner.winner = true,
                _ => {}
            },
            _ => pull.skip()?,
        }
        Some(())
    })?;
    Some(runner)
}

/// A handicap in hundredths; the stream uses quarters.
pub(super) fn read_handicap(pull: &mut Pull<'_>) -> Option<i32> {
    let text = pull.number()?;
    if text == "null" {
        return Some(0);
    }
    let (negative, size) = match text.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, text),
    };
    let millionths = Pull::new(size).scaled()?;
    let hundredths = i32::try_from(millionths / (UNIT / 100)).ok()?;
    Some(if negative { -hundredths } else { hundredths })
}
