//! Why there is no page. What it says to people is in `page`.

use accounts::{AccountError, PeopleError};

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum PageError {
    NotFound,
    /// The path takes others.
    WrongMethod {
        allow: &'static str,
    },
    /// Signed in, but not as somebody who may.
    Forbidden,
    /// The form was sent by another site, or the service has a wrong idea of its own address.
    Foreign(Option<Addresses>),
    /// The form was made for another session.
    Expired,
    /// What was asked cannot be done; the sentence says why.
    Refused(String),
    /// It was done too often; the sentence says when it can be done again.
    TooOften {
        text: String,
        retry_after_s: u64,
    },
    /// Too much is asked at the moment.
    Busy,
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Two addresses that should be one.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// Where the browser has the form from.
    pub(crate) browser: String,
    /// Where the service believes to be.
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

/// An error's words as a sentence for a page.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    as_sentence(&error.to_string())
}

/// A text that begins in lower case as a sentence.
pub(crate) fn as_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
