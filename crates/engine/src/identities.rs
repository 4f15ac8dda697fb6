//! Which feeds list which event, and which pairs may be duplicates: data for operators, in addition to the snapshot.
//!
//! The writer keeps it in step with the book: it notes which events a batch may have touched, and with each snapshot
//! looks those few up again. A published value shares everything else with the previous one. Reading it touches
//! neither the book nor the log, and never waits for the writer.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use domain::message::{Body, FeedMessage, Fixture};
use domain::{EventId, SportId, Timestamp};
use market::book::Event;
use market::{Book, Change, Decision, ProfileRef, Unsure};

/// Number of parts that are published separately: with more parts, less is copied for each touched event.
const SHARDS: usize = 256;
/// Maximum number of events kept for operators. A larger book has them all; the rest is only counted here.
const EVENTS_MAX: usize = 200_000;
/// Maximum number of former ids kept for one event.
const ALSO_MAX: usize = 20;

/// One event and its listings.
#[derive(Clone, Debug, PartialEq)]
pub struct EventView {
    pub id: EventId,
    pub sport: SportId,
    pub competition: Box<str>,
    pub commence_time: Timestamp,
    pub fixture: Fixture,
    /// The eldest first: it determines the names and times of the event.
    pub refs: Vec<RefView>,
    /// Ids of events that were merged into this one.
    pub also: Vec<EventId>,
}

/// A feed's ref of an event. Values equal to the event's own are not stored again.
#[derive(Clone, Debug, PartialEq)]
pub struct RefView {
    pub feed: Arc<str>,
    pub reference: Box<str>,
    pub commence_time: Timestamp,
    competition: Option<Box<str>>,
    fixture: Option<Fixture>,
    /// The feed's home is the event's away.
    pub swapped: bool,
    /// The reason for matching it to this event.
    pub why: Arc<str>,
}

impl EventView {
    /// A ref's names according to its feed.
    pub fn fixture_of<'a>(&'a self, held: &'a RefView) -> &'a Fixture {
        held.fixture.as_ref().unwrap_or(&self.fixture)
    }

    /// The competition according to the feed.
    pub fn competition_of<'a>(&'a self, held: &'a RefView) -> &'a str {
        held.competition.as_deref().unwrap_or(&self.competition)
    }
}

type Shard = HashMap<EventId, Arc<EventView>>;

/// All identities, as of the last snapshot or the last operation.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    shards: Vec<Arc<Shard>>,
    unsure: Arc<Vec<Unsure>>,
    /// Merged ids, with the id of the event that answers for each.
    stand_ins: Arc<HashMap<EventId, EventId>>,
    left_out: usize,
}

impl Identities {
    /// The event that an id stands for.
    pub fn event(&self, id: EventId) -> Option<&Arc<EventView>> {
        let id = self.stand_ins.get(&id).copied().unwrap_or(id);
        self.shards.get(shard_of(id))?.get(&id)
    }

    /// Every event, in no order.
    pub fn events(&self) -> impl Iterator<Item = &Arc<EventView>> {
        self.shards.iter().flat_map(|shard| shard.values())
    }

    /// Pairs of possible duplicates, in a stable order.
    pub fn unsure(&self) -> &[Unsure] {
        &self.unsure
    }

    /// Number of events beyond the maximum, which are not kept here.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn shard_of(id: EventId) -> usize {
    // Ids are evenly distributed already.
    usize::try_from(id.number() % 256).unwrap_or(0) % SHARDS
}

/// The writer's side of the identities.
#[derive(Debug)]
pub(crate) struct Tracker {
    held: Identities,
    touched: HashSet<EventId>,
    /// The pairs may have changed, even if no event has.
    pairs_touched: bool,
    /// Feed names and the few reasons that many refs share.
    texts: HashMap<Box<str>, Arc<str>>,
}

impl Tracker {
    /// All identities of a book.
    pub(crate) fn of(book: &Book) -> Self {
        let mut tracker = Self {
            held: Identities { shards: vec![Arc::default(); SHARDS], ..Identities::default() },
            touched: book.events().map(|event| event.id).collect(),
            pairs_touched: true,
            texts: HashMap::new(),
        };
        tracker.refresh(book);
        tracker
    }

    pub(crate) fn held(&self) -> &Identities {
        &self.held
    }

    /// The event that a message's ref is in before it is applied, because a message that changes something may remove
    /// it from there.
    pub(crate) fn before(book: &Book, feed: &str, message: &FeedMessage) -> Option<EventId> {
        match &message.body {
            Body::Event { reference, .. } | Body::Remove { reference } => {
                book.listed_for(feed, reference)
            }
            Body::Odds(_) | Body::Score(_) | Body::Heartbeat { .. } => None,
        }
    }

    /// The same for a change that was decided elsewhere and is about to be absorbed.
    pub(crate) fn before_change(&mut self, book: &Book, change: &Change) {
        if let Change::Dropped { feed } = change {
            self.touched.extend(book.events_listed_by(feed));
        }
        let listed = match change {
            Change::Listed(listed) => book.listed_for(&listed.feed, &listed.reference),
            Change::Withdrawn { feed, reference, .. } => book.listed_for(feed, reference),
            Change::Founded { .. }
            | Change::Quoted(_)
            | Change::Confirmed { .. }
            | Change::Scored { .. }
            | Change::Beat { .. }
            | Change::Paced { .. }
            | Change::Configured(_)
            | Change::Unlogged { .. }
            | Change::Expired { .. }
            | Change::SourceForgotten { .. }
            | Change::Cut { .. }
            | Change::Joined(_)
            | Change::Merged { .. }
            | Change::Split { .. }
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            | Change::Dropped { .. } => None,
        };
        self.touched.extend(listed);
    }

