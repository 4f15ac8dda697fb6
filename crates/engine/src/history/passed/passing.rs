//! Notes what entries may have shown.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use domain::{EventId, Market, RecordId, Status};
use market::change::Quoted;
use market::snapshot::{EventRow, SportView};
use market::{Change, Snapshot};

use super::{Passed, PassedEvent, PassedRecord};

/// The groups that ids of records are made with.
pub(super) type Groups = HashMap<RecordId, Box<str>>;

/// What tells the records of an event apart.
type Key = (Box<str>, Market, Option<Box<str>>);

/// Looks at what happens from one to the other.
pub(super) struct Passing<'a> {
    ends: [&'a Snapshot; 2],
    /// What the later one shows. It is what a client gets.
    shown: HashSet<RecordId>,
    /// Whether everything is shown, or what is there at a publication.
    is_live: bool,
    groups: Groups,
    /// Events whose records have groups that are not known.
    moved: Vec<EventId>,
    /// Events whose last score says that they are over.
    over: HashSet<EventId>,
    /// Records with prices since the last publication.
    since: BTreeMap<RecordId, PassedRecord>,
    passed: Passed,
}

impl<'a> Passing<'a> {
    pub(super) fn new(from: &'a Snapshot, to: &'a Snapshot, is_live: bool, groups: Groups) -> Self {
        let views = to.catalogue().sports().map(|(id, _)| to.sport(id));
        Self {
            ends: [from, to],
            shown: views.flat_map(|view| view.records.iter().map(|row| row.id)).collect(),
            is_live,
            groups,
            moved: Vec::new(),
            over: HashSet::new(),
            since: BTreeMap::new(),
            passed: Passed::default(),
        }
    }

    pub(super) fn into_passed(self) -> Passed {
        self.passed
    }

    /// Whether there are records whose ids after a move are not known, because their groups are not.
    pub(super) fn lacks_groups(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Their events.
    pub(super) fn moved(&self) -> &[EventId] {
        &self.moved
    }

    /// `is_last`: the later one is as of this entry.
    pub(super) fn note(&mut self, change: &Change, is_last: bool) {
        match change {
            Change::Quoted(quoted) => self.note_quoted(quoted),
            Change::Listed(listed) => {
                if let Some(event) = self.event(listed.event, Some(&listed.sport)) {
                    event.listings += 1;
                }
            }
            Change::Scored { event, score, .. } => {
                if score.status == Status::Final {
                    self.over.insert(*event);
                } else {
                    self.over.remove(event);
                }
                if let Some(event) = self.event(*event, None) {
                    event.statuses.insert(score.status);
                }
            }
            Change::Expired { event } => {
                if self.over.remove(event) {
                    self.passed.expired.insert(*event);
                }
            }
            Change::Merged { elder, younger, .. } => self.note_joined(*elder, *younger),
            Change::Split { event, into, .. } => self.note_joined(*event, *into),
            Change::Cut { .. } => self.publish(is_last),
            // These show nothing that was not shown.
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

    fn note_quoted(&mut self, quoted: &Quoted) {
        let key = &quoted.market;
        let group = key.group.clone();
        let id = RecordId::new(quoted.event, &key.bookmaker, key.market, group.as_deref());
        if let Some(group) = &group {
            self.groups.insert(id, group.clone());
        }
        self.passed.quoted.insert(id);
        if quoted.outcomes.is_empty() || !self.shown.contains(&id) {
            // The event had other markets for a while.
            self.event(quoted.event, None);
        }
        if quoted.outcomes.is_empty() {
            self.since.remove(&id);
        } else if !self.shown.contains(&id) {
            let (event, bookmaker) = (quoted.event, key.bookmaker.clone());
            let record = PassedRecord { event, bookmaker, market: key.market, group };
            let shown = if self.is_live { &mut self.passed.records } else { &mut self.since };
            shown.insert(id, record);
        }
    }

    /// Two events become one, or one of them two: every record of either may have been shown as the other's, and to
    /// who asks for one of them.
    fn note_joined(&mut self, one: EventId, other: EventId) {
        let mut keys = self.keys(one);
        keys.extend(self.keys(other));
        for event in [one, other] {
            for (bookmaker, market, group) in &keys {
                let id = RecordId::new(event, bookmaker, *market, group.as_deref());
                if let Some(group) = group {
                    self.groups.insert(id, group.clone());
                }
                let (bookmaker, group) = (bookmaker.clone(), group.clone());
                let record = PassedRecord { event, bookmaker, market: *market, group };
                self.passed.records.insert(id, record);
            }
        }
        let sport = [one, other].iter().find_map(|id| self.sport(*id));
        for event in [one, other] {
            if let Some(event) = self.event(event, sport.as_deref()) {
                event.is_joined = true;
            }
        }
        self.passed.joined.insert((one, other));
    }

    /// What tells the records of an event apart that are known of.
    fn keys(&mut self, event: EventId) -> Vec<Key> {
        let mut keys = Vec::new();
        for (snapshot, view, row) in self.ends.iter().filter_map(|end| row_of(end, event)) {
            for record in row.records.clone().filter_map(|at| view.record(at)) {
                let bookmaker = &snapshot.catalogue().bookmaker(record.bookmaker).key;
                let plain = RecordId::new(event, bookmaker, record.market, None);
                let group = self.groups.get(&record.id).cloned();
                if group.is_some() || plain == record.id {
                    keys.push((bookmaker.clone(), record.market, group));
                } else {
                    self.moved.push(event);
                }
            }
        }
        let noted = self.passed.records.values().chain(self.since.values());
        let noted = noted.filter(|record| record.event == event);
        keys.extend(noted.map(|of| (of.bookmaker.clone(), of.market, of.group.clone())));
        keys
    }

    fn event(&mut self, id: EventId, sport: Option<&str>) -> Option<&mut PassedEvent> {
        if !self.passed.events.contains_key(&id) {
            let known = sport.map(Into::into).or_else(|| self.sport(id))?;
            let (statuses, listings) = Default::default();
            let event = PassedEvent { sport: known, listings, statuses, is_joined: false };
            self.passed.events.insert(id, event);
        }
        self.passed.events.get_mut(&id)
    }

    fn sport(&self, id: EventId) -> Option<Box<str>> {
        if let Some(event) = self.passed.events.get(&id) {
            return Some(event.sport.clone());
        }
        self.ends.iter().find_map(|end| {
            let (snapshot, _, row) = row_of(end, id)?;
            Some(snapshot.catalogue().sport(row.details.sport).key.clone())
        })
    }

    /// What is there now is shown. At the end that is what the client gets.
    pub(super) fn publish(&mut self, is_last: bool) {
        let mut since = mem::take(&mut self.since);
        if !is_last {
            self.passed.records.append(&mut since);
        }
    }
}

/// An event where a snapshot has it by its own id.
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
    use market::change::{By, Listed, MarketKey, QuotedOutcome, Reported, Who};
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

    /// Both events have prices, one turns out to be the other, and its prices go.
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
            let mut passing = Passing::new(&from, &to, false, groups);
            let last = changes.len() - 1;
            for (at, change) in changes.iter().enumerate() {
                passing.note(change, at == last);
            }
            let lacks = passing.lacks_groups();
            (lacks, passing.into_passed())
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
        let mut passing = Passing::new(&from, &to, false, Groups::default());
        changes.iter().for_each(|change| passing.note(change, false));
        assert_eq!(passing.into_passed().expired, [ended].into());
    }
}
