//! The memory that the book holds, and its limits.
//!
//! One measure for everything that a feed can make us keep: one unit for each [`UNIT_BYTES`] or part of it in memory,
//! estimated from the content and never too low. An ordinary listing, event or market counts one or two; five hundred
//! long names count by their size. Removed data counts until it is forgotten, since it is held until then. Limits are
//! checked when a message is decided on, never when a change is absorbed: a log can always be loaded, whatever the
//! current limits.

use std::time::Duration;

use domain::message::{Fixture, Reject, RejectCode};
use domain::{EventId, Score, Side, Status, Timestamp};

use crate::book::event::{Counted, Event, FeedIx, OutcomeName, Slot};
use crate::book::field::escaped_bytes;
use crate::book::{Book, Feed, Offer};
use crate::change::{QuotedOutcome, Reported, Who};
use crate::matching::{Contest, keys_count};

/// Number of bytes of one unit.
pub const UNIT_BYTES: usize = 2048;
/// Maximum time until the start of an event. Majors and title bouts are listed a year ahead.
pub const HORIZON: Duration = Duration::from_secs(731 * 86_400);
/// Some sources date events only by the day, and in another time zone.
const BEGIN_EARLY_MAX: Duration = Duration::from_secs(24 * 3600);
/// Number of score periods included in the base size of an event.
const PERIODS_FREE: usize = 16;
/// Number of rounds of a leader included in the base size of a player.
const ROUNDS_FREE: usize = 8;

/// Limits of a book, in units of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub records_max: u64,
    /// Limit of one feed, so that none can fill the book.
    pub records_per_feed_max: u64,
    /// Maximum time until the start of an event.
    pub start_ahead_max: Duration,
    /// Maximum time before its start at which an event may be live or final.
    pub begin_early_max: Duration,
}

impl Limits {
    pub const DEFAULT: Self = Self {
        records_max: 500_000,
        records_per_feed_max: 200_000,
        start_ahead_max: HORIZON,
        begin_early_max: BEGIN_EARLY_MAX,
    };
    /// For a book that repeats changes accepted by another.
    pub const NONE: Self = Self {
        records_max: u64::MAX,
        records_per_feed_max: u64::MAX,
        start_ahead_max: Duration::MAX,
        begin_early_max: Duration::MAX,
    };
}

/// The units that a book holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub records: u64,
    /// Feeds that hold any units.
    pub feeds: Vec<(Box<str>, u64)>,
}

fn units(bytes: usize) -> u64 {
    u64::try_from(bytes / UNIT_BYTES).unwrap_or(u64::MAX).saturating_add(1)
}

/// Size of a text that is kept as sent, rendered, and in plain letters, which for some characters are a word each.
fn text_bytes(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        0xc0..=0xdf => 4,
        0xe0.. => 32,
        _ => 0,
    };
    text.len() + text.bytes().map(more).sum::<usize>()
}

fn names_bytes(fixture: &Fixture) -> usize {
    match fixture {
        Fixture::HeadToHead { home, away } => text_bytes(home) + text_bytes(away),
        Fixture::Field { title } => text_bytes(title),
    }
}

/// Units of a feed's ref with its listing, parsed for comparison and indexed.
fn listing_weight(
    reference: &str,
    (competition, fixture): (&str, &Fixture),
    contest: &Contest,
) -> u64 {
    let (words, keys) = keys_count(contest);
    let text = 4 * reference.len() + 3 * competition.len() + 5 * names_bytes(fixture);
    units(640 + text + 64 * words + 96 * keys)
}

/// Size of an event's displayed data, without its players.
fn event_bytes(competition: &str, fixture: &Fixture) -> usize {
    1200 + 4 * text_bytes(competition) + 6 * names_bytes(fixture)
}

/// Size of a player of a field, who is found by name and by every word of it, and may be a leader.
fn player_bytes(name: &str) -> usize {
    // Continuation bytes of a multi-byte character begin no word.
    let begins = |byte: u8| !byte.is_ascii_alphanumeric() && !(0x80..0xc0).contains(&byte);
    let words = 1 + name.bytes().filter(|byte| begins(*byte)).count();
    416 + 6 * text_bytes(name) + 192 * words
}

