//! One event in the book: its participants, listings, score and prices.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use domain::message::Fixture;
use domain::score::{Leader, Score, Side};
use domain::{
    BookmakerId, EventId, Line, Market, Period, Quote, RecordId, SportId, Status, Timestamp,
};

use crate::book::field::Field;
use crate::change::{Reported, Who};
use crate::freshness::Confirmed;
use crate::rendered::Slots;

/// An event.
#[derive(Debug)]
pub struct Event {
    pub id: EventId,
    pub sport: SportId,
    pub competition: Box<str>,
    pub commence_time: Timestamp,
    pub fixture: Fixture,
    pub(crate) field: Field,
    /// Feeds that list it now, the eldest first: its names and times are the event's.
    pub(crate) listed_by: Vec<(FeedIx, Box<str>)>,
    /// Withdrawn refs that meant it, and would mean it again.
    pub(crate) withdrawn: BTreeSet<(FeedIx, Box<str>)>,
    /// The feed that leads it, or led it last; the event's memory is charged to it.
    pub(crate) owner: Option<FeedIx>,
    pub(crate) counted: Counted,
    pub(crate) first_known: Timestamp,
    /// Order of creation: smaller for the elder of two events.
    pub(crate) born: u64,
    /// Time of a feed's last mention, by our clock.
    pub(crate) mentioned_at: Timestamp,
    /// Current score, shared with snapshots.
    pub score: Arc<Score>,
    /// Time of the held score according to the source.
    pub(crate) score_ts: Option<Timestamp>,
    /// Time of the last change of the score (D29).
    pub(crate) score_changed: Timestamp,
    /// Arrival time of the final score, by our clock.
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) slots: BTreeMap<SlotKey, Slot>,
    /// Built for the first snapshot after a change.
    pub(crate) details: OnceLock<Arc<EventDetails>>,
}

/// The memory charged for an event, and to which feeds; maintained by `weight`.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// For the event itself with its players and score.
    pub(super) own: u64,
    pub(super) owner: Option<FeedIx>,
    /// For its markets, by the feed that sent them.
    pub(super) slots: Vec<(FeedIx, u64)>,
    /// Number of players included in `players_bytes`.
    pub(super) players: usize,
    pub(super) players_bytes: usize,
}

/// A feed's position in the book's list of feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FeedIx(pub(crate) u32);

/// The displayed data of an event, without its prices. Snapshots share it until it changes.
#[derive(Debug)]
pub struct EventDetails {
    pub sport: SportId,
    pub competition: Box<str>,
    /// For a field only; `None` for head-to-head events.
    pub title: Option<Box<str>>,
    /// The sides; for a field the leader and the runner-up, once there are any.
    pub home: Option<Box<str>>,
    pub away: Option<Box<str>>,
    pub score: Arc<Score>,
    /// Time of the last change of the score (D29).
    pub score_changed: Timestamp,
    /// Markets with prices, in the order of their keys.
    pub markets: Box<[Market]>,
    pub(crate) rendered: Slots,
}

/// Sorts an event's records in the order of answers (D15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SlotKey {
    pub(crate) bookmaker: BookmakerId,
    pub(crate) market: Market,
    pub(crate) record: RecordId,
}

/// The slot of one record. It stays when the prices are removed, so that an older message cannot bring them back.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) group: Option<Box<str>>,
    pub(crate) feed: FeedIx,
    /// Time of the held prices according to the source.
    pub(crate) ts: Timestamp,
    /// The source's newest heartbeat at that time: only a later one confirms these prices.
    pub(crate) beat_seen: Timestamp,
    pub(crate) open: Option<Arc<Record>>,
    /// Memory charged for it; maintained by `weight`.
    pub(crate) weight: u64,
}

impl Slot {
    pub(crate) fn confirmed(&self) -> Confirmed {
        Confirmed { ts: self.ts, beat_seen: self.beat_seen }
    }
}

/// A record of an event that has prices.
#[derive(Clone, Copy, Debug)]
pub struct OpenRecord<'a> {
    pub id: RecordId,
    pub bookmaker: BookmakerId,
    pub market: Market,
    pub group: Option<&'a str>,
    /// Time of its prices according to the source.
    pub ts: Timestamp,
    pub record: &'a Arc<Record>,
}

/// Prices on offer.
#[derive(Debug)]
pub struct Record {
    pub outcomes: Arc<[Outcome]>,
    pub(crate) rendered: Slots,
}

/// One priced outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub name: OutcomeName,
    pub quote: Quote,
    pub point: Option<Line>,
}

/// The subject of a price; the text comes from the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OutcomeName {
    Home,
    Away,
    Draw,
    Over,
    Under,
    Entrant(u16),
}

