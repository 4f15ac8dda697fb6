//! What can be seen of two names without taking them apart: whether their words begin alike. Most of those who share
//! two words by chance are told apart by that, at a fiftieth of the cost.

use domain::message::Fixture;

use super::word::names_known;

/// The two sides of an event, sketched: the sounds that words begin with, as bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch([Side; 2]);

#[derive(Clone, Copy, Debug)]
struct Side(u32);

/// Has something that needs a closer look: initials, particles, brackets, another script.
const LOOSE: Side = Side(1 << 31);
/// Shorter words are initials and particles, or parts of others.
const WORD_LEN_MIN: usize = 4;

impl Sketch {
    /// Tells nothing.
    pub(crate) const BLANK: Self = Self([LOOSE; 2]);

    pub(crate) fn of(fixture: &Fixture) -> Self {
        match fixture {
            Fixture::HeadToHead { home, away } => Self([Side::of(home), Side::of(away)]),
            Fixture::Field { .. } => Self::BLANK,
        }
    }

    /// False only where taking them apart would show two events.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        let ([home, away], [their_home, their_away]) = (self.0, other.0);
        both_may_be((home, their_home), (away, their_away))
            || both_may_be((home, their_away), (away, their_home))
    }
}

/// Each side has a word that begins alike, and one of them at least is all there in the other.
fn both_may_be(one: (Side, Side), other: (Side, Side)) -> bool {
    let shares = |(a, b): (Side, Side)| a.is_loose() || b.is_loose() || a.0 & b.0 != 0;
    shares(one) && shares(other) && (is_within(one) || is_within(other))
}

fn is_within((one, other): (Side, Side)) -> bool {
    let shared = one.0 & other.0;
    let loose = one.is_loose() || other.is_loose();
    loose || shared == one.0 || shared == other.0 || shared.count_ones() >= 2
}

impl Side {
    fn is_loose(self) -> bool {
        self.0 & LOOSE.0 != 0
    }

    fn of(name: &str) -> Self {
        let is_plain = |byte: u8| byte.is_ascii_alphabetic() || b" -'.,".contains(&byte);
        if !name.bytes().all(is_plain) || name.contains(" '") || name.starts_with('\'') {
            return LOOSE;
        }
        let (mut side, mut words) = (0_u32, 0);
        for word in name.split([' ', '-', ',']).filter(|word| !word.is_empty()) {
            let mut lower = [0; 12];
            for (to, from) in lower.iter_mut().zip(word.bytes()) {
                *to = from.to_ascii_lowercase();
            }
            let [first, ..] = lower;
            let begins = 1 << sound_class(first);
            let text = lower.get(..word.len()).and_then(|text| std::str::from_utf8(text).ok());
            // Bobby is Robert: where a given name has other forms, its first letter tells nothing.
            let has_forms = text.is_some_and(|text| names_known(text) != 0);
            if word.len() < WORD_LEN_MIN || word.contains('.') || has_forms {
                return LOOSE;
            }
            side |= begins;
            words += 1;
        }
        // Of three words two may be shared and the third another: that takes counting words that begin alike.
        let counts = words < 3 || side.count_ones() == words;
        if side == 0 || !counts { LOOSE } else { Self(side) }
    }
}

/// The same for words that sound alike or differ by a slip, by how they begin.
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
    use std::sync::Arc;

    use domain::Catalogue;
    use proptest::prelude::*;

    use super::super::contest::{Contest, Lexicon};
    use super::super::name::Likeness;
    use super::*;

    fn bout(home: &str, away: &str) -> Fixture {
        Fixture::HeadToHead { home: home.into(), away: away.into() }
    }

    fn may_be(one: &Fixture, other: &Fixture) -> bool {
        let (one, other) = (Sketch::of(one), Sketch::of(other));
        assert_eq!(one.may_be(&other), other.may_be(&one));
        one.may_be(&other)
    }

    #[test]
    fn who_shares_given_names_only_is_seen_to_be_another() {
        let ours = bout("Marek Veldt", "Lorin Castellane");
        assert!(!may_be(&ours, &bout("Marek Orsk", "Lorin Berger")));
        assert!(!may_be(&ours, &bout("Lorin Berger", "Marek Orsk")));
        assert!(!may_be(&ours, &bout("Marek Veldt", "Pavel Orsk")));
        assert!(may_be(&ours, &bout("Kastellane, Lorin", "Marek Feldt-Veldt")));
        assert!(may_be(&ours, &bout("Veldt M.", "Castellane L.")));
        assert!(may_be(&ours, &bout("Veldt", "Castellane")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Whatever the closer look would not tell apart is not told apart by the sketch.
        #[test]
        fn a_sketch_never_hides_what_may_be_one(
            one in ("[A-Z][a-z]{0,4}( |-|, )?[A-Z]?[a-z]{3,5}( [A-Z][a-z]{3,4})?", "(Marek|Marko|Bobby|Robert|Alexander|Sasha) (Veldt|Feldt|Weldt|Phelps|Felps)( Junior)?"),
            other in ("[A-Z][a-z]{0,4}( |-|, )?[A-Z]?[a-z]{3,5}( [A-Z][a-z]{3,4})?", "(Marek|Marko|Bobby|Robert|Alexander|Sasha) (Veldt|Feldt|Weldt|Phelps|Felps)( Junior)?"),
            turned in any::<bool>(),
        ) {
            let catalogue = Arc::new(Catalogue::load(None).unwrap());
            let sport = catalogue.sport_id("mma").unwrap();
            let lexicon = Lexicon::new(&catalogue);
            let one = bout(&one.0, &one.1);
            let other = if turned { bout(&other.1, &other.0) } else { bout(&other.0, &other.1) };
            let contest = |fixture| Contest::parse(&lexicon, sport, fixture, |_| None);
            let sides = contest(&one).compare(&contest(&other)).sides;
            let (weaker, stronger) = (sides.iter().min().unwrap(), sides.iter().max().unwrap());
            if (*weaker >= Likeness::Shared && *stronger >= Likeness::Near) || *weaker >= Likeness::Kin {
                prop_assert!(may_be(&one, &other), "{:?}", sides);
            }
        }
    }
}