/// An upper bound of [`player_bytes`] that does not read the name.
fn player_bytes_most(name: &str) -> usize {
    608 + 204 * name.len()
}

/// Units of a market, with the texts of its prices in each format.
fn slot_weight(group: Option<&str>, name_bytes: impl Iterator<Item = usize>) -> u64 {
    let outcomes: usize = name_bytes.map(|bytes| 200 + 3 * bytes).sum();
    units(640 + 2 * group.map_or(0, str::len) + outcomes)
}

fn score_bytes(periods: usize, rounds: impl Iterator<Item = usize>) -> usize {
    let rounds: usize = rounds.map(|rounds| rounds.saturating_sub(ROUNDS_FREE)).sum();
    96 * periods.saturating_sub(PERIODS_FREE) + 16 * rounds
}

fn bytes_of_score(score: &Score) -> usize {
    score_bytes(score.periods.len(), score.leaders.iter().map(|leader| leader.rounds.len()))
}

impl Offer {
    pub(super) fn weight(&self, reference: &str) -> u64 {
        listing_weight(reference, (&self.competition, &self.fixture), &self.contest)
    }
}

impl Event {
    /// A function that weighs markets; the length of a rendered side is computed once for all outcomes.
    fn slot_weigher(&self) -> impl Fn(&Slot) -> u64 {
        let side = |side: Side| escaped_bytes(self.outcome_text(side.into()));
        let (home, away) = (side(Side::Home), side(Side::Away));
        move |slot| {
            let outcomes = slot.open.iter().flat_map(|record| &*record.outcomes);
            let name_bytes = outcomes.map(|outcome| match outcome.name {
                OutcomeName::Home => home,
                OutcomeName::Away => away,
                OutcomeName::Entrant(at) => self.field.escaped_bytes(at),
                name @ (OutcomeName::Draw | OutcomeName::Over | OutcomeName::Under) => {
                    escaped_bytes(self.outcome_text(name))
                }
            });
            slot_weight(slot.group.as_deref(), name_bytes)
        }
    }

    fn own_bytes(&self, stand_ins: usize) -> usize {
        event_bytes(&self.competition, &self.fixture)
            + self.counted.players_bytes
            + bytes_of_score(&self.score)
            + 128 * stand_ins
    }

    /// Counts players added since the last call.
    fn count_players(&mut self) {
        let names = self.field.names();
        let new = names.get(self.counted.players..).unwrap_or_default();
        self.counted.players_bytes += new.iter().map(|name| player_bytes(name)).sum::<usize>();
        self.counted.players = names.len();
    }

    /// Weighs all its markets again, by feed.
    fn weigh_slots(&mut self) -> Vec<(FeedIx, u64)> {
        let mut by_feed: Vec<(FeedIx, u64)> = Vec::new();
        let mut slots = std::mem::take(&mut self.slots);
        {
            let weigh = self.slot_weigher();
            for slot in slots.values_mut() {
                slot.weight = weigh(slot);
                add(&mut by_feed, slot.feed, 0, slot.weight);
            }
        }
        self.slots = slots;
        by_feed
    }
}

fn add(by_feed: &mut Vec<(FeedIx, u64)>, feed: FeedIx, from: u64, to: u64) {
    match by_feed.iter_mut().find(|(held, _)| *held == feed) {
        Some((_, weight)) => *weight = weight.saturating_sub(from).saturating_add(to),
        None => by_feed.push((feed, to)),
    }
}

impl Book {
    /// Sets the limits from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The units that it holds.
    pub fn load(&self) -> Load {
        let of = |feed: &Feed| (feed.name.clone(), self.weight_of(feed));
        let feeds = self.feeds.iter().map(of).filter(|(_, weight)| *weight > 0).collect();
        Load { records: self.weight(), feeds }
    }

    /// Units held in total; each alias counts one.
    pub fn weight(&self) -> u64 {
        self.weight + count(self.memory.aliases.len())
    }

    fn weight_of(&self, feed: &Feed) -> u64 {
        feed.weight + count(self.memory.aliases.len_of(&feed.name))
    }

    pub(super) fn has_room(&self, feed: Option<FeedIx>, more: u64) -> bool {
        self.check_room(feed, more).is_ok()
    }

