//! Identity of events across feeds: which event is a listing about?
//!
//! Names are split into words ([`name`], [`word`]) and compared ([`likeness`]); [`judge`] decides from both
//! participants, in either order, with the time and the competition: same, different, or not sure. Candidates come
//! from an index by pairs of words ([`index`]), never from a scan, and most of them are ruled out quickly
//! ([`name_signature`]). Learned meanings of names are in [`aliases`]. The book uses these for each new listing and
//! keeps its decisions; [`solve`] does the same for whole recordings at once.

mod aliases;
mod batch_matcher;
mod contest;
pub mod effort;
mod groups;
mod habit;
mod hashed;
mod index;
mod judge;
mod likeness;
mod name;
mod name_signature;
mod solve;
mod title;
mod word;

use domain::message::{Fixture, Listing, PLAIN_BYTES_MAX, Reject, RejectCode, WORDS_MAX};

pub(crate) use aliases::Aliases;
pub use aliases::{ALIASES_MAX, ALIASES_OF_FEED_MAX, Alias, Meaning};
pub use batch_matcher::{BatchMatcher, Found};
pub(crate) use contest::{Contest, Lexicon, Party};
pub(crate) use habit::{Habit, Vote, are_by_day, competition_key, habit};
pub(crate) use hashed::Hashed;
pub(crate) use index::{Index, Owner, QuickCheck, keys_count};
pub(crate) use judge::{AT_ONCE, ListingView, SESSION, Verdict};
pub use judge::{Doubt, Evidence, Tie};
pub use likeness::Likeness;
pub(crate) use name::Name;
pub(crate) use name_signature::NameSignature;

/// The participants of a fixture, folded and sorted: equal only for the same names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Participants(Box<str>);

impl Participants {
    fn of(fixture: &Fixture) -> Self {
        match fixture {
            Fixture::HeadToHead { home, away } => {
                let (one, other) = (fold(home), fold(away));
                let (first, second) = if one <= other { (one, other) } else { (other, one) };
                Self(format!("{first}\n{second}").into())
            }
            Fixture::Field { title } => Self(fold(title).into()),
        }
    }
}

/// Rejects a name with too many words, or with characters that become whole words in plain letters: memory and
/// comparisons grow with those.
pub(crate) fn check_name(name: &str) -> Result<(), Reject> {
    // A word has at least one letter, and there is a separator between words.
    if name.is_ascii() && name.len() < 2 * WORDS_MAX {
        return Ok(());
    }
    let folded = fold(name);
    let words = folded.split(' ').count();
    let text = if words > WORDS_MAX {
        format!("a name has {words} words; at most {WORDS_MAX} are taken")
    } else if folded.len() > PLAIN_BYTES_MAX {
        format!(
            "a name is {} plain letters long; at most {PLAIN_BYTES_MAX} are taken",
            folded.len()
        )
    } else {
        return Ok(());
    };
    Err(Reject::new(RejectCode::TooLarge, text))
}

/// Rejects a listing with such a name.
pub(crate) fn check_names(listing: &Listing) -> Result<(), Reject> {
    check_name(&listing.competition)?;
    match &listing.fixture {
        Fixture::HeadToHead { home, away } => check_name(home).and_then(|()| check_name(away)),
        Fixture::Field { title } => check_name(title),
    }
}

/// Letters without case and accents, other characters unchanged: the form used for searching.
pub fn plain_letters(text: &str) -> String {
    let plain = |c: char| match deunicode::deunicode_char(c) {
        Some(plain) if c.is_alphabetic() => plain.to_ascii_lowercase(),
        _ => c.to_lowercase().collect(),
    };
    text.chars().map(plain).collect()
}

/// True if two fixtures have the same names, in either order.
pub(crate) fn same_names(one: &Fixture, other: &Fixture) -> bool {
    one == other || Participants::of(one) == Participants::of(other)
}

/// A name without the differences between sources: accents, case, punctuation, spacing.
pub(crate) fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    let mut gap = false;
    let ascii = if name.is_ascii() { None } else { Some(deunicode::deunicode(name)) };
    for c in ascii.as_deref().unwrap_or(name).chars() {
        if c.is_ascii_alphanumeric() {
            if gap && !folded.is_empty() {
                folded.push(' ');
            }
            gap = false;
            folded.push(c.to_ascii_lowercase());
        } else if c != '\'' && c != '.' {
            // "O'Neil" and "J.J." stay one word.
            gap = true;
        }
    }
    // Names without any letter or digit must still differ from each other.
    if folded.is_empty() { name.trim().to_lowercase() } else { folded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_drops_what_differs_from_source_to_source() {
        for (one, other) in [
            ("Jiří Procházka", "JIRI  PROCHAZKA"),
            ("Auger-Aliassime", "auger aliassime"),
            ("Sean O'Malley", "Sean O’Malley"),
            ("B.J. Penn", "BJ Penn"),
            (" Novak Đoković ", "novak dokovic"),
        ] {
            assert_eq!(fold(one), fold(other));
        }
        assert_ne!(fold("Jermell Charlo"), fold("Jermall Charlo"));
        assert_ne!(fold("···"), fold("—"));
    }
}
