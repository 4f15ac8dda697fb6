//! Exact prices (D5, D6).
//!
//! A price is the profit per unit staked, as a ratio in lowest terms: American, decimal and fractional odds are all
//! rational, so one value holds all three without loss. Rounding happens only when a price is written in a format
//! other than the quoted one. No floating point anywhere.

use std::cmp::Ordering;
use std::fmt::Write;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;

/// The notation of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Format {
    American,
    Decimal,
    Fractional,
}

keyed!(Format, key {
    American = "american",
    Decimal = "decimal",
    Fractional = "fractional",
});

/// Profit per unit staked, in lowest terms; always above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Price {
    profit: NonZeroU64,
    stake: NonZeroU64,
}

/// A price with the format in which the bookmaker quoted it, so that it can be returned as quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quote {
    pub price: Price,
    pub format: Format,
}

/// The reason why a text is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    #[error("`{0}` is not a number; a decimal price is a number above 1, such as 1.91")]
    NotANumber(String),
    #[error("`{0}` is not above 1; a decimal price includes the stake")]
    DecimalTooSmall(String),
    #[error("`{0}` is not an American price: a whole number, 100 or more, or -100 or less")]
    NotAmerican(String),
    #[error("`{0}` is not a fractional price: a text such as \"5/2\" with both parts above zero")]
    NotAFraction(String),
    #[error("`{0}` has more digits than a price can hold")]
    TooPrecise(String),
}

impl Price {
    /// Reduces the ratio; `None` if a part is zero.
    pub fn from_ratio(profit: u64, stake: u64) -> Option<Self> {
        let divisor = gcd(profit, stake);
        Some(Self {
            profit: NonZeroU64::new(profit.checked_div(divisor)?)?,
            stake: NonZeroU64::new(stake.checked_div(divisor)?)?,
        })
    }

    pub const fn profit(self) -> u64 {
        self.profit.get()
    }

    pub const fn stake(self) -> u64 {
        self.stake.get()
    }

    /// Nearest whole American price, rounded half away from zero; even money is +100, never -100.
    pub fn american(self) -> i128 {
        let (profit, stake) = (i128::from(self.profit()), i128::from(self.stake()));
        if profit >= stake {
            return round_half_up(100 * profit, stake);
        }
        match round_half_up(100 * stake, profit) {
            100 => 100,
            rounded => -rounded,
        }
    }

    /// Three places, half-even; if that would print `1`, as many more as needed to stay above 1.
    pub fn write_decimal(self, out: &mut String) {
        // 20 places are enough for the smallest profit of 1 / u64::MAX, and stay within u128.
        let rounded = (3..=19).find_map(|places| {
            let units = round_half_even(self.payout(places), u128::from(self.stake()));
            (units > 10_u128.pow(places)).then_some((units, places))
        });
        match rounded {
            Some((units, places)) => write_decimal(units, places, out),
            None => out.push_str("1.00000000000000000001"),
        }
    }

    /// Profit and stake in units of 10^-`places`: the decimal price times the stake.
    fn payout(self, places: u32) -> u128 {
        (u128::from(self.profit()) + u128::from(self.stake())) * 10_u128.pow(places)
    }

    /// Writes the exact fraction in lowest terms: `10/11`.
    pub fn write_fraction(self, out: &mut String) {
        push(out, format_args!("{}/{}", self.profit, self.stake));
    }

    /// The decimal price with every digit, as units and places, if it is finite (always true of a price quoted as
    /// decimal).
    fn exact_decimal(self) -> Option<(u128, u32)> {
        let stake = u128::from(self.stake());
        let exact = |places: &u32| self.payout(*places).is_multiple_of(stake);
        (0..=18).find(exact).map(|places| (self.payout(places) / stake, places))
    }
}

impl Ord for Price {
    /// Compares the values by cross-multiplication, so exactly.
    fn cmp(&self, other: &Self) -> Ordering {
        let ours = u128::from(self.profit()) * u128::from(other.stake());
        let theirs = u128::from(other.profit()) * u128::from(self.stake());
        ours.cmp(&theirs)
    }
}

impl PartialOrd for Price {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Quote {
    /// Reads a price text in the given format: `-110`, `1.91`, `5/2`.
    ///
    /// # Errors
    /// The text is not a price: not a number, decimal not above 1, American between -100 and 100, a zero or
    /// negative part, or more digits than 64 bits hold.
    pub fn parse(text: &str, format: Format) -> Result<Self, PriceError> {
        let price = match format {
            Format::American => parse_american(text)?,
            Format::Decimal => parse_decimal(text)?,
            Format::Fractional => parse_fraction(text)?,
        };
        Ok(Self { price, format })
    }

    /// Writes the price as a JSON value in `format`: as quoted (in normal form) in its own format, computed
    /// exactly otherwise. Fractions are JSON strings, the others JSON numbers.
    pub fn write_json(self, format: Format, out: &mut String) {
        match format {
            Format::American => push(out, format_args!("{}", self.price.american())),
            Format::Fractional => {
                out.push('"');
                self.price.write_fraction(out);
                out.push('"');
            }
            Format::Decimal => {
                match self.price.exact_decimal().filter(|_| self.format == Format::Decimal) {
                    Some((units, places)) => write_decimal(units, places, out),
                    None => self.price.write_decimal(out),
                }
            }
        }
    }

