//! Single words of a name: their sound, and whether two are one word in two spellings.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

use super::effort;
use super::hashed::Hashed;

/// The kind of a word in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Plain,
    /// Only the first letters of given names: "N." or "J.M.".
    Initials,
    /// The beginning of a given name: "Zh." of "Zhizhen".
    Clipped,
    /// "de", "van", "al": some sources omit it.
    Particle,
}

/// A word, folded to lower-case ASCII letters and digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// Its sound.
    pub(super) sound: &'a str,
    pub(super) kind: Kind,
    /// The given names of which it is a form.
    pub(super) forms: Forms,
}

/// Number of a word of [`SHORT_FORMS`], from one; zero for other words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Forms(u8);

/// The way in which two words match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alike {
    /// The first letter of the other.
    Initial,
    /// A short form: "Alex" of "Alexander".
    Short,
    /// A typing error apart.
    Close,
    /// Another spelling of the same sounds.
    Sound,
    Equal,
}

/// Minimum length for allowing one typing error: in a shorter word it is as likely another word.
const CLOSE_LEN_MIN: usize = 4;
/// Minimum length for allowing two typing errors.
const CLOSE_TWO_LEN_MIN: usize = 8;
/// Minimum number of letters of a short form that begins the long one.
const SHORT_LEN_MIN: usize = 3;

/// Maximum length of a particle: "saint".
const PARTICLE_LEN_MAX: usize = 5;
const PARTICLES: [&str; 28] = [
    "al", "ap", "bin", "bint", "da", "das", "de", "del", "den", "der", "di", "do", "dos", "du",
    "e", "el", "ibn", "la", "las", "le", "los", "saint", "ten", "ter", "the", "van", "von", "y",
];

/// Given names with short forms that are not prefixes. Each row is one name.
const SHORT_FORMS: [&[&str]; 46] = [
    &["abraham", "abe"],
    &["albert", "bert", "al"],
    &[
        "alexander",
        "alexandr",
        "aleksandr",
        "aleksandar",
        "sasha",
        "xander",
        "sandy",
        "alejandro",
        "alessandro",
    ],
    &["andrew", "andy", "drew", "andrei", "andrey"],
    &["anthony", "tony", "antonio"],
    &["benjamin", "ben", "benny"],
    &["catherine", "katherine", "kathryn", "kate", "katie", "cathy", "kathy"],
    &["charles", "charlie", "chuck", "carlos"],
    &["christopher", "chris", "topher", "kris"],
    &["daniel", "dan", "danny", "daniil"],
    &["david", "dave", "davey", "davy"],
    &["dominic", "dominick", "dom", "nick"],
    &["donald", "don", "donny", "donnie"],
    &["douglas", "doug"],
    &["edward", "ed", "eddie", "ted", "teddy", "eduardo"],
    &["elizabeth", "liz", "beth", "lizzie", "betty", "eliza"],
    &["francis", "frank", "frankie", "francisco", "paco"],
    &["frederick", "fred", "freddie", "freddy"],
    &["gabriel", "gabe"],
    &["geoffrey", "jeffrey", "jeff", "geoff"],
    &["gerald", "gerry", "jerry"],
    &["gregory", "greg", "grigory"],
    &["henry", "hank", "harry", "enrique"],
    &["ignacio", "nacho"],
    &["isaac", "ike", "zac"],
    &["jacob", "jake", "jakob"],
    &["james", "jim", "jimmy", "jamie"],
    &["john", "johnny", "jon", "jonathan", "johnnie", "jack"],
    &["joseph", "joe", "joey", "jose", "pepe"],
    &["joshua", "josh"],
    &["lawrence", "laurence", "larry"],
    &["leonard", "leo", "len", "lenny"],
    &["manuel", "manny", "manolo", "manvel"],
    &["matthew", "matt", "matty"],
    &["michael", "mike", "mick", "mickey", "mikey", "michal", "mikhail", "miguel"],
    &["nicholas", "nicolas", "nick", "nicky", "nico", "nik"],
    &["patrick", "pat", "paddy", "patricio"],
    &["peter", "pete", "petr", "pedro"],
    &["philip", "phillip", "phil"],
    &["raymond", "ray", "ramon"],
    &["richard", "rick", "ricky", "rich", "dick", "ricardo"],
    &["robert", "rob", "bob", "bobby", "robbie", "roberto"],
    &["samuel", "samantha", "sam", "sammy"],
    &["steven", "stephen", "steve", "stephan", "stefan"],
    &["thomas", "tom", "tommy"],
    &["william", "will", "bill", "billy", "willie", "wilhelm"],
];

