//! Errors of operations on keys and feeds. Operators read the messages: one sentence, with the fix. No message
//! repeats input that may have been a key.

use store::StoreError;

use crate::RegisterError;

#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("{field} must be at least 1; leave it out for the default")]
    ZeroLimit { field: &'static str },
    #[error("a key's name has at most {max} characters and no control characters")]
    BadName { max: usize },
    #[error("{0:?} is no sport group: lower-case letters, digits, - and _, such as combat")]
    BadGroup(String),
    #[error("name at least one sport group, or leave the groups out for all of them")]
    NoGroups,
    #[error("a feed's name is 1 to 64 of a-z, 0-9, - and _, such as pinnacle")]
    BadFeedName,
    #[error("there is a feed {0:?} already; revoke it first, or take another name")]
    FeedExists(String),
    #[error("there is no feed {0:?}; list the feeds to see their names")]
    UnknownFeed(String),
    #[error("that is neither a key nor a key's id (key_…); list the keys to see their ids")]
    NotAKey,
    #[error("no such key here; list the keys to see their ids")]
    UnknownKey,
    #[error("key {0} is revoked and cannot be rotated; create a new key")]
    RotateRevoked(String),
    #[error("key {0} is rotated already and ends soon; rotate its successor")]
    RotateTwice(String),
    #[error(
        "the account has at most {keys_max} active keys; revoke one that is not needed any more"
    )]
    KeysFull { keys_max: u32 },
    #[error(
        "the account has created {made_max} keys within the last hour, the limit; try again in {} min",
        retry_after_s.div_ceil(60)
    )]
    KeysTooMany { made_max: u32, retry_after_s: u64 },
    #[error("an overlap is at most 7 days")]
    OverlapTooLong,
    #[error("the password could not be hashed: not enough memory")]
    PasswordUnhashed,
    #[error("the operating system gave no random numbers")]
    NoRandomness,
    /// A key, token or setting was changed in the store, and may not be on every node.
    #[error(
        "the change is stored, but {nodes} did not confirm it and it could not be announced: a node that cannot reach \
         the database may use the previous state until it can; repeat the change to have it confirmed"
    )]
    Unconfirmed {
        nodes: String,
        #[source]
        cause: RegisterError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}
