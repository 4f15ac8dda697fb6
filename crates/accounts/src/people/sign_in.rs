//! Making accounts, signing in and out, sessions, one-time links.

use std::time::Duration;

use domain::Timestamp;
use store::{AccountRow, AuditEntry, LinkPurpose, LinkRow, Role, SessionRow, Stage};
use tokio::time::Instant;

use crate::key::secret::public_id;
use crate::people::{
    NewAccount, SESSIONS_MAX, hash::Requester, login_attempts::AttemptSource, throttled,
};
use crate::{
    Actor, Attempt, AuditAction, EmailAddress, LinkToken, Origin, Password, People, PeopleError,
    Session, SessionRecord, SessionToken, SignIn, SignUp,
};

/// How long somebody may look for their phone.
pub(super) const CODE_TIME: Duration = Duration::from_secs(600);
/// What the store takes for a new account on a slow disk: three durable writes.
pub(super) const SIGN_UP_TIME: Duration = Duration::from_millis(100);
/// How often a session's use is written down.
const TOUCH_AFTER: Duration = Duration::from_secs(60);

const FIRST_OPERATOR_TIME: Duration = Duration::from_secs(86_400);
pub(super) const CONFIRM_TIME: Duration = Duration::from_secs(7 * 86_400);
const INVITATION_TIME: Duration = Duration::from_secs(7 * 86_400);
pub(super) const RESET_TIME: Duration = Duration::from_secs(86_400);

