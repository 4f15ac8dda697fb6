//! Errors of the pages. Their texts are in `page`.

use accounts::{AccountError, PeopleError};

/// Why a page cannot be shown.
#[derive(Debug)]
pub(crate) enum PageError {
    NotFound,
    /// The path accepts other methods.
    WrongMethod {
        allow: &'static str,
    },
    /// Signed in, but without the required role.
    Forbidden,
    /// The form was sent by another site, or the configured public address is wrong.
    Foreign(Option<Addresses>),
    /// The form was made for another session.
    Expired,
    /// The request is invalid; the sentence gives the reason.
    Refused(String),
    /// Rate limit reached; the sentence says when to retry.
    TooOften {
        text: String,
        retry_after_s: u64,
    },
    /// The server is overloaded.
    Busy,
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Two origins that should be equal.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// Origin reported by the browser.
    pub(crate) browser: String,
    /// Origin that the service assumes for itself.
    pub(crate) service: String,
}

impl From<PeopleError> for PageError {
    fn from(error: PeopleError) -> Self {
        match error {
            PeopleError::Account(error) => error.into(),
            PeopleError::UnknownAccount => Self::NotFound,
            PeopleError::UnknownRequest
            | PeopleError::AlreadyRequested
            | PeopleError::BadPurpose
            | PeopleError::BadAllowance
            | PeopleError::LastOperator => Self::Refused(sentence(&error)),
        }
    }
}

impl From<AccountError> for PageError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Store(_)
            | AccountError::NoRandomness
            | AccountError::PasswordUnhashed => Self::Failed(Box::new(error)),
            AccountError::KeysTooMany { retry_after_s, .. } => {
                Self::TooOften { text: sentence(&error), retry_after_s }
            }
            AccountError::UnknownKey | AccountError::NotAKey | AccountError::UnknownFeed(_) => {
                Self::NotFound
            }
            AccountError::ZeroLimit { .. }
            | AccountError::BadName { .. }
            | AccountError::BadGroup(_)
            | AccountError::NoGroups
            | AccountError::BadFeedName
            | AccountError::FeedExists(_)
            | AccountError::RotateRevoked(_)
            | AccountError::RotateTwice(_)
            | AccountError::OverlapTooLong
            | AccountError::KeysFull { .. }
            | AccountError::Unconfirmed { .. } => Self::Refused(sentence(&error)),
        }
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// An error's message as a sentence.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    as_sentence(&error.to_string())
}

/// A text that begins in lower case, as a sentence.
pub(crate) fn as_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