    /// Rejects additions that do not fit. Anything that adds nothing fits, so that a full book can be corrected.
    pub(super) fn check_room(&self, feed: Option<FeedIx>, more: u64) -> Result<(), Reject> {
        let Limits { records_max, records_per_feed_max, .. } = self.limits;
        let of_feed = feed.and_then(|feed| self.feed(feed)).map_or(0, |feed| self.weight_of(feed));
        let full = |held: u64, max: u64| more > 0 && held.saturating_add(more) > max;
        let text = if full(of_feed, records_per_feed_max) {
            format!(
                "this feed holds {of_feed} records of at most {records_per_feed_max} (market.records_per_feed_max), and this counts {more}; removed data counts until it expires"
            )
        } else if full(self.weight(), records_max) {
            let held = self.weight();
            format!(
                "the service holds {held} records of at most {records_max} (market.records_max), and this counts {more}"
            )
        } else {
            return Ok(());
        };
        Err(Reject::new(RejectCode::TooLarge, text))
    }

    /// Rejects a start so far ahead that nobody lists it yet.
    pub(super) fn check_start(&self, starts: Timestamp, now: Timestamp) -> Result<(), Reject> {
        let ahead = self.limits.start_ahead_max;
        if starts <= now.plus(ahead) {
            return Ok(());
        }
        let days = ahead.as_secs() / 86_400;
        let text = format!("`commence_time` {starts} is more than {days} days ahead");
        Err(Reject::new(RejectCode::TooLarge, text))
    }

    /// Rejects an event that is live or final long before its start.
    pub(super) fn check_begun(
        &self,
        status: Status,
        starts: Timestamp,
        now: Timestamp,
    ) -> Result<(), Reject> {
        if status == Status::Scheduled || starts <= now.plus(self.limits.begin_early_max) {
            return Ok(());
        }
        let text = format!(
            "the event starts at {starts} and cannot be {} yet; if it has begun, correct its `commence_time` first",
            status.key()
        );
        Err(Reject::new(RejectCode::IllegalTransition, text))
    }

    /// Units of a listing.
    pub(super) fn weigh_listing(reference: &str, said: (&str, &Fixture), contest: &Contest) -> u64 {
        listing_weight(reference, said, contest)
    }

    /// Units of an event with one listing.
    pub(super) fn weigh_event((competition, fixture): (&str, &Fixture)) -> u64 {
        units(event_bytes(competition, fixture))
    }

    /// Rejects prices for which there is no room.
    pub(super) fn check_room_for_odds(
        &self,
        feed: Option<FeedIx>,
        event: &Event,
        (group, held): (Option<&str>, Option<&Slot>),
        outcomes: &[QuotedOutcome],
    ) -> Result<(), Reject> {
        let names = outcomes.iter().map(|outcome| match &outcome.who {
            Who::Side(side) => event.outcome_text((*side).into()),
            Who::Draw => event.outcome_text(OutcomeName::Draw),
            Who::Over => event.outcome_text(OutcomeName::Over),
            Who::Under => event.outcome_text(OutcomeName::Under),
            Who::Player(name) => name,
        });
        let before = held.map_or(0, |slot| slot.weight);
        let more = slot_weight(group, names.map(escaped_bytes)).saturating_sub(before);
        let players = outcomes.iter().filter_map(|outcome| match &outcome.who {
            Who::Player(name) => Some(&**name),
            Who::Side(_) | Who::Draw | Who::Over | Who::Under => None,
        });
        self.check_room_with_players(feed, (event, event.score_bytes()), more, players)
    }

    /// Rejects a score for which there is no room.
    pub(super) fn check_room_for_score(
        &self,
        feed: Option<FeedIx>,
        event: &Event,
        report: &Reported,
    ) -> Result<(), Reject> {
        let rounds = report.leaders.iter().map(|(_, rounds)| rounds.len());
        let score = score_bytes(report.periods.len(), rounds);
        let players = report.leaders.iter().map(|(name, _)| &**name);
        self.check_room_with_players(feed, (event, score), 0, players)
    }

