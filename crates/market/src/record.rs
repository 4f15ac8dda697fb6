//! A recording: the content of a log, converted back to the messages of one feed.
//!
//! The recorder follows the log with its own book and keeps a mirror: the book that a replay of the messages so far
//! would produce. After each change it emits the messages that make both show the same. So several feeds' listings of
//! an event become one, with the event's id as ref, and the decisions of the time (the event of a ref, the leading
//! feed) are kept and not made again.
//!
//! The recording preserves the data that API users see: events, prices, scores and their times, but not ids. Pure,
//! like everything here.

mod mirror;

use domain::message::FeedMessage;
use domain::{EventId, Timestamp};

use crate::book::Book;
use crate::change::{Change, MarketKey};
use mirror::Mirror;

/// A message of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Time when the change was accepted; for data from before the recording, the start of the recording.
    pub at: Timestamp,
    /// Always with a `ts`, which is the source's own.
    pub message: FeedMessage,
}

/// Converts a log to messages, from one instant on.
#[derive(Debug)]
pub struct Recorder {
    book: Book,
    from: Timestamp,
    mirror: Mirror,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the start of the recording.
    Waiting,
    Open,
    /// The book was founded again. It is compared at the first publication, since most of its data comes back until
    /// then.
    Founded,
}

/// The visible data that a change can affect.
enum Touched {
    Nothing,
    Everything,
    Events(Vec<EventId>),
    Market(EventId, MarketKey),
    Sources,
}

impl Recorder {
    /// Starts with the book before the first change that is given to [`Self::take`]. For changes accepted before
    /// `from` it emits only the resulting state.
    pub fn new(book: Book, from: Timestamp) -> Self {
        let mirror = Mirror::new(book.catalogue(), from);
        Self { book, from, mirror, state: State::Waiting }
    }

    /// Takes the next change of the log, accepted at `at`, and returns its messages.
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

    /// The messages that are still due if the log ends here.
    pub fn finish(&mut self) -> Vec<Recorded> {
        self.open();
        if self.state == State::Founded {
            self.state = State::Open;
            self.mirror.follow(&self.book);
        }
        self.mirror.take_said()
    }

    /// Number of events that could not be written exactly, for example because the catalogue no longer has their
    /// markets.
    pub fn inexact_events(&self) -> usize {
        self.mirror.inexact_events()
    }

    fn open(&mut self) {
        if self.state == State::Waiting {
            self.state = State::Open;
            self.mirror.begin(&self.book);
        }
    }

    /// Determined before the change is absorbed: some changes name data that they remove.
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

/// Time of a change according to the source.
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
