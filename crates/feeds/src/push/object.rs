//! The JSON objects of the contract with their values as raw text, read in one pass.
//!
//! Values stay raw because the type of a message decides which of its fields have a meaning: all others are ignored,
//! whatever they contain. A `null` is an absent field; of duplicate keys the last wins; nesting uses no stack, since
//! raw values are skipped by a loop.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use domain::message::{Reject, RejectCode};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Parses a line as a message object.
pub(super) fn parse_message(text: &str) -> Result<Message<'_>, Reject> {
    serde_json::from_str(text).map_err(|error| {
        if text.trim_start().starts_with('[') {
            let problem = "a JSON array; send its objects one a line, without the array";
            return Reject::new(RejectCode::InvalidJson, problem);
        }
        if error.is_eof() {
            let problem = "the JSON object does not end on its line; send one object a line, without line breaks in it";
            return Reject::new(RejectCode::InvalidJson, problem);
        }
        let problem = error.to_string();
        // The position that serde_json adds says "line 1", which is not the line of the body.
        let what = problem.split(" at line ").next().unwrap_or_default();
        Reject::new(
            RejectCode::InvalidJson,
            format!("not a JSON object: {what}, at column {}; send one object a line", error.column()),
        )
    })
}

/// A list that is read to its end but keeps at most one item more than `MAX`, so that a long list costs no memory and
/// is still recognised as too long.
pub(super) struct AtMost<T, const MAX: usize>(pub(super) Vec<T>);

/// Declares an object with raw fields. Unlike serde's derived form it rejects a JSON list instead of the object, and
/// the last of two equal keys wins.
macro_rules! object {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $key:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Default)]
        pub(super) struct $name<'a> {
            $(pub(super) $field: Option<&'a RawValue>,)+
        }

        impl<'a> FromMap<'a> for $name<'a> {
            fn from_map<A: MapAccess<'a>>(mut map: A) -> Result<Self, A::Error> {
                let mut read = Self::default();
                while let Some(Key(key)) = map.next_key()? {
                    match &*key {
                        $($key => read.$field = map.next_value()?,)+
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(read)
            }
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map(ObjectVisitor(PhantomData))
            }
        }
    };
}

object! {
    /// Any message: all fields of all types.
    Message {
        kind: "type",
        reference: "ref",
        ts: "ts",
        fresh_for: "fresh_for",
        bookmaker: "bookmaker",
        market: "market",
        format: "format",
        outcomes: "outcomes",
        suspended: "suspended",
        group: "group",
        sport: "sport",
        competition: "competition",
        commence_time: "commence_time",
        home: "home",
        away: "away",
        title: "title",
        status: "status",
        home_score: "home_score",
        away_score: "away_score",
        periods: "periods",
        winner: "winner",
        leaders: "leaders",
        correction: "correction",
    }
}

object! {
    /// An item of `outcomes`.
    Outcome { name: "name", price: "price", point: "point" }
}

object! {
    /// An item of `periods`.
    Period { number: "number", home_score: "home_score", away_score: "away_score" }
}

object! {
    /// An item of `leaders`.
    Leader { name: "name", rounds: "rounds" }
}

trait FromMap<'a>: Sized {
    fn from_map<A: MapAccess<'a>>(map: A) -> Result<Self, A::Error>;
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: FromMap<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }
}

/// A key of an object, borrowed from the line unless it is written with escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for AtMost<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AtMostVisitor(PhantomData))
    }
}

struct AtMostVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for AtMostVisitor<T, MAX> {
    type Value = AtMost<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() <= MAX {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(AtMost(items)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(AtMost(items))
    }
}
