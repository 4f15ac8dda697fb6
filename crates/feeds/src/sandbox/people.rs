//! Invented people: plausible names that belong to nobody.
//!
//! Surnames are combinations of invented roots and endings, so that none is a known athlete; given names are
//! ordinary. The cases that are hard for clients are included on purpose: accents, hyphens, apostrophes, `Jr.`, and
//! several people with one surname. A person is a position in a circuit's roster; two positions never share a name.

use super::noise::{below, mix, pick};
use super::origins::{Mark, ORIGINS};

/// A circuit with its roster. Circuits use the same names but never share a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Circuit {
    Mma,
    Boxing,
    TennisMen,
    TennisWomen,
    GolfMen,
    GolfWomen,
}

const REGIONS: u64 = 12;
const MEN: u64 = REGIONS * 16 * 50;
const WOMEN: u64 = REGIONS * 10 * 50;
/// A prime that does not divide the numbers of names, so that multiplying by it visits each name once.
const STRIDE: u64 = 4871;

impl Circuit {
    /// The index of this circuit's share of the names, and the number of shares.
    const fn share(self) -> (u64, u64) {
        match self {
            Self::Mma => (0, 4),
            Self::Boxing => (1, 4),
            Self::TennisMen => (2, 4),
            Self::GolfMen => (3, 4),
            Self::TennisWomen => (0, 2),
            Self::GolfWomen => (1, 2),
        }
    }

    const fn women(self) -> bool {
        matches!(self, Self::TennisWomen | Self::GolfWomen)
    }
}

/// The name of the `index`th person of a circuit (below 2400 for men, 3000 for women).
pub(crate) fn name(seed: u64, circuit: Circuit, index: u64) -> Box<str> {
    let (share, shares) = circuit.share();
    let all = if circuit.women() { WOMEN } else { MEN };
    let position = ((index + share * (all / shares)) * STRIDE + below(mix(seed, 0x9e0), all)) % all;
    let (region, rest) = (position % REGIONS, position / REGIONS);
    let (surname, given) = (rest % 50, rest / 50);
    let Some(origin) = usize::try_from(region).ok().and_then(|i| ORIGINS.get(i)) else {
        return "".into();
    };
    let (given_names, endings) = if circuit.women() {
        (origin.women, origin.endings_women)
    } else {
        (origin.men, origin.endings)
    };
    let mut text = format!("{} ", word(given_names, given));
    let family = |text: &mut String, n: u64| {
        text.push_str(word(origin.roots, n % 10));
        text.push_str(word(endings, n / 10 % 5));
    };
    // The features of a name depend on the name, so a name with one never occurs without it.
    let variant = mix(position, 0x517);
    for mark in origin.marks {
        if let Mark::Particle(particle) = mark
            && variant.is_multiple_of(13)
        {
            text.push_str(particle);
        }
    }
    family(&mut text, surname);
    if origin.marks.contains(&Mark::Doubled) && variant % 9 == 1 {
        text.push('-');
        family(&mut text, surname + 17);
    }
    if origin.marks.contains(&Mark::Junior) && variant % 11 == 2 {
        text.push_str(" Jr.");
    }
    text.into()
}

/// The `n`th word of a list.
fn word(list: &'static str, n: u64) -> &'static str {
    usize::try_from(n).ok().and_then(|n| list.split(' ').nth(n)).unwrap_or_default()
}

/// Position `p` of `n` in an order that depends on `key`. `n` must have no prime factors other than 2, 3 and 5.
pub(crate) fn shuffled(key: u64, p: u64, n: u64) -> u64 {
    const MULTIPLIERS: [u64; 20] =
        [7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83];
    let by = pick(mix(key, 1), &MULTIPLIERS).unwrap_or(7);
    below(p * by + below(mix(key, 2), n), n)
}

/// The roster position at `turn`, for a roster of four groups of size `group`.
///
/// The groups alternate, each in a new order every time, so that nobody returns before the three other groups had
/// their turns.
pub(crate) fn at_turn(key: u64, turn: i64, group: u64) -> u64 {
    let size = i64::try_from(group).unwrap_or(1).max(1);
    let (epoch, place) = (turn.div_euclid(size), turn.rem_euclid(size));
    let place = u64::try_from(place).unwrap_or(0);
    let base = u64::try_from(epoch.rem_euclid(4)).unwrap_or(0) * group;
    base + shuffled(mix(key, epoch.cast_unsigned()), place, group)
}

#[cfg(test)]
mod tests;