    /// The text that [`Quote::write_json`] writes, as a `String`.
    pub fn to_json(self, format: Format) -> String {
        let mut out = String::new();
        self.write_json(format, &mut out);
        out
    }
}

/// A number as written: `digits` × 10^-`places`.
struct Written {
    digits: u64,
    places: u32,
    negative: bool,
}

/// Numbers with larger exponents are neither prices nor lines.
const EXPONENT_MAX: i32 = 18;

/// Reads a JSON-like number without losing a digit. A leading `+` is accepted, as bookmakers write `+150`.
fn read_number(text: &str) -> Option<Written> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) if exponent.len() <= 3 => (mantissa, exponent.parse().ok()?),
        Some(_) => return None,
        None => (unsigned, 0_i32),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || mantissa.ends_with('.') {
        return None;
    }
    let mut digits = 0_u64;
    for digit in whole.bytes().chain(fraction.bytes()) {
        digits = digits.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    if places.abs() > EXPONENT_MAX {
        return None;
    }
    match u32::try_from(places) {
        Ok(places) => Some(Written { digits, places, negative }),
        Err(_) => {
            let digits = digits.checked_mul(10_u64.checked_pow(places.unsigned_abs())?)?;
            Some(Written { digits, places: 0, negative })
        }
    }
}

fn parse_american(text: &str) -> Result<Price, PriceError> {
    let refused = || PriceError::NotAmerican(shorten(text));
    let number = read_number(text).ok_or_else(refused)?;
    let unit = 10_u64.pow(number.places);
    if number.digits % unit != 0 || number.digits / unit < 100 {
        return Err(refused());
    }
    let size = number.digits / unit;
    let price =
        if number.negative { Price::from_ratio(100, size) } else { Price::from_ratio(size, 100) };
    price.ok_or_else(refused)
}

fn parse_decimal(text: &str) -> Result<Price, PriceError> {
    let number = read_number(text).ok_or_else(|| {
        let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if digits && text.len() > 18 {
            PriceError::TooPrecise(shorten(text))
        } else {
            PriceError::NotANumber(shorten(text))
        }
    })?;
    let unit = 10_u64.pow(number.places);
    if number.negative || number.digits <= unit {
        return Err(PriceError::DecimalTooSmall(shorten(text)));
    }
    Price::from_ratio(number.digits - unit, unit)
        .ok_or_else(|| PriceError::DecimalTooSmall(shorten(text)))
}

fn parse_fraction(text: &str) -> Result<Price, PriceError> {
    let refused = || PriceError::NotAFraction(shorten(text));
    let (profit, stake) = text.split_once('/').ok_or_else(refused)?;
    let profit = read_number(profit.trim()).filter(|n| !n.negative).ok_or_else(refused)?;
    let stake = read_number(stake.trim()).filter(|n| !n.negative).ok_or_else(refused)?;
    // Some sources write "4.5/1"; both parts are brought to whole numbers, which keeps the ratio exact.
    let places = profit.places.max(stake.places);
    let scale = |n: &Written| n.digits.checked_mul(10_u64.checked_pow(places - n.places)?);
    let (Some(profit), Some(stake)) = (scale(&profit), scale(&stake)) else {
        return Err(PriceError::TooPrecise(shorten(text)));
    };
    Price::from_ratio(profit, stake).ok_or_else(refused)
}

fn write_decimal(units: u128, places: u32, out: &mut String) {
    let scale = 10_u128.pow(places);
    push(out, format_args!("{}", units / scale));
    let mut rest = units % scale;
    if rest == 0 {
        return;
    }
    let mut width = usize::try_from(places).unwrap_or(0);
    while rest.is_multiple_of(10) {
        rest /= 10;
        width -= 1;
    }
    push(out, format_args!(".{rest:0width$}"));
}

fn round_half_up(numerator: i128, denominator: i128) -> i128 {
    (2 * numerator + denominator) / (2 * denominator)
}

fn round_half_even(numerator: u128, denominator: u128) -> u128 {
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    match (rest * 2).cmp(&denominator) {
        Ordering::Less => quotient,
        Ordering::Greater => quotient + 1,
        Ordering::Equal => quotient + quotient % 2,
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Writing to a `String` cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok());
}

/// The offending text, short enough for an error message.
pub(crate) fn shorten(text: &str) -> String {
    text.chars().take(24).collect()
}

/// The number in quarters, if it is a whole number of them.
pub(crate) fn quarters(text: &str) -> Option<i32> {
    let number = read_number(text)?;
    let unit = 10_u64.pow(number.places);
    let quarters = number.digits.checked_mul(4)?;
    let whole = (quarters % unit == 0).then_some(quarters / unit)?;
    let signed = i32::try_from(whole).ok()?;
    Some(if number.negative { -signed } else { signed })
}

#[cfg(test)]
mod tests;
