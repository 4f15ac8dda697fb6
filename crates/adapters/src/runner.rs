//! The part that all transports share: turns reads into messages, sends them to the service, and keeps the report.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::message::{FRESH_FOR_S_MAX, FeedMessage, RejectCode};
use domain::{Catalogue, Clock, Timestamp};
use feeds::adapter::Read;
use feeds::push;

use crate::fetch::Fetched;
use crate::ledger::{Ledger, Plan, ReadAt, Rules};
use crate::report::{Reporter, State};
use crate::settings::AdapterSettings;
use crate::sink::{NotTaken, Receipt, Sink};
use crate::tape::{Record, Recorder};
use crate::threads::let_requests_go_first;

/// The dependencies of every adapter.
#[derive(Clone, Debug)]
pub struct Context {
    pub settings: Arc<AdapterSettings>,
    pub catalogue: Arc<Catalogue>,
    pub clock: Arc<dyn Clock>,
    pub sink: Arc<dyn Sink>,
    pub reporter: Reporter,
    /// Notified when an operator requests a read.
    pub read_now: Arc<tokio::sync::Notify>,
}

const DAY_S: u64 = 24 * 60 * 60;

/// The time of a read and the interval of its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made<'a> {
    pub(crate) unit: &'a str,
    pub(crate) at: Timestamp,
    pub(crate) every: Duration,
    pub(crate) all_read: bool,
}

#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) context: Context,
    ledger: Option<Ledger>,
    recorder: Option<Recorder>,
    /// Time by which the records of a tape are shifted to later.
    shift: Duration,
}

impl Runner {
    pub(crate) fn new(context: Context) -> Self {
        let settings = &context.settings;
        let recorder = settings.record.as_ref().map(|folder| Recorder::new(folder, &settings.name));
        Self { context, ledger: None, recorder, shift: Duration::ZERO }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    pub(crate) fn reporter(&self) -> &Reporter {
        &self.context.reporter
    }

    fn rules(&self) -> Rules {
        let settings = &self.context.settings;
        Rules { remove_after: settings.remove_after, in_play: settings.in_play }
    }

    /// The ledger; if there is none, it is built from the book.
    pub(crate) async fn ledger(&mut self) -> Result<&mut Ledger, NotTaken> {
        if self.ledger.is_none() {
            let open = self.context.sink.open(&self.context.settings.name).await?;
            self.ledger = Some(Ledger::new(open, self.now()));
        }
        self.ledger.as_mut().ok_or(NotTaken::NotLeader)
    }

    /// True if an event of a unit is known to have started and not to be final.
    pub(crate) fn has_begun(&self, unit: &str, now: Timestamp) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.has_begun(unit, now))
    }

    /// Time for which the reads of a unit keep its sources fresh.
    pub(crate) fn fresh_for(&self, every: Duration) -> Duration {
        let longest = Duration::from_secs(FRESH_FOR_S_MAX.into());
        self.context
            .settings
            .stale_after
            .unwrap_or(every * 3)
            .clamp(Duration::from_secs(1), longest)
    }

    /// Begins a tape with the time of its first record: with `tape_today`, times are shifted by whole days.
    pub(crate) fn begin_tape(&mut self, first: Timestamp) {
        if self.context.settings.tape_today {
            let days = self.now().since(first).as_secs() / DAY_S;
            self.shift = Duration::from_secs(days * DAY_S);
        }
    }

    /// Sends the messages that a good read requires.
    pub(crate) async fn take(&mut self, mut read: Read, made: Made<'_>) -> Result<(), NotTaken> {
        read.shift(self.shift);
        self.reporter().note_read(&read);
        let newest = read.markets.iter().filter_map(|market| market.ts).max();
        if let Some(newest) = newest {
            self.reporter().note_lag(newest, self.now());
        }
        let (at, rules) = (self.read_at(made), self.rules());
        let plan = self.ledger().await?.take(read, at, rules);
        self.follow(plan).await
    }

    /// The same for a read that found nothing new.
    pub(crate) async fn take_unchanged(&mut self, made: Made<'_>) -> Result<(), NotTaken> {
        let at = self.read_at(made);
        let plan = self.ledger().await?.take_unchanged(at);
        self.follow(plan).await
    }

    /// Sends the messages that are due to the time alone.
    pub(crate) async fn tick(&mut self) -> Result<(), NotTaken> {
        let (now, rules) = (self.now(), self.rules());
        self.reporter().look(now);
        let Some(ledger) = &mut self.ledger else { return Ok(()) };
        let messages = ledger.tick(now, rules);
        self.send(&messages).await.map(drop)
    }

    fn read_at<'a>(&self, made: Made<'a>) -> ReadAt<'a> {
        let Made { unit, at, every, all_read } = made;
        let fresh_for = self.fresh_for(every);
        self.reporter().set_stale_after(fresh_for);
        let fresh_for_s = u32::try_from(fresh_for.as_secs()).ok();
        ReadAt { unit, at, now: self.now(), fresh_for_s, all_read }
    }

    async fn follow(&mut self, plan: Plan) -> Result<(), NotTaken> {
        self.reporter().note_dropped("future_ts", plan.clamped);
        self.reporter().note_dropped("too_many", plan.too_many);
        if let Some(events) = plan.held_back {
            self.reporter().note_dropped("held_back", 1);
            let name = &self.context.settings.name;
            tracing::warn!(event = "adapter.shrunk", adapter = %name, events, "a read would have emptied most events; held back until two more agree");
        }
        self.send(&plan.messages).await.map(drop)
    }

    /// Sends messages; those that are refused are counted and sent again with the next read.
    pub(crate) async fn send(&mut self, messages: &[FeedMessage]) -> Result<Receipt, NotTaken> {
        if messages.is_empty() {
            return Ok(Receipt::default());
        }
        let mut body = String::new();
        for message in messages {
            push::write_line(message, &self.context.catalogue, &mut body);
            let_requests_go_first();
        }
        let taken = self.context.sink.submit(&self.context.settings.name, Bytes::from(body)).await;
        if taken.is_err() {
            // It is not known which messages were taken: rebuild the ledger from the book.
            self.ledger = None;
        }
        let receipt = taken?;
        for (line, reject) in &receipt.rejected {
            // A score that differs from another feed's is not an error of this feed.
            if reject.code != RejectCode::IllegalTransition {
                self.reporter().note_dropped(reject.code.slug(), 1);
            }
            let message = line.checked_sub(1).and_then(|line| messages.get(line));
            if let (Some(message), Some(ledger)) = (message, &mut self.ledger) {
                ledger.forget(message);
            }
        }
        Ok(receipt)
    }

    /// Records an answer or a line of a stream on the tape.
    pub(crate) async fn record(&self, unit: &str, status: Option<u16>, fetched: &Fetched) {
        let Some(recorder) = &self.recorder else { return };
        let record = Record::new(self.now(), unit, status, &fetched.headers, &fetched.body);
        if let Err(error) = recorder.write(record).await {
            let name = &self.context.settings.name;
            tracing::warn!(event = "adapter.tape_failed", adapter = %name, %error, "the tape cannot be written");
        }
    }

    /// Reports that the service did not take a batch, which is sent again.
    pub(crate) fn note_not_taken(&self, why: NotTaken) {
        self.reporter().note_failed(State::Retrying, why.to_string(), self.now());
    }
}

/// A random number for jitter.
pub(crate) fn random() -> u32 {
    rand::random()
}
