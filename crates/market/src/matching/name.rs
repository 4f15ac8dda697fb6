//! Names of people and teams as sources write them, and how alike two of them are.
//!
//! A name is taken apart into words; accents, case, punctuation, nicknames in quotes, country tags in brackets
//! and the habit of putting the surname first go. Two names are then laid word against word, in whichever order.
//! The answer is not a number but what was seen, so that it can be told to a person and reasoned with.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::word::{Alike, Kind, Word};

/// Words of a name that are looked at: a longer one is a mistake or an attack.
const WORDS_MAX: usize = 10;
/// A clipped given name is this short: "Zh.", "Alex."
const CLIPPED_LEN_MAX: usize = 5;

/// A name, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    words: Vec<Word>,
    /// "Jr." is 2, "III" is 3.
    generation: Option<u8>,
}

/// What was seen when two names were laid side by side. Later is more alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Likeness {
    /// Nothing in common.
    Nothing,
    /// A word in common, and something that speaks against it: other initials, another generation.
    Conflict,
    /// A word in common and others that differ.
    Shared,
    /// The same surname, and given names that begin alike.
    Kin,
    /// One word is all that one of them has, and the other has it too.
    OneWord,
    /// Two words in common, and others that differ.
    Overlap,
    /// The same words, but for a slip of the pen or a short form.
    Near,
    /// All words of the shorter are in the longer.
    Within,
    /// The same surname, and initials that fit the given names.
    Initials,
    /// The same words, written as they sound in another language.
    Sound,
    /// The same words.
    Same,
}

impl Likeness {
    /// Whether this alone is as good as the same name.
    pub(crate) fn is_firm(self) -> bool {
        self >= Self::Within
    }

    /// How sure it makes one, in thousandths.
    pub(crate) fn weight(self) -> u16 {
        match self {
            Self::Nothing | Self::Conflict => 0,
            Self::Shared => 550,
            Self::Kin => 700,
            Self::OneWord => 780,
            Self::Overlap => 850,
            Self::Near => 920,
            Self::Within => 950,
            Self::Initials => 970,
            Self::Sound => 980,
            Self::Same => 1000,
        }
    }
}

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "another name",
            Self::Conflict => "a word in common, but another person",
            Self::Shared => "one word in common",
            Self::Kin => "the same surname and first letter",
            Self::OneWord => "the one word it has",
            Self::Overlap => "two words in common",
            Self::Near => "a slip of the pen or short form",
            Self::Within => "the longer form of the name",
            Self::Initials => "the same surname and initials",
            Self::Sound => "the same name in another spelling",
            Self::Same => "the same name",
        })
    }
}

impl Name {
    pub(crate) fn parse(raw: &str) -> Self {
        let text = if raw.is_ascii() { Cow::Borrowed(raw) } else { Cow::Owned(in_latin(raw)) };
        let aside = text.bytes().any(|byte| b"([{\"'".contains(&byte));
        let bare = if aside { Cow::Owned(without_asides(&text)) } else { Cow::Borrowed(&*text) };
        let bare = if bare.chars().any(char::is_alphanumeric) { &*bare } else { &*text };
        let shouted = !bare.bytes().any(|byte| byte.is_ascii_lowercase());
        let mut words = Vec::with_capacity(4);
        let mut generation = None;
        let (mut prefix, mut lower) = (String::new(), String::new());
        for part in in_order(bare) {
            let dotted = part.ends_with('.');
            let letters = || part.chars().filter(char::is_ascii_alphanumeric);
            let is = |text: &str| letters().eq(text.chars());
            lower.clear();
            lower.push_str(&prefix);
            lower.extend(letters().map(|c| c.to_ascii_lowercase()));
            prefix.clear();
            if let Some(number) = generation_of(&lower).filter(|_| !words.is_empty()) {
                generation = Some(number);
            } else if !dotted && (is("O") || lower == "mc") {
                // "O Brien" is "O'Brien".
                prefix.push_str(&lower);
            } else if is("e") || is("y") {
                // "and" between two Portuguese or Spanish surnames.
            } else if lower.len() == 1 && !lower.starts_with(|c: char| c.is_ascii_digit()) {
                join_initial(&mut words, &lower);
            } else if !lower.is_empty() && words.len() < WORDS_MAX {
                let capitals = letters().count() <= 3 && letters().all(|c| c.is_ascii_uppercase());
                words.push(if capitals && !shouted && !dotted {
                    Word::of(&lower, Kind::Initials)
                } else if dotted
                    && lower.len() <= CLIPPED_LEN_MAX
                    && !["st", "mc"].contains(&&*lower)
                {
                    Word::of(&lower, Kind::Clipped)
                } else {
                    Word::new(&lower)
                });
            }
        }
        if !prefix.is_empty() {
            join_initial(&mut words, &prefix);
        }
        if words.is_empty() {
            // A name of nothing but signs still has to differ from another such name.
            words.push(Word::new(&raw.trim().to_lowercase()));
        }
        Self { words, generation }
    }

