//! The names, prices and lines used by the model test. The spellings of one name are listed here, not computed, so
//! that the model shares no folding with the book.

use domain::Format;

/// One row per person.
pub(crate) const PEOPLE: [[&str; 3]; 4] = [
    ["Jiří Procházka", "JIRI  PROCHAZKA", "jiri prochazka"],
    ["Alex Pereira", "ALEX PEREIRA", "Alex-Pereira."],
    ["Sean O'Malley", "Sean O’Malley", "sean omalley"],
    ["B.J. Penn", "BJ Penn", "bj  penn"],
];

/// One row per tournament.
pub(crate) const TITLES: [[&str; 2]; 2] =
    [["The Harbour Open", "the harbour-open"], ["Désert Classic", "DESERT CLASSIC"]];

/// Words that are names only in a market with players.
pub(crate) const WORDS: [&str; 4] = ["Draw", "tie", "OVER", "under"];

pub(crate) fn person(name: &str) -> Option<usize> {
    let people = PEOPLE.iter().position(|spellings| spellings.contains(&name));
    people.or_else(|| Some(PEOPLE.len() + WORDS.iter().position(|word| *word == name)?))
}

pub(crate) fn tournament(title: &str) -> Option<usize> {
    TITLES.iter().position(|spellings| spellings.contains(&title))
}

/// A quoted price, and its answers in American, decimal and fractional form.
#[derive(Debug)]
pub(crate) struct Priced {
    pub(crate) text: &'static str,
    pub(crate) format: Format,
    pub(crate) answers: [&'static str; 3],
}

pub(crate) const PRICES: [Priced; 5] = [
    Priced { text: "-110", format: Format::American, answers: ["-110", "1.909", "\"10/11\""] },
    Priced { text: "+150", format: Format::American, answers: ["150", "2.5", "\"3/2\""] },
    // The same value in another format is another quote.
    Priced { text: "2.50", format: Format::Decimal, answers: ["150", "2.5", "\"3/2\""] },
    Priced { text: "1.9375", format: Format::Decimal, answers: ["-107", "1.9375", "\"15/16\""] },
    Priced { text: "2/6", format: Format::Fractional, answers: ["-300", "1.333", "\"1/3\""] },
];

pub(crate) const LINES: [&str; 3] = ["-3.5", "2.25", "47"];
