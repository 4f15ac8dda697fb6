//! Names of people and teams as sources write them, split into words.
//!
//! Removes accents, case, punctuation, nicknames in quotes, country tags in brackets and the order with the surname
//! first. The names of a listing are parsed once and kept, hundreds of thousands of them, so a name is small: one
//! text with the letters of all its words, and the end of each.

use std::borrow::Cow;

use domain::message::without_remark;

use super::word::{Forms, Kind, Word, push_sound};

/// Maximum number of words of a name; a longer one is a mistake or an attack.
pub(super) const WORDS_MAX: usize = 10;
/// Maximum number of letters of a word. Its sound has at most twice as many, which fits a byte.
const LETTERS_MAX: usize = 120;
/// Maximum length of a clipped given name: "Zh.", "Alex."
const CLIPPED_LEN_MAX: usize = 5;

/// A parsed name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Each word's text, followed by its sound.
    letters: Box<str>,
    parts: [Part; WORDS_MAX],
    count: u8,
    /// "Jr." is 2, "III" is 3.
    pub(super) generation: Option<u8>,
}

/// The lengths of a word in the letters of its name, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    text_len: u8,
    sound_len: u8,
    kind: Kind,
    forms: Forms,
}

/// A name during parsing.
#[derive(Debug)]
struct Words {
    letters: String,
    parts: [Part; WORDS_MAX],
    count: usize,
}

impl Name {
    pub(crate) fn parse(raw: &str) -> Self {
        let bare = bare(raw);
        let bare = &*bare;
        let shouted = !bare.bytes().any(|byte| byte.is_ascii_lowercase());
        let mut words = Words::with_room_for(bare);
        let mut generation = None;
        let (mut prefix, mut lower) = (String::new(), String::with_capacity(bare.len()));
        for part in in_order(bare) {
            let dotted = part.ends_with('.');
            let letters = || part.chars().filter(char::is_ascii_alphanumeric);
            let is = |text: &str| letters().eq(text.chars());
            lower.clear();
            lower.push_str(&prefix);
            lower.extend(letters().map(|c| c.to_ascii_lowercase()));
            prefix.clear();
            if let Some(number) = generation_of(&lower).filter(|_| words.count > 0) {
                generation = Some(number);
            } else if !dotted && (is("O") || lower == "mc") {
                // "O Brien" is "O'Brien".
                prefix.push_str(&lower);
            } else if is("e") || is("y") {
                // "and" between two Portuguese or Spanish surnames.
            } else if lower.len() == 1 && !lower.starts_with(|c: char| c.is_ascii_digit()) {
                words.join_initial(&lower);
            } else if !lower.is_empty() {
                let capitals = letters().count() <= 3 && letters().all(|c| c.is_ascii_uppercase());
                if capitals && !shouted && !dotted {
                    words.push(&lower, Kind::Initials);
                } else if dotted
                    && lower.len() <= CLIPPED_LEN_MAX
                    && !["st", "mc"].contains(&&*lower)
                {
                    words.push(&lower, Kind::Clipped);
                } else {
                    words.push_whole(&lower);
                }
            }
        }
        if !prefix.is_empty() {
            words.join_initial(&prefix);
        }
        if words.count == 0 {
            // Names without any letter or digit must still differ from each other.
            words.push_whole(&raw.trim().to_lowercase());
        }
        let count = u8::try_from(words.count).unwrap_or(u8::MAX);
        Self { letters: words.letters.into(), parts: words.parts, count, generation }
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().take(usize::from(self.count))
    }

    pub(super) fn each(&self) -> impl Iterator<Item = Word<'_>> {
        let mut rest = &*self.letters;
        self.parts().map(move |part| {
            let (text, after) = rest.split_at_checked(part.text_len.into()).unwrap_or_default();
            let (sound, after) = after.split_at_checked(part.sound_len.into()).unwrap_or_default();
            rest = after;
            Word { text, sound, kind: part.kind, forms: part.forms }
        })
    }

    /// Index keys of the name: one for each significant word, equal for spellings that sound alike. Initials are too
    /// common, so they are keys only of a name without other words.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let has_plain = self.parts().any(|part| part.kind == Kind::Plain);
        let wanted = move |word: &Word<'_>| match word.kind {
            Kind::Plain => true,
            Kind::Initials | Kind::Clipped => !has_plain,
            Kind::Particle => false,
        };
        self.each().filter(wanted).map(|word| word.sound)
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.each().map(|word| word.text)
    }

    pub(super) fn has_generation(&self) -> bool {
        self.generation.is_some()
    }

    /// The words in sorted order: equal for equal spellings in any order.
    pub(crate) fn folded(&self) -> String {
        let mut words: Vec<&str> = self.words().collect();
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

    /// True if it is a full name: a short one means many people.
    pub(crate) fn is_full(&self) -> bool {
        self.each().filter(Word::is_telling).count() >= 2
    }

    /// True if the letters are the same, ignoring spaces, with the words rotated: "Alatengheili" and "Heili Alateng".
    pub(super) fn is_rotation_of(&self, other: &Self) -> bool {
        let letters =
            |name: &Self| name.parts().map(|part| usize::from(part.text_len)).sum::<usize>();
        if letters(self) != letters(other) {
            return false;
        }
        if self.words().eq(other.words()) {
            return true;
        }
        let (ours, theirs): (String, String) = (self.words().collect(), other.words().collect());
        let turns_to = |name: &Self, turned: &str, ours: &str| {
            let mut at = 0;
            name.parts().any(|part| {
                let (before, after) = turned.split_at_checked(at).unwrap_or_default();
                at += usize::from(part.text_len);
                ours.starts_with(after) && ours.ends_with(before)
            })
        };
        turns_to(self, &ours, &theirs) || turns_to(other, &theirs, &ours)
    }
}