    /// Keys to find the name by: one for each telling word, the same for spellings that sound alike. Initials are
    /// half the world's, so they are keys only of a name that has nothing else.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let wanted = |word: &&Word| match word.kind {
            Kind::Plain => true,
            Kind::Initials | Kind::Clipped => count_plain(&self.words) == 0,
            Kind::Particle => false,
        };
        self.words.iter().filter(wanted).map(Word::sound)
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(Word::text)
    }

    /// The words in an order of their own: equal for two spellings that are the same.
    pub(crate) fn folded(&self) -> String {
        let mut words: Vec<&str> = self.words.iter().map(Word::text).collect();
        words.sort_unstable();
        let mut folded = words.join(" ");
        if let Some(generation) = self.generation {
            folded.push_str(match generation {
                1 => " i",
                2 => " ii",
                3 => " iii",
                _ => " iv",
            });
        }
        folded
    }

    /// Whether it names somebody in full: what is short stands for many people.
    pub(crate) fn is_full(&self) -> bool {
        self.words.iter().filter(|word| word.kind == Kind::Plain && word.text().len() > 1).count()
            >= 2
    }

    pub(crate) fn like(&self, other: &Self) -> Likeness {
        let likeness = self.like_words(other);
        let differ =
            matches!((self.generation, other.generation), (Some(one), Some(two)) if one != two);
        if differ && likeness > Likeness::Conflict { Likeness::Conflict } else { likeness }
    }

    fn like_words(&self, other: &Self) -> Likeness {
        if self.is_rotation_of(other) {
            return Likeness::Same;
        }
        // Words are laid out greedily, so who is laid against whom must not depend on who asks.
        let ours = self.words.iter().map(|word| (word.text(), word.kind));
        let theirs = other.words.iter().map(|word| (word.text(), word.kind));
        let laid = if ours.cmp(theirs).is_le() {
            Laid::of(&self.words, &other.words)
        } else {
            Laid::of(&other.words, &self.words)
        };
        laid.likeness()
    }

    /// The same letters when spaces go and the words are turned: "Alatengheili" and "Heili Alateng".
    fn is_rotation_of(&self, other: &Self) -> bool {
        let letters = |words: &[Word]| words.iter().map(|word| word.text().len()).sum::<usize>();
        if letters(&self.words) != letters(&other.words) {
            return false;
        }
        let turns_to = |words: &[Word], ours: &[Word]| {
            let ours: String = ours.iter().map(Word::text).collect();
            (0..words.len()).any(|turn| {
                let (head, tail) = words.split_at(turn);
                let turned = tail.iter().chain(head).flat_map(|word| word.text().bytes());
                turned.eq(ours.bytes())
            })
        };
        turns_to(&self.words, &other.words) || turns_to(&other.words, &self.words)
    }
}

