//! The last 24 hours of every source: fresh or delayed per quarter of an hour, and the delays themselves.
//!
//! Sampled every few seconds and saved in a small file of this node, so that a restart leaves a gap and not an empty
//! day. Bounded by the number of sources and a maximum number of delays.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::Api;
use domain::{Timestamp, World};
use serde::{Deserialize, Serialize};

/// Number of quarters of an hour in a day.
pub(crate) const SLOTS: usize = 96;
const SLOT_S: i64 = 900;
/// Maximum number of delays kept per world, so that scheduled delays of the sandbox cannot displace live ones. The
/// oldest ended delays are dropped first; there are at most as many open delays as sources.
const DELAYS_MAX: usize = 200;
/// Maximum size of the file that is read back; 4,000 sources take a megabyte.
const FILE_BYTES_MAX: u64 = 16 << 20;
const FILE: &str = "freshness.json";
/// Number of quarters of an hour in which a live source must have been fresh before its silence counts as an incident:
/// a single trial push is not an outage.
const FRESH_SLOTS_MIN: usize = 3;
const SAVE_EVERY: Duration = Duration::from_secs(300);

/// State of a source in a quarter of an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slot {
    #[default]
    Unknown,
    Fresh,
    Delayed,
    /// Both fresh and delayed.
    Mixed,
}

impl Slot {
    fn with(self, delayed: bool) -> Self {
        match (self, delayed) {
            (Self::Unknown | Self::Fresh, false) => Self::Fresh,
            (Self::Unknown | Self::Delayed, true) => Self::Delayed,
            (Self::Fresh | Self::Mixed, true) | (Self::Delayed | Self::Mixed, false) => Self::Mixed,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Fresh => "fresh",
            Self::Delayed => "delayed",
            Self::Mixed => "mixed",
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::Unknown => '.',
            Self::Fresh => 'f',
            Self::Delayed => 'd',
            Self::Mixed => 'm',
        }
    }

    fn of_letter(letter: char) -> Self {
        [Self::Fresh, Self::Delayed, Self::Mixed]
            .into_iter()
            .find(|slot| slot.letter() == letter)
            .unwrap_or_default()
    }
}

/// A source by name: world, sport, bookmaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) world: String,
    pub(crate) sport: String,
    pub(crate) bookmaker: String,
}

/// A period in which a source was not read in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delay {
    pub(crate) source: Source,
    pub(crate) began_ms: i64,
    /// `None` while it lasts.
    pub(crate) ended_ms: Option<i64>,
}

#[derive(Debug, Default)]
struct State {
    /// The newest slot's number, and the slots up to it, newest last.
    strips: BTreeMap<Source, (i64, VecDeque<Slot>)>,
    /// By world.
    delays: BTreeMap<String, VecDeque<Delay>>,
    saved_at: Option<Timestamp>,
}

/// Format of the file.
#[derive(Serialize, Deserialize)]
struct Written {
    strips: Vec<(Source, i64, String)>,
    delays: VecDeque<Delay>,
}

/// The freshness record of one service.
#[derive(Debug, Default)]
pub(crate) struct Record(Mutex<State>);

impl Record {
    /// Samples every source now.
    pub(crate) fn look_now(&self, api: &Api) {
        let now = api.clock.now();
        let mut state = self.lock();
        for world in World::ALL {
            let handle = api.world(world);
            for (sport, bookmaker, source) in &handle.vitals().sources {
                let own = Source {
                    world: world.to_string(),
                    sport: api.catalogue.sport(*sport).key.to_string(),
                    bookmaker: api.catalogue.bookmaker(*bookmaker).key.to_string(),
                };
                let delayed = source.is_stale(now, handle.stale_after());
                let began = source.read_at.plus(source.fresh_for(handle.stale_after()));
                state.note(own, delayed, began, now);
            }
        }
    }

    /// Samples every source, and saves the record when that is due.
    pub(crate) async fn look(&self, api: &Api) {
        self.look_now(api);
        let now = api.clock.now();
        let due = self.lock().saved_at.is_none_or(|saved| now.since(saved) >= SAVE_EVERY);
        if due {
            self.save(api).await;
        }
    }

    /// A source's last 24 hours, newest slot last.
    pub(crate) fn strip(&self, source: &Source, now: Timestamp) -> Vec<Slot> {
        let newest = now.as_secs().div_euclid(SLOT_S);
        let state = self.lock();
        let held = state.strips.get(source);
        let at = |back: usize| -> Slot {
            let Some((last, slots)) = held else { return Slot::Unknown };
            let number = newest - i64::try_from(back).unwrap_or(0);
            let behind = usize::try_from(last - number).ok();
            behind.and_then(|behind| slots.iter().rev().nth(behind)).copied().unwrap_or_default()
        };
        (0..SLOTS).rev().map(at).collect()
    }

