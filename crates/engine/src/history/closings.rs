//! The closing lines of events that have started (H13).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive::{EventPast, PathHead, RecordPath, StartedEvent};
use domain::{EventId, Market, RecordId, Timestamp};
use market::select::{Cursor, EventIds, RecordPlace};

use super::logged::{LoggedPast, unreadable};
use super::paths::{BookmakerKeys, EVER, EventPaths, PathError, PathRequest};
use super::simulated::SimulatedPast;
use super::turns::Work;
use super::{History, HistoryError, Source};
use crate::publication::Published;

/// Maximum number of events examined for one page. If they have too few records, the page ends there and the next
/// continues.
const EVENTS_MAX: usize = 500;
/// Maximum time of a page. It then ends between two events, and the next continues from there.
const PAGE_TIME_MAX: Duration = Duration::from_secs(3);

/// A selection of closing lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClosingRequest {
    /// The sport's key.
    pub sport: Box<str>,
    pub bookmakers: BookmakerKeys,
    pub market: Option<Market>,
    pub events: EventIds,
    /// Bounds of the scheduled start; the end is exclusive.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub limit: usize,
    pub after: Option<Cursor>,
}

/// A record that has a closing line.
#[derive(Debug)]
pub struct ClosedRecord {
    /// The scheduled start of its event, by which records are ordered.
    pub commence_time: Timestamp,
    pub event: EventId,
    /// Without points.
    pub path: RecordPath,
    /// True if the opening line is known to be the first.
    pub exact: bool,
}

/// Records in the order of answers, and the start of the next page if there is one.
#[derive(Debug)]
pub struct ClosingPage {
    pub records: Vec<ClosedRecord>,
    pub next: Option<Cursor>,
}

impl ClosedRecord {
    /// The end of a page whose last record it is.
    pub fn place(&self) -> Cursor {
        let PathHead { record, bookmaker, market, .. } = &self.path.head;
        let (bookmaker, market, record) = (bookmaker.clone(), *market, *record);
        let record = Some(RecordPlace { bookmaker, market, record });
        Cursor { commence_time: self.commence_time, event: self.event, record }
    }
}

impl ClosingRequest {
    fn wants(&self, event: EventId, commence_time: Timestamp) -> bool {
        self.events.as_ref().is_none_or(|events| events.binary_search(&event).is_ok())
            && self.from.is_none_or(|from| from <= commence_time)
            && self.to.is_none_or(|to| commence_time < to)
            && self
                .after
                .as_ref()
                .is_none_or(|after| (after.commence_time, after.event) <= (commence_time, event))
    }

    fn path(&self, event: EventId) -> PathRequest {
        let (sport, bookmakers, market) =
            (self.sport.clone(), self.bookmakers.clone(), self.market);
        // Points are not requested.
        let (from, to, all, limit, after) = (None, Some(EVER), false, 0, None);
        PathRequest { sport, event, bookmakers, market, from, to, all, limit, after }
    }

    /// True if a record of an event comes after the last page.
    fn follows(&self, event: EventId, path: &RecordPath) -> bool {
        let Some(after) = self.after.as_ref().filter(|after| after.event == event) else {
            return true;
        };
        after.record.as_ref().is_none_or(|last| {
            (&*last.bookmaker, last.market.key(), last.record) < path.head.order()
        })
    }

    /// The page of events that have started, in their order.
    pub(super) fn page(
        &self,
        events: impl Iterator<Item = (Timestamp, EventId)>,
        mut read: impl FnMut(PathRequest) -> Result<EventPaths, PathError>,
    ) -> Result<ClosingPage, PathError> {
        let mut records: Vec<ClosedRecord> = Vec::new();
        let mut last: Option<Cursor> = None;
        let wanted = events.filter(|(commence, event)| self.wants(*event, *commence));
        let begun = Instant::now();
        for (looked, (commence_time, event)) in wanted.enumerate() {
            if looked >= EVENTS_MAX || (last.is_some() && begun.elapsed() > PAGE_TIME_MAX) {
                return Ok(ClosingPage { records, next: last });
            }
            let found = match read(self.path(event)) {
                Ok(found) => Some(found),
                // It disappeared before history begins.
                Err(PathError::Unknown) => None,
                Err(error) => return Err(error),
            };
            let exact_after = found.as_ref().map_or(EVER, |found| found.exact_after);
            for path in found.into_iter().flat_map(|found| found.paths) {
                let closes = path.closing.as_ref().is_some_and(|line| line.start.is_some());
                if !closes || !self.follows(event, &path) {
                    continue;
                }
                if records.len() >= self.limit {
                    return Ok(ClosingPage { records, next: last });
                }
                let exact = path.open.as_ref().is_some_and(|open| open.published_at > exact_after);
                let record = ClosedRecord { commence_time, event, path, exact };
                last = Some(record.place());
                records.push(record);
            }
            last = Some(Cursor { commence_time, event, record: Some(end_of_event()) });
        }
        Ok(ClosingPage { records, next: None })
    }
}

/// After all records of an event: no bookmaker's key starts with this character.
fn end_of_event() -> RecordPlace {
    let record = RecordId::from_number(u64::MAX);
    RecordPlace { bookmaker: "~".into(), market: Market::TotalRounds, record }
}

