//! Tries at passwords, and to whom they are counted: strangers must neither get far nor keep an owner out.

use std::net::IpAddr;

use crate::people::{hash::Requester, throttled};
use crate::{Attempt, DeviceToken, EmailAddress, Origin, People, PeopleError};

/// To whom a try at a password is counted.
#[derive(Debug, Hash)]
pub(super) enum AttemptSource {
    /// A browser that the account's holder was let in with before.
    Device([u8; 16]),
    /// Somebody signed in.
    Session(String),
    /// Anybody else: the address they try and where they are.
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
    /// Gives a browser with which an account's holder was let in what it is known by from now on.
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

    /// Who tries the password of an address.
    pub(super) async fn attempt_source(
        &self,
        email: &EmailAddress,
        from: &Origin,
    ) -> Result<AttemptSource, PeopleError> {
        let stranger = AttemptSource::Anonymous(email.clone(), from.source());
        let Some(device) = &from.device else {
            return Ok(stranger);
        };
        let row = self.store.account_by_email(email.as_str()).await?;
        let is_known = row.as_ref().is_some_and(|row| {
            row.password.as_ref().is_some_and(|password| device.is_of(&row.id, password))
        });
        Ok(if is_known { AttemptSource::Device(device.nonce()) } else { stranger })
    }

    /// Counts a try: a known one's to themselves, a stranger's to where it comes from and to the address, whether that
    /// has an account or not.
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