impl OutcomeName {
    /// The number of a player of a field.
    pub fn entrant(self) -> Option<u16> {
        match self {
            Self::Entrant(at) => Some(at),
            Self::Home | Self::Away | Self::Draw | Self::Over | Self::Under => None,
        }
    }

    /// The key of the side in the archive; `None` for a player of a field, who is identified by name.
    pub fn side_key(self) -> Option<&'static str> {
        match self {
            Self::Home => Some("home"),
            Self::Away => Some("away"),
            Self::Draw => Some("draw"),
            Self::Over => Some("over"),
            Self::Under => Some("under"),
            Self::Entrant(_) => None,
        }
    }
}

impl From<Side> for OutcomeName {
    fn from(side: Side) -> Self {
        match side {
            Side::Home => Self::Home,
            Side::Away => Self::Away,
        }
    }
}

impl Event {
    /// A new event, from its first listing.
    pub(crate) fn found(
        id: EventId,
        sport: SportId,
        (competition, commence_time, fixture): (Box<str>, Timestamp, Fixture),
        ts: Timestamp,
        at: Timestamp,
    ) -> Self {
        Self {
            id,
            sport,
            competition,
            commence_time,
            fixture,
            field: Field::default(),
            listed_by: Vec::new(),
            withdrawn: BTreeSet::new(),
            owner: None,
            counted: Counted::default(),
            first_known: ts,
            born: 0,
            mentioned_at: at,
            score: Arc::new(Score::none_yet()),
            score_ts: None,
            score_changed: ts,
            finished_at: None,
            slots: BTreeMap::new(),
            details: OnceLock::new(),
        }
    }

    /// True if any feed lists it; API users do not see unlisted events.
    pub fn is_listed(&self) -> bool {
        !self.listed_by.is_empty()
    }

    /// Time since which no feed lists it, or of its last mention after that; `None` if a feed lists it.
    pub fn unlisted_at(&self) -> Option<Timestamp> {
        (!self.is_listed()).then_some(self.mentioned_at)
    }

    pub(crate) fn is_listed_by(&self, feed: FeedIx) -> bool {
        self.listed_by.iter().any(|(lister, _)| *lister == feed)
    }

    /// True if a feed has any part in it: a ref, prices, or the lead.
    pub(crate) fn knows(&self, feed: FeedIx) -> bool {
        self.owner == Some(feed)
            || self.is_listed_by(feed)
            || self.counted.slots.iter().any(|(held, _)| *held == feed)
            || self
                .withdrawn
                .range((feed, Box::default())..)
                .next()
                .is_some_and(|(of, _)| *of == feed)
    }