impl Words {
    fn with_room_for(text: &str) -> Self {
        let none = Part { text_len: 0, sound_len: 0, kind: Kind::Plain, forms: Forms::default() };
        let letters = String::with_capacity(2 * text.len() + 2);
        Self { letters, parts: [none; WORDS_MAX], count: 0 }
    }

    fn push_whole(&mut self, text: &str) {
        // "St. Preux" and "Saint Preux" are the same.
        let text = if text == "st" { "saint" } else { text };
        self.push(text, Kind::of(text));
    }

    fn push(&mut self, text: &str, kind: Kind) {
        let Some(part) = self.parts.get_mut(self.count) else { return };
        let text = text.get(..text.floor_char_boundary(LETTERS_MAX)).unwrap_or_default();
        self.letters.push_str(text);
        let before = self.letters.len();
        push_sound(text, &mut self.letters);
        let len = |len: usize| u8::try_from(len).unwrap_or(u8::MAX);
        let sound_len = len(self.letters.len() - before);
        *part = Part { text_len: len(text.len()), sound_len, kind, forms: Forms::of(text) };
        self.count += 1;
    }

    /// Joins an initial to the previous ones: "J. M." is "J.M.".
    fn join_initial(&mut self, letter: &str) {
        let last = self.count.checked_sub(1).and_then(|last| self.parts.get(last)).copied();
        match last {
            Some(last) if last.kind == Kind::Initials && usize::from(last.text_len) < WORDS_MAX => {
                let len = usize::from(last.text_len) + usize::from(last.sound_len);
                let from = self.letters.len() - len;
                let mut text = self.letters.split_off(from);
                text.truncate(last.text_len.into());
                self.count -= 1;
                self.push(&(text + letter), Kind::Initials);
            }
            _ => self.push(letter, Kind::Initials),
        }
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

/// The words, given names first: "Prochazka, Jiri" is reordered, "Charlo, Jr." is not.
fn in_order<'a>(text: &'a str) -> Vec<&'a str> {
    // "O'Neil" stays one word, and "J.J." is split after each dot.
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

/// The text in Latin letters. Russian "yo" is written as "e", as is usual abroad and often at home.
fn in_latin(text: &str) -> String {
    if text.contains(['ё', 'Ё']) {
        deunicode::deunicode(&text.replace('ё', "е").replace('Ё', "Е"))
    } else {
        deunicode::deunicode(text)
    }
}

/// A name in Latin letters, without text in brackets or quotes and without a remark after it; unchanged if nothing
/// else would be left.
pub(super) fn bare(raw: &str) -> Cow<'_, str> {
    let text = if raw.is_ascii() { Cow::Borrowed(raw) } else { Cow::Owned(in_latin(raw)) };
    let aside = text.bytes().any(|byte| b"([{\"'".contains(&byte));
    let remark = text.bytes().any(|byte| b";*".contains(&byte)) || text.contains("- ");
    if !aside && !remark {
        return text;
    }
    let bare = if aside { without_asides(&text) } else { text.clone().into_owned() };
    let bare = without_remark(bare.trim());
    if bare.contains(char::is_alphanumeric) { Cow::Owned(bare.to_owned()) } else { text }
}

/// The text without the parts in brackets or quotes.
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
                // An opening quote before a word that is closed later; "O'Neil" and "D'Angelo" have it inside.
                '\'' if before == ' ' && closes(chars.clone()) => closing = Some('\''),
                _ => out.push(c),
            },
        }
        before = c;
    }
    out
}

/// True if the quoted word ends before the text does.
fn closes(rest: impl Iterator<Item = char>) -> bool {
    let rest: String = rest.collect();
    rest.split_once('\'').is_some_and(|(_, after)| after.is_empty() || after.starts_with(' '))
}

#[cfg(test)]
mod tests;
