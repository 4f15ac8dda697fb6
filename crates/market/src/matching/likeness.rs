//! The likeness of two names, compared word by word in any order. The result is not a number but a category, so that
//! it can be displayed and reasoned about.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::effort;
use super::name::{Name, WORDS_MAX};
use super::word::{Alike, Kind, Word};

/// This number of word pairs costs as much as one typing-error check.
const PAIRS_OF_A_UNIT: usize = 8;
/// Maximum number of typing-error checks for two names. Names of people need two or three; a name of words that are
/// all nearly the same would need two hundred.
const CLOSE_LOOKS_MAX: usize = 8;

/// The result of comparing two names, in ascending order of likeness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Likeness {
    /// No common word.
    Nothing,
    /// A common word, and a contradiction: other initials, another generation.
    Conflict,
    /// A common word, and others that differ.
    Shared,
    /// The same surname, and given names with the same first letter.
    Kin,
    /// One of them is a single word, which the other has too.
    OneWord,
    /// Two common words, and others that differ.
    Overlap,
    /// The same words, except for a typing error or a short form.
    Near,
    /// All words of the shorter are in the longer; or other evidence shows that it is the same.
    Within,
    /// The same surname, and initials that match the given names.
    Initials,
    /// The same words, spelled as they sound in another language.
    Sound,
    /// The same words.
    Same,
}

impl Likeness {
    /// True if this alone is as good as the same name.
    pub(crate) fn is_firm(self) -> bool {
        self >= Self::Within
    }

    /// The weight in a confidence, in thousandths.
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
            Self::OneWord => "its only word",
            Self::Overlap => "two words in common",
            Self::Near => "a typing error or short form",
            Self::Within => "another form of the name",
            Self::Initials => "the same surname and initials",
            Self::Sound => "the same name in another spelling",
            Self::Same => "the same name",
        })
    }
}

impl Name {
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
        // Words are matched greedily, so the order of the two names is fixed: the result must not depend on the
        // caller's.
        let ours = self.each().map(|word| (word.text, word.kind));
        let theirs = other.each().map(|word| (word.text, word.kind));
        let laid =
            if ours.cmp(theirs).is_le() { Laid::of(self, other) } else { Laid::of(other, self) };
        laid.likeness()
    }
}

/// The words of a name in order, with a bit set for each that is unmatched.
#[derive(Debug)]
struct Row<'a> {
    words: [Word<'a>; WORDS_MAX],
    count: usize,
    free: u16,
}

/// The state of comparing two names word by word.
#[derive(Debug)]
struct Laid<'a> {
    left: Row<'a>,
    right: Row<'a>,
    /// The weakest match of words, the number of matches, and the number of those that are words rather than
    /// initials.
    weakest: Alike,
    met: usize,
    telling: usize,
    /// True if a matched word is the last significant one of both names.
    surname: bool,
}

impl<'a> Row<'a> {
    fn of(name: &'a Name) -> Self {
        let mut row = Self { words: [Word::BLANK; WORDS_MAX], count: 0, free: 0 };
        for (at, (to, word)) in row.words.iter_mut().zip(name.each()).enumerate() {
            *to = word;
            row.count = at + 1;
            row.free |= 1 << at;
        }
        row
    }

    fn words(&self) -> impl DoubleEndedIterator<Item = (usize, &Word<'a>)> + ExactSizeIterator {
        self.words.get(..self.count).unwrap_or_default().iter().enumerate()
    }

    /// The word at a position, if it is unmatched.
    fn free_word(&self, at: usize) -> Option<Word<'a>> {
        self.words.get(at).filter(|_| self.is_free(at)).copied()
    }

    fn is_free(&self, at: usize) -> bool {
        self.free >> at & 1 == 1
    }

    fn take(&mut self, at: usize) {
        self.free &= !(1 << at);
    }

    /// The unmatched words.
    fn rest(&self) -> impl Iterator<Item = (usize, &Word<'a>)> {
        self.words().filter(|(at, _)| self.is_free(*at))
    }

    fn has_rest(&self) -> bool {
        self.free != 0
    }

    fn surname(&self) -> Option<usize> {
        self.words().rfind(|(_, word)| word.is_telling()).map(|(at, _)| at)
    }

    fn count_plain(&self) -> usize {
        self.words().filter(|(_, word)| word.kind == Kind::Plain).count()
    }

    /// Marks particles as matched: some sources omit them.
    fn leave_out_particles(&mut self) {
        for (at, word) in self.words.iter().enumerate() {
            if word.kind == Kind::Particle {
                self.free &= !(1 << at);
            }
        }
    }
}

impl<'a> Laid<'a> {
    fn of(one: &'a Name, other: &'a Name) -> Self {
        let mut laid = Self {
            left: Row::of(one),
            right: Row::of(other),
            weakest: Alike::Equal,
            met: 0,
            telling: 0,
            surname: false,
        };
        effort::spend(1 + laid.left.count * laid.right.count / PAIRS_OF_A_UNIT);
        laid.meet_all(Alike::Equal, |one, other| one.text == other.text);
        laid.meet_all(Alike::Sound, Word::sounds_like);
        laid.meet_compounds();
        let mut looks = CLOSE_LOOKS_MAX;
        laid.meet_all(Alike::Close, |one, other| {
            let before = effort::spent();
            let close = looks > 0 && one.is_close_to(other);
            looks = looks.saturating_sub(effort::spent() - before);
            close
        });
        laid.meet_all(Alike::Short, Word::is_short_for);
        laid.meet_initials();
        laid.left.leave_out_particles();
        laid.right.leave_out_particles();
        laid
    }

