//! Content that entries may have shown, collected piece by piece, and the part of it that neither of two ends has.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use archive::{Changed, ChangedPrices};
use domain::{EventId, Market, RecordId, Status};
use market::snapshot::{EventRow, SportView};
use market::{Change, Snapshot};

use super::{Passed, PassedEvent, PassedRecord};

/// The groups in the ids of records.
pub(super) type Groups = HashMap<RecordId, Box<str>>;

/// Identifies a record within its event.
type Key = (Arc<str>, Market, Option<Box<str>>);

/// Approximate size of a record or an event.
const ITEM_BYTES: usize = 200;

/// Content that may have been shown after an entry, whatever follows.
#[derive(Debug)]
pub(super) struct Gathered {
    /// True if every state is shown, not only those at publications.
    is_live: bool,
    records: HashMap<RecordId, Quotes>,
    /// Records with prices since the last publication.
    since: HashSet<RecordId>,
    events: BTreeMap<EventId, Seen>,
    joined: BTreeSet<(EventId, EventId)>,
    bookmakers: HashSet<Arc<str>>,
}

/// The quotes of a record.
#[derive(Debug)]
struct Quotes {
    record: PassedRecord,
    was_shown: bool,
    was_emptied: bool,
}

/// The changes of an event.
#[derive(Debug, Default)]
struct Seen {
    sport: Option<Box<str>>,
    listings: u32,
    statuses: BTreeSet<Status>,
    /// True if its last score says that it is over.
    is_over: bool,
    /// True if it was over when it was removed.
    has_expired: bool,
}

impl Gathered {
    pub(super) fn new(is_live: bool) -> Self {
        Self {
            is_live,
            records: HashMap::new(),
            since: HashSet::new(),
            events: BTreeMap::new(),
            joined: BTreeSet::new(),
            bookmakers: HashSet::new(),
        }
    }

    /// True if the positions of publications make no difference.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Approximate size.
    pub(super) fn bytes(&self) -> usize {
        (self.records.len() + self.events.len() + self.joined.len()) * ITEM_BYTES
    }

    /// Adds the archive's summary of entries.
    pub(super) fn take(&mut self, changed: Changed<'_>) {
        let prices = match changed {
            Changed::Prices(prices) => prices,
            Changed::Other(change) => return self.note(&change),
        };
        let ChangedPrices { event, sport, bookmaker, market, pairing, was_emptied, .. } = prices;
        let was_shown = if self.is_live { prices.was_priced } else { prices.was_shown };
        let quotes = self.quotes(event, (bookmaker, market, pairing));
        quotes.was_emptied |= was_emptied;
        quotes.was_shown |= was_shown;
        let seen = self.events.entry(event).or_default();
        if seen.sport.is_none() {
            seen.sport = sport.map(Into::into);
        }
    }

    /// Adds the next entry.
    pub(super) fn note(&mut self, change: &Change) {
        match change {
            Change::Quoted(quoted) => {
                let key = &quoted.market;
                let key = (&*key.bookmaker, key.market, key.group.as_deref());
                let (is_priced, is_live) = (!quoted.outcomes.is_empty(), self.is_live);
                let quotes = self.quotes(quoted.event, key);
                quotes.was_emptied |= !is_priced;
                quotes.was_shown |= is_priced && is_live;
                let id = RecordId::new(quoted.event, key.0, key.1, key.2);
                if is_priced {
                    self.since.insert(id);
                } else {
                    self.since.remove(&id);
                }
            }
            Change::Listed(listed) => {
                let seen = self.events.entry(listed.event).or_default();
                seen.sport = Some(listed.sport.clone());
                seen.listings += 1;
            }
            Change::Scored { event, score, .. } => {
                let seen = self.events.entry(*event).or_default();
                seen.is_over = score.status == Status::Final;
                seen.statuses.insert(score.status);
            }
            Change::Expired { event } => {
                let seen = self.events.entry(*event).or_default();
                seen.has_expired |= std::mem::take(&mut seen.is_over);
            }
            Change::Merged { elder, younger, .. } => {
                self.joined.insert((*elder, *younger));
            }
            Change::Split { event, into, .. } => {
                self.joined.insert((*event, *into));
            }
            // The publication shows everything priced since the last one.
            Change::Cut { .. } => {
                for id in self.since.drain() {
                    if let Some(quotes) = self.records.get_mut(&id) {
                        quotes.was_shown = true;
                    }
                }
            }
            // These show nothing new.
            Change::Founded { .. }
            | Change::Confirmed { .. }
            | Change::Withdrawn { .. }
            | Change::Beat { .. }
            | Change::SourceForgotten { .. }
            | Change::Joined(_)
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Dropped { .. }
            | Change::Paced { .. }
            | Change::Configured(_)
            | Change::Unlogged { .. } => {}
        }
    }

