//! A signature of a name for a quick comparison: do the words begin alike? Most names that share two words by chance
//! are ruled out by that, at a fiftieth of the cost of a full comparison.

use super::contest::{Contest, Party};
use super::word::{Kind, Word};

/// The signatures of both sides of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameSignature([Side; 2]);

/// The first sounds of a name's words, as bits.
#[derive(Clone, Copy, Debug)]
struct Side(u32);

/// Some of the words may be missing in the same name, or begin with a different sound: initials, particles, short
/// forms.
const PARTIAL: u32 = 1 << 31;
/// Words may begin with anything: clubs, pairs, a name with another meaning.
const LOOSE: Side = Side(u32::MAX);

impl NameSignature {
    /// Matches everything.
    pub(crate) const BLANK: Self = Self([LOOSE; 2]);

    pub(crate) fn of(contest: &Contest) -> Self {
        match contest.sides() {
            [home, away] => Self([Side::of(home), Side::of(away)]),
            _ => Self::BLANK,
        }
    }

    /// False only if a full comparison would show two events.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        let ([home, away], [their_home, their_away]) = (self.0, other.0);
        both_may_be((home, their_home), (away, their_away))
            || both_may_be((home, their_away), (away, their_home))
    }
}

/// Each side has a word that begins alike, and all words of at least one side have one in the other.
fn both_may_be(one: (Side, Side), other: (Side, Side)) -> bool {
    let shares = |(a, b): (Side, Side)| a.0 & b.0 & !PARTIAL != 0;
    shares(one) && shares(other) && (is_within(one) || is_within(other))
}

fn is_within((one, other): (Side, Side)) -> bool {
    let shared = one.0 & other.0;
    let partial = (one.0 | other.0) & PARTIAL != 0;
    partial || shared == one.0 || shared == other.0 || shared.count_ones() >= 2
}

impl Side {
    fn of(party: &Party) -> Self {
        let Some(name) = party.person() else { return LOOSE };
        let (mut begins, mut words) = (0, 0);
        let mut partial = name.has_generation();
        for word in name.each() {
            words += 1;
            partial |= word.kind != Kind::Plain || word.forms.is_any();
            begins |= sounds_of(&word);
        }
        // Two of three words may match and the third differ: then words that begin alike must be counted.
        partial |= words > 2 && begins.count_ones() != words;
        Self(begins | if partial { PARTIAL } else { 0 })
    }
}

/// The first sounds of the word and of its alternatives: Bobby is Robert.
fn sounds_of(word: &Word<'_>) -> u32 {
    let begins = |text: &str| text.bytes().next().map_or(0, |first| 1 << sound_class(first));
    word.forms.others().map(begins).fold(begins(word.text), |all, one| all | one)
}

/// The class of a first letter, the same for words that sound alike or differ by a typing error.
fn sound_class(first: u8) -> u8 {
    match first {
        b'c' | b'k' | b'q' | b's' | b'x' | b'z' => 0,
        b'f' | b'p' => 1,
        b'v' | b'w' => 2,
        b'i' | b'j' | b'y' => 3,
        b'a'..=b'z' => 4 + (first - b'a'),
        _ => 30,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use domain::Catalogue;
    use domain::message::Fixture;
    use proptest::prelude::*;

    use super::super::contest::Lexicon;
    use super::super::likeness::Likeness;
    use super::*;

    static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::load(None).unwrap());
    static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(&CATALOGUE));

    fn bout(home: &str, away: &str) -> Contest {
        let sport = CATALOGUE.sport_id("mma").unwrap();
        let fixture = Fixture::HeadToHead { home: home.into(), away: away.into() };
        Contest::parse(&LEXICON, sport, &fixture)
    }

    fn may_be(one: &Contest, other: &Contest) -> bool {
        let (one, other) = (NameSignature::of(one), NameSignature::of(other));
        assert_eq!(one.may_be(&other), other.may_be(&one));
        one.may_be(&other)
    }

    #[test]
    fn who_shares_given_names_only_is_seen_to_be_another() {
        let ours = bout("Marek Veldt", "Lorin Castellane");
        assert!(!may_be(&ours, &bout("Marek Orsk", "Lorin Berger")));
        assert!(!may_be(&ours, &bout("Lorin Berger", "Marek Orsk")));
        assert!(!may_be(&ours, &bout("Marek Veldt", "Pavel Orsk")));
        assert!(!may_be(&ours, &bout("Veldt M.", "Orsk P.")));
        assert!(may_be(&ours, &bout("Kastellane, Lorin", "Marek Feldt-Veldt")));
        assert!(may_be(&ours, &bout("Veldt M.", "Castellane L.")));
        assert!(may_be(&ours, &bout("Veldt", "Castellane")));
    }

    /// Names with initials, particles, short forms and compounds among plain words.
    fn a_name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[A-Z][a-z]{0,4}( |-|, )?[A-Z]?[a-z]{3,5}( [A-Z][a-z]{3,4})?",
            "(Marek|Marko|Bobby|Robert|Alexander|Sasha|M\\.|R|Al|Doo Ho|Dooho) (Veldt|Feldt|Weldt|Phelps|Felps)( Junior)?",
            "(Veldt|Al Hassan|Alhassan|de la Rocha|Delarocha|Heili Alateng) ?(M\\.|MA|Zh\\.|Al|Alatengheili)?",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// The signature never rules out names that the full comparison would match.
        #[test]
        fn a_sketch_never_hides_what_may_be_one(
            one in (a_name(), a_name()),
            other in (a_name(), a_name()),
            turned in any::<bool>(),
        ) {
            let one = bout(&one.0, &one.1);
            let other = if turned { bout(&other.1, &other.0) } else { bout(&other.0, &other.1) };
            let sides = one.compare(&other).sides;
            let (weaker, stronger) = (sides.iter().min().unwrap(), sides.iter().max().unwrap());
            if (*weaker >= Likeness::Shared && *stronger >= Likeness::Near) || *weaker >= Likeness::Kin {
                prop_assert!(may_be(&one, &other), "{:?}", sides);
            }
        }
    }
}
