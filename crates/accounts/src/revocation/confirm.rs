//! Waiting until a change of keys holds on every node.
//!
//! Why the result is right. Let the change have number N and be in the database, and let node X not have it.
//!
//! 1. *Every listed node confirmed N or more.* A node is listed before it first reads keys, so one that is not listed
//!    when we look reads N with everything else; a node's number only grows. There is no X.
//! 2. *N was announced, and the length of a lease and a margin have passed since.* From then on both authorities name
//!    N or more, so X, whichever of them it reaches, last renewed its lease by a question from before, and that lease
//!    has expired. A node that the database has not seen for minutes relies on no more than it has confirmed. If X is
//!    one, it cannot renew before it has confirmed N, and changes need not wait for it until then (`store`:
//!    `run_out`), be it cut off or gone. When it is back it sees that changes did not wait for it, confirms, and reads
//!    once more: it then finds what was changed while it came back, and later changes wait for it.
//! 3. *N could not be announced.* Then waiting proves nothing: X may be cut off from the database only, and renew by
//!    the register again and again. Only 1 is left, and without it the change is reported as unconfirmed.

use std::{sync::Arc, time::Duration};

use store::{Behind, Store, StoreError};

use crate::{AccountError, RegisterError, RevocationRegister, SteadyClock};

/// Margin beyond a node's lease: two clocks differ a little in speed, and both count whole milliseconds.
pub(crate) const MARGIN_MS: u64 = 500;
/// How long nodes have to follow a change by themselves before it is announced.
const HEADSTART_MS: u64 = 300;
/// How long to wait for a change that nodes may follow late.
const BRIEF_MS: u64 = 1000;
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);
const LOOK_EVERY_MAX: Duration = Duration::from_millis(200);

/// How far a change has to be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// On every node: a key ended or is limited.
    Everywhere,
    /// A key began; a node may follow a little later.
    Soon,
}

/// The state of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    /// Done: the leases of all nodes that do not have the change have expired.
    Expired,
    Wait,
    /// Waiting longer proves nothing, and the change is not known to hold everywhere.
    Unsure,
}

/// The wait for one change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) need: Need,
    /// When the change was in the database and, if possible, announced.
    pub(crate) begun_ms: u64,
    pub(crate) announced: bool,
    /// The longest key lease of any node.
    pub(crate) lease_ms: u64,
}

impl Wait {
    /// `behind`: the number of listed nodes that do not have the change; `None` if the database did not answer.
    pub(crate) fn verdict(&self, now_ms: u64, behind: Option<u64>) -> Verdict {
        let waited_ms = now_ms.saturating_sub(self.begun_ms);
        let over = waited_ms >= self.lease_ms.saturating_add(MARGIN_MS);
        match (self.need, self.announced) {
            _ if behind == Some(0) => Verdict::Done,
            (Need::Soon, _) if waited_ms >= BRIEF_MS => Verdict::Done,
            (Need::Everywhere, true) if over => Verdict::Expired,
            (Need::Everywhere, false) if over => Verdict::Unsure,
            (Need::Soon | Need::Everywhere, _) => Verdict::Wait,
        }
    }
}

/// The two authorities on changes of keys: what a command line needs in addition to a [`crate::Registry`].
#[derive(Clone, Debug)]
pub struct Authorities {
    pub store: Store,
    pub register: Arc<dyn RevocationRegister>,
    pub steady: Arc<dyn SteadyClock>,
    /// The length of a key lease, as far as this process knows.
    pub lease: Duration,
}