    fn quotes(
        &mut self,
        event: EventId,
        (bookmaker, market, group): (&str, Market, Option<&str>),
    ) -> &mut Quotes {
        let Self { records, bookmakers, .. } = self;
        records.entry(RecordId::new(event, bookmaker, market, group)).or_insert_with(|| {
            let held = bookmakers.get(bookmaker).cloned();
            let bookmaker = held.unwrap_or_else(|| {
                let new: Arc<str> = bookmaker.into();
                bookmakers.insert(Arc::clone(&new));
                new
            });
            let record = PassedRecord { event, bookmaker, market, group: group.map(Into::into) };
            Quotes { record, was_shown: false, was_emptied: false }
        })
    }

    /// Content that may have been shown between two ends, and the events whose records a merge gave ids that are
    /// unknown because their groups are.
    pub(super) fn between(&self, ends: [&Snapshot; 2], groups: &Groups) -> (Passed, Vec<EventId>) {
        let [_, to] = ends;
        let views = to.catalogue().sports().map(|(id, _)| to.sport(id));
        // The records that a client gets.
        let shown: HashSet<RecordId> =
            views.flat_map(|view| view.records.iter().map(|row| row.id)).collect();
        let mut passed = Passed { joined: self.joined.clone(), ..Passed::default() };
        let mut seen: BTreeSet<EventId> = BTreeSet::new();
        for (id, Quotes { record, was_shown, was_emptied }) in &self.records {
            passed.quoted.insert(*id);
            let is_there = shown.contains(id);
            if *was_emptied || !is_there {
                // The event had other markets temporarily.
                seen.insert(record.event);
            }
            if *was_shown && !is_there {
                passed.records.insert(*id, record.clone());
            }
        }
        let lacking = self.add_joined(ends, groups, &mut passed);
        for (id, event) in &self.events {
            if event.listings > 0 || !event.statuses.is_empty() {
                seen.insert(*id);
            }
            if event.has_expired {
                passed.expired.insert(*id);
            }
        }
        let joined: BTreeSet<EventId> =
            self.joined.iter().flat_map(|(one, other)| [*one, *other]).collect();
        seen.extend(&joined);
        for id in seen {
            let event = self.events.get(&id);
            let known = event.and_then(|event| event.sport.clone());
            let Some(sport) = known.or_else(|| sport_of(ends, id)) else { continue };
            let (listings, statuses) =
                event.map(|event| (event.listings, event.statuses.clone())).unwrap_or_default();
            let is_joined = joined.contains(&id);
            passed.events.insert(id, PassedEvent { sport, listings, statuses, is_joined });
        }
        (passed, lacking)
    }

    /// Adds records of events that were merged or split: every record of one may have been shown under the id of any
    /// other, and to requests for only one of them.
    fn add_joined(
        &self,
        ends: [&Snapshot; 2],
        groups: &Groups,
        passed: &mut Passed,
    ) -> Vec<EventId> {
        let mut near: BTreeMap<EventId, Vec<EventId>> = BTreeMap::new();
        for (one, other) in &self.joined {
            near.entry(*one).or_default().push(*other);
            near.entry(*other).or_default().push(*one);
        }
        let mut keys: HashMap<EventId, BTreeSet<Key>> = HashMap::new();
        for Quotes { record, .. } in self.records.values() {
            if near.contains_key(&record.event) {
                let key = (Arc::clone(&record.bookmaker), record.market, record.group.clone());
                keys.entry(record.event).or_default().insert(key);
            }
        }
        let mut lacking = Vec::new();
        while let Some((first, _)) = near.first_key_value() {
            let (mut events, mut left, mut all) = (Vec::new(), vec![*first], BTreeSet::new());
            while let Some(event) = left.pop() {
                let Some(next) = near.remove(&event) else { continue };
                left.extend(next);
                events.push(event);
                all.extend(keys.remove(&event).unwrap_or_default());
                if !self.add_shown(ends, groups, event, &mut all) {
                    lacking.push(event);
                }
            }
            for event in events {
                for (bookmaker, market, group) in &all {
                    let id = RecordId::new(event, bookmaker, *market, group.as_deref());
                    let (bookmaker, group) = (Arc::clone(bookmaker), group.clone());
                    let record = PassedRecord { event, bookmaker, market: *market, group };
                    passed.records.insert(id, record);
                }
            }
        }
        lacking
    }

    /// Adds the keys of the event's records that the ends show; false if a group is unknown.
    fn add_shown(
        &self,
        ends: [&Snapshot; 2],
        groups: &Groups,
        event: EventId,
        keys: &mut BTreeSet<Key>,
    ) -> bool {
        let mut is_whole = true;
        for (snapshot, view, row) in ends.into_iter().filter_map(|end| row_of(end, event)) {
            for record in row.records.clone().filter_map(|at| view.record(at)) {
                let bookmaker = &snapshot.catalogue().bookmaker(record.bookmaker).key;
                let plain = RecordId::new(event, bookmaker, record.market, None);
                let quoted = self.records.get(&record.id);
                let quoted = quoted.and_then(|quotes| quotes.record.group.clone());
                let group = quoted.or_else(|| groups.get(&record.id).cloned());
                if group.is_some() || plain == record.id {
                    keys.insert((Arc::from(&**bookmaker), record.market, group));
                } else {
                    is_whole = false;
                }
            }
        }
        is_whole
    }
}

