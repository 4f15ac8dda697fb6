//! Hashing passwords with argon2id, a bounded number at a time and off the request threads.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use data_encoding::BASE64_NOPAD;
use rand::{TryRng, rngs::SysRng};
use subtle::ConstantTimeEq;
use tokio::sync::{AcquireError, Semaphore};

use crate::{AccountError, Password};

/// 19 MiB, two passes, one lane: the minimum that OWASP recommends, about 30 ms of one core.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Maximum parameters of a stored hash; more would be damage, and a way to exhaust memory.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 8;
/// Each hash takes a core and 19 MiB: two at a time leave room for the API on a small machine.
const AT_ONCE_MAX: usize = 2;
/// Maximum number of concurrent hashes for anonymous clients: one place is always left for known ones.
const STRANGERS_AT_ONCE_MAX: usize = 1;
/// How long a sign-in waits for a place before it fails as busy.
const TURN_WAIT: Duration = Duration::from_secs(5);

/// Hashes and compares passwords.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    turns: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    /// Reused memory, one block for each concurrent hash. Freed memory would stay with the allocator of each thread
    /// that ever hashed, 19 MiB each.
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
    /// Compared with if there is no account, so that it takes the same time.
    decoy: Arc<str>,
}

/// The client that causes the hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A person who is signed in, has a link, or uses a known browser.
    Known,
    Anonymous,
}

/// Too many passwords are being hashed.
#[derive(Debug)]
pub(crate) struct Busy;

impl Hasher {
    pub(crate) fn new() -> Result<Self, AccountError> {
        let mut random = [0; 24];
        SysRng.try_fill_bytes(&mut random).map_err(|_| AccountError::NoRandomness)?;
        let mut memory = Vec::new();
        let decoy = hash(&random, &mut memory)?;
        Ok(Self {
            turns: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            strangers: Arc::new(Semaphore::new(STRANGERS_AT_ONCE_MAX)),
            memory: Arc::new(Mutex::new(vec![memory])),
            decoy: decoy.into(),
        })
    }

    /// The password's hash, as it is stored.
    pub(crate) async fn hash(
        &self,
        password: Password,
        guest: Requester,
    ) -> Result<Result<String, Busy>, AccountError> {
        let hashed = self.in_turn(guest, move |memory| hash(password.as_bytes(), memory)).await;
        match hashed {
            Ok(hashed) => hashed.map(Ok),
            Err(busy) => Ok(Err(busy)),
        }
    }

    /// Whether the password has this hash. Takes the same time if there is no hash.
    pub(crate) async fn verify(
        &self,
        password: Password,
        stored: Option<&str>,
        guest: Requester,
    ) -> Result<bool, Busy> {
        let against: Arc<str> = stored.map_or_else(|| Arc::clone(&self.decoy), Arc::from);
        let compare = move |memory: &mut _| matches(&against, password.as_bytes(), memory);
        let same = self.in_turn(guest, compare).await?;
        Ok(same && stored.is_some())
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        guest: Requester,
        work: impl FnOnce(&mut Vec<Block>) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let turns = tokio::time::timeout(TURN_WAIT, async {
            let strangers = match guest {
                Requester::Known => None,
                Requester::Anonymous => Some(Arc::clone(&self.strangers).acquire_owned().await?),
            };
            Ok::<_, AcquireError>((strangers, Arc::clone(&self.turns).acquire_owned().await?))
        });
        let Ok(Ok(turns)) = turns.await else {
            return Err(Busy);
        };
        let shared = Arc::clone(&self.memory);
        let working = tokio::task::spawn_blocking(move || {
            let free = || shared.lock().unwrap_or_else(PoisonError::into_inner);
            let mut memory = free().pop().unwrap_or_default();
            let done = work(&mut memory);
            free().push(memory);
            // The permit is released when the work ends, even if the caller is gone.
            drop(turns);
            done
        });
        working.await.map_err(|_| Busy)
    }
}

/// Returns a PHC string with its parameters, so that they can be raised later.
fn hash(password: &[u8], memory: &mut Vec<Block>) -> Result<String, AccountError> {
    let mut salt = [0; SALT_BYTES];
    SysRng.try_fill_bytes(&mut salt).map_err(|_| AccountError::NoRandomness)?;
    let out = digest(password, &salt, (MEMORY_KIB, PASSES, LANES), memory)
        .ok_or(AccountError::PasswordUnhashed)?;
    let mut text = format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$");
    // Writing to a string does not fail.
    write!(text, "{}${}", BASE64_NOPAD.encode(&salt), BASE64_NOPAD.encode(&out))
        .map_err(|_| AccountError::PasswordUnhashed)?;
    Ok(text)
}

fn matches(stored: &str, password: &[u8], memory: &mut Vec<Block>) -> bool {
    read(stored)
        .and_then(|(costs, salt, expected)| {
            Some(digest(password, &salt, costs, memory)?.ct_eq(&expected).into())
        })
        .unwrap_or(false)
}

type Costs = (u32, u32, u32);

fn read(stored: &str) -> Option<(Costs, Vec<u8>, [u8; HASH_BYTES])> {
    let mut parts = stored.strip_prefix("$argon2id$v=19$")?.split('$');
    let mut costs = parts.next()?.split(',');
    let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.parse::<u32>().ok();
    let costs = (cost("m=")?, cost("t=")?, cost("p=")?);
    let sound = costs.0 <= MEMORY_KIB_MAX && costs.1 <= PASSES_MAX && costs.2 <= LANES_MAX;
    let salt = BASE64_NOPAD.decode(parts.next()?.as_bytes()).ok()?;
    let hash = BASE64_NOPAD.decode(parts.next()?.as_bytes()).ok()?.try_into().ok()?;
    (sound && parts.next().is_none()).then_some((costs, salt, hash))
}

fn digest(
    password: &[u8],
    salt: &[u8],
    (memory, passes, lanes): Costs,
    blocks: &mut Vec<Block>,
) -> Option<[u8; HASH_BYTES]> {
    let params = Params::new(memory, passes, lanes, Some(HASH_BYTES)).ok()?;
    // A stored hash may need more or less memory: memory beyond our parameters is freed.
    blocks.truncate(params.block_count());
    blocks.shrink_to_fit();
    blocks.resize(params.block_count(), Block::default());
    let mut out = [0; HASH_BYTES];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into_with_memory(password, salt, &mut out, blocks)
        .ok()?;
    Some(out)
}

#[cfg(test)]
mod tests;
