//! A batch of messages on its way into a book, and its outcome.

use std::sync::Arc;
use std::{fmt, vec};

use domain::Timestamp;
use domain::message::{Body, FeedMessage, Reject};
use market::{Book, Change, Verdict};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::entries::Entries;
use crate::error::NotTaken;
use crate::identities::Tracker;
use crate::receipt::{Anomaly, Receipt};

/// Lines by number, each a message or the reason why it is not one.
pub type Lines = Vec<(usize, Result<FeedMessage, Reject>)>;

/// The receipt of a durable batch, or the reason why the batch is not durable.
pub type Outcome = Result<Receipt, NotTaken>;

/// Conditions under which a batch is accepted.
#[derive(Clone, Default)]
pub struct Terms {
    /// Deadline for starting the batch: the sender repeats it after that, and a late copy would undo newer changes.
    pub before: Option<Timestamp>,
    /// True while the feed may push; checked before each turn of its batch.
    pub stands: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("before", &self.before).finish_non_exhaustive()
    }
}

/// A batch of parsed lines from one feed, on its way to the writer.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Lines that are not processed yet.
    lines: vec::IntoIter<(usize, Result<FeedMessage, Reject>)>,
    terms: Terms,
    receipt: Receipt,
    answer: oneshot::Sender<Outcome>,
    /// The writer's round in which it was last processed; 0 before the first.
    pub(crate) round: u64,
    /// Released with the batch.
    _room: OwnedSemaphorePermit,
}

impl Batch {
    pub(crate) fn new(
        lines: Lines,
        terms: Terms,
        answer: oneshot::Sender<Outcome>,
        room: OwnedSemaphorePermit,
    ) -> Self {
        let lines = lines.into_iter();
        Self { lines, terms, receipt: Receipt::default(), answer, round: 0, _room: room }
    }

    /// The reason not to start or continue it.
    pub(crate) fn refusal(&self, now: Timestamp) -> Option<NotTaken> {
        // A batch that was started precedes everything that its feed sent later.
        if self.round == 0 && self.terms.before.is_some_and(|before| now > before) {
            return Some(NotTaken::Overdue);
        }
        self.terms.stands.as_ref().filter(|stands| !stands()).map(|_| NotTaken::Withdrawn)
    }

    pub(crate) fn joins(&self) -> u64 {
        self.receipt.joins
    }

    /// Sends the receipt.
    pub(crate) fn answer(self) {
        let Self { answer, receipt, .. } = self;
        tell(answer, Ok(receipt));
    }

    pub(crate) fn refuse(self, why: NotTaken) {
        tell(self.answer, Err(why));
    }

    /// Applies the next lines to the book until the turn ends, and adds the resulting changes to the entries. Returns
    /// `true` if no lines are left.
    pub(crate) fn apply(
        &mut self,
        feed: &str,
        turn: &mut WriterTurn<'_>,
        mut is_over: impl FnMut() -> bool,
    ) -> bool {
        while let Some((line, message)) = self.lines.next() {
            self.apply_line(feed, turn, line, message);
            if is_over() {
                break;
            }
        }
        self.lines.as_slice().is_empty()
    }

    fn apply_line(
        &mut self,
        feed: &str,
        turn: &mut WriterTurn<'_>,
        line: usize,
        message: Result<FeedMessage, Reject>,
    ) {
        let WriterTurn { book, tracker, entries, now } = turn;
        let receipt = &mut self.receipt;
        let before = match (&tracker, &message) {
            (Some(_), Ok(message)) => Tracker::before(book, feed, message),
            _ => None,
        };
        let decided = message.and_then(|message| Ok((book.apply(feed, &message, *now)?, message)));
        match decided {
            Ok((decision, message)) => {
                match decision.verdict {
                    Verdict::Accepted => receipt.accepted += 1,
                    Verdict::Unchanged => receipt.unchanged += 1,
                    Verdict::Superseded => receipt.superseded += 1,
                }
                for change in decision.change.iter().chain(&decision.follow) {
                    receipt.joins += u64::from(matches!(change, Change::Joined(_)));
                    entries.push(change);
                }
                if let Some(tracker) = tracker {
                    tracker.after_message(before, &decision);
                }
                if let (Some(what), Body::Event { reference, listing }) =
                    (decision.oddity, &message.body)
                {
                    let text = format!("ref `{reference}`: {}", listing.fixture);
                    receipt.odd.push(Anomaly { line, what, text });
                }
            }
            Err(reject) => receipt.rejected.push((line, reject)),
        }
    }
}

fn tell(answer: oneshot::Sender<Outcome>, outcome: Outcome) {
    if answer.send(outcome).is_err() {
        tracing::debug!(event = "push.abandoned", "a feed hung up before its receipt");
    }
}

/// The state that a batch is applied to.
pub(crate) struct WriterTurn<'a> {
    pub(crate) book: &'a mut Book,
    pub(crate) tracker: Option<&'a mut Tracker>,
    pub(crate) entries: &'a mut Entries,
    pub(crate) now: Timestamp,
}
