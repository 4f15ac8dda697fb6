//! A batch of messages on its way into a book, and what became of it.

use std::mem;

use domain::Timestamp;
use domain::message::{Body, FeedMessage, Reject};
use market::{Book, Change, Verdict};
use tokio::sync::oneshot;

use crate::ledger::Odd;
use crate::world::NotTaken;
use crate::world::identities::Tracker;
use crate::world::start::Entries;

/// Lines by number, each a message or the reason why it is none.
pub(crate) type Lines = Vec<(usize, Result<FeedMessage, Reject>)>;

/// A batch of parsed lines from one feed, on its way to the writer.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) feed: String,
    pub(crate) lines: Lines,
    /// Not to be taken after this: whoever handed it over asks again then, and a copy that comes late would undo what
    /// was taken since.
    pub(crate) before: Option<Timestamp>,
    pub(crate) receipt: oneshot::Sender<Result<Receipt, NotTaken>>,
}

impl Batch {
    pub(crate) fn is_overdue(&self, now: Timestamp) -> bool {
        self.before.is_some_and(|before| now > before)
    }
}

/// What became of a batch, durably.
#[derive(Debug, Default)]
pub(crate) struct Receipt {
    pub(crate) accepted: u64,
    pub(crate) unchanged: u64,
    pub(crate) superseded: u64,
    pub(crate) rejected: Vec<(usize, Reject)>,
    pub(crate) odd: Vec<Odd>,
    /// Refs that were taken for an event that another feed lists.
    pub(crate) joins: u64,
}

impl Receipt {
    /// Adds what became of a further part of the same push.
    pub(crate) fn add(&mut self, part: Self) {
        self.accepted += part.accepted;
        self.unchanged += part.unchanged;
        self.superseded += part.superseded;
        self.joins += part.joins;
        self.rejected.extend(part.rejected);
        self.odd.extend(part.odd);
    }
}

/// Applies a batch to the book, and puts what it changed among the entries.
pub(super) fn apply_batch(
    book: &mut Book,
    batch: &mut Batch,
    now: Timestamp,
    entries: &mut Entries,
    mut tracker: Option<&mut Tracker>,
) -> Receipt {
    let mut receipt = Receipt::default();
    for (line, message) in mem::take(&mut batch.lines) {
        let before = match (&tracker, &message) {
            (Some(_), Ok(message)) => Tracker::before(book, &batch.feed, message),
            _ => None,
        };
        let decided =
            message.and_then(|message| Ok((book.apply(&batch.feed, &message, now)?, message)));
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
                if let Some(tracker) = &mut tracker {
                    tracker.after_message(before, &decision);
                }
                if let (Some(what), Body::Event { reference, listing }) =
                    (decision.oddity, &message.body)
                {
                    let text = format!("ref `{reference}`: {}", listing.fixture);
                    receipt.odd.push(Odd { line, what, text });
                }
            }
            Err(reject) => receipt.rejected.push((line, reject)),
        }
    }
    receipt
}
