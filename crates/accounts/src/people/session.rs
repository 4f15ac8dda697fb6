//! Sessions: starting, finding, listing and ending them.

use std::time::Duration;

use domain::Timestamp;
use store::{AccountRow, SessionRow, Stage};

use crate::key::secret::public_id;
use crate::{AuditAction, Origin, People, PeopleError, Session, SessionRecord, SessionToken};

/// Maximum number of live sessions of one account; those last seen longest ago are deleted.
const SESSIONS_MAX: u32 = 50;
/// How long a sign-in waits for the second factor.
const CODE_TIME: Duration = Duration::from_secs(600);
/// Minimum time between two stored uses of a session.
const TOUCH_AFTER: Duration = Duration::from_secs(60);

impl People {
    /// The session of a cookie if it is live and its account is not suspended.
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

    /// Ends this session.
    pub async fn sign_out(&self, session: &Session, from: &Origin) -> Result<(), PeopleError> {
        let id = &session.account.id;
        let audit = self.own_entry(&session.account, from, (AuditAction::SignedOut, id, ""));
        self.store.end_session(id, &session.id, Some(&audit)).await?;
        Ok(())
    }

    /// An account's live sessions, last seen first.
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
    pub async fn end_session(
        &self,
        of: &Session,
        id: &str,
        from: &Origin,
    ) -> Result<bool, PeopleError> {
        let audit = self.own_entry(&of.account, from, (AuditAction::SessionEnded, id, ""));
        Ok(self.store.end_session(&of.account.id, id, Some(&audit)).await?)
    }

    /// Ends all of the account's sessions, including this one.
    pub async fn end_sessions(&self, of: &Session, from: &Origin) -> Result<(), PeopleError> {
        let audit =
            self.own_entry(&of.account, from, (AuditAction::SessionsEnded, &of.account.id, ""));
        self.store.end_sessions(&of.account.id, None, &audit).await?;
        Ok(())
    }

    /// Starts a session after the password of `account` was checked. `None`: the password was changed after the row
    /// was read.
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
        let owner = super::record(account);
        let audit = self.own_entry(&owner, from, (AuditAction::SignedIn, &owner.id, &row.agent));
        // A sign-in without its second factor is not logged.
        let audit = (stage == Stage::Full).then_some(audit);
        self.store.insert_session(&row, replaced.as_ref(), SESSIONS_MAX, audit.as_ref()).await?;
        // Checked after the session is stored: a password set earlier is seen here, one set later ends the session.
        let now = self.store.account(&account.id).await?;
        if now.is_some_and(|now| now.password == account.password) {
            return Ok(Some(token));
        }
        let why = (AuditAction::SessionEnded, &*row.id, "overtaken by a new password");
        let audit = audit.map(|_| self.own_entry(&owner, from, why));
        self.store.end_session(&account.id, &row.id, audit.as_ref()).await?;
        tracing::info!(
            event = "session.overtaken",
            address = from.address.map(tracing::field::display),
            "sign-in overtaken by a new password"
        );
        Ok(None)
    }

    /// Whether a session is neither idle for too long nor too old.
    fn is_live(&self, row: &SessionRow, now: Timestamp) -> bool {
        let (seen, created) = (row.seen_ms, row.created_ms);
        let age = now.since(Timestamp::from_millis(created));
        let longest = match row.stage {
            Stage::Full => self.rules.session_max,
            Stage::Password => CODE_TIME.min(self.rules.session_max),
        };
        now.since(Timestamp::from_millis(seen)) < self.rules.session_idle && age < longest
    }
}
