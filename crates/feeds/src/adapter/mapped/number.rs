//! Exact arithmetic for the filters: numbers are ratios, written as decimals if they have finitely many places.

/// A number as a ratio in lowest terms; the denominator is above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    numerator: i128,
    denominator: i128,
}

/// Maximum number of decimal places; longer numbers are written as a fraction.
const PLACES_MAX: u32 = 18;

impl Ratio {
    const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// Reads `-1.25`, `+3`, `1e3` or `5/2`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.split_once('/') {
            Some((top, bottom)) => decimal(top.trim())?.checked_div(decimal(bottom.trim())?),
            None => decimal(text),
        }
    }

    fn new(numerator: i128, denominator: i128) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator.unsigned_abs(), denominator.unsigned_abs());
        let divisor = i128::try_from(divisor).ok()?;
        let sign = denominator.signum();
        Some(Self {
            numerator: (numerator / divisor).checked_mul(sign)?,
            denominator: (denominator / divisor).checked_abs()?,
        })
    }

    pub(super) fn checked_mul(self, other: Self) -> Option<Self> {
        Self::new(
            self.numerator.checked_mul(other.numerator)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    pub(super) fn checked_div(self, other: Self) -> Option<Self> {
        Self::new(
            self.numerator.checked_mul(other.denominator)?,
            self.denominator.checked_mul(other.numerator)?,
        )
    }

    pub(super) fn abs(self) -> Option<Self> {
        Some(Self { numerator: self.numerator.checked_abs()?, ..self })
    }

    /// One minus this.
    pub(super) fn complement(self) -> Option<Self> {
        Self::new(
            Self::ONE.numerator.checked_mul(self.denominator)?.checked_sub(self.numerator)?,
            self.denominator,
        )
    }

    /// The odds of a probability, (1 − p) / p, as a fraction; `None` unless it is between 0 and 1.
    pub(super) fn odds(self) -> Option<String> {
        let rest = self.denominator.checked_sub(self.numerator)?;
        if self.numerator <= 0 || rest <= 0 {
            return None;
        }
        let odds = Self::new(rest, self.numerator)?;
        Some(format!("{}/{}", odds.numerator, odds.denominator))
    }

    /// Thousandths, rounded down, if they fit.
    pub(super) fn millis(self) -> Option<i64> {
        let scaled = self.numerator.checked_mul(1000)?;
        i64::try_from(scaled.div_euclid(self.denominator)).ok()
    }

    /// As a decimal if that is exact, otherwise as a fraction.
    pub(super) fn to_text(self) -> String {
        let exact = (0..=PLACES_MAX).find_map(|places| {
            let scale = 10_i128.pow(places);
            let units = self.numerator.checked_mul(scale)?;
            (units % self.denominator == 0).then_some((units / self.denominator, places))
        });
        let Some((units, places)) = exact else {
            return format!("{}/{}", self.numerator, self.denominator);
        };
        if places == 0 {
            return units.to_string();
        }
        let scale = 10_u128.pow(places);
        let size = units.unsigned_abs();
        let sign = if units < 0 { "-" } else { "" };
        let width = usize::try_from(places).unwrap_or(0);
        format!("{sign}{}.{:0width$}", size / scale, size % scale)
    }
}

fn decimal(text: &str) -> Option<Ratio> {
    let (negative, unsigned) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || exponent.abs() > 30 {
        return None;
    }
    let mut digits = 0_i128;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        digits = digits.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
    }
    let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let power = 10_i128.checked_pow(places.unsigned_abs())?;
    let digits = if negative { -digits } else { digits };
    if places > 0 { Ratio::new(digits, power) } else { Ratio::new(digits.checked_mul(power)?, 1) }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_exact() {
        let number = |text: &str| Ratio::parse(text).unwrap();
        let by = number("1000");
        assert_eq!(number("1930").checked_div(by).unwrap().to_text(), "1.93");
        assert_eq!(number("-4500").checked_div(by).unwrap().to_text(), "-4.5");
        assert_eq!(number("0.1").checked_mul(number("3")).unwrap().to_text(), "0.3");
        assert_eq!(number("1").checked_div(number("3")).unwrap().to_text(), "1/3");
        assert_eq!(number("0.999").complement().unwrap().to_text(), "0.001");
        assert_eq!(number("0.55").odds().unwrap(), "9/11");
        assert_eq!(number("0.0105").odds().unwrap(), "1979/21");
        assert_eq!(number("1e3").to_text(), "1000");
        assert_eq!(number("5/2").to_text(), "2.5");
        let huge = format!("-{}", i128::MAX);
        for none in ["0", "1", "1.2", "-0.1", &huge] {
            assert_eq!(number(none).odds(), None, "{none}");
        }
        for bad in ["", ".", "-", "1/0", "x", "1e99", "1..2", "0x10", "NaN"] {
            assert_eq!(Ratio::parse(bad), None, "{bad}");
        }
    }
}
