//! Random tokens for session cookies, one-time links, known browsers and recovery codes. None can be printed by
//! accident, and only digests are stored.

use std::fmt;

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use hmac::{Hmac, KeyInit, Mac};
use rand::{TryRng, rngs::SysRng};
use sha2::{Digest as _, Sha256};
use store::Digest;
use subtle::ConstantTimeEq;

use crate::AccountError;

/// 256 bits, which cannot be guessed.
const TOKEN_BYTES: usize = 32;
/// 128 bits, enough to distinguish browsers.
const NONCE_BYTES: usize = 16;
const DEVICE_BYTES: usize = NONCE_BYTES + TOKEN_BYTES;
/// 80 bits, enough that a stolen digest cannot be searched for its code.
const RECOVERY_BYTES: usize = 10;

/// Random bytes that only their holder knows. `Debug` does not show them.
#[derive(Clone, Copy)]
struct Secret<const N: usize>([u8; N]);

impl<const N: usize> Secret<N> {
    fn generate() -> Result<Self, AccountError> {
        let mut bytes = [0; N];
        SysRng.try_fill_bytes(&mut bytes).map_err(|_| AccountError::NoRandomness)?;
        Ok(Self(bytes))
    }

    fn digest(&self) -> Digest {
        Digest::from_bytes(Sha256::digest(self.0).into())
    }

    /// Encoded as in cookies and paths.
    fn expose(&self) -> String {
        BASE64URL_NOPAD.encode(&self.0)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // Bounded before decoding: cookies and paths may be long.
        let fits = BASE64URL_NOPAD.encode_len(N) == text.len();
        fits.then(|| BASE64URL_NOPAD.decode(text).ok())??.try_into().ok().map(Self)
    }
}

impl<const N: usize> fmt::Debug for Secret<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> [u8; TOKEN_BYTES] {
    // HMAC accepts a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; TOKEN_BYTES];
    };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The value of a session's cookie.
#[derive(Clone, Debug)]
pub struct SessionToken(Secret<TOKEN_BYTES>);

impl SessionToken {
    /// A new token, which is worthless until it is stored with a session.
    ///
    /// # Errors
    /// The operating system gave no random numbers.
    pub fn generate() -> Result<Self, AccountError> {
        Secret::generate().map(Self)
    }

    /// Reads a cookie's value.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Secret::parse(text).map(Self)
    }

    /// The cookie's value.
    pub fn expose(&self) -> String {
        self.0.expose()
    }

    pub(crate) fn digest(&self) -> Digest {
        self.0.digest()
    }

    /// The form token of this browser, which no other site can know: a keyed digest of the session token.
    pub fn form_token(&self) -> String {
        self.form_secret().expose()
    }

    /// Whether a form came from a page of this session.
    pub fn is_form_token(&self, text: &str) -> bool {
        let sent = Secret::<TOKEN_BYTES>::parse(text.as_bytes());
        sent.is_some_and(|sent| sent.0.ct_eq(&self.form_secret().0).into())
    }

    fn form_secret(&self) -> Secret<TOKEN_BYTES> {
        Secret(keyed(&self.0.0, &[b"linesman form"]))
    }
}

/// The cookie of a browser with which a person signed in before.
///
/// It gives no access: attempts with the account's password are counted to the browser, so that attempts from
/// elsewhere do not count against it. Valid for one account, until its password changes.
#[derive(Clone)]
pub struct DeviceToken {
    nonce: [u8; NONCE_BYTES],
    mac: [u8; TOKEN_BYTES],
}

impl DeviceToken {
    pub(crate) fn generate(account_id: &str, password: &str) -> Result<Self, AccountError> {
        let Secret(nonce) = Secret::generate()?;
        Ok(Self { nonce, mac: Self::mac(nonce, account_id, password) })
    }

    /// Reads a cookie's value.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let Secret(bytes) = Secret::<DEVICE_BYTES>::parse(text)?;
        let (nonce, mac) = bytes.split_at_checked(NONCE_BYTES)?;
        Some(Self { nonce: nonce.try_into().ok()?, mac: mac.try_into().ok()? })
    }

    /// The cookie's value.
    pub fn expose(&self) -> String {
        BASE64URL_NOPAD.encode(&[&self.nonce[..], &self.mac[..]].concat())
    }

    /// Whether it belongs to this account, whose password has this hash.
    pub(crate) fn is_of(&self, account_id: &str, password: &str) -> bool {
        self.mac.ct_eq(&Self::mac(self.nonce, account_id, password)).into()
    }

    /// The identity to which its attempts are counted.
    pub(crate) fn nonce(&self) -> [u8; NONCE_BYTES] {
        self.nonce
    }

    /// Keyed with the password's hash, which is salted and never leaves the store: no token is stored, and a new
    /// password ends all tokens.
    fn mac(nonce: [u8; NONCE_BYTES], account_id: &str, password: &str) -> [u8; TOKEN_BYTES] {
        keyed(password.as_bytes(), &[b"linesman device", &nonce, account_id.as_bytes()])
    }
}