    /// Its records that have prices, in the order of answers.
    pub fn open_records(&self) -> impl Iterator<Item = OpenRecord<'_>> {
        self.slots.iter().filter_map(|(key, slot)| {
            let record = slot.open.as_ref()?;
            let SlotKey { bookmaker, market, record: id } = *key;
            let group = slot.group.as_deref();
            Some(OpenRecord { id, bookmaker, market, group, ts: slot.ts, record })
        })
    }

    /// The freshness data of all its records, including those without prices.
    pub fn confirmed(&self) -> impl Iterator<Item = (RecordId, Confirmed)> {
        self.slots.iter().map(|(key, slot)| (key.record, slot.confirmed()))
    }

    /// The freshness data of one record.
    pub fn confirmed_of(
        &self,
        bookmaker: BookmakerId,
        market: Market,
        record: RecordId,
    ) -> Option<Confirmed> {
        self.slots.get(&SlotKey { bookmaker, market, record }).map(Slot::confirmed)
    }

    /// The prices of one record, if it has any.
    pub fn open_record(
        &self,
        bookmaker: BookmakerId,
        market: Market,
        record: RecordId,
    ) -> Option<&Arc<Record>> {
        self.slots.get(&SlotKey { bookmaker, market, record })?.open.as_ref()
    }

    /// The text of an outcome's name.
    pub fn outcome_text(&self, name: OutcomeName) -> &str {
        match (name, &self.fixture) {
            (OutcomeName::Home, Fixture::HeadToHead { home, .. }) => home,
            (OutcomeName::Away, Fixture::HeadToHead { away, .. }) => away,
            (OutcomeName::Home | OutcomeName::Away, Fixture::Field { title }) => title,
            (OutcomeName::Draw, _) => "Draw",
            (OutcomeName::Over, _) => "Over",
            (OutcomeName::Under, _) => "Under",
            (OutcomeName::Entrant(at), _) => self.field.name(at),
        }
    }

    /// The order of outcomes in a record: home, away, draw; over, under; players by name, which does not depend on
    /// the order of arrival; then by point.
    pub(crate) fn order_outcomes(
        &self,
        (one, one_point): (OutcomeName, Option<Line>),
        (other, other_point): (OutcomeName, Option<Line>),
    ) -> Ordering {
        let names = match (one, other) {
            (OutcomeName::Entrant(_), OutcomeName::Entrant(_)) => {
                self.outcome_text(one).cmp(self.outcome_text(other))
            }
            (one, other) => one.cmp(&other),
        };
        names.then(one_point.cmp(&other_point))
    }

    pub(crate) fn outcome_name(&mut self, who: &Who) -> Option<OutcomeName> {
        Some(match who {
            Who::Side(Side::Home) => OutcomeName::Home,
            Who::Side(Side::Away) => OutcomeName::Away,
            Who::Draw => OutcomeName::Draw,
            Who::Over => OutcomeName::Over,
            Who::Under => OutcomeName::Under,
            Who::Player(name) => OutcomeName::Entrant(self.field.intern(name)?),
        })
    }

    pub(crate) fn score_from(&mut self, report: &Reported) -> Score {
        let leaders = report
            .leaders
            .iter()
            .filter_map(|(name, rounds)| {
                Some(Leader { entrant: self.field.intern(name)?, rounds: rounds.clone() })
            })
            .collect();
        Score {
            status: report.status,
            home: report.home,
            away: report.away,
            periods: report.periods.clone(),
            winner: report.winner,
            leaders,
        }
    }

    /// Markets with prices, in the order of their keys.
    pub(crate) fn open_markets(&self) -> Vec<Market> {
        let mut markets: Vec<Market> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.open.is_some())
            .map(|(key, _)| key.market)
            .collect();
        markets.sort_unstable();
        markets.dedup();
        markets
    }

    /// Removes the prices from the slots that `which` selects; the slots stay.
    pub(crate) fn close_slots(&mut self, which: impl Fn(&Slot) -> bool) {
        for slot in self.slots.values_mut() {
            if which(slot) {
                slot.open = None;
            }
        }
        self.touch();
    }

    /// Discards the displayed data, which changed; it is rebuilt for the next snapshot.
    pub(crate) fn touch(&mut self) {
        self.details = OnceLock::new();
    }

    /// The current displayed data.
    pub fn details(&self) -> &Arc<EventDetails> {
        self.details.get_or_init(|| {
            let leader = |place: usize| {
                let leader = self.score.leaders.get(place)?;
                Some(self.field.name(leader.entrant).into())
            };
            let (title, home, away) = match &self.fixture {
                Fixture::HeadToHead { home, away } => {
                    (None, Some(home.clone()), Some(away.clone()))
                }
                Fixture::Field { title } => (Some(title.clone()), leader(0), leader(1)),
            };
            Arc::new(EventDetails {
                sport: self.sport,
                competition: self.competition.clone(),
                title,
                home,
                away,
                score: Arc::clone(&self.score),
                score_changed: self.score_changed,
                markets: self.open_markets().into(),
                rendered: Slots::default(),
            })
        })
    }

    /// After a change of a side's name, also discards the rendered records that show it. The sides come first in a
    /// record.
    pub(crate) fn touch_records(&mut self) {
        for slot in self.slots.values_mut() {
            let prints = |record: &&Arc<Record>| {
                let first = record.outcomes.first().map(|outcome| outcome.name);
                matches!(first, Some(OutcomeName::Home | OutcomeName::Away))
            };
            if let Some(record) = slot.open.as_ref().filter(prints) {
                slot.open = Some(Arc::new(Record::new(Arc::clone(&record.outcomes))));
            }
        }
        self.touch();
    }

    pub(crate) fn is_final(&self) -> bool {
        self.score.status == Status::Final
    }
}

impl Record {
    pub(crate) fn new(outcomes: Arc<[Outcome]>) -> Self {
        Self { outcomes, rendered: Slots::default() }
    }
}

impl EventDetails {
    /// The score by periods; for a field the rounds of the leader and the runner-up that both have played (D10).
    pub fn periods(&self) -> impl Iterator<Item = Period> {
        let rounds = match &*self.score.leaders {
            [leader, runner_up, ..] => (&*leader.rounds, &*runner_up.rounds),
            [_] | [] => Default::default(),
        };
        let rounds = (1..).zip(rounds.0.iter().zip(rounds.1));
        let rounds =
            rounds.map(|(number, (home, away))| Period { number, home: *home, away: *away });
        rounds.chain(self.score.periods.iter().copied())
    }
}
