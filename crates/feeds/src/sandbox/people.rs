//! Invented people: names that sound like somewhere and belong to nobody.
//!
//! Surnames are put together from invented roots and endings, so that no combination is a known athlete; given names
//! are ordinary. The hard cases a client meets are there on purpose: accents, hyphens, apostrophes, `Jr.`, and
//! several people of one surname. A person is a position in a circuit's roster; two positions never share a name.

use super::noise::{below, mix, pick};
use super::origins::{Mark, ORIGINS};

/// Where a roster draws its people from. Circuits share the same names of origin but never a person.
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
/// Prime, and no divisor of the numbers of names, so that multiplying by it visits each name once.
const STRIDE: u64 = 4871;

impl Circuit {
    /// Which share of the names is this circuit's, of how many.
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
    // What is special about a name depends on the name, so the plain form of a special one never occurs.
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

/// Position `p` of `n` in an order that depends on `key`. `n` must be made of the primes 2, 3 and 5.
pub(crate) fn shuffled(key: u64, p: u64, n: u64) -> u64 {
    const MULTIPLIERS: [u64; 20] =
        [7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83];
    let by = pick(mix(key, 1), &MULTIPLIERS).unwrap_or(7);
    below(p * by + below(mix(key, 2), n), n)
}

/// The roster position that comes up at `turn` when a roster of four groups of `group` takes turns: one group at a
/// time, in a new order each time. Whoever came up stays out for three groups' turns.
pub(crate) fn at_turn(key: u64, turn: i64, group: u64) -> u64 {
    let size = i64::try_from(group).unwrap_or(1).max(1);
    let (epoch, place) = (turn.div_euclid(size), turn.rem_euclid(size));
    let place = u64::try_from(place).unwrap_or(0);
    let base = u64::try_from(epoch.rem_euclid(4)).unwrap_or(0) * group;
    base + shuffled(mix(key, epoch.cast_unsigned()), place, group)
}

#[cfg(test)]
mod tests;