    /// Delays of one world, newest first.
    pub(crate) fn delays(&self, world: World) -> Vec<Delay> {
        let mut delays: Vec<Delay> =
            self.lock().delays.get(&world.to_string()).into_iter().flatten().cloned().collect();
        delays.sort_by_key(|delay| std::cmp::Reverse((delay.began_ms, delay.source.clone())));
        delays
    }

    /// Restores the record that an earlier process saved. An unreadable file is ignored and the record starts empty.
    pub(crate) async fn restore(&self, api: &Api) {
        let Some(path) = path(api) else { return };
        let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
        match read {
            Ok(Ok(Some(written))) => self.lock().take_up(written),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::warn!(event = "freshness.read_failed", %error, "the record of freshness cannot be read back");
            }
            Err(error) => {
                tracing::warn!(event = "freshness.read_failed", %error, "the record of freshness cannot be read back");
            }
        }
    }

    pub(crate) async fn save(&self, api: &Api) {
        let text = {
            let mut state = self.lock();
            state.saved_at = Some(api.clock.now());
            serde_json::to_vec(&state.written())
        };
        let Some(path) = path(api) else { return };
        let write = move || -> std::io::Result<()> {
            let fresh = path.with_extension("json.new");
            // Never write through an existing file or link.
            let removed = std::fs::remove_file(&fresh);
            if let Err(error) = removed
                && error.kind() != ErrorKind::NotFound
            {
                return Err(error);
            }
            let mut file = File::options().write(true).create_new(true).open(&fresh)?;
            file.write_all(&text?)?;
            std::fs::rename(&fresh, &path)
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(event = "freshness.write_failed", %error, "the record of freshness cannot be written");
            }
            Err(error) => {
                tracing::warn!(event = "freshness.write_failed", %error, "the record of freshness cannot be written");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code below panics while it changes the state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, source: Source, delayed: bool, began: Timestamp, now: Timestamp) {
        let number = now.as_secs().div_euclid(SLOT_S);
        let (last, slots) = self.strips.entry(source.clone()).or_insert((number, VecDeque::new()));
        let passed = usize::try_from(number - *last).unwrap_or(0).min(SLOTS);
        slots.extend(std::iter::repeat_n(Slot::Unknown, passed));
        // If the clock was set back, the current slot is kept.
        *last = number.max(*last);
        if slots.is_empty() {
            slots.push_back(Slot::Unknown);
        }
        while slots.len() > SLOTS {
            slots.pop_front();
        }
        if let Some(slot) = slots.back_mut() {
            *slot = slot.with(delayed);
        }
        let fresh = slots.iter().filter(|slot| matches!(slot, Slot::Fresh | Slot::Mixed)).count();
        let is_in_use = fresh >= FRESH_SLOTS_MIN || source.world != World::Live.to_string();
        let delays = self.delays.entry(source.world.clone()).or_default();
        let open = |delay: &&mut Delay| delay.source == source && delay.ended_ms.is_none();
        match (delays.iter_mut().rev().find(open), delayed) {
            (Some(delay), false) => delay.ended_ms = Some(now.as_millis()),
            (None, true) if is_in_use => {
                // An open delay must stay: it would only be recorded again as a new one.
                let over = delays.iter().position(|delay| delay.ended_ms.is_some());
                if delays.len() >= DELAYS_MAX
                    && let Some(over) = over
                {
                    delays.remove(over);
                }
                let began_ms = began.min(now).as_millis();
                delays.push_back(Delay { source, began_ms, ended_ms: None });
            }
            (Some(_) | None, true) | (None, false) => {}
        }
    }

    fn written(&self) -> Written {
        let letters = |slots: &VecDeque<Slot>| slots.iter().map(|slot| slot.letter()).collect();
        let strips = self.strips.iter();
        Written {
            strips: strips
                .map(|(source, (last, slots))| (source.clone(), *last, letters(slots)))
                .collect(),
            delays: self.delays.values().flatten().cloned().collect(),
        }
    }

    fn take_up(&mut self, written: Written) {
        for (source, last, letters) in written.strips {
            let slots = letters.chars().take(SLOTS).map(Slot::of_letter).collect();
            self.strips.insert(source, (last, slots));
        }
        for delay in written.delays {
            let own = self.delays.entry(delay.source.world.clone()).or_default();
            if own.len() < DELAYS_MAX || delay.ended_ms.is_none() {
                own.push_back(delay);
            }
        }
    }
}

fn path(api: &Api) -> Option<PathBuf> {
    Some(api.world(World::Live).past.notes.as_ref()?.join(FILE))
}

