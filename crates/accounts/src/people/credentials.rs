//! Email addresses and passwords as people type them, bounded and normalised.

use std::fmt;

/// RFC 5321's longest path, less its brackets.
const EMAIL_BYTES_MAX: usize = 254;
/// Long enough that guessing at the throttled rate is hopeless.
const PASSWORD_CHARS_MIN: usize = 12;
/// Hashing accepts any length; a form field is bounded.
const PASSWORD_BYTES_MAX: usize = 1024;

/// An email address, trimmed and in lower case.
///
/// Two addresses that differ only in case are one account. The address need not be reachable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// Parses an address; `None` if it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@')?;
        let plain =
            |c: char| !c.is_control() && !c.is_whitespace() && !"<>\"'(),;:\\[]".contains(c);
        let good = (3..=EMAIL_BYTES_MAX).contains(&text.len())
            && !local.is_empty()
            && !local.contains('@')
            && domain.split('.').all(|label| !label.is_empty())
            && text.chars().all(plain);
        good.then(|| Self(text.to_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a new password is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordFault {
    TooShort,
    TooLong,
    /// It is the address, or one repeated character.
    TooPlain,
}

impl PasswordFault {
    pub const fn message(self) -> &'static str {
        match self {
            Self::TooShort => {
                "A password has at least 12 characters; a few words with spaces do well."
            }
            Self::TooLong => "A password has at most 1024 bytes.",
            Self::TooPlain => {
                "This password would be guessed first; choose a few words of your own."
            }
        }
    }
}

/// A password as typed. It cannot be printed.
pub struct Password(String);

impl Password {
    /// Accepts a password typed to sign in; `None` if it is longer than any password can be.
    pub fn typed(text: String) -> Option<Self> {
        (text.len() <= PASSWORD_BYTES_MAX).then_some(Self(text))
    }

    /// Accepts a new password for the account with this address.
    ///
    /// # Errors
    /// It is too short, too long or too easily guessed.
    pub fn choose(text: String, email: &EmailAddress) -> Result<Self, PasswordFault> {
        let mut letters = text.chars();
        let first = letters.next();
        if text.chars().count() < PASSWORD_CHARS_MIN {
            return Err(PasswordFault::TooShort);
        }
        if text.len() > PASSWORD_BYTES_MAX {
            return Err(PasswordFault::TooLong);
        }
        if letters.all(|c| Some(c) == first) || text.to_lowercase() == email.0 {
            return Err(PasswordFault::TooPlain);
        }
        Ok(Self(text))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_form() {
        assert_eq!(EmailAddress::parse(" Ann@Example.COM ").unwrap().as_str(), "ann@example.com");
        let long = format!("{}@example.com", "a".repeat(250));
        for bad in [
            "", "ann", "@", "ann@", "@b.c", "a b@c.d", "a@b..c", "a@.c", "a@b@c.d", "<a@b.c>",
            "a@b.c\n", "a\"@b.c", &long,
        ] {
            let trimmed_is_good = bad == "a@b.c\n";
            assert_eq!(EmailAddress::parse(bad).is_some(), trimmed_is_good, "{bad:?}");
        }
    }

    #[test]
    fn a_new_password_is_long_and_not_the_first_guess() {
        let email = EmailAddress::parse("somebody@example.com").unwrap();
        let choose = |text: &str| Password::choose(text.to_owned(), &email).err();
        assert_eq!(choose("correct horse battery"), None);
        assert_eq!(choose("elf letters"), Some(PasswordFault::TooShort));
        assert_eq!(choose("aaaaaaaaaaaaaaaa"), Some(PasswordFault::TooPlain));
        assert_eq!(choose("Somebody@Example.com"), Some(PasswordFault::TooPlain));
        assert_eq!(choose(&"long ".repeat(300)), Some(PasswordFault::TooLong));
        // The limit counts characters, not bytes.
        assert_eq!(choose("ぱすわーどですよねえ"), Some(PasswordFault::TooShort));
    }

    #[test]
    fn a_password_is_not_printed() {
        let password = Password::typed("correct horse".to_owned()).unwrap();
        assert!(!format!("{password:?}").contains("horse"));
    }
}
