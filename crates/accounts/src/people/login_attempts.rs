//! Sign-in attempts and the counters they go to: guessing must be slow, and must not lock an owner out.

use std::net::IpAddr;

use crate::people::{hash::Requester, throttled};
use crate::{Attempt, DeviceToken, EmailAddress, Origin, People, PeopleError};

/// The counter of a password attempt.
#[derive(Debug, Hash)]
pub(super) enum AttemptSource {
    /// A browser in which the account's holder signed in before.
    Device([u8; 16]),
    /// A session.
    Session(String),
    /// Any other client: the email address and the network address.
    Anonymous(EmailAddress, Option<IpAddr>),
}

impl AttemptSource {
    pub(super) fn guest(&self) -> Requester {
        match self {
            Self::Device(_) | Self::Session(_) => Requester::Known,
            Self::Anonymous(..) => Requester::Anonymous,
        }
    }
}

impl People {
    /// Creates a token for a browser in which an account's holder signed in, to recognise it later.
    pub async fn remember_device(
        &self,
        email: &EmailAddress,
    ) -> Result<Option<DeviceToken>, PeopleError> {
        let row = self.store.account_by_email(email.as_str()).await?;
        let Some((id, password)) = row.and_then(|row| Some((row.id, row.password?))) else {
            return Ok(None);
        };
        Ok(Some(DeviceToken::generate(&id, &password)?))
    }

    pub(super) async fn attempt_source(
        &self,
        email: &EmailAddress,
        from: &Origin,
    ) -> Result<AttemptSource, PeopleError> {
        let anonymous = AttemptSource::Anonymous(email.clone(), from.source());
        let Some(device) = &from.device else {
            return Ok(anonymous);
        };
        let row = self.store.account_by_email(email.as_str()).await?;
        let is_known = row.as_ref().is_some_and(|row| {
            row.password.as_ref().is_some_and(|password| device.is_of(&row.id, password))
        });
        Ok(if is_known { AttemptSource::Device(device.nonce()) } else { anonymous })
    }

    /// Counts an attempt: one of a known browser to the browser, any other to its network address and to the email
    /// address, whether that has an account or not.
    pub(super) fn count_attempt(&self, by: &AttemptSource) -> Result<(), Attempt> {
        let now = self.clock.now();
        let mut throttles = self.throttles();
        match by {
            AttemptSource::Device(_) | AttemptSource::Session(_) => throttles.known.admit(by, now),
            AttemptSource::Anonymous(email, source) => throttles
                .source
                .admit(source, now)
                .and_then(|()| throttles.pair.admit(by, now))
                .and_then(|()| throttles.account.admit(email, now)),
        }
        .map_err(throttled)
    }

    pub(super) fn refund_attempt(&self, by: &AttemptSource) {
        let mut throttles = self.throttles();
        match by {
            AttemptSource::Device(_) | AttemptSource::Session(_) => throttles.known.refund(by),
            AttemptSource::Anonymous(email, source) => {
                throttles.source.refund(source);
                throttles.pair.refund(by);
                throttles.account.refund(email);
            }
        }
    }
}