impl fmt::Debug for DeviceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceToken(..)")
    }
}

/// The last part of a one-time link.
#[derive(Debug)]
pub struct LinkToken(Secret<TOKEN_BYTES>);

impl LinkToken {
    pub(crate) fn generate() -> Result<Self, AccountError> {
        Secret::generate().map(Self)
    }

    /// Reads a link's last part.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Secret::parse(text).map(Self)
    }

    /// The link's last part, to be shown once.
    pub fn expose(&self) -> String {
        self.0.expose()
    }

    pub(crate) fn digest(&self) -> Digest {
        self.0.digest()
    }
}

/// A code that replaces the phone once: four groups of four letters and digits.
#[derive(Debug)]
pub struct RecoveryCode(Secret<RECOVERY_BYTES>);

impl RecoveryCode {
    pub(crate) fn generate() -> Result<Self, AccountError> {
        Secret::generate().map(Self)
    }

    /// Parses a code in upper or lower case, with or without dashes.
    pub fn parse(text: &str) -> Option<Self> {
        let plain: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && *c != '-')
            .take(17)
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let bytes = BASE32_NOPAD.decode(plain.as_bytes()).ok()?.try_into().ok()?;
        Some(Self(Secret(bytes)))
    }

    /// The code, to be shown once.
    pub fn expose(&self) -> String {
        let plain = BASE32_NOPAD.encode(&self.0.0).to_ascii_lowercase();
        let groups: Vec<String> =
            plain.as_bytes().chunks(4).map(|group| group.escape_ascii().to_string()).collect();
        groups.join("-")
    }

    pub(crate) fn digest(&self) -> Digest {
        self.0.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_is_not_printed() {
        let token = SessionToken::generate().unwrap();
        let text = token.expose();
        assert_eq!(text.len(), 43);
        assert_eq!(SessionToken::parse(text.as_bytes()).unwrap().digest(), token.digest());
        assert_eq!(format!("{token:?}"), "SessionToken(..)");
        for bad in ["", "a", text.get(1..).unwrap(), &format!("{text}a"), &"=".repeat(43)] {
            assert!(SessionToken::parse(bad.as_bytes()).is_none());
        }
    }

    #[test]
    fn a_form_belongs_to_its_session_alone() {
        let (one, other) = (SessionToken::generate().unwrap(), SessionToken::generate().unwrap());
        assert!(one.is_form_token(&one.form_token()));
        assert!(!other.is_form_token(&one.form_token()));
        assert!(!one.is_form_token(""));
        assert_ne!(one.form_token(), one.expose(), "a page must not hold the cookie");
    }

    #[test]
    fn a_device_is_of_one_account_with_one_password() {
        let token = DeviceToken::generate("acc_1", "hash").unwrap();
        let again = DeviceToken::parse(token.expose().as_bytes()).unwrap();
        assert!(again.is_of("acc_1", "hash"));
        assert!(!again.is_of("acc_2", "hash") && !again.is_of("acc_1", "another"));
        let mut forged = again.clone();
        forged.nonce[0] ^= 1;
        assert!(!forged.is_of("acc_1", "hash"));
        assert!(!format!("{token:?}").contains(&token.expose()));
        for bad in ["", "a", &"A".repeat(65), &"=".repeat(64)] {
            assert!(DeviceToken::parse(bad.as_bytes()).is_none());
        }
    }

    #[test]
    fn a_recovery_code_is_read_as_people_type_it() {
        let code = RecoveryCode::generate().unwrap();
        let shown = code.expose();
        assert_eq!(shown.len(), 19);
        for typed in [shown.clone(), shown.to_uppercase(), shown.replace('-', " ")] {
            assert_eq!(RecoveryCode::parse(&typed).unwrap().digest(), code.digest());
        }
        assert!(RecoveryCode::parse(&format!("{shown}a")).is_none());
        assert!(RecoveryCode::parse("123456").is_none());
    }
}