/// Two names laid word against word.
#[derive(Debug)]
struct Laid<'a> {
    /// The weakest of the words that met, and how many of them are words rather than initials.
    weakest: Alike,
    met: usize,
    telling: usize,
    /// A telling word that met is the last of both.
    surname: bool,
    left: Vec<&'a Word>,
    right: Vec<&'a Word>,
    plain: (usize, usize),
}

/// How each word of one name is each of another.
type Table = [[Alike; WORDS_MAX]; WORDS_MAX];

impl<'a> Laid<'a> {
    fn of(ours: &'a [Word], theirs: &'a [Word]) -> Self {
        let mut laid = Self {
            weakest: Alike::Equal,
            met: 0,
            telling: 0,
            surname: false,
            left: Vec::new(),
            right: Vec::new(),
            plain: (count_plain(ours), count_plain(theirs)),
        };
        let mut table: Table = [[Alike::No; WORDS_MAX]; WORDS_MAX];
        for (row, word) in table.iter_mut().zip(ours) {
            for (alike, other) in row.iter_mut().zip(theirs) {
                *alike = word.alike(other);
            }
        }
        let last = |words: &[Word]| words.iter().rposition(Word::is_telling);
        let surnames = (last(ours), last(theirs));
        let (mut free, mut their_free) = ([true; WORDS_MAX], [true; WORDS_MAX]);
        for wanted in [Alike::Equal, Alike::Sound] {
            laid.meet_words(wanted, &table, (ours, &mut free), (theirs, &mut their_free), surnames);
        }
        laid.take_rest((ours, &free), (theirs, &their_free));
        if laid.meet_compounds() {
            // Words that stood side by side are gone: who is left is found anew.
            let is_left = |rest: &[&Word], word: &Word| rest.iter().any(|w| std::ptr::eq(*w, word));
            for (free, word) in free.iter_mut().zip(ours) {
                *free &= is_left(&laid.left, word);
            }
            for (free, word) in their_free.iter_mut().zip(theirs) {
                *free &= is_left(&laid.right, word);
            }
        }
        for wanted in [Alike::Close, Alike::Short] {
            laid.meet_words(wanted, &table, (ours, &mut free), (theirs, &mut their_free), surnames);
        }
        laid.take_rest((ours, &free), (theirs, &their_free));
        laid.meet_initials();
        laid.left.retain(|word| word.kind != Kind::Particle);
        laid.right.retain(|word| word.kind != Kind::Particle);
        laid
    }

    fn meet_words(
        &mut self,
        wanted: Alike,
        table: &Table,
        (ours, free): (&[Word], &mut [bool; WORDS_MAX]),
        (theirs, their_free): (&[Word], &mut [bool; WORDS_MAX]),
        surnames: (Option<usize>, Option<usize>),
    ) {
        for (at, ((word, free), row)) in ours.iter().zip(free).zip(table).enumerate() {
            let mut others = theirs.iter().zip(&mut *their_free).zip(row).enumerate();
            let met = others
                .find(|(_, ((_, their_free), alike))| *free && **their_free && **alike == wanted);
            if let Some((found, ((other, their_free), _))) = met {
                (*free, *their_free) = (false, false);
                self.note(wanted);
                self.telling += usize::from(word.is_telling() && other.is_telling());
                self.surname |= surnames == (Some(at), Some(found));
            }
        }
    }

