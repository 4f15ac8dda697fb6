//! A recording: what a log says, written again as the messages of one feed.
//!
//! The recorder follows the log with a book of its own and keeps beside it a mirror, the book that a replay of all
//! it has said so far would make. After each change it says what makes the two show the same. So several feeds'
//! listings of an event become one, under the event's id as ref, and the decisions of the time (which event a ref
//! meant, whose word led) are kept and not taken anew.
//!
//! What API users see is what comes back: events, prices, scores and their times; ids do not. Pure, as is all here.

mod mirror;

use domain::message::FeedMessage;
use domain::{EventId, Timestamp};

use crate::book::Book;
use crate::change::{Change, MarketKey};
use mirror::Mirror;

/// A message of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// When the change it tells of was accepted; for what stood already at its beginning, the recording's beginning.
    pub at: Timestamp,
    /// Always with a `ts`: the source's own.
    pub message: FeedMessage,
}

/// Turns a log into messages, from one instant on.
#[derive(Debug)]
pub struct Recorder {
    book: Book,
    from: Timestamp,
    mirror: Mirror,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the recording's beginning.
    Waiting,
    Open,
    /// The book began anew. What it shows is compared when it was first published, since most of it comes back.
    Founded,
}

/// What a change can alter of what is shown.
enum Touched {
    Nothing,
    Everything,
    Events(Vec<EventId>),
    Market(EventId, MarketKey),
    Sources,
}

impl Recorder {
    /// Begins with the book as it stood before the first change that [`Self::take`] is given, and says nothing of
    /// what was accepted before `from` but how things stood then.
    pub fn new(book: Book, from: Timestamp) -> Self {
        let mirror = Mirror::new(book.catalogue(), from);
        Self { book, from, mirror, state: State::Waiting }
    }

    /// Takes the next change of the log, accepted at `at`, and gives the messages that tell of it.
    pub fn take(&mut self, change: &Change, at: Timestamp) -> Vec<Recorded> {
        if self.state == State::Waiting && at < self.from {
            self.book.absorb(change, at);
            return Vec::new();
        }
        self.open();
        let touched = self.touched(change);
        self.book.absorb(change, at);
        self.mirror.arrive(at, source_time(change).unwrap_or(at));
        match (touched, self.state) {
            (Touched::Nothing, _) | (_, State::Founded) => {}
            (Touched::Everything, _) => self.mirror.follow(&self.book),
            (Touched::Events(events), _) => {
                for event in events {
                    self.mirror.follow_event(&self.book, event);
                }
            }
            (Touched::Market(event, market), _) => {
                self.mirror.follow_market(&self.book, event, &market);
            }
            (Touched::Sources, _) => self.mirror.follow_sources(&self.book),
        }
        self.mirror.take_said()
    }

    /// The messages that are still due when the log ends here.
    pub fn finish(&mut self) -> Vec<Recorded> {
        self.open();
        if self.state == State::Founded {
            self.state = State::Open;
            self.mirror.follow(&self.book);
        }
        self.mirror.take_said()
    }

    /// How many events could not be written exactly, as where the catalogue no longer has their markets.
    pub fn inexact_events(&self) -> usize {
        self.mirror.inexact_events()
    }

    fn open(&mut self) {
        if self.state == State::Waiting {
            self.state = State::Open;
            self.mirror.begin(&self.book);
        }
    }

    /// Looked up before the change is absorbed: some changes name what they take away.
    fn touched(&mut self, change: &Change) -> Touched {
        let listed_as = |feed: &str, reference: &str| {
            let feed = self.book.feed(self.book.feed_ix(feed)?)?;
            feed.offers.get(reference).map(|offer| offer.event)
        };
        match change {
            Change::Founded { .. } => {
                self.state = State::Founded;
                Touched::Nothing
            }
            Change::Cut { .. } if self.state == State::Founded => {
                self.state = State::Open;
                Touched::Everything
            }
            Change::Cut { .. }
            | Change::SourceForgotten { .. }
            | Change::Configured(_)
            | Change::Unlogged { .. } => Touched::Nothing,
            Change::Paced { bookmaker, sport, fresh_for_s } => {
                self.mirror.note_pace(sport, bookmaker, *fresh_for_s);
                Touched::Nothing
            }
            Change::Listed(listed) => {
                let former = listed_as(&listed.feed, &listed.reference);
                let former = former.filter(|former| *former != listed.event);
                Touched::Events(former.into_iter().chain([listed.event]).collect())
            }
            Change::Withdrawn { feed, reference, .. } => {
                Touched::Events(listed_as(feed, reference).into_iter().collect())
            }
            Change::Dropped { .. } => Touched::Everything,
            Change::Scored { event, .. } | Change::Expired { event } => {
                Touched::Events(vec![*event])
            }
            Change::Merged { elder: one, younger: other, .. }
            | Change::Split { event: one, into: other, .. } => Touched::Events(vec![*one, *other]),
            Change::Joined(_)
            | Change::Doubted { .. }
            | Change::Cleared { .. }
            | Change::Parted { .. }
            | Change::Taught { .. }
            | Change::Untaught { .. } => Touched::Nothing,
            Change::Quoted(quoted) => Touched::Market(quoted.event, quoted.market.clone()),
            Change::Confirmed { event, market, .. } => Touched::Market(*event, market.clone()),
            Change::Beat { .. } => Touched::Sources,
        }
    }
}

/// When the source says that it happened.
fn source_time(change: &Change) -> Option<Timestamp> {
    match change {
        Change::Listed(listed) => Some(listed.ts),
        Change::Quoted(quoted) => Some(quoted.ts),
        Change::Confirmed { ts, .. }
        | Change::Scored { ts, .. }
        | Change::Withdrawn { ts, .. }
        | Change::Beat { ts, .. } => Some(*ts),
        Change::Founded { .. }
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
        | Change::Paced { .. }
        | Change::Configured(_)
        | Change::Unlogged { .. }
        | Change::Dropped { .. } => None,
    }
}