impl Word<'_> {
    pub(super) const BLANK: Self = Self { text: "", sound: "", kind: Kind::Plain, forms: Forms(0) };

    /// True if it abbreviates a given name.
    pub(super) fn is_abbreviation(&self) -> bool {
        matches!(self.kind, Kind::Initials | Kind::Clipped)
    }

    /// True if a match of the word is significant.
    pub(super) fn is_telling(&self) -> bool {
        self.kind == Kind::Plain && self.text.len() >= 2
    }

    /// True if it is another spelling of the same sounds.
    pub(super) fn sounds_like(&self, other: &Self) -> bool {
        self.is_comparable(other)
            && self.sound == other.sound
            && self.text.len().min(other.text.len()) >= 2
    }

    /// True if it is a typing error apart.
    pub(super) fn is_close_to(&self, other: &Self) -> bool {
        self.is_comparable(other)
            && (is_close(self.text, other.text) || is_close(self.sound, other.sound))
    }

    /// True if one is a short form of the other.
    pub(super) fn is_short_for(&self, other: &Self) -> bool {
        let (short, long) =
            if self.text.len() <= other.text.len() { (self, other) } else { (other, self) };
        let begins = || short.text.len() >= SHORT_LEN_MIN && long.text.starts_with(short.text);
        self.is_comparable(other) && (begins() || short.forms.rows() & long.forms.rows() != 0)
    }

    fn is_comparable(&self, other: &Self) -> bool {
        !self.is_abbreviation() && !other.is_abbreviation()
    }
}

impl Kind {
    /// The kind of a whole word.
    pub(super) fn of(text: &str) -> Self {
        let particle = text.len() <= PARTICLE_LEN_MAX && PARTICLES.contains(&text);
        if particle { Self::Particle } else { Self::Plain }
    }
}

/// The words of [`SHORT_FORMS`] with their numbers, and the rows that contain each, as bits.
#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<&'static str, u8, BuildHasherDefault<Hashed>>,
    rows: Vec<u64>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut known = Known::default();
    for (at, row) in SHORT_FORMS.iter().enumerate() {
        for word in *row {
            let next = u8::try_from(known.rows.len() + 1).unwrap_or(0);
            let number = *known.numbers.entry(word).or_insert(next);
            if number == next {
                known.rows.push(0);
            }
            if let Some(rows) = known.rows.get_mut(usize::from(number).wrapping_sub(1)) {
                *rows |= 1 << at;
            }
        }
    }
    known
});

impl Forms {
    pub(super) fn of(word: &str) -> Self {
        // The longest of all forms.
        if word.len() > "christopher".len() {
            return Self(0);
        }
        Self(KNOWN.numbers.get(word).copied().unwrap_or(0))
    }

    pub(super) fn is_any(self) -> bool {
        self.0 != 0
    }

    fn rows(self) -> u64 {
        match self.0 {
            0 => 0,
            number => KNOWN.rows.get(usize::from(number) - 1).copied().unwrap_or(0),
        }
    }

    /// Every word that can replace it.
    pub(super) fn others(self) -> impl Iterator<Item = &'static str> {
        let rows = self.rows();
        let in_rows = SHORT_FORMS.iter().enumerate().filter(move |(at, _)| rows >> at & 1 == 1);
        in_rows.flat_map(|(_, row)| *row).copied()
    }
}

/// True if two words differ only by a typing error.
fn is_close(one: &str, other: &str) -> bool {
    // Errors occur inside a word; "Isner" and "Sinner" are two players.
    if one.bytes().next() != other.bytes().next() {
        return false;
    }
    let shorter = one.len().min(other.len());
    if shorter < CLOSE_LEN_MIN || one.len().abs_diff(other.len()) > 2 {
        return false;
    }
    let allowed = if shorter >= CLOSE_TWO_LEN_MIN { 2 } else { 1 };
    effort::spend(1);
    is_within(one.as_bytes(), other.as_bytes(), allowed)
}

/// True if at most `allowed` letters must be changed, added, removed or exchanged with the next one to make the words
/// equal.
///
/// For so few, trying each edit is cheaper than a table: it uses no memory, and mostly ends at once.
fn is_within(one: &[u8], other: &[u8], allowed: u32) -> bool {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (one.get(same..).unwrap_or_default(), other.get(same..).unwrap_or_default());
    let (Some((first, rest)), Some((their_first, their_rest))) =
        (one.split_first(), other.split_first())
    else {
        return u32::try_from(one.len().max(other.len())).is_ok_and(|left| left <= allowed);
    };
    let Some(left) = allowed.checked_sub(1) else { return false };
    let exchanged = || match (rest.split_first(), their_rest.split_first()) {
        (Some((second, rest)), Some((their_second, their_rest))) => {
            (first, second) == (their_second, their_first) && is_within(rest, their_rest, left)
        }
        _ => false,
    };
    is_within(rest, their_rest, left)
        || is_within(rest, other, left)
        || is_within(one, their_rest, left)
        || exchanged()
}