impl History {
    /// Closing lines, up to the present publication. `key`: the requesting key.
    pub(crate) async fn closings(
        self: &Arc<Self>,
        request: ClosingRequest,
        current: &Published,
        key: u64,
    ) -> Result<ClosingPage, PathError> {
        let (seq, at) = (current.snapshot.seq, current.snapshot.cut_at);
        if !self.is_on() {
            return Err(HistoryError::Off.into());
        }
        let look = move |source: &Source| {
            Ok(match source {
                Source::Simulated(past) => past.closings(&request, at),
                Source::Logged(past) => past.closings(&request, seq),
                Source::Nothing => Err(HistoryError::Off.into()),
            })
        };
        self.on_source_in_time(Work::Read, Some(key), look).await?
    }
}

impl LoggedPast {
    fn closings(&self, request: &ClosingRequest, seq: u64) -> Result<ClosingPage, PathError> {
        let commit = self.newest_commit()?;
        let begin = self.begin(commit.as_ref())?;
        let sport = &*request.sport;
        let archive = self.archive.as_ref().zip(commit.as_ref());
        let mut started: BTreeMap<EventId, StartedEvent> = match archive {
            Some((archive, commit)) => archive.started(commit, sport).map_err(unreadable)?,
            None => BTreeMap::new(),
        };
        // The part that is not archived affects only the closing lines of events that start in it.
        let recent = self.on_tail(archive, seq, &[], |part| Ok(part.started(sport)))?;
        let wanted = recent.values().filter(|held| held.is_started);
        let wanted = wanted.filter(|held| request.wants(held.event, held.commence_time));
        let mut wanted: Vec<(Timestamp, EventId)> =
            wanted.map(|held| (held.commence_time, held.event)).collect();
        wanted.sort_unstable();
        let recent_ids: Vec<EventId> =
            wanted.into_iter().map(|(_, event)| event).take(EVENTS_MAX).collect();
        started.extend(recent);
        let events = started.values().filter(|held| held.is_started);
        let mut events: Vec<(Timestamp, EventId)> =
            events.map(|held| (held.commence_time, held.event)).collect();
        events.sort_unstable();
        // Events that only the archive has, in the order of the request.
        let archived = events.iter().filter(|(commence, event)| request.wants(*event, *commence));
        let archived = archived.map(|(_, event)| *event).filter(|id| !recent_ids.contains(id));
        let mut archived = ReadAhead::new(archived.collect());
        request.page(events.into_iter(), |path| {
            let past = match (recent_ids.contains(&path.event), archive) {
                (true, _) => self.event_past(&path, commit.as_ref(), (seq, &recent_ids))?,
                (false, Some((archive, commit))) => archived.take(path.event, |events| {
                    path.wanted(|wanted| {
                        let pasts = archive.closing_pasts(commit, sport, events, wanted);
                        let mut pasts = pasts.map_err(unreadable)?;
                        let all = pasts.iter_mut().map(|(event, past)| (*event, past)).collect();
                        self.add_base(Some((archive, commit)), all, wanted)?;
                        Ok(pasts)
                    })
                })?,
                (false, None) => EventPast::default(),
            };
            EventPaths::new(past, begin)
        })
    }
}

/// Reads several events at a time, which takes little longer than reading one.
#[derive(Debug)]
struct ReadAhead {
    /// Events that are not read yet.
    events: VecDeque<EventId>,
    at_once: usize,
    read: HashMap<EventId, EventPast>,
}

impl ReadAhead {
    /// Number of events read first, and at most at a time. More are read if the last ones did not take long.
    const EVENTS_FIRST: usize = 16;
    const EVENTS_AT_ONCE: usize = 128;
    const READ_TIME_MAX: Duration = Duration::from_millis(200);

    fn new(events: VecDeque<EventId>) -> Self {
        Self { events, at_once: Self::EVENTS_FIRST, read: HashMap::new() }
    }

    /// The price history of an event; events before it are not requested any more.
    fn take(
        &mut self,
        event: EventId,
        read: impl FnOnce(&[EventId]) -> Result<HashMap<EventId, EventPast>, HistoryError>,
    ) -> Result<EventPast, HistoryError> {
        if !self.read.contains_key(&event) {
            while self.events.front().is_some_and(|next| *next != event) {
                self.events.pop_front();
            }
            let events: Vec<EventId> =
                self.events.drain(..self.at_once.min(self.events.len())).collect();
            let begun = Instant::now();
            self.read = read(&events)?;
            self.at_once = match begun.elapsed() < Self::READ_TIME_MAX {
                true => Self::EVENTS_AT_ONCE,
                false => Self::EVENTS_FIRST,
            };
        }
        Ok(self.read.remove(&event).unwrap_or_default())
    }
}

impl SimulatedPast {
    fn closings(
        &self,
        request: &ClosingRequest,
        current: Timestamp,
    ) -> Result<ClosingPage, PathError> {
        let catalogue = &self.options.catalogue;
        let id = catalogue.sport_id(&request.sport);
        let offers = |id| request.market.is_none_or(|market| catalogue.sport(id).offers(market));
        let Some(id) = id.filter(|id| offers(*id)) else {
            return Ok(ClosingPage { records: Vec::new(), next: None });
        };
        let mut events: Vec<(Timestamp, EventId)> = self.started(id, current);
        events.sort_unstable();
        let lives = self.lives(id, current);
        request.page(events.into_iter(), |path| self.paths_of(&lives, (&path, id), current, true))
    }
}