fn read_file(path: &std::path::Path) -> std::io::Result<Option<Written>> {
    match std::fs::metadata(path) {
        Ok(held) if held.len() > FILE_BYTES_MAX => {
            return Err(std::io::Error::other("it is larger than any that was written"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source { world: "live".into(), sport: "mma".into(), bookmaker: "a".into() }
    }

    fn at(slot: i64) -> Timestamp {
        Timestamp::from_secs(slot * SLOT_S + 5)
    }

    /// A record of sources that were fresh in the slots before 0.
    fn record_of(sources: &[Source]) -> Record {
        let record = Record::default();
        for source in sources {
            (-3..0).for_each(|slot| record.lock().note(source.clone(), false, at(slot), at(slot)));
        }
        record
    }

    #[test]
    fn a_source_that_was_tried_once_makes_no_incident() {
        let record = Record::default();
        record.lock().note(source(), false, at(0), at(0));
        record.lock().note(source(), false, at(1), at(1));
        for slot in 1..20 {
            record.lock().note(source(), true, at(1), at(slot));
        }
        assert!(record.delays(World::Live).is_empty());
        record.lock().note(source(), false, at(20), at(20));
        record.lock().note(source(), true, at(21), at(21));
        assert_eq!(record.delays(World::Live).len(), 1);
    }

    #[test]
    fn a_day_is_kept_and_a_gap_is_shown_as_one() {
        let record = Record::default();
        for (slot, delayed) in [(0, false), (0, true), (3, true), (4, false)] {
            record.lock().note(source(), delayed, at(slot), at(slot));
        }
        let words: String =
            record.strip(&source(), at(5)).iter().map(|slot| slot.letter()).collect();
        assert_eq!(words.len(), SLOTS);
        assert!(words.ends_with("m..df."), "{words}");
        for slot in 5..500 {
            record.lock().note(source(), false, at(slot), at(slot));
        }
        assert_eq!(record.lock().strips[&source()].1.len(), SLOTS);
        assert!(record.strip(&source(), at(499)).iter().all(|slot| *slot == Slot::Fresh));
        assert!(record.strip(&source(), at(2000)).iter().all(|slot| *slot == Slot::Unknown));
    }

    #[test]
    fn a_delay_has_a_beginning_and_an_end_and_comes_back_from_the_file() {
        let record = record_of(&[source()]);
        for (slot, delayed) in [(0, false), (2, true), (3, true), (4, false), (6, true)] {
            record.lock().note(source(), delayed, at(slot), at(slot));
        }
        let text = serde_json::to_vec(&record.lock().written()).unwrap();
        let again = Record::default();
        again.lock().take_up(serde_json::from_slice(&text).unwrap());
        for record in [&record, &again] {
            let delays = record.delays(World::Live);
            let spans: Vec<(i64, Option<i64>)> =
                delays.iter().map(|delay| (delay.began_ms, delay.ended_ms)).collect();
            let ms = |slot| at(slot).as_millis();
            assert_eq!(spans, [(ms(6), None), (ms(2), Some(ms(4)))]);
        }
        assert_eq!(again.strip(&source(), at(6)), record.strip(&source(), at(6)));
        assert!(record.delays(World::Sandbox).is_empty());
    }

    #[test]
    fn delays_are_bounded_and_those_that_last_stay() {
        let lasting = Source { bookmaker: "b".into(), ..source() };
        let record = record_of(&[source(), lasting.clone()]);
        record.lock().note(lasting.clone(), true, at(0), at(0));
        for slot in 0..1000 {
            record.lock().note(source(), slot % 2 == 0, at(slot), at(slot));
            record.lock().note(lasting.clone(), true, at(0), at(slot));
        }
        let delays = record.delays(World::Live);
        assert_eq!(delays.len(), DELAYS_MAX);
        let of_lasting: Vec<&Delay> = delays.iter().filter(|own| own.source == lasting).collect();
        assert_eq!(of_lasting.len(), 1);
        assert_eq!((of_lasting[0].began_ms, of_lasting[0].ended_ms), (at(0).as_millis(), None));
    }

    #[test]
    fn staged_delays_push_no_live_one_out() {
        let record = record_of(&[source()]);
        let staged = Source { world: "sandbox".into(), ..source() };
        for slot in 0..4 {
            record.lock().note(source(), slot % 2 == 0, at(slot), at(slot));
        }
        for slot in 4..1000 {
            record.lock().note(staged.clone(), slot % 2 == 0, at(slot), at(slot));
        }
        let text = serde_json::to_vec(&record.lock().written()).unwrap();
        let again = Record::default();
        again.lock().take_up(serde_json::from_slice(&text).unwrap());
        for record in [&record, &again] {
            assert_eq!(record.delays(World::Live).len(), 2);
            assert_eq!(record.delays(World::Sandbox).len(), DELAYS_MAX);
        }
    }
}