    /// Notes all effects of a message.
    pub(crate) fn after_message(&mut self, before: Option<EventId>, decision: &Decision) {
        if decision.change.is_some() {
            self.touched.extend(before);
        }
        for change in decision.change.iter().chain(&decision.follow) {
            self.after(change);
        }
    }

    /// Notes a change that was absorbed.
    pub(crate) fn after(&mut self, change: &Change) {
        let ids = match change {
            Change::Listed(listed) => [Some(listed.event), None],
            Change::Expired { event } => [Some(*event), None],
            Change::Merged { elder, younger, .. } => [Some(*elder), Some(*younger)],
            Change::Split { event, into, .. } => [Some(*event), Some(*into)],
            Change::Doubted { .. } | Change::Cleared { .. } | Change::Parted { .. } => {
                self.pairs_touched = true;
                [None, None]
            }
            // A ref that joins was listed together with this; the rest concerns prices, scores and names.
            Change::Joined(_)
            | Change::Founded { .. }
            | Change::Quoted(_)
            | Change::Confirmed { .. }
            | Change::Scored { .. }
            | Change::Withdrawn { .. }
            | Change::Beat { .. }
            | Change::Paced { .. }
            | Change::Configured(_)
            | Change::Unlogged { .. }
            | Change::SourceForgotten { .. }
            | Change::Cut { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. }
            // Looked up before, while the feed's listings were known.
            | Change::Dropped { .. } => [None, None],
        };
        self.touched.extend(ids.into_iter().flatten());
    }

    /// Looks up the touched events. `None`: nothing was touched.
    pub(crate) fn refresh(&mut self, book: &Book) -> Option<Arc<Identities>> {
        if self.touched.is_empty() && !self.pairs_touched {
            return None;
        }
        let touched = std::mem::take(&mut self.touched);
        let (stand_ins, mut also) = stand_ins(book, &touched);
        let mut count = self.held.len();
        for id in touched {
            let seen = book.event(id).filter(|event| event.is_listed());
            let view = seen.map(|event| self.view(book, event, also.remove(&id)));
            let Some(shard) = self.held.shards.get_mut(shard_of(id)) else { continue };
            match view {
                Some(view) if count < EVENTS_MAX || shard.contains_key(&id) => {
                    let added = Arc::make_mut(shard).insert(id, Arc::new(view)).is_none();
                    count += usize::from(added);
                }
                _ => {
                    if shard.contains_key(&id) {
                        Arc::make_mut(shard).remove(&id);
                        count -= 1;
                    }
                }
            }
        }
        self.pairs_touched = false;
        self.held.unsure = Arc::new(book.unsure().collect());
        self.held.stand_ins = Arc::new(stand_ins);
        let listed = book.events().filter(|event| event.is_listed()).count();
        self.held.left_out = listed.saturating_sub(count);
        Some(Arc::new(self.held.clone()))
    }

    fn view(&mut self, book: &Book, event: &Event, also: Option<BTreeSet<EventId>>) -> EventView {
        let refs = book.refs(event);
        EventView {
            id: event.id,
            sport: event.sport,
            competition: event.competition.clone(),
            commence_time: event.commence_time,
            fixture: event.fixture.clone(),
            refs: refs.into_iter().map(|held| self.ref_view(event, held)).collect(),
            also: also.into_iter().flatten().take(ALSO_MAX).collect(),
        }
    }

    fn ref_view(&mut self, event: &Event, held: ProfileRef) -> RefView {
        let differs = held.competition != event.competition;
        RefView {
            feed: self.shared_text(held.feed),
            reference: held.reference,
            commence_time: held.commence_time,
            competition: differs.then_some(held.competition),
            fixture: (held.fixture != event.fixture).then_some(held.fixture),
            swapped: held.swapped,
            why: self.shared_text(held.why.into()),
        }
    }

    /// One shared text for all equal ones. Reasons that name a ref are as many as the refs, and are not shared.
    fn shared_text(&mut self, text: Box<str>) -> Arc<str> {
        if text.starts_with("as ") {
            return text.into();
        }
        let shared = self.texts.entry(text).or_insert_with_key(|text| Arc::from(&**text));
        Arc::clone(shared)
    }
}

type Also = HashMap<EventId, BTreeSet<EventId>>;

/// Which ids stand for another event, and for each touched event the ids that stand for it.
fn stand_ins(book: &Book, touched: &HashSet<EventId>) -> (HashMap<EventId, EventId>, Also) {
    let (mut all, mut also) = (HashMap::new(), Also::new());
    for (younger, elder) in book.stand_ins() {
        all.insert(younger, elder);
        if touched.contains(&elder) {
            also.entry(elder).or_default().insert(younger);
        }
    }
    (all, also)
}

#[cfg(test)]
mod tests;
