//! An independent implementation of decision D6: it uses none of the program's own arithmetic.

use domain::Format;

/// Profit over stake, and the format it was quoted in, with the text's own digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Odds {
    profit: i128,
    stake: i128,
    quoted: Format,
}

impl Odds {
    /// Parses a price; `None` if it is none by D6.
    pub(crate) fn read(text: &str, quoted: Format) -> Option<Self> {
        let (profit, stake) = match quoted {
            Format::American => {
                let (digits, scale) = number(text)?;
                let whole = digits / scale;
                if whole * scale != digits {
                    return None;
                }
                match whole {
                    100.. => (whole, 100),
                    ..=-100 => (100, -whole),
                    _ => return None,
                }
            }
            Format::Decimal => {
                let (digits, scale) = number(text)?;
                (digits - scale, scale)
            }
            Format::Fractional => {
                let (over, under) = text.split_once('/')?;
                let ((over, over_scale), (under, under_scale)) = (number(over)?, number(under)?);
                (over * under_scale, under * over_scale)
            }
        };
        if profit <= 0 || stake <= 0 {
            return None;
        }
        let common = common_divisor(profit, stake);
        Some(Self { profit: profit / common, stake: stake / common, quoted })
    }

    /// The price as the interface returns it in JSON.
    pub(crate) fn show(&self, format: Format) -> String {
        match format {
            Format::American => self.american(),
            Format::Decimal => self.decimal(),
            Format::Fractional => format!("\"{}/{}\"", self.profit, self.stake),
        }
    }

    fn american(&self) -> String {
        // The nearest whole number to 100 times the ratio, a half going up: the largest n with n - 1/2 <= ratio.
        let nearest = |over: i128, under: i128| {
            let mut n = 100 * over / under;
            if 2 * (100 * over - n * under) >= under {
                n += 1;
            }
            n
        };
        if self.profit >= self.stake {
            return nearest(self.profit, self.stake).to_string();
        }
        let n = nearest(self.stake, self.profit);
        if n == 100 { "100".to_owned() } else { format!("-{n}") }
    }

    fn decimal(&self) -> String {
        let total = self.profit + self.stake;
        if self.quoted == Format::Decimal {
            // With as many decimals as needed, which is as many as were quoted.
            let mut places = 0;
            while total * 10_i128.pow(places) % self.stake != 0 {
                places += 1;
            }
            return point(total * 10_i128.pow(places) / self.stake, places);
        }
        let mut places = 3;
        loop {
            let scaled = total * 10_i128.pow(places);
            let (below, rest) = (scaled / self.stake, scaled % self.stake);
            let above = below + i128::from(rest > 0);
            let rounded = match (scaled - below * self.stake, above * self.stake - scaled) {
                (down, up) if down < up => below,
                (down, up) if up < down => above,
                _ if below % 2 == 0 => below,
                _ => above,
            };
            if rounded > 10_i128.pow(places) {
                return point(rounded, places);
            }
            places += 1;
        }
    }
}

/// `digits` with the point before the last `places`, without trailing zeros.
fn point(digits: i128, places: u32) -> String {
    let places = usize::try_from(places).unwrap();
    let text = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = text.split_at(text.len() - places);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// A written number as digits over a power of ten.
fn number(text: &str) -> Option<(i128, i128)> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || fraction.len() > 15 {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some((if text.starts_with('-') { -digits } else { digits }, scale))
}

fn common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[test]
fn the_second_implementation_knows_the_decisions_examples() {
    use Format::{American, Decimal, Fractional};
    for (text, quoted, american, decimal, fraction) in [
        ("-110", American, "-110", "1.909", "\"10/11\""),
        ("+150", American, "150", "2.5", "\"3/2\""),
        ("-100", American, "100", "2", "\"1/1\""),
        ("-200000", American, "-200000", "1.0005", "\"1/2000\""),
        ("2.0", Decimal, "100", "2", "\"1/1\""),
        ("1.7692", Decimal, "-130", "1.7692", "\"1923/2500\""),
        ("2/4", Fractional, "-200", "1.5", "\"1/2\""),
        ("4.5/1", Fractional, "450", "5.5", "\"9/2\""),
    ] {
        let odds = Odds::read(text, quoted).unwrap();
        let shown = Format::ALL.map(|format| odds.show(format));
        assert_eq!(shown, [american, decimal, fraction], "{text}");
    }
    for (text, quoted) in [
        ("1", Decimal),
        ("1.000", Decimal),
        ("99", American),
        ("-99.9", American),
        ("0/1", Fractional),
    ] {
        assert_eq!(Odds::read(text, quoted), None, "{text}");
    }
}