    fn take_rest(
        &mut self,
        (ours, free): (&'a [Word], &[bool; WORDS_MAX]),
        (theirs, their_free): (&'a [Word], &[bool; WORDS_MAX]),
    ) {
        let rest = |words: &'a [Word], free: &[bool; WORDS_MAX]| {
            words.iter().zip(free).filter(|(_, free)| **free).map(|(word, _)| word).collect()
        };
        (self.left, self.right) = (rest(ours, free), rest(theirs, their_free));
    }

    /// "Doo Ho" and "Dooho", "Al Hassan" and "Alhassan".
    fn meet_compounds(&mut self) -> bool {
        if let Some((from, found)) = compound(&self.left, &self.right) {
            self.left.drain(from..from + 2);
            self.right.remove(found);
        } else if let Some((from, found)) = compound(&self.right, &self.left) {
            self.right.drain(from..from + 2);
            self.left.remove(found);
        } else {
            return false;
        }
        self.note(Alike::Sound);
        self.telling += 1;
        true
    }

    /// Initials meet the words they begin, all of them or none.
    fn meet_initials(&mut self) {
        if take_initials(&mut self.left, &mut self.right)
            || take_initials(&mut self.right, &mut self.left)
        {
            self.note(Alike::Initial);
        }
    }

    fn note(&mut self, alike: Alike) {
        self.met += 1;
        self.weakest = self.weakest.min(alike);
    }

    fn likeness(&self) -> Likeness {
        if self.telling == 0 {
            // Particles or initials alone say nothing.
            return if self.met > 0 && self.left.is_empty() && self.right.is_empty() {
                Likeness::OneWord
            } else {
                Likeness::Nothing
            };
        }
        match (self.left.is_empty(), self.right.is_empty()) {
            (true, true) => match self.weakest {
                Alike::Equal => Likeness::Same,
                Alike::Sound => Likeness::Sound,
                Alike::Initial => Likeness::Initials,
                Alike::Close | Alike::Short | Alike::No => Likeness::Near,
            },
            (false, false) => self.likeness_despite_rest(),
            _ if self.met < 2 => self.likeness_of_one(),
            _ if self.weakest == Alike::Initial => Likeness::Initials,
            _ if matches!(self.weakest, Alike::Close | Alike::Short) => Likeness::Near,
            _ => Likeness::Within,
        }
    }

    /// One word met, and only one of the names has more.
    fn likeness_of_one(&self) -> Likeness {
        let (ours, theirs) = self.plain;
        let shorter = ours.min(theirs) == 1;
        if self.weakest >= Alike::Close && shorter { Likeness::OneWord } else { Likeness::Shared }
    }

    fn likeness_despite_rest(&self) -> Likeness {
        let initials = |words: &[&Word]| words.iter().any(|word| word.is_abbreviation());
        if initials(&self.left) || initials(&self.right) {
            return Likeness::Conflict;
        }
        if self.met >= 2 {
            return Likeness::Overlap;
        }
        let first = |words: &[&Word]| words.first().and_then(|word| word.text().chars().next());
        if self.surname && self.weakest >= Alike::Sound && first(&self.left) == first(&self.right) {
            Likeness::Kin
        } else {
            Likeness::Shared
        }
    }
}

fn count_plain(words: &[Word]) -> usize {
    words.iter().filter(|word| word.kind == Kind::Plain).count()
}

/// Two words side by side in one that are one word in the other.
fn compound(pairs: &[&Word], singles: &[&Word]) -> Option<(usize, usize)> {
    pairs.windows(2).enumerate().find_map(|(from, pair)| {
        let [first, second] = pair else { return None };
        let found = singles.iter().position(|single| {
            single.text().len() == first.text().len() + second.text().len()
                && single.text().starts_with(first.text())
                && single.text().ends_with(second.text())
        })?;
        Some((from, found))
    })
}

/// Takes the abbreviation of the one and the words of the other that it stands for.
fn take_initials(initials: &mut Vec<&Word>, words: &mut Vec<&Word>) -> bool {
    let Some(at) = initials.iter().position(|word| word.is_abbreviation()) else {
        return false;
    };
    let Some(short) = initials.get(at).copied() else { return false };
    let taken = if short.kind == Kind::Clipped {
        words.iter().position(|word| word.text().starts_with(short.text())).into_iter().collect()
    } else {
        begun_by(short.text(), words)
    };
    if taken.is_empty() {
        return false;
    }
    initials.remove(at);
    for i in taken.into_iter().rev() {
        words.remove(i);
    }
    true
}

/// The words that the letters begin, in their order. Either all letters have a word ("J.M." for "Juan Martin"), or
/// the words that are left all have a letter ("M.T." for "Tomas"): what sources leave out differs.
fn begun_by(letters: &str, words: &[&Word]) -> Vec<usize> {
    let mut taken = Vec::new();
    let mut rest = letters.chars();
    for (i, word) in words.iter().enumerate().filter(|(_, word)| !word.is_abbreviation()) {
        let mut ahead = rest.clone();
        if ahead.any(|letter| word.text().starts_with(letter)) {
            rest = ahead;
            taken.push(i);
        }
    }
    let unused = letters.len() - taken.len();
    let unmet =
        words.iter().filter(|word| word.kind == Kind::Plain).count().saturating_sub(taken.len());
    if unused == 0 || unmet == 0 { taken } else { Vec::new() }
}

fn join_initial(words: &mut Vec<Word>, letter: &str) {
    let full = words.len() >= WORDS_MAX;
    match words.last_mut() {
        Some(last) if last.kind == Kind::Initials && last.text().len() < WORDS_MAX => {
            *last = Word::of(&format!("{}{letter}", last.text()), Kind::Initials);
        }
        _ if !full => words.push(Word::of(letter, Kind::Initials)),
        _ => {}
    }
}

fn generation_of(word: &str) -> Option<u8> {
    match word {
        "sr" | "snr" | "senior" => Some(1),
        "jr" | "jnr" | "junior" | "ii" | "2nd" => Some(2),
        "iii" | "3rd" => Some(3),
        "iv" | "4th" => Some(4),
        _ => None,
    }
}

/// The words, given names first: "Prochazka, Jiri" is turned, "Charlo, Jr." is not.
fn in_order<'a>(text: &'a str) -> Vec<&'a str> {
    // "O'Neil" stays in one piece, and "J.J." comes apart after each dot.
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '\'' || c == '`';
    let words = |text: &'a str| -> Vec<&'a str> {
        let mut found = Vec::with_capacity(4);
        let mut rest = text;
        while let Some(from) = rest.find(inside) {
            rest = rest.get(from..).unwrap_or_default();
            let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
            let dot = usize::from(rest.as_bytes().get(end) == Some(&b'.'));
            found.extend(rest.get(..end + dot));
            rest = rest.get(end + dot..).unwrap_or_default();
        }
        found
    };
    match text.split_once(',') {
        Some((surname, given)) if !given.contains(',') => {
            let given = words(given);
            let is_generation = |word: &&str| {
                generation_of(&word.trim_end_matches('.').to_ascii_lowercase()).is_some()
            };
            if given.iter().all(is_generation) {
                words(surname).into_iter().chain(given).collect()
            } else {
                given.into_iter().chain(words(surname)).collect()
            }
        }
        _ => words(text),
    }
}

