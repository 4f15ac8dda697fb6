//! The second factor: offering, confirming and checking it, and recovery codes.

use store::{AccountRow, Stage, Totp};

use crate::people::throttled;
use crate::{
    Actor, Attempt, AuditAction, Origin, People, PeopleError, RecoveryCode, Session, SessionToken,
    SignIn, TotpSecret,
};

const RECOVERY_CODES: usize = 10;

impl People {
    /// A secret for the account's phone. It takes effect once a code is entered with
    /// [`People::confirm_second_factor`]. A secret that was offered before is offered again, so that loading a page
    /// twice does not invalidate the first. `None`: the second factor is on.
    pub async fn offer_second_factor(
        &self,
        of: &Session,
    ) -> Result<Option<TotpSecret>, PeopleError> {
        let row = self.row(of).await?;
        match row.totp {
            Some(Totp { confirmed_ms: Some(_), .. }) => Ok(None),
            Some(Totp { secret, confirmed_ms: None, .. }) => {
                Ok(Some(TotpSecret::from_stored(secret)))
            }
            None => {
                let secret = TotpSecret::generate()?;
                let totp =
                    Totp { secret: secret.as_bytes().to_vec(), confirmed_ms: None, step: None };
                self.store.set_totp(&row.id, Some(&totp), &[], None).await?;
                Ok(Some(secret))
            }
        }
    }

    /// Turns the second factor on, given a code that shows that the phone has the secret. Returns the recovery codes,
    /// which are not stored.
    pub async fn confirm_second_factor(
        &self,
        of: &Session,
        code: &str,
        from: &Origin,
    ) -> Result<Result<Vec<RecoveryCode>, Attempt>, PeopleError> {
        let row = self.row(of).await?;
        let Some(totp) = row.totp.filter(|totp| totp.confirmed_ms.is_none()) else {
            return Ok(Err(Attempt::Refused));
        };
        let now = self.clock.now();
        if let Err(wait) = self.throttles().code.admit(&row.id, now) {
            return Ok(Err(throttled(wait)));
        }
        let Some(step) = TotpSecret::from_stored(totp.secret.clone()).step_of(code, now) else {
            self.note_refusal(AuditAction::SecondFactorRefused, &of.account.email, from).await;
            return Ok(Err(Attempt::Refused));
        };
        let codes =
            (0..RECOVERY_CODES).map(|_| RecoveryCode::generate()).collect::<Result<Vec<_>, _>>()?;
        let digests: Vec<_> = codes.iter().map(RecoveryCode::digest).collect();
        let totp = Totp { confirmed_ms: Some(now.as_millis()), step: Some(step), ..totp };
        let audit = self.own_entry(&of.account, from, (AuditAction::SecondFactorOn, &row.id, ""));
        self.store.set_totp(&row.id, Some(&totp), &digests, Some(&audit)).await?;
        self.throttles().code.refund(&row.id);
        Ok(Ok(codes))
    }

    /// Turns the second factor off, with a code.
    pub async fn disable_second_factor(
        &self,
        of: &Session,
        code: &str,
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        let row = self.row(of).await?;
        let attempt = self.use_code(&row, code, from).await?;
        if attempt == Attempt::Done {
            let audit =
                self.own_entry(&of.account, from, (AuditAction::SecondFactorOff, &row.id, ""));
            self.store.set_totp(&row.id, None, &[], Some(&audit)).await?;
        }
        Ok(attempt)
    }

    /// Turns an account's second factor off without a code: for a person who has lost both phone and recovery codes
    /// and has been identified by an operator.
    ///
    /// # Errors
    /// There is no such account.
    pub async fn remove_second_factor(&self, id: &str, actor: &Actor) -> Result<(), PeopleError> {
        let account = self.account(id).await?;
        let audit = self.entry(actor, AuditAction::SecondFactorOff, id, &account.email);
        Ok(self.store.set_totp(id, None, &[], Some(&audit)).await?)
    }

    /// The number of unused recovery codes.
    pub async fn recovery_codes_left(&self, of: &Session) -> Result<i64, PeopleError> {
        Ok(self.store.count_recovery_codes(&of.account.id).await?)
    }

    /// Completes a sign-in with a code of the phone or a recovery code, after a correct password. The session is new
    /// and replaces the incomplete one.
    pub async fn finish_sign_in(
        &self,
        half: &Session,
        token: &SessionToken,
        code: &str,
        from: &Origin,
    ) -> Result<SignIn, PeopleError> {
        if half.stage != Stage::Password {
            return Ok(SignIn::Failed(Attempt::Refused));
        }
        let row = self.row(half).await?;
        // Read after the account: an earlier change of the password has ended this session, and a later one is
        // detected when the new session starts.
        if self.session(token).await?.is_none_or(|now| now.id != half.id) {
            return Ok(SignIn::Failed(Attempt::Refused));
        }
        match self.use_code(&row, code, from).await? {
            Attempt::Done => {}
            not @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
                return Ok(SignIn::Failed(not));
            }
        }
        let full = self.start_session(&row, Stage::Full, from, Some(token)).await?;
        Ok(full.map_or(SignIn::Failed(Attempt::Refused), SignIn::Complete))
    }

    /// Uses a code of the phone or a recovery code.
    async fn use_code(
        &self,
        row: &AccountRow,
        code: &str,
        from: &Origin,
    ) -> Result<Attempt, PeopleError> {
        let now = self.clock.now();
        let Some(totp) = row.totp.as_ref().filter(|totp| totp.confirmed_ms.is_some()) else {
            return Ok(Attempt::Refused);
        };
        let email = &row.email;
        // Not inside the `if let`: the lock has to be released before an await.
        let admitted = self.throttles().code.admit(&row.id, now);
        if let Err(wait) = admitted {
            self.note_refusal(AuditAction::SecondFactorRefused, email, from).await;
            return Ok(throttled(wait));
        }
        let taken = if let Some(recovery) = RecoveryCode::parse(code) {
            let audit = self.own_entry(
                &super::record(row),
                from,
                (AuditAction::RecoveryCodeUsed, &row.id, ""),
            );
            self.store.use_recovery_code(&row.id, &recovery.digest(), &audit).await?
        } else {
            match TotpSecret::from_stored(totp.secret.clone()).step_of(code, now) {
                Some(step) => self.store.use_totp_step(&row.id, step).await?,
                None => false,
            }
        };
        if !taken {
            self.note_refusal(AuditAction::SecondFactorRefused, email, from).await;
            return Ok(Attempt::Refused);
        }
        self.throttles().code.refund(&row.id);
        Ok(Attempt::Done)
    }

    async fn row(&self, of: &Session) -> Result<AccountRow, PeopleError> {
        self.store.account(&of.account.id).await?.ok_or(PeopleError::UnknownAccount)
    }
}