impl Authorities {
    /// Waits until the current state of the store holds on every node.
    ///
    /// # Errors
    /// The change is stored, but not known to hold everywhere.
    pub async fn confirm(&self, need: Need) -> Result<(), AccountError> {
        match self.is_followed_at_once(need).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => return Err(unconfirmed(None, error)),
        }
        let Announced { number, unannounced, restored } = match self.announce().await {
            Ok(announced) => announced,
            Err(error) => return Err(unconfirmed(None, error)),
        };
        let own_ms = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let mut wait = Wait {
            need,
            begun_ms: self.steady.now_ms(),
            announced: unannounced.is_none(),
            lease_ms: own_ms,
        };
        let mut pause = LOOK_EVERY_MIN;
        loop {
            let behind = self.store.nodes_behind(number).await;
            if let Ok(behind) = &behind {
                // A node may be configured with a longer lease than ours.
                wait.lease_ms = wait.lease_ms.max(behind.lease_ms);
            }
            // A database that was restored from a backup does not list every node: only waiting helps then.
            let behind = behind.ok().map(|behind| behind.nodes).filter(|_| !restored);
            match wait.verdict(self.steady.now_ms(), behind) {
                Verdict::Done => return Ok(()),
                Verdict::Expired => {
                    // If this fails, the next change waits as long.
                    if behind.is_some()
                        && let Err(error) = self.store.mark_expired(number).await
                    {
                        tracing::debug!(event = "key_lease.mark_failed", %error, "silent nodes not marked; changes wait for them again");
                    }
                    return Ok(());
                }
                Verdict::Wait => tokio::time::sleep(pause).await,
                Verdict::Unsure => {
                    let cause = unannounced.unwrap_or_else(|| "it was not announced".into());
                    return Err(unconfirmed(behind, cause));
                }
            }
            pause = (pause * 2).min(LOOK_EVERY_MAX);
        }
    }

    /// Lets nodes follow the current state of the store by themselves, and returns whether all have.
    ///
    /// Once a change is announced, a node that has not read it accepts no keys. If it were announced at once and the
    /// database became unreachable a moment later, that would be every node. So a change is announced only if nodes
    /// are late and the database answers; if it does not, the change stays unannounced and unconfirmed.
    async fn is_followed_at_once(&self, need: Need) -> Result<bool, StoreError> {
        let number = self.store.key_change().await?.number;
        // After a restore from a backup the rows of nodes prove nothing.
        if self.register.known().await.is_ok_and(|known| known > Some(number)) {
            return Ok(false);
        }
        self.register.hint().await;
        let begun_ms = self.steady.now_ms();
        let lease_ms = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let mut pause = LOOK_EVERY_MIN;
        loop {
            let behind = self.store.nodes_behind(number).await;
            let waited_ms = self.steady.now_ms().saturating_sub(begun_ms);
            match (need, behind) {
                (_, Ok(Behind { nodes: 0, .. })) => return Ok(true),
                (Need::Soon, _) if waited_ms >= BRIEF_MS => return Ok(true),
                (Need::Everywhere, Ok(_)) if waited_ms >= HEADSTART_MS => return Ok(false),
                (Need::Everywhere, Err(error)) if waited_ms >= lease_ms => return Err(error),
                (Need::Soon | Need::Everywhere, _) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(LOOK_EVERY_MAX);
        }
    }

    /// Announces the current number of the store.
    async fn announce(&self) -> Result<Announced, StoreError> {
        let number = self.store.key_change().await?.number;
        let greatest = match self.register.announce(number).await {
            Ok(greatest) => greatest,
            Err(error) => {
                return Ok(Announced { number, unannounced: Some(error), restored: false });
            }
        };
        // An announced number was in the store before. If it is not there now, the store was restored from a backup,
        // and nodes may have confirmed numbers from before: they have to read everything again.
        if greatest <= number || self.store.key_change().await?.number >= greatest {
            return Ok(Announced { number, unannounced: None, restored: false });
        }
        self.store.raise_key_change(greatest.saturating_add(1)).await?;
        let number = self.store.key_change().await?.number;
        let unannounced = self.register.announce(number).await.err();
        Ok(Announced { number, unannounced, restored: true })
    }
}

/// The announced number, and whether the announcement succeeded.
struct Announced {
    number: i64,
    /// Why it could not be announced.
    unannounced: Option<RegisterError>,
    restored: bool,
}

/// The audit detail of a change that is stored and not known to hold everywhere.
pub fn not_confirmed(detail: &str) -> String {
    let comma = if detail.is_empty() { "" } else { "; " };
    format!("{detail}{comma}stored, not confirmed by every node")
}

fn unconfirmed(behind: Option<u64>, cause: impl Into<RegisterError>) -> AccountError {
    let nodes = behind.map_or("it is not known which nodes".to_owned(), |n| match n {
        1 => "1 node".to_owned(),
        n => format!("{n} nodes"),
    });
    AccountError::Unconfirmed { nodes, cause: cause.into() }
}

#[cfg(test)]
mod model;
