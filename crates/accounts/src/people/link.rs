//! One-time links: issuing and using them.

use std::time::Duration;

use store::{AccountRow, AuditEntry, LinkPurpose, LinkRow, Role, Stage};

use crate::people::{NewAccount, hash::Requester, sign_in::account_row};
use crate::{
    Actor, Attempt, AuditAction, EmailAddress, LinkToken, Origin, Password, People, PeopleError,
    SessionToken, SignIn,
};

const OPERATOR_TIME: Duration = Duration::from_secs(86_400);
const INVITATION_TIME: Duration = Duration::from_secs(7 * 86_400);
pub(super) const RESET_TIME: Duration = Duration::from_secs(86_400);

impl People {
    /// A link for the first operator; `None` if there is an operator. Earlier links end.
    pub async fn first_operator_link(&self) -> Result<Option<LinkToken>, PeopleError> {
        if self.store.count_accounts(Role::Operator).await? > 0 {
            return Ok(None);
        }
        let actor = Actor::service();
        let audit = self.entry(&actor, AuditAction::LinkIssued, "anybody", "the first operator");
        let purpose = LinkPurpose::FirstOperator;
        let link = self.issue_link(purpose, (None, None), OPERATOR_TIME, Some(&audit));
        link.await.map(Some)
    }

    /// A link that creates one more operator. Earlier ones end.
    pub async fn operator_link(&self, actor: &Actor) -> Result<LinkToken, PeopleError> {
        let audit = self.entry(actor, AuditAction::LinkIssued, "anybody", "a new operator");
        let purpose = LinkPurpose::FirstOperator;
        self.issue_link(purpose, (None, None), OPERATOR_TIME, Some(&audit)).await
    }

    /// A link that creates one account, restricted to one address if it is given.
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

    /// A link that sets an account's password.
    ///
    /// # Errors
    /// There is no such account.
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

    /// The purpose and address of a valid link.
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

    /// Creates the account of a link and signs it in.
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
        // Checked before the link is used up: a typing error must not cost it.
        if !bound || self.store.account_by_email(email.as_str()).await?.is_some() {
            return refused;
        }
        let Ok(password) = self.hasher.hash(new.password, Requester::Known).await? else {
            return Ok(SignIn::Failed(Attempt::Busy));
        };
        let now = self.clock.now();
        let row = AccountRow {
            // An operator gave the link to this person.
            confirmed_ms: Some(now.as_millis()),
            ..account_row(&new.profile, role, password, now)?
        };
        let audit =
            self.own_entry(&super::record(&row), from, (AuditAction::AccountCreated, &row.id, how));
        let link = (&token.digest(), now.as_millis());
        if !self.store.insert_account_by_link(link, &row, &audit).await? {
            return refused;
        }
        let token = self.start_session(&row, Stage::Full, from, replaced).await?;
        Ok(token.map_or(SignIn::Failed(Attempt::Refused), SignIn::Complete))
    }

    /// Sets the password of a link's account, which ends its sessions. The holder signs in afterwards, with the
    /// second factor if it is on.
    pub async fn reset_by_link(
        &self,
        token: &LinkToken,
        password: Password,
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        let Some(account) = self.account_of_link(token, LinkPurpose::PasswordReset).await? else {
            return Ok(Attempt::Refused);
        };
        let id = &account.id;
        let Ok(password) = self.hasher.hash(password, Requester::Known).await? else {
            return Ok(Attempt::Busy);
        };
        let audit = self.own_entry(
            &super::record(&account),
            from,
            (AuditAction::PasswordReset, id, "by one-time link"),
        );
        let link = (&token.digest(), self.clock.now().as_millis());
        // The link came by email or from an operator: either confirms the address.
        let done = self.store.set_password_by_link(link, id, &password, &audit).await?;
        Ok(if done { Attempt::Done } else { Attempt::Refused })
    }

    /// Confirms the address of a link's account.
    pub async fn confirm_by_link(
        &self,
        token: &LinkToken,
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        let Some(account) = self.account_of_link(token, LinkPurpose::Confirmation).await? else {
            return Ok(Attempt::Refused);
        };
        let id = &account.id;
        let audit = self.own_entry(
            &super::record(&account),
            from,
            (AuditAction::AccountConfirmed, id, "by mail"),
        );
        let link = (&token.digest(), self.clock.now().as_millis());
        let done = self.store.confirm_account_by_link(link, id, &audit).await?;
        Ok(if done { Attempt::Done } else { Attempt::Refused })
    }

    /// The account of a link, if it is valid and has this purpose.
    async fn account_of_link(
        &self,
        token: &LinkToken,
        purpose: LinkPurpose,
    ) -> Result<Option<AccountRow>, PeopleError> {
        let link = self.valid_link(token).await?.filter(|link| link.purpose == purpose);
        match link.and_then(|link| link.account_id) {
            Some(id) => Ok(self.store.account(&id).await?),
            None => Ok(None),
        }
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
