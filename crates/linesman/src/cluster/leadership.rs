//! Leader election: the leader holds a row of the database for a few seconds at a time.
//!
//! This only decides which node tries to write. While the database does not answer, the current leader keeps writing
//! and no other node can take over; the log's fence refuses a former leader in any case.

use std::sync::Arc;
use std::time::Duration;

use domain::{Clock, World};
use engine::{Leadership, WorldHandle};
use store::Store;
use tokio::time::{MissedTickBehavior, interval};

/// The length of a term; another node leads at most this long after the leader died.
const HELD_MS: u32 = 3000;
/// How often it is extended or requested: a leader may be late four times, and a standby is late by at most this.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// The setting that records that the log was created: from then on no node creates a missing one.
pub(crate) const LOG_CREATED: &str = "live_log_begun";

/// Checks, whenever this node's snapshot is late, whether there is a leader.
pub(crate) async fn watch_leader(store: Store, live: Arc<WorldHandle>, clock: Arc<dyn Clock>) {
    let mut every = interval(ASK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let led = match live.is_late(clock.now()) {
            // Others report that the database does not answer.
            true => store.has_leader(World::Live.key()).await.ok(),
            false => None,
        };
        live.note_led(led, clock.now());
    }
}

/// This node's part in the election.
#[derive(Clone, Debug)]
pub(crate) struct LeaderElection {
    store: Store,
    leadership: Arc<Leadership>,
    holder: String,
}

impl LeaderElection {
    pub(crate) fn new(store: Store, leadership: Arc<Leadership>, holder: String) -> Self {
        Self { store, leadership, holder }
    }

    /// Asks for the leadership, or extends it, while the service runs.
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
                        event = "leader.lookup_failed",
                        error,
                        "leader lookup failed: database unreachable; current leader keeps writing"
                    );
                }
                Ok(()) if !answered => {
                    tracing::info!(event = "leader.lookup_restored", "leader lookup works again");
                }
                Ok(()) | Err(_) => {}
            }
            answered = asked.is_ok();
        }
    }

    /// Makes sure that a log is created only once.
    async fn note_log_created(&self, created: &mut bool) -> Result<(), store::StoreError> {
        if *created {
            return Ok(());
        }
        *created = self.store.setting(LOG_CREATED).await?.is_some();
        if !*created && self.leadership.has_seen_log() {
            self.store.set_setting(LOG_CREATED, Some("yes")).await?;
            tracing::info!(
                event = "log.creation_recorded",
                "the log exists; no node creates another"
            );
            *created = true;
        }
        self.leadership.set_may_create_log(!*created);
        Ok(())
    }

    async fn ask(&self, holds: &mut bool) -> Result<(), store::StoreError> {
        if !self.leadership.is_healthy() {
            self.leadership.withdraw();
            // A node that can write should lead.
            if *holds {
                self.give_up().await?;
                *holds = false;
            }
            return Ok(());
        }
        let lead = self.store.acquire_leadership(World::Live.key(), &self.holder, HELD_MS).await?;
        *holds = lead.is_some();
        match lead {
            Some(lead) => self.leadership.grant(lead.term),
            None => self.leadership.withdraw(),
        }
        Ok(())
    }

    /// Lets another node lead at once.
    pub(crate) async fn give_up(&self) -> Result<(), store::StoreError> {
        self.store.release_leadership(World::Live.key(), &self.holder).await
    }
}
