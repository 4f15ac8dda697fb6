//! Who writes the log: a row in the database, held for a few seconds at a time by whichever node can.
//!
//! It only decides who tries. While the database does not answer, whoever writes goes on; another node cannot be told
//! to take over, and the log refuses whoever was overtaken in any case.

use std::sync::Arc;
use std::time::Duration;

use domain::{Clock, World};
use engine::{Seat, WorldHandle};
use store::Store;
use tokio::time::{MissedTickBehavior, interval};

/// For how long the lead is taken; another node has it at the latest this long after its holder died.
const HELD_MS: u32 = 3000;
/// How often it is prolonged or asked for: a holder may be late four times, and a standby is late by no more than this.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// The setting that says that the log was created: from then on nobody makes one where it is missing.
pub(crate) const LOG_CREATED: &str = "live_log_begun";

/// Finds out, whenever this node's snapshot is late, whether that is so everywhere because nobody writes.
pub(crate) async fn watch_leader(store: Store, live: Arc<WorldHandle>, clock: Arc<dyn Clock>) {
    let mut every = interval(ASK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let led = match live.is_late(clock.now()) {
            // That the database does not answer is told by whoever needs it for more than this.
            true => store.has_leader(World::Live.key()).await.ok(),
            false => None,
        };
        live.note_led(led, clock.now());
    }
}

/// This node's part in deciding who writes.
#[derive(Clone, Debug)]
pub(crate) struct LeaderElection {
    store: Store,
    seat: Arc<Seat>,
    holder: String,
}

impl LeaderElection {
    pub(crate) fn new(store: Store, seat: Arc<Seat>, holder: String) -> Self {
        Self { store, seat, holder }
    }

    /// Asks for the lead, or prolongs it, for as long as the service runs.
    pub(crate) async fn keep(self) {
        let mut every = interval(ASK_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut answered, mut holds, mut created) = (true, false, false);
        loop {
            every.tick().await;
            let asked = match self.note_log_created(&mut created).await {
                Ok(()) => self.ask(&mut holds).await,
                Err(error) => Err(error),
            };
            match &asked {
                Err(error) if answered => {
                    let error = error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "leader lookup failed: database unreachable; current leader keeps writing"
                    );
                }
                Ok(()) if !answered => tracing::info!("the database says again who writes"),
                Ok(()) | Err(_) => {}
            }
            answered = asked.is_ok();
        }
    }

    /// Sees to it that a log is made once and never again.
    async fn note_log_created(&self, created: &mut bool) -> Result<(), store::StoreError> {
        if *created {
            return Ok(());
        }
        *created = self.store.setting(LOG_CREATED).await?.is_some();
        if !*created && self.seat.knows_log() {
            self.store.set_setting(LOG_CREATED, Some("yes")).await?;
            tracing::info!("the database knows that the log is created; nobody makes another");
            *created = true;
        }
        self.seat.set_founds(!*created);
        Ok(())
    }

    async fn ask(&self, holds: &mut bool) -> Result<(), store::StoreError> {
        if !self.seat.is_fit() {
            self.seat.withdraw();
            // Somebody who can write should have it.
            if *holds {
                self.give_up().await?;
                *holds = false;
            }
            return Ok(());
        }
        let lead = self.store.acquire_leadership(World::Live.key(), &self.holder, HELD_MS).await?;
        *holds = lead.is_some();
        match lead {
            Some(lead) => self.seat.grant(lead.term),
            None => self.seat.withdraw(),
        }
        Ok(())
    }

    /// Lets another node have it at once.
    pub(crate) async fn give_up(&self) -> Result<(), store::StoreError> {
        self.store.release_leadership(World::Live.key(), &self.holder).await
    }
}
