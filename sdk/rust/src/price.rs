//! Prices, exactly as they were sent.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::macros::open_enum;

/// American prices are at most -101 or at least 100.
const AMERICAN_MIN: u64 = 100;

open_enum! {
    /// The format of prices.
    OddsFormat {
        American = "american",
        Decimal = "decimal",
        Fractional = "fractional",
    }
}

/// The price of an outcome, in the requested format. Never a double: no precision is lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Price {
    /// A signed whole number: the profit on a stake of 100, or the stake for a profit of 100.
    American(i64),
    /// The return per unit staked, digit for digit.
    Decimal(String),
    /// Profit to stake, in lowest terms.
    Fractional(u64, u64),
}

impl Price {
    /// Parses the price of a JSON value. A whole number may be American or decimal; [`Price::in_format`] decides.
    fn parse(json: &str) -> Option<Self> {
        if let Some(text) = json.strip_prefix('"') {
            let (profit, stake) = text.strip_suffix('"')?.split_once('/')?;
            return Some(Self::Fractional(profit.parse().ok()?, stake.parse().ok()?));
        }
        if !json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return None;
        }
        let whole: Option<i64> = json.parse().ok();
        Some(match whole.filter(|whole| whole.unsigned_abs() >= AMERICAN_MIN) {
            Some(american) => Self::American(american),
            None => Self::Decimal(json.to_owned()),
        })
    }

    /// The same price, if the response states that prices are in this format: `101` is also a decimal price.
    pub(crate) fn in_format(&mut self, format: &OddsFormat) {
        if let (Self::American(whole), OddsFormat::Decimal) = (&*self, format) {
            *self = Self::Decimal(whole.to_string());
        }
    }

    /// The return per unit staked, the stake included, as a double: for sums and charts, where the last digit does not
    /// matter.
    #[expect(clippy::cast_precision_loss, reason = "the caller asks for a double")]
    pub fn to_f64(&self) -> f64 {
        match self {
            Self::American(american) if *american > 0 => 1.0 + *american as f64 / 100.0,
            Self::American(american) => 1.0 + 100.0 / american.unsigned_abs() as f64,
            Self::Decimal(text) => text.parse().unwrap_or(f64::NAN),
            Self::Fractional(profit, stake) => 1.0 + *profit as f64 / *stake as f64,
        }
    }
}

impl fmt::Display for Price {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::American(american) => text.pad(&format!("{american:+}")),
            Self::Decimal(decimal) => text.pad(decimal),
            Self::Fractional(profit, stake) => text.pad(&format!("{profit}/{stake}")),
        }
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(json.get()).ok_or_else(|| D::Error::custom("not a price"))
    }
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::American(american) => serializer.serialize_i64(*american),
            Self::Decimal(text) => {
                let number = RawValue::from_string(text.clone());
                number.map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            Self::Fractional(profit, stake) => {
                serializer.serialize_str(&format!("{profit}/{stake}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_is_kept() {
        for (json, price) in [
            ("-110", Price::American(-110)),
            ("1.909", Price::Decimal("1.909".to_owned())),
            ("2", Price::Decimal("2".to_owned())),
            ("1.0000000000000000001", Price::Decimal("1.0000000000000000001".to_owned())),
            ("\"10/11\"", Price::Fractional(10, 11)),
        ] {
            let read: Price = serde_json::from_str(json).unwrap();
            assert_eq!(read, price, "{json}");
            assert_eq!(serde_json::to_string(&read).unwrap(), json);
        }
        for json in ["null", "\"x\"", "true", "\"1/\"", "[]", "{}"] {
            assert!(serde_json::from_str::<Price>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_whole_decimal_price_is_not_taken_for_an_american_one() {
        let mut price: Price = serde_json::from_str("101").unwrap();
        price.in_format(&OddsFormat::American);
        assert_eq!(price, Price::American(101));
        price.in_format(&OddsFormat::Decimal);
        assert_eq!(price, Price::Decimal("101".to_owned()));
        assert_eq!(
            (price.to_string(), Price::American(150).to_string()),
            ("101".into(), "+150".into())
        );
    }

    #[test]
    fn doubles_are_near() {
        for (json, decimal) in [("150", 2.5), ("-200", 1.5), ("1.25", 1.25), ("\"3/4\"", 1.75)] {
            let price: Price = serde_json::from_str(json).unwrap();
            assert!((price.to_f64() - decimal).abs() < 1e-12, "{json}");
        }
    }
}
