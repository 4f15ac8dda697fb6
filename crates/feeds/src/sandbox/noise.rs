//! Stateless randomness: hashes, noise over time and the mathematics that the models need.
//!
//! Every number of the sandbox is a function of the seed, a slot and an instant, so that any instant can be computed
//! directly. Only operations that IEEE 754 defines to the last bit are used (`+ - * /` and `sqrt`; `exp` and `ln` are
//! implemented here): nodes on different machines must compute the same prices.

/// The golden ratio in 64 bits; an odd constant whose multiples are evenly distributed.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes two numbers into a pseudorandom one, with the finaliser of splitmix64.
pub(crate) const fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(GOLDEN).rotate_left(29);
    z = z.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// [`mix`] for a signed number.
pub(crate) const fn mix_signed(a: u64, b: i64) -> u64 {
    mix(a, b.cast_unsigned())
}

/// Uniformly distributed over [0, 1).
pub(crate) fn uniform(hash: u64) -> f64 {
    // A double holds 53 bits exactly.
    real(i64::try_from(hash >> 11).unwrap_or(0)) * (1.0 / 9_007_199_254_740_992.0)
}

/// Approximately normal with mean 0 and deviation 1, never beyond 3.5: the sum of four uniforms.
pub(crate) fn gauss(hash: u64) -> f64 {
    let lanes = [hash, hash >> 16, hash >> 32, hash >> 48];
    let sum: f64 = lanes
        .into_iter()
        .map(|lane| f64::from(u32::try_from(lane & 0xffff).unwrap_or(0)) / 65_536.0)
        .sum();
    (sum - 2.0) * 1.732_050_807_568_877_2
}

/// A number below `n`; 0 if `n` is 0.
pub(crate) fn below(hash: u64, n: u64) -> u64 {
    hash.checked_rem(n).unwrap_or(0)
}

/// One of the items; `None` if there are none.
pub(crate) fn pick<T: Copy>(hash: u64, items: &[T]) -> Option<T> {
    let n = u64::try_from(items.len()).unwrap_or(0);
    let at = usize::try_from(below(hash, n)).unwrap_or(0);
    items.get(at).copied()
}

/// Smooth noise with deviation about 1: a curve through one random number every `period` seconds.
pub(crate) fn wave(key: u64, at: i64, period: i64) -> f64 {
    let knot = at.div_euclid(period);
    let f = real(at.rem_euclid(period)) / real(period);
    let smooth = f * f * (3.0 - 2.0 * f);
    let (left, right) = (gauss(mix_signed(key, knot)), gauss(mix_signed(key, knot + 1)));
    left + (right - left) * smooth
}

/// A sequence of random draws from one hash. Short-lived: used while one value is built.
#[derive(Clone, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new(key: u64) -> Self {
        Self(key)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0, 1)
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        uniform(self.next())
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// A whole number of ticks between two numbers of seconds.
    pub(crate) fn seconds(&mut self, least: i64, most: i64) -> i64 {
        to_tick(least + whole(self.uniform() * real(most - least)))
    }
}

/// The simulation advances in steps of this many seconds.
pub(crate) const TICK_S: i64 = 10;

/// Rounds down to a tick.
pub(crate) const fn to_tick(seconds: i64) -> i64 {
    seconds.div_euclid(TICK_S) * TICK_S
}

#[expect(clippy::cast_precision_loss, reason = "seconds, counts and scores stay far below 2^53")]
pub(crate) const fn real(n: i64) -> f64 {
    n as f64
}

/// A length as a float.
pub(crate) fn count(n: usize) -> f64 {
    real(i64::try_from(n).unwrap_or(0))
}

/// Rounds towards minus infinity.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the float is a count, a line or a time, far inside i64"
)]
pub(crate) fn whole(x: f64) -> i64 {
    x.floor() as i64
}

/// 1/12! down to 1/0!.
const INVERSE_FACTORIALS: [f64; 13] = [
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// e to the x, to about 14 digits.
pub(crate) fn exp(x: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    const TO_WHOLE: f64 = 6_755_399_441_055_744.0;
    let x = x.clamp(-700.0, 700.0);
    // Adding and subtracting 1.5 * 2^52 rounds to the nearest whole number, and is faster than `round`.
    let k = (x / LN_2 + TO_WHOLE) - TO_WHOLE;
    let r = x - k * LN_2;
    // The Taylor series by Horner's method: r is at most 0.35, so twelve terms reach the last digits.
    let sum = INVERSE_FACTORIALS.iter().fold(0.0, |sum, factor| sum * r + factor);
    sum * f64::from_bits(exponent_bits(k))
}

/// The bits of the float 2^`k`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number between -1011 and 1011"
)]
fn exponent_bits(k: f64) -> u64 {
    ((k + 1023.0) as u64) << 52
}

/// Natural logarithm of a positive number.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.max(1e-300).to_bits();
    let exponent = i64::try_from(bits >> 52).unwrap_or(1023) - 1023;
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (1023 << 52));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut power = s;
    let mut sum = 0.0;
    for n in 0..18_i32 {
        sum += power / f64::from(2 * n + 1);
        power *= square;
    }
    2.0 * sum + real(exponent) * std::f64::consts::LN_2
}

/// The probability for log-odds.
pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// The log-odds of a probability.
pub(crate) fn logit(p: f64) -> f64 {
    let p = p.clamp(1e-9, 1.0 - 1e-9);
    ln(p / (1.0 - p))
}

/// The normal distribution function; Abramowitz and Stegun 26.2.17, good to 1e-7.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let poly = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = 0.398_942_280_401_432_7 * exp(-0.5 * x * x) * poly;
    if x >= 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_functions_agree_with_the_library() {
        for i in -400..400_i32 {
            let x = f64::from(i) / 20.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-12, "exp {x}");
            let p = logistic(x);
            assert!((logit(p) - x).abs() < 1e-5 || !(1e-8..1.0 - 1e-8).contains(&p));
        }
        for i in 1..4000_i32 {
            let x = f64::from(i) / 7.0;
            assert!((ln(x) - x.ln()).abs() < 1e-12, "ln {x}");
        }
        for (x, p) in [(0.0, 0.5), (1.0, 0.841_345), (-1.96, 0.024_998), (4.0, 0.999_968)] {
            assert!((normal_cdf(x) - p).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn draws_are_spread_and_noise_is_continuous() {
        let n = 20_000_u64;
        let mean = (0..n).map(|i| uniform(mix(7, i))).sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01);
        let square = (0..n).map(|i| gauss(mix(8, i)).powi(2)).sum::<f64>() / 20_000.0;
        assert!((square - 1.0).abs() < 0.05);
        for t in 0..5000 {
            assert!((wave(3, t, 600) - wave(3, t + 1, 600)).abs() < 0.02);
        }
        assert_eq!(to_tick(-1), -10);
    }
}
