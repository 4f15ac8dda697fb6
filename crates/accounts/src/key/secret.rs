//! The texts of keys and feed tokens, and their public ids.
//!
//! A key is a prefix, 26 random base62 characters and a checksum of six characters: base62 of the CRC-32 of
//! everything before it. So a mistyped key is recognised without a lookup, and a secret scanner can match it. Neither
//! a key nor a feed token can be printed by accident: there is no `Display`, `Debug` shows only the prefix, and
//! `expose` is easy to search for.

use std::fmt;

use rand::{TryRng, rngs::SysRng};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use store::{Digest, KeyKind};

use crate::AccountError;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LEN: usize = 26;
const CHECKSUM_LEN: usize = 6;
/// Bytes from this value on are redrawn, so that every character is equally likely: 248 is 4 x 62.
const FAIR_BELOW: u8 = 248;
/// Characters of the random part shown in a hint: enough to distinguish keys, useless for guessing the rest.
const HINT_LEN: usize = 2;

const SANDBOX_PREFIX: &[u8] = b"sk_test_";
const PRODUCTION_PREFIX: &[u8] = b"sk_live_";
const FEED_PREFIX: &[u8] = b"fk_";

/// The text of an API key, well formed.
pub struct KeySecret {
    kind: KeyKind,
    text: [u8; 40],
}

impl KeySecret {
    /// Reads a key; `None` for anything whose prefix, length, alphabet or checksum is wrong.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: [u8; 40] = text.try_into().ok()?;
        let kind = [KeyKind::Sandbox, KeyKind::Production]
            .into_iter()
            .find(|&kind| text.starts_with(key_prefix(kind)))?;
        is_sealed(&text).then_some(Self { kind, text })
    }

    pub(crate) fn generate(kind: KeyKind) -> Result<Self, AccountError> {
        Ok(Self { kind, text: seal(key_prefix(kind))? })
    }

    /// Whether the text is this key. Not in constant time: only for a client that has already sent the key.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.text == text
    }

    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The key itself, to be shown once.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The digest that is stored instead of the key.
    pub fn digest(&self) -> Digest {
        digest(&self.text)
    }

    pub(crate) fn hint(&self) -> String {
        let shown = key_prefix(self.kind).len() + HINT_LEN;
        format!("{}…", self.expose().get(..shown).unwrap_or_default())
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySecret({}…)", key_prefix(self.kind).escape_ascii())
    }
}

/// The text of a push feed's token, well formed.
pub struct FeedToken {
    text: [u8; 35],
}

impl FeedToken {
    /// Reads a token; `None` for anything whose prefix, length, alphabet or checksum is wrong.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: [u8; 35] = text.try_into().ok()?;
        (text.starts_with(FEED_PREFIX) && is_sealed(&text)).then_some(Self { text })
    }

    pub(crate) fn generate() -> Result<Self, AccountError> {
        Ok(Self { text: seal(FEED_PREFIX)? })
    }

    /// The token itself, to be shown once.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The digest that is stored instead of the token.
    pub fn digest(&self) -> Digest {
        digest(&self.text)
    }
}

impl fmt::Debug for FeedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FeedToken(fk_…)")
    }
}

/// The public name of a key: `key_` and 16 base62 characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct KeyId(Box<str>);

impl KeyId {
    pub(crate) fn generate() -> Result<Self, AccountError> {
        Ok(Self(public_id("key_")?.into()))
    }

    pub(crate) fn from_stored(id: &str) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A public name: the prefix and 16 base62 characters.
pub(crate) fn public_id(prefix: &str) -> Result<String, AccountError> {
    let mut random = [0; 16];
    fill_base62(&mut random)?;
    Ok(format!("{prefix}{}", random.escape_ascii()))
}

const fn key_prefix(kind: KeyKind) -> &'static [u8] {
    match kind {
        KeyKind::Sandbox => SANDBOX_PREFIX,
        KeyKind::Production => PRODUCTION_PREFIX,
    }
}

fn digest(text: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(text).into())
}

fn seal<const N: usize>(prefix: &[u8]) -> Result<[u8; N], AccountError> {
    let mut random = [0; RANDOM_LEN];
    fill_base62(&mut random)?;
    let mut text = [0; N];
    for (slot, &byte) in text.iter_mut().zip(prefix.iter().chain(&random)) {
        *slot = byte;
    }
    if let Some((body, sum)) = text.split_last_chunk_mut::<CHECKSUM_LEN>() {
        *sum = checksum(body);
    }
    Ok(text)
}

fn is_sealed(text: &[u8]) -> bool {
    text.split_last_chunk::<CHECKSUM_LEN>().is_some_and(|(body, sum)| {
        // The prefix, already compared, is the only part with an underscore.
        let random = body.len().checked_sub(RANDOM_LEN).and_then(|from| body.get(from..));
        random.is_some_and(|random| random.iter().all(u8::is_ascii_alphanumeric))
            && *sum == checksum(body)
    })
}

/// CRC-32 in base62, the most significant character first. Six characters hold any `u32`: 62^6 > 2^32.
fn checksum(body: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut rest = crc32fast::hash(body);
    let mut text = [b'0'; CHECKSUM_LEN];
    for slot in text.iter_mut().rev() {
        *slot = base62(rest % 62);
        rest /= 62;
    }
    text
}

fn base62(digit: u32) -> u8 {
    usize::try_from(digit).ok().and_then(|digit| ALPHABET.get(digit)).copied().unwrap_or(b'0')
}

fn fill_base62(text: &mut [u8]) -> Result<(), AccountError> {
    let mut pool = [0; 64];
    let mut drawn = pool.len();
    for slot in text {
        *slot = loop {
            if drawn == pool.len() {
                SysRng.try_fill_bytes(&mut pool).map_err(|_| AccountError::NoRandomness)?;
                drawn = 0;
            }
            let byte = pool.get(drawn).copied().unwrap_or(u8::MAX);
            drawn += 1;
            if byte < FAIR_BELOW {
                break base62(u32::from(byte % 62));
            }
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests;