/// Appends the sound of a word: different spellings of a sound in Latin letters become one ("Sergey", "Serghei").
pub(super) fn push_sound(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let (mut i, mut last) = (0, '\0');
    while i < bytes.len() {
        let (letter, next) = (at(i), at(i + 1));
        let (heard, taken): (&[u8], usize) = match (letter, next) {
            (b'p', b'h') => (b"f", 2),
            (b'd', b'j') => (b"d", 2),
            (b'c', b'h' | b'k') => (b"k", 2),
            (b'a', b'e') => (b"a", 2),
            (b'o', b'e') => (b"o", 2),
            (b'u', b'e') => (b"u", 2),
            (b'c', b'e' | b'i' | b'y') | (b'z', _) => (b"s", 1),
            (b'c' | b'q', _) => (b"k", 1),
            (b'x', _) => (b"ks", 1),
            (b'w', _) => (b"v", 1),
            (b'y' | b'j', _) => (b"i", 1),
            (b'h', _) if i > 0 => (b"", 1),
            _ => (bytes.get(i..=i).unwrap_or_default(), 1),
        };
        // Names without letters are not ASCII: each such byte stands for itself.
        for heard in heard.iter().map(|heard| char::from(*heard)) {
            if last != heard {
                out.push(heard);
                last = heard;
            }
        }
        i += taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> Option<Alike> {
        let sound = |text: &str| {
            let mut sound = String::new();
            push_sound(text, &mut sound);
            sound
        };
        let sounds = (sound(one), sound(other));
        let word = |text, sound| Word { text, sound, kind: Kind::of(text), forms: Forms::of(text) };
        let (one, other) = (word(one, &*sounds.0), word(other, &*sounds.1));
        let seen = |one: &Word<'_>, other: &Word<'_>| match () {
            () if one.text == other.text => Some(Alike::Equal),
            () if one.sounds_like(other) => Some(Alike::Sound),
            () if one.is_close_to(other) => Some(Alike::Close),
            () if one.is_short_for(other) => Some(Alike::Short),
            () => None,
        };
        assert_eq!(seen(&one, &other), seen(&other, &one), "{one:?} {other:?}");
        seen(&one, &other)
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(20_000))]

        #[test]
        fn letters_to_change_are_counted_as_a_table_would(
            one in "[ab]{0,7}|[a-d]{4,12}",
            other in "[ab]{0,7}|[a-d]{4,12}",
            allowed in 0..3_u32,
        ) {
            let distance = strsim::osa_distance(&one, &other);
            let within = is_within(one.as_bytes(), other.as_bytes(), allowed);
            proptest::prop_assert_eq!(within, distance <= usize::try_from(allowed).unwrap());
        }
    }

    #[test]
    fn every_short_form_has_a_number_of_its_own() {
        let words: std::collections::BTreeSet<&str> =
            SHORT_FORMS.iter().copied().flatten().copied().collect();
        assert!(words.iter().all(|word| Forms::of(word).is_any()));
        assert_eq!(KNOWN.rows.len(), words.len());
        assert_eq!(KNOWN.numbers.len(), words.len());
        let nick: Vec<&str> = Forms::of("nick").others().collect();
        assert!(nick.contains(&"dominic") && nick.contains(&"nicholas"));
    }

    #[test]
    fn one_sound_has_many_spellings() {
        for (one, other) in [
            ("sergey", "serghei"),
            ("aleksei", "alexey"),
            ("gonzales", "gonzalez"),
            ("yuri", "iuri"),
            ("muller", "mueller"),
            ("wladimir", "vladimir"),
            ("jelena", "yelena"),
        ] {
            assert_eq!(alike(one, other), Some(Alike::Sound), "{one} {other}");
        }
    }

    #[test]
    fn a_slip_and_a_short_form_are_seen_and_another_word_is_not() {
        assert_eq!(alike("cortney", "courtney"), Some(Alike::Close));
        assert_eq!(alike("alex", "alexander"), Some(Alike::Short));
        assert_eq!(alike("bobby", "robert"), Some(Alike::Short));
        for (one, other) in [("lee", "leo"), ("smith", "jones"), ("al", "alan"), ("rosa", "lima")] {
            assert_eq!(alike(one, other), None, "{one} {other}");
        }
    }
}