    fn check_room_with_players<'a>(
        &self,
        feed: Option<FeedIx>,
        (event, score_bytes): (&Event, usize),
        more: u64,
        players: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), Reject> {
        let held = self.own_bytes(event);
        let grown = |players: usize| {
            let bytes = held - event.score_bytes() + score_bytes + players;
            more.saturating_add(units(bytes).saturating_sub(units(held)))
        };
        // Nearly always there is room for all of them, whichever are new.
        if self.has_room(feed, grown(players.clone().map(player_bytes_most).sum())) {
            return Ok(());
        }
        let new = players.filter(|name| event.field.find(name).is_err());
        self.check_room(feed, grown(new.map(player_bytes).sum()))
    }

    fn own_bytes(&self, event: &Event) -> usize {
        event.own_bytes(self.memory.stand_ins_of(event.id))
    }

    /// Changes the units of a feed and in total from `from` to `to`.
    fn count(&mut self, feed: Option<FeedIx>, from: u64, to: u64) {
        self.weight = self.weight.saturating_sub(from).saturating_add(to);
        if let Some(feed) = feed.and_then(|feed| self.feed_mut(feed)) {
            feed.weight = feed.weight.saturating_sub(from).saturating_add(to);
        }
    }

    pub(super) fn count_offer(&mut self, feed: FeedIx, from: u64, to: u64) {
        self.count(Some(feed), from, to);
    }

    /// Recounts an event without its markets. It is charged to the feed that leads it, or led it last.
    pub(super) fn recount(&mut self, id: EventId) {
        self.touch(id);
        let stand_ins = self.memory.stand_ins_of(id);
        let Some(event) = self.events.get_mut(&id) else { return };
        event.count_players();
        if let Some((leader, _)) = event.listed_by.first() {
            event.owner = Some(*leader);
        }
        let own = units(event.own_bytes(stand_ins));
        let (before, was) = (event.counted.own, event.counted.owner);
        (event.counted.own, event.counted.owner) = (own, event.owner);
        let now = event.owner;
        self.count(was, before, 0);
        self.count(now, 0, own);
    }

    /// Recounts an event with all its markets.
    pub(super) fn recount_all(&mut self, id: EventId) {
        let Some(event) = self.events.get_mut(&id) else { return };
        let now = event.weigh_slots();
        let before = std::mem::replace(&mut event.counted.slots, now.clone());
        for (feed, weight) in before {
            self.count(Some(feed), weight, 0);
        }
        for (feed, weight) in now {
            self.count(Some(feed), 0, weight);
        }
        self.recount(id);
    }

    /// Inserts a market and counts it.
    pub(super) fn put_slot(&mut self, id: EventId, key: super::SlotKey, mut slot: Slot) {
        self.touch(id);
        let Some(event) = self.events.get_mut(&id) else { return };
        slot.weight = event.slot_weigher()(&slot);
        let (feed, to) = (slot.feed, slot.weight);
        let before = event.slots.insert(key, slot).map(|slot| (slot.feed, slot.weight));
        if let Some((feed, from)) = before {
            add(&mut event.counted.slots, feed, from, 0);
        }
        add(&mut event.counted.slots, feed, 0, to);
        let players = event.counted.players != event.field.names().len();
        if let Some((feed, from)) = before {
            self.count(Some(feed), from, 0);
        }
        self.count(Some(feed), 0, to);
        if players {
            self.recount(id);
        }
    }

    /// Stops counting data that was removed.
    pub(super) fn uncount(&mut self, counted: Counted) {
        self.count(counted.owner, counted.own, 0);
        for (feed, weight) in counted.slots {
            self.count(Some(feed), weight, 0);
        }
    }

    /// Counts everything, for a book read from an image.
    pub(super) fn count_everything(&mut self) {
        let mut listed = 0_u64;
        for feed in &mut self.feeds {
            let offers = feed.offers.iter();
            feed.weight = offers.map(|(reference, offer)| offer.weight(reference)).sum();
            listed = listed.saturating_add(feed.weight);
        }
        self.weight = listed;
        let ids: Vec<EventId> = self.events.keys().copied().collect();
        ids.into_iter().for_each(|id| self.recount_all(id));
    }
}

impl Event {
    fn score_bytes(&self) -> usize {
        bytes_of_score(&self.score)
    }

    /// The expected start: at most the horizon after the last mention, as logs may have later starts.
    pub(super) fn expected(&self) -> Timestamp {
        self.commence_time.min(self.mentioned_at.plus(HORIZON)).max(self.mentioned_at)
    }
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