fn sport_of(ends: [&Snapshot; 2], event: EventId) -> Option<Box<str>> {
    ends.into_iter().find_map(|end| {
        let (snapshot, _, row) = row_of(end, event)?;
        Some(snapshot.catalogue().sport(row.details.sport).key.clone())
    })
}

/// The row of an event, if a snapshot has it under its own id.
fn row_of(end: &Snapshot, event: EventId) -> Option<(&Snapshot, &SportView, &EventRow)> {
    let mut views = end.catalogue().sports().map(|(id, _)| end.sport(id));
    views.find_map(|view| {
        let row = view.event(event).filter(|row| row.id == event)?;
        Some((end, view, row))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use domain::message::Fixture;
    use domain::{Catalogue, Format, Quote, Timestamp};
    use market::change::{By, Listed, MarketKey, Quoted, QuotedOutcome, Reported, Who};
    use market::{Book, Ids};

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_000)
    }

    fn listed(event: EventId, reference: &str) -> Change {
        let fixture = Fixture::Field { title: format!("Cup {reference}").into() };
        Change::Listed(Listed {
            event,
            feed: "f".into(),
            reference: reference.into(),
            sport: "golf".into(),
            competition: "Tour".into(),
            commence_time: now(),
            fixture,
            swapped: false,
            ts: now(),
        })
    }

    fn quoted(event: EventId, group: Option<&str>, players: &[&str]) -> Change {
        let market = if group.is_some() { Market::Matchup } else { Market::Outright };
        let outcomes = players.iter().map(|player| QuotedOutcome {
            who: Who::Player((*player).into()),
            quote: Quote::parse("2.5", Format::Decimal).unwrap(),
            point: None,
        });
        let group = group.map(Into::into);
        Change::Quoted(Quoted {
            event,
            market: MarketKey { bookmaker: "fanduel".into(), market, group },
            feed: "f".into(),
            outcomes: outcomes.collect(),
            ts: now(),
        })
    }

    fn snapshot(book: &Book) -> Snapshot {
        Snapshot::cut(book, 0, now(), Duration::ZERO, &[])
    }

    /// Two events with prices are merged, and the prices are removed.
    #[test]
    fn records_that_a_merge_moves_have_passed_under_their_new_ids() {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let mut book = Book::new(catalogue, Ids::Minted { salt: 0 });
        let (elder, younger) = (EventId::from_number(1), EventId::from_number(2));
        let before = [
            listed(elder, "a"),
            listed(younger, "b"),
            quoted(younger, None, &["Ann", "Bea"]),
            quoted(younger, Some("r1"), &["Ann", "Bea"]),
        ];
        before.iter().for_each(|change| book.absorb(change, now()));
        let from = snapshot(&book);
        let merged = Change::Merged { elder, younger, swapped: false, by: By::Operator };
        let cut = Change::Cut { at: now() };
        let (one, other) = (quoted(elder, None, &[]), quoted(elder, Some("r1"), &[]));
        let changes = [&merged, &cut, &one, &other, &cut];
        changes.iter().for_each(|change| book.absorb(change, now()));
        let to = snapshot(&book);
        assert_eq!((from.records(), to.records()), (2, 0));
        let pass = |groups: Groups| {
            let mut gathered = Gathered::new(false);
            changes.iter().for_each(|change| gathered.note(change));
            let (passed, lacking) = gathered.between([&from, &to], &groups);
            (!lacking.is_empty(), passed)
        };
        let id = |event, market, group| RecordId::new(event, "fanduel", market, group);
        let (lacks, passed) = pass(Groups::default());
        assert!(lacks, "what the id of a matchup is made with is not in a snapshot");
        assert!(passed.records.contains_key(&id(elder, Market::Outright, None)));
        let known = [(id(younger, Market::Matchup, Some("r1")), "r1".into())];
        let (lacks, passed) = pass(known.into_iter().collect());
        assert!(!lacks);
        assert!(passed.records.contains_key(&id(elder, Market::Matchup, Some("r1"))));
        assert_eq!(passed.with_joined(&[younger]), [elder, younger].into());
    }

    #[test]
    fn an_event_that_ended_and_was_taken_away_has_expired() {
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let mut book = Book::new(catalogue, Ids::Minted { salt: 0 });
        let (ended, gone) = (EventId::from_number(1), EventId::from_number(2));
        for change in [listed(ended, "a"), listed(gone, "b")] {
            book.absorb(&change, now());
        }
        let from = snapshot(&book);
        let score = Reported {
            status: Status::Final,
            home: None,
            away: None,
            periods: Vec::new(),
            winner: None,
            leaders: Vec::new(),
        };
        let changes = [
            Change::Scored { event: ended, score, ts: now() },
            Change::Expired { event: ended },
            Change::Expired { event: gone },
        ];
        changes.iter().for_each(|change| book.absorb(change, now()));
        let to = snapshot(&book);
        let mut gathered = Gathered::new(false);
        changes.iter().for_each(|change| gathered.note(change));
        let (passed, _) = gathered.between([&from, &to], &Groups::default());
        assert_eq!(passed.expired, [ended].into());
    }
}
