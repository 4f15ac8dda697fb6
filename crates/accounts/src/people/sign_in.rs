//! Creating accounts, signing in, and changing the password.

use std::time::Duration;

use domain::Timestamp;
use store::{AccountRow, Role, Stage};
use tokio::time::Instant;

use crate::key::secret::public_id;
use crate::people::{NewAccount, hash::Requester, login_attempts::AttemptSource, throttled};
use crate::{
    Attempt, AuditAction, EmailAddress, Origin, Password, People, PeopleError, Session,
    SessionToken, SignIn, SignUp,
};

/// Time that the store takes for a new account on a slow disk: three durable writes.
pub(super) const SIGN_UP_TIME: Duration = Duration::from_millis(100);
/// How long an address can be confirmed.
pub(super) const CONFIRM_TIME: Duration = Duration::from_secs(7 * 86_400);

impl People {
    /// Creates a developer's account if sign-up is open. If the address has an account, the answer is the same after
    /// the same time, and nothing changes.
    pub async fn sign_up(&self, new: NewAccount, from: &Origin) -> Result<Attempt, PeopleError> {
        if self.rules().sign_up != SignUp::Open {
            return Ok(Attempt::Refused);
        }
        let now = self.clock.now();
        if let Err(wait) = self.throttles().admit_sign_up(from.source(), now) {
            return Ok(throttled(wait));
        }
        let Ok(password) = self.hasher.hash(new.password, Requester::Anonymous).await? else {
            return Ok(Attempt::Busy);
        };
        // A new address costs the store more than a known one; both are answered after the longer time.
        let answer_at = Instant::now() + self.sign_up_time;
        let row = account_row(&new.profile, Role::Developer, password, now)?;
        let audit = self.own_entry(
            &super::record(&row),
            from,
            (AuditAction::AccountCreated, &row.id, "signed up"),
        );
        if self.store.insert_account(&row, &audit).await? {
            self.mail_confirmation(&row).await?;
        } else {
            self.mail_account_exists(&new.profile.email);
        }
        tokio::time::sleep_until(answer_at).await;
        Ok(Attempt::Done)
    }

    /// Signs in with address and password. The session is new and replaces `replaced`.
    pub async fn sign_in(
        &self,
        email: &EmailAddress,
        password: Password,
        from: &Origin,
        replaced: Option<&SessionToken>,
    ) -> Result<SignIn, PeopleError> {
        let by = self.attempt_source(email, from).await?;
        if let Err(attempt) = self.count_attempt(&by) {
            self.note_refusal(AuditAction::SignInRefused, email.as_str(), from).await;
            return Ok(SignIn::Failed(attempt));
        }
        let row = self.store.account_by_email(email.as_str()).await?;
        let stored = row.as_ref().and_then(|row| row.password.as_deref());
        let Ok(right) = self.hasher.verify(password, stored, by.guest()).await else {
            return Ok(SignIn::Failed(Attempt::Busy));
        };
        let Some(row) = row.filter(|row| right && row.suspended_ms.is_none()) else {
            tracing::info!(
                event = "sign_in.refused",
                address = from.address.map(tracing::field::display),
                "sign-in refused"
            );
            self.note_refusal(AuditAction::SignInRefused, email.as_str(), from).await;
            return Ok(SignIn::Failed(Attempt::Refused));
        };
        self.refund_attempt(&by);
        if self.needs_confirmation(&row) {
            self.mail_confirmation(&row).await?;
            return Ok(SignIn::Unconfirmed);
        }
        let half = super::record(&row).second_factor;
        let stage = if half { Stage::Password } else { Stage::Full };
        Ok(match self.start_session(&row, stage, from, replaced).await? {
            None => SignIn::Failed(Attempt::Refused),
            Some(token) if half => SignIn::NeedsCode(token),
            Some(token) => SignIn::Complete(token),
        })
    }

    /// Sets a new password, which ends the account's other sessions.
    pub async fn change_password(
        &self,
        of: &Session,
        token: &SessionToken,
        (old, new): (Password, Password),
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        // Other clients' attempts do not count against a signed-in person.
        let by = AttemptSource::Session(of.id.clone());
        if let Err(attempt) = self.count_attempt(&by) {
            return Ok(attempt);
        }
        let row = self.store.account(&of.account.id).await?;
        let stored = row.as_ref().and_then(|row| row.password.as_deref());
        match self.hasher.verify(old, stored, Requester::Known).await {
            Err(_) => return Ok(Attempt::Busy),
            Ok(false) => return Ok(Attempt::Refused),
            Ok(true) => self.refund_attempt(&by),
        }
        let Ok(password) = self.hasher.hash(new, Requester::Known).await? else {
            return Ok(Attempt::Busy);
        };
        let audit =
            self.own_entry(&of.account, from, (AuditAction::PasswordChanged, &of.account.id, ""));
        self.store.set_password(&of.account.id, &password, Some(&token.digest()), &audit).await?;
        Ok(Attempt::Done)
    }

    /// Deletes ended sessions and links and, if addresses are confirmed, accounts that never were confirmed; logs
    /// pending refusals.
    pub async fn prune(&self) -> Result<u64, PeopleError> {
        let now = self.clock.now();
        self.write_refusals(now).await?;
        if self.sends_mail() {
            self.store.delete_unconfirmed(now.minus(CONFIRM_TIME).as_millis()).await?;
        }
        let (idle, oldest) =
            (now.minus(self.rules.session_idle), now.minus(self.rules.session_max));
        let (idle, oldest) = (idle.as_millis(), oldest.as_millis());
        Ok(self.store.prune_sessions(idle, oldest, now.as_millis()).await?)
    }
}

pub(super) fn account_row(
    profile: &super::Profile,
    role: Role,
    password: String,
    now: Timestamp,
) -> Result<AccountRow, PeopleError> {
    Ok(AccountRow {
        id: public_id("acc_")?,
        email: profile.email.as_str().to_owned(),
        name: profile.name.clone(),
        role,
        password: Some(password),
        created_ms: now.as_millis(),
        suspended_ms: None,
        production_ms: None,
        confirmed_ms: None,
        totp: None,
        allowance: store::Allowance::default(),
    })
}

#[cfg(test)]
mod tests;