    /// Matches each unmatched word with the first similar unmatched word of the other name. Matched words are
    /// skipped, so most words are compared with only a few.
    fn meet_all(&mut self, how: Alike, mut alike: impl FnMut(&Word<'a>, &Word<'a>) -> bool) {
        let surnames = (self.left.surname(), self.right.surname());
        for at in 0..self.left.count {
            let Some(word) = self.left.free_word(at) else { continue };
            let found = (0..self.right.count).find(|found| {
                self.right.free_word(*found).is_some_and(|other| alike(&word, &other))
            });
            if let Some(found) = found {
                self.meet((at, found), how);
                self.surname |= surnames == (Some(at), Some(found));
            }
        }
    }

    fn meet(&mut self, (at, found): (usize, usize), alike: Alike) {
        let is_telling = |row: &Row<'_>, at: usize| row.words.get(at).is_some_and(Word::is_telling);
        self.telling += usize::from(is_telling(&self.left, at) && is_telling(&self.right, found));
        self.left.take(at);
        self.right.take(found);
        self.note(alike);
    }

    /// "Doo Ho" and "Dooho", "Al Hassan" and "Alhassan".
    fn meet_compounds(&mut self) {
        if take_compound(&mut self.left, &mut self.right)
            || take_compound(&mut self.right, &mut self.left)
        {
            self.note(Alike::Sound);
            self.telling += 1;
        }
    }

    /// Matches initials with the words they begin, all of them or none.
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
            // Particles or initials alone are no evidence.
            return if self.met > 0 && !self.left.has_rest() && !self.right.has_rest() {
                Likeness::OneWord
            } else {
                Likeness::Nothing
            };
        }
        match (self.left.has_rest(), self.right.has_rest()) {
            (false, false) => match self.weakest {
                Alike::Equal => Likeness::Same,
                Alike::Sound => Likeness::Sound,
                Alike::Initial => Likeness::Initials,
                Alike::Close | Alike::Short => Likeness::Near,
            },
            (true, true) => self.likeness_despite_rest(),
            _ if self.met < 2 => self.likeness_of_one(),
            _ if self.weakest == Alike::Initial => Likeness::Initials,
            _ if matches!(self.weakest, Alike::Close | Alike::Short) => Likeness::Near,
            _ => Likeness::Within,
        }
    }

    /// The likeness if one word matches and only one of the names has more.
    fn likeness_of_one(&self) -> Likeness {
        let shorter = self.left.count_plain().min(self.right.count_plain()) == 1;
        if self.weakest >= Alike::Close && shorter { Likeness::OneWord } else { Likeness::Shared }
    }

    fn likeness_despite_rest(&self) -> Likeness {
        let initials = |row: &Row<'_>| row.rest().any(|(_, word)| word.is_abbreviation());
        if initials(&self.left) || initials(&self.right) {
            return Likeness::Conflict;
        }
        if self.met >= 2 {
            return Likeness::Overlap;
        }
        let first =
            |row: &Row<'_>| row.rest().next().and_then(|(_, word)| word.text.chars().next());
        if self.surname && self.weakest >= Alike::Sound && first(&self.left) == first(&self.right) {
            Likeness::Kin
        } else {
            Likeness::Shared
        }
    }
}

/// Matches two consecutive words of one name with one word of the other.
fn take_compound(pairs: &mut Row<'_>, singles: &mut Row<'_>) -> bool {
    let found = pairs.rest().zip(pairs.rest().skip(1)).find_map(|((at, first), (next, second))| {
        let (single, _) = singles.rest().find(|(_, single)| {
            single.text.len() == first.text.len() + second.text.len()
                && single.text.starts_with(first.text)
                && single.text.ends_with(second.text)
        })?;
        Some((at, next, single))
    });
    let Some((at, next, single)) = found else { return false };
    pairs.take(at);
    pairs.take(next);
    singles.take(single);
    true
}

/// Matches an abbreviation of one name with the words of the other that it means.
fn take_initials(initials: &mut Row<'_>, words: &mut Row<'_>) -> bool {
    let Some((at, short)) = initials.rest().find(|(_, word)| word.is_abbreviation()) else {
        return false;
    };
    let taken = if short.kind == Kind::Clipped {
        let begun = words.rest().find(|(_, word)| word.text.starts_with(short.text));
        begun.map_or(0, |(at, _)| 1 << at)
    } else {
        begun_by(short.text, words)
    };
    if taken == 0 {
        return false;
    }
    initials.take(at);
    words.free &= !taken;
    true
}

/// The words that begin with the letters, in order, as bits.
///
/// Either all letters have a word ("J.M." for "Juan Martin"), or all unmatched words have a letter ("M.T." for
/// "Tomas"): sources omit different names.
fn begun_by(letters: &str, words: &Row<'_>) -> u16 {
    let (mut taken, mut count) = (0, 0);
    let mut rest = letters.chars();
    for (at, word) in words.rest().filter(|(_, word)| !word.is_abbreviation()) {
        let mut ahead = rest.clone();
        if ahead.any(|letter| word.text.starts_with(letter)) {
            rest = ahead;
            taken |= 1 << at;
            count += 1;
        }
    }
    let unused = letters.len() - count;
    let plain = words.rest().filter(|(_, word)| word.kind == Kind::Plain).count();
    if unused == 0 || plain <= count { taken } else { 0 }
}
