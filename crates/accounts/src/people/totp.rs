//! Time-based codes (RFC 6238): six digits, thirty seconds, SHA-1, as authenticator programs expect. Pure: the caller
//! passes the time.

use std::fmt;

use data_encoding::BASE32_NOPAD;
use domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rand::{TryRng, rngs::SysRng};
use sha1::Sha1;
use subtle::ConstantTimeEq;

use crate::AccountError;

/// As long as SHA-1's output, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
/// Characters that are escaped in the URI for phones.
const IN_URI: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');
const STEP_S: i64 = 30;
/// A phone's clock may be one step off.
const DRIFT_STEPS: i64 = 1;

/// The secret that the phone and the service share. It cannot be printed by accident.
pub struct TotpSecret(Vec<u8>);

impl TotpSecret {
    pub(crate) fn generate() -> Result<Self, AccountError> {
        let mut bytes = vec![0; SECRET_BYTES];
        SysRng.try_fill_bytes(&mut bytes).map_err(|_| AccountError::NoRandomness)?;
        Ok(Self(bytes))
    }

    pub(crate) fn from_stored(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// A secret as shown to the phone's owner: the phone's side.
    pub fn from_shared(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The secret as people type it into a phone: base32.
    pub fn expose(&self) -> String {
        BASE32_NOPAD.encode(&self.0)
    }

    /// The secret as a URI that a phone reads.
    pub fn expose_uri(&self, issuer: &str, email: &str) -> String {
        let encode = |text| utf8_percent_encode(text, &IN_URI).to_string();
        let (issuer, email) = (encode(issuer), encode(email));
        format!("otpauth://totp/{issuer}:{email}?secret={}&issuer={issuer}", self.expose())
    }

    /// The step whose code this is, if it is one of the steps around now.
    pub(crate) fn step_of(&self, code: &str, now: Timestamp) -> Option<i64> {
        let code: String = code.chars().filter(|c| !c.is_whitespace()).take(7).collect();
        let current = now.as_secs().div_euclid(STEP_S);
        (current - DRIFT_STEPS..=current + DRIFT_STEPS)
            .find(|step| self.code(*step).as_bytes().ct_eq(code.as_bytes()).into())
    }

    /// The code of a step.
    pub fn code(&self, step: i64) -> String {
        let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(&self.0) else {
            return String::new();
        };
        mac.update(&step.to_be_bytes());
        let sum: [u8; 20] = mac.finalize().into_bytes().into();
        let from = usize::from(sum.last().copied().unwrap_or(0) & 0xf);
        let word = sum.get(from..).and_then(|rest| rest.first_chunk::<4>()).copied();
        let word = u32::from_be_bytes(word.unwrap_or_default()) & 0x7fff_ffff;
        format!("{:06}", word % 1_000_000)
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, truncated to six digits.
    #[test]
    fn the_codes_are_those_of_the_standard() {
        let secret = TotpSecret(b"12345678901234567890".to_vec());
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(secret.code(seconds / 30), code);
            assert_eq!(secret.step_of(code, Timestamp::from_secs(seconds)), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_is_good_for_its_own_step_and_the_ones_beside_it() {
        let secret = TotpSecret(b"12345678901234567890".to_vec());
        let code = secret.code(1000);
        let found = |step: i64| secret.step_of(&code, Timestamp::from_secs(step * 30 + 7));
        assert_eq!(
            (found(998), found(999), found(1001), found(1002)),
            (None, Some(1000), Some(1000), None)
        );
        assert_eq!(secret.step_of("", Timestamp::from_secs(30_000)), None);
        assert_eq!(secret.step_of(&format!("{code}0"), Timestamp::from_secs(30_000)), None);
        let (first, second) = code.split_at(3);
        let spaced = format!("{first} {second}");
        assert_eq!(secret.step_of(&spaced, Timestamp::from_secs(30_000)), Some(1000));
    }

    #[test]
    fn a_secret_is_told_to_a_phone_and_to_nobody_else() {
        let secret = TotpSecret(b"12345678901234567890".to_vec());
        let uri = secret.expose_uri("Line & Co", "ann+x@example.com");
        assert_eq!(
            uri,
            "otpauth://totp/Line%20%26%20Co:ann%2Bx@example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
             &issuer=Line%20%26%20Co"
        );
        assert_eq!(format!("{secret:?}"), "TotpSecret(..)");
    }
}