/// The text in Latin letters. Russian names with a "yo" are written with an "e" abroad, as mostly at home.
fn in_latin(text: &str) -> String {
    if text.contains(['ё', 'Ё']) {
        deunicode::deunicode(&text.replace('ё', "е").replace('Ё', "Е"))
    } else {
        deunicode::deunicode(text)
    }
}

/// The text without what stands in brackets or quotes.
fn without_asides(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut closing: Option<char> = None;
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match closing {
            Some(end) if c == end => {
                closing = None;
                out.push(' ');
            }
            Some(_) => {}
            None => match c {
                '(' => closing = Some(')'),
                '[' => closing = Some(']'),
                '{' => closing = Some('}'),
                '"' => closing = Some('"'),
                // A quote before a word that another closes; "O'Neil" and "D'Angelo" have it inside.
                '\'' if before == ' ' && closes(chars.clone()) => closing = Some('\''),
                _ => out.push(c),
            },
        }
        before = c;
    }
    out
}

/// Whether the quoted word ends before the text does.
fn closes(rest: impl Iterator<Item = char>) -> bool {
    let rest: String = rest.collect();
    rest.split_once('\'').is_some_and(|(_, after)| after.is_empty() || after.starts_with(' '))
}

#[cfg(test)]
mod tests;