impl People {
    /// Makes a developer's account where sign-up is open. The answer is the same, after the same time,
    /// where the address has one already; then nothing is changed.
    ///
    /// # Errors
    /// The store cannot be written.
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
        // Who is new costs the store more than who is known; both are answered when the longer would be done.
        let answer_at = Instant::now() + self.sign_up_time;
        let row = account_row(&new.profile, Role::Developer, password, now)?;
        let actor = Actor::account(&super::record(&row), from);
        let audit = self.entry(&actor, AuditAction::AccountCreated, &row.id, "signed up");
        if self.store.insert_account(&row, &audit).await? {
            self.mail_confirmation(&row).await?;
        } else {
            self.mail_account_exists(&new.profile.email);
        }
        tokio::time::sleep_until(answer_at).await;
        Ok(Attempt::Done)
    }

    /// Signs in with address and password. The session is new, and takes the place of `replaced`.
    ///
    /// # Errors
    /// The store cannot be read or written.
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
            tracing::info!(address = ?from.address, "a sign-in was refused");
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

    /// The session behind a cookie, if it is good.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn session(&self, token: &SessionToken) -> Result<Option<Session>, PeopleError> {
        let now = self.clock.now();
        let digest = token.digest();
        let row = self.store.session(&digest).await?;
        let Some(row) = row.filter(|row| self.is_live(row, now)) else {
            return Ok(None);
        };
        let account = self.store.account(&row.account_id).await?;
        let Some(account) = account.filter(|account| account.suspended_ms.is_none()) else {
            return Ok(None);
        };
        if now.since(Timestamp::from_millis(row.seen_ms)) >= TOUCH_AFTER {
            self.store.touch_session(&digest, now.as_millis()).await?;
        }
        let (id, stage) = (row.id, row.stage);
        Ok(Some(Session { account: super::record(&account), id, stage }))
    }

    /// Ends the session that asks.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn sign_out(&self, session: &Session, from: &Origin) -> Result<(), PeopleError> {
        let (id, actor) = (&session.account.id, Actor::account(&session.account, from));
        let audit = self.entry(&actor, AuditAction::SignedOut, id, "");
        self.store.end_session(id, &session.id, Some(&audit)).await?;
        Ok(())
    }

    /// An account's live sessions, the last seen first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sessions(&self, of: &Session) -> Result<Vec<SessionRecord>, PeopleError> {
        let now = self.clock.now();
        let rows = self.store.sessions_of(&of.account.id).await?;
        let live = rows.into_iter().filter(|row| self.is_live(row, now));
        Ok(live
            .map(|row| SessionRecord {
                current: row.id == of.id,
                id: row.id,
                created_at: Timestamp::from_millis(row.created_ms),
                seen_at: Timestamp::from_millis(row.seen_ms),
                address: row.address,
                agent: row.agent,
            })
            .collect())
    }

    /// Ends one of the account's sessions. `false`: it has no such session.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn end_session(
        &self,
        of: &Session,
        id: &str,
        from: &Origin,
    ) -> Result<bool, PeopleError> {
        let actor = Actor::account(&of.account, from);
        let audit = self.entry(&actor, AuditAction::SessionEnded, id, "");
        Ok(self.store.end_session(&of.account.id, id, Some(&audit)).await?)
    }

    /// Ends all of the account's sessions, the one that asks too.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn end_sessions(&self, of: &Session, from: &Origin) -> Result<(), PeopleError> {
        let actor = Actor::account(&of.account, from);
        let audit = self.entry(&actor, AuditAction::SessionsEnded, &of.account.id, "");
        self.store.end_sessions(&of.account.id, None, &audit).await?;
        Ok(())
    }

    /// Gives the account a new password, which ends its other sessions.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn change_password(
        &self,
        of: &Session,
        token: &SessionToken,
        (old, new): (Password, Password),
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        // Whoever is signed in already does not answer for strangers' tries.
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
        let actor = Actor::account(&of.account, from);
        let audit = self.entry(&actor, AuditAction::PasswordChanged, &of.account.id, "");
        self.store.set_password(&of.account.id, &password, Some(&token.digest()), &audit).await?;
        Ok(Attempt::Done)
    }

    /// A link for the first operator; `None` where there is one. Earlier links end.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn first_operator_link(&self) -> Result<Option<LinkToken>, PeopleError> {
        if self.store.count_accounts(Role::Operator).await? > 0 {
            return Ok(None);
        }
        let actor = Actor::service();
        let audit = self.entry(&actor, AuditAction::LinkIssued, "anybody", "the first operator");
        let purpose = LinkPurpose::FirstOperator;
        let link = self.issue_link(purpose, (None, None), FIRST_OPERATOR_TIME, Some(&audit));
        link.await.map(Some)
    }

    /// A link that makes one more operator. Earlier ones end.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn operator_link(&self, actor: &Actor) -> Result<LinkToken, PeopleError> {
        let audit = self.entry(actor, AuditAction::LinkIssued, "anybody", "a new operator");
        let purpose = LinkPurpose::FirstOperator;
        self.issue_link(purpose, (None, None), FIRST_OPERATOR_TIME, Some(&audit)).await
    }

    /// A link with which one person can make an account; bound to an address where one is given.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn invite(
        &self,
        email: Option<&EmailAddress>,
        actor: &Actor,
    ) -> Result<LinkToken, PeopleError> {
        let bound = email.map(EmailAddress::as_str);
        let whom = bound.unwrap_or("anybody");
        let audit = self.entry(actor, AuditAction::LinkIssued, whom, "invitation");
        let purpose = LinkPurpose::Invitation;
        self.issue_link(purpose, (None, bound), INVITATION_TIME, Some(&audit)).await
    }

    /// A link with which an account's holder can set a password.
    ///
    /// # Errors
    /// There is no such account, or the store cannot be written.
    pub async fn reset_link(
        &self,
        account_id: &str,
        actor: &Actor,
    ) -> Result<LinkToken, PeopleError> {
        self.store.account(account_id).await?.ok_or(PeopleError::UnknownAccount)?;
        let audit = self.entry(actor, AuditAction::LinkIssued, account_id, "password reset");
        let purpose = LinkPurpose::PasswordReset;
        self.issue_link(purpose, (Some(account_id), None), RESET_TIME, Some(&audit)).await
    }

    /// What a link is for, and whose address it is bound to, while it is good.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn link_info(
        &self,
        token: &LinkToken,
    ) -> Result<Option<(LinkPurpose, Option<String>)>, PeopleError> {
        let Some(link) = self.valid_link(token).await? else {
            return Ok(None);
        };
        let email = match &link.account_id {
            Some(id) => self.store.account(id).await?.map(|row| row.email),
            None => link.email,
        };
        Ok(Some((link.purpose, email)))
    }

    /// Makes the account that a link is for, and signs it in.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn sign_up_by_link(
        &self,
        token: &LinkToken,
        new: NewAccount,
        from: &Origin,
        replaced: Option<&SessionToken>,
    ) -> Result<SignIn, PeopleError> {
        let refused = Ok(SignIn::Failed(Attempt::Refused));
        let Some(link) = self.valid_link(token).await? else {
            return refused;
        };
        let (role, how) = match link.purpose {
            LinkPurpose::FirstOperator => (Role::Operator, "operator's link"),
            LinkPurpose::Invitation => (Role::Developer, "invitation"),
            LinkPurpose::PasswordReset | LinkPurpose::Confirmation => return refused,
        };
        let email = &new.profile.email;
        let bound = link.email.as_deref().is_none_or(|bound| bound == email.as_str());
        // Looked at before the link is spent: a slip of the keyboard must not cost it.
        if !bound || self.store.account_by_email(email.as_str()).await?.is_some() {
            return refused;
        }
        let Ok(password) = self.hasher.hash(new.password, Requester::Known).await? else {
            return Ok(SignIn::Failed(Attempt::Busy));
        };
        let now = self.clock.now();
        let row = AccountRow {
            // Whoever was given the link is known to whoever gave it.
            confirmed_ms: Some(now.as_millis()),
            ..account_row(&new.profile, role, password, now)?
        };
        let actor = Actor::account(&super::record(&row), from);
        let audit = self.entry(&actor, AuditAction::AccountCreated, &row.id, how);
        let link = (&token.digest(), now.as_millis());
        if !self.store.insert_account_by_link(link, &row, &audit).await? {
            return refused;
        }
        let token = self.start_session(&row, Stage::Full, from, replaced).await?;
        Ok(token.map_or(SignIn::Failed(Attempt::Refused), SignIn::Complete))
    }

    /// Sets the password of the account that a link is for, which ends its sessions. The holder signs in
    /// with it afterwards, and with the second factor where there is one.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn reset_by_link(
        &self,
        token: &LinkToken,
        password: Password,
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        let Some(id) = self.account_of_link(token, LinkPurpose::PasswordReset).await? else {
            return Ok(Attempt::Refused);
        };
        let Some(account) = self.store.account(&id).await? else {
            return Ok(Attempt::Refused);
        };
        let Ok(password) = self.hasher.hash(password, Requester::Known).await? else {
            return Ok(Attempt::Busy);
        };
        let actor = Actor::account(&super::record(&account), from);
        let audit = self.entry(&actor, AuditAction::PasswordReset, &id, "by one-time link");
        let link = (&token.digest(), self.clock.now().as_millis());
        // The link came by mail or from an operator: either is as good as a confirmation.
        let done = self.store.set_password_by_link(link, &id, &password, &audit).await?;
        Ok(if done { Attempt::Done } else { Attempt::Refused })
    }

    /// Notes that mail reaches the account that a link is for.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn confirm_by_link(
        &self,
        token: &LinkToken,
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        let Some(id) = self.account_of_link(token, LinkPurpose::Confirmation).await? else {
            return Ok(Attempt::Refused);
        };
        let Some(account) = self.store.account(&id).await? else {
            return Ok(Attempt::Refused);
        };
        let actor = Actor::account(&super::record(&account), from);
        let audit = self.entry(&actor, AuditAction::AccountConfirmed, &id, "by mail");
        let link = (&token.digest(), self.clock.now().as_millis());
        let done = self.store.confirm_account_by_link(link, &id, &audit).await?;
        Ok(if done { Attempt::Done } else { Attempt::Refused })
    }

    /// Whose link it is, if it is good and for that.
    async fn account_of_link(
        &self,
        token: &LinkToken,
        purpose: LinkPurpose,
    ) -> Result<Option<String>, PeopleError> {
        let link = self.valid_link(token).await?;
        Ok(link.filter(|link| link.purpose == purpose).and_then(|link| link.account_id))
    }

    /// Forgets sessions and links that have ended and, where addresses are confirmed, accounts that never were; writes
    /// down what was refused and not written down yet.
    ///
    /// # Errors
    /// The store cannot be written.
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

    /// Lets somebody in to whom the password of `account` was asked. `None`: it was set anew since the row was read,
    /// which ends what began with the old one.
    pub(super) async fn start_session(
        &self,
        account: &AccountRow,
        stage: Stage,
        from: &Origin,
        replaced: Option<&SessionToken>,
    ) -> Result<Option<SessionToken>, PeopleError> {
        let token = SessionToken::generate()?;
        let now_ms = self.clock.now().as_millis();
        let row = SessionRow {
            digest: token.digest(),
            id: public_id("ses_")?,
            account_id: account.id.clone(),
            stage,
            created_ms: now_ms,
            seen_ms: now_ms,
            address: from.address_text(),
            agent: from.agent_text(),
        };
        let replaced = replaced.map(SessionToken::digest);
        let actor = Actor::account(&super::record(account), from);
        let audit = self.entry(&actor, AuditAction::SignedIn, &account.id, &row.agent);
        // Half a sign-in is none.
        let audit = (stage == Stage::Full).then_some(audit);
        self.store.insert_session(&row, replaced.as_ref(), SESSIONS_MAX, audit.as_ref()).await?;
        // Looked at once the session is there: a password set before is seen here, one set later ends the session.
        let now = self.store.account(&account.id).await?;
        if now.is_some_and(|now| now.password == account.password) {
            return Ok(Some(token));
        }
        let why = "overtaken by a new password";
        let audit = audit.map(|_| self.entry(&actor, AuditAction::SessionEnded, &row.id, why));
        self.store.end_session(&account.id, &row.id, audit.as_ref()).await?;
        tracing::info!(address = ?from.address, "a sign-in was overtaken by a new password");
        Ok(None)
    }

    pub(super) async fn issue_link(
        &self,
        purpose: LinkPurpose,
        (account_id, email): (Option<&str>, Option<&str>),
        lasts: Duration,
        audit: Option<&AuditEntry>,
    ) -> Result<LinkToken, PeopleError> {
        let token = LinkToken::generate()?;
        let now = self.clock.now();
        let row = LinkRow {
            digest: token.digest(),
            purpose,
            account_id: account_id.map(String::from),
            email: email.map(String::from),
            created_ms: now.as_millis(),
            expires_ms: now.plus(lasts).as_millis(),
            used_ms: None,
        };
        self.store.insert_link(&row, audit).await?;
        Ok(token)
    }

    async fn valid_link(&self, token: &LinkToken) -> Result<Option<LinkRow>, PeopleError> {
        let now_ms = self.clock.now().as_millis();
        let link = self.store.link(&token.digest()).await?;
        Ok(link.filter(|link| link.used_ms.is_none() && now_ms < link.expires_ms))
    }
}

