//! Waiting until a change of keys holds on every node.
//!
//! Why the answer can be trusted. Let the change have number N, be in the database, and let a node X not have it.
//!
//! 1. *Every listed node says N or more.* A node is listed before it reads keys for the first time, so one that is not
//!    listed when we look reads N with everything else; a node's number only grows. No X is left.
//! 2. *N was announced, and `trust` and a margin have passed since.* From then on both witnesses name N or more, so X,
//!    whichever of them it reaches, was last trusted for a question from before, and that trust has run out.
//!    A node that the database has not seen for minutes goes by no more than it has confirmed. If X is one, it cannot
//!    gain its right again before it has confirmed N, and nobody need wait for it until then (`store`: `run_out`), be
//!    it cut off or gone for good. When it is back it sees that nobody waited for it, confirms, and reads once more:
//!    what was changed while it was coming back it finds then, and for what is changed later it is waited for.
//! 3. *N could not be announced.* Then waiting proves nothing: X may be cut off from the database alone, and the
//!    register vouches for it again and again. Only 1 is left, and without it we say so.

use std::{sync::Arc, time::Duration};

use store::{Behind, Store, StoreError};

use crate::{AccountError, RegisterError, RevocationRegister, SteadyClock};

/// Beyond a node's trust: two clocks do not go at quite the same limit, and both count whole milliseconds.
pub(crate) const MARGIN_MS: u64 = 500;
/// How long nodes have to follow a change by themselves before it is announced.
const HEADSTART_MS: u64 = 300;
/// How long something that harms nobody where it is late is waited for.
const BRIEF_MS: u64 = 1000;
const LOOK_EVERY_MIN: Duration = Duration::from_millis(10);
const LOOK_EVERY_MAX: Duration = Duration::from_millis(200);

/// What it takes for a change to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nobody may be let in by what was before: something ended, or is limited.
    Everywhere,
    /// Something began. Nodes that do not know it yet soon do.
    Soon,
}

/// How it stands with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    /// The same, because the right of all who do not have the change has run out.
    Expired,
    Wait,
    /// There is nothing more to wait for, and it is not known to hold everywhere.
    Unsure,
}

/// The wait for one change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) need: Need,
    /// When the change was in the database and, where it could be, announced.
    pub(crate) begun_ms: u64,
    pub(crate) announced: bool,
    /// The longest trust of any node.
    pub(crate) lease_ms: u64,
}

impl Wait {
    /// `behind`: how many listed nodes do not have the change, where the database said so.
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

/// Who has to know of a change before it is done: what a command line needs beside a [`crate::Registry`].
#[derive(Clone, Debug)]
pub struct Authorities {
    pub store: Store,
    pub register: Arc<dyn RevocationRegister>,
    pub steady: Arc<dyn SteadyClock>,
    /// For how long nodes let keys in without having asked, as far as this process knows.
    pub lease: Duration,
}

impl Authorities {
    /// Waits until what the store holds by now is in force on every node.
    ///
    /// # Errors
    /// It is in the store, but not known to be in force everywhere.
    pub async fn confirm(&self, need: Need) -> Result<(), AccountError> {
        match self.is_followed_at_once(need).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => return Err(unconfirmed(None, error)),
        }
        let Announced { number, unannounced, set_back } = match self.announce().await {
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
                // A node may have been started with a longer trust than ours.
                wait.lease_ms = wait.lease_ms.max(behind.lease_ms);
            }
            // A database that was set back does not list everybody: only time tells then.
            let behind = behind.ok().map(|behind| behind.nodes).filter(|_| !set_back);
            match wait.verdict(self.steady.now_ms(), behind) {
                Verdict::Done => return Ok(()),
                Verdict::Expired => {
                    // Where it cannot be noted, or nobody said for how long to wait, the next change waits as this one
                    // did.
                    if behind.is_some()
                        && let Err(error) = self.store.mark_expired(number).await
                    {
                        tracing::debug!(%error, "who was waited for in vain is waited for again");
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
}

impl Authorities {
    /// Lets nodes follow by themselves what the store holds by now, and says whether all have.
    ///
    /// Once a change is announced, a node that has not read it lets nobody in. Were it announced at once and the
    /// database gone a moment later, that would be every node for as long as it is gone. So only nodes that are late
    /// are told, while the database answers; where it does not, the change stays unannounced and unconfirmed.
    async fn is_followed_at_once(&self, need: Need) -> Result<bool, StoreError> {
        let number = self.store.key_change().await?.number;
        // Rows of a database that was set back say nothing.
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
}

/// What the store held, and what became of telling it.
struct Announced {
    number: i64,
    /// Why it could not be announced.
    unannounced: Option<RegisterError>,
    set_back: bool,
}

impl Authorities {
    /// Announces what the store holds by now.
    async fn announce(&self) -> Result<Announced, StoreError> {
        let number = self.store.key_change().await?.number;
        let greatest = match self.register.announce(number).await {
            Ok(greatest) => greatest,
            Err(error) => {
                return Ok(Announced { number, unannounced: Some(error), set_back: false });
            }
        };
        // Whatever was announced was in the store before. Where it is not there now, the store was set back, and nodes
        // may have confirmed numbers of another life of it: they have to read everything again.
        if greatest <= number || self.store.key_change().await?.number >= greatest {
            return Ok(Announced { number, unannounced: None, set_back: false });
        }
        self.store.raise_key_change(greatest.saturating_add(1)).await?;
        let number = self.store.key_change().await?.number;
        let unannounced = self.register.announce(number).await.err();
        Ok(Announced { number, unannounced, set_back: true })
    }
}

/// What the audit log says of something that is stored and not known to be in force everywhere.
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