fn account_row(
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
mod tests {
    use std::sync::Arc;

    use domain::{Clock, ManualClock};
    use store::Store;

    use super::*;
    use crate::{PeopleRules, people::Profile};

    const NOW: &str = "2026-11-14T12:00:00Z";

    async fn people() -> (People, Store, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("accounts.db")).await.unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Timestamp::parse(NOW).unwrap()));
        let people = People::new(store.clone(), clock, PeopleRules::default()).unwrap();
        (people, store, dir)
    }

    fn ann() -> Profile {
        Profile::try_new(EmailAddress::parse("ann@example.com").unwrap(), "Ann").unwrap()
    }

    fn nowhere() -> Origin {
        Origin { address: None, agent: String::new(), device: None }
    }

    #[tokio::test]
    async fn a_new_and_a_known_address_are_answered_after_the_same_time() {
        let (mut people, _store, _dir) = people().await;
        // Much longer than either takes by itself.
        people.sign_up_time = Duration::from_secs(3);
        for _ in 0..2 {
            let password = Password::typed("correct horse battery".to_owned()).unwrap();
            let begun = Instant::now();
            let new = NewAccount { profile: ann(), password };
            assert_eq!(people.sign_up(new, &nowhere()).await.unwrap(), Attempt::Done);
            assert!(begun.elapsed() >= people.sign_up_time);
        }
    }

    #[tokio::test]
    async fn a_sign_in_that_a_new_password_overtakes_lets_nobody_in() {
        let (people, store, _dir) = people().await;
        let now = Timestamp::parse(NOW).unwrap();
        let row = account_row(&ann(), Role::Developer, "old".to_owned(), now).unwrap();
        let entry = people.entry(&Actor::service(), AuditAction::AccountCreated, &row.id, "");
        store.insert_account(&row, &entry).await.unwrap();
        let from = nowhere();
        let enter =
            async || people.start_session(&row, Stage::Password, &from, None).await.unwrap();
        assert!(enter().await.is_some());
        // The password was found right, and is another before the session begins.
        store.set_password(&row.id, "new", None, &entry).await.unwrap();
        assert!(enter().await.is_none());
        assert!(store.sessions_of(&row.id).await.unwrap().is_empty());
    }
}
