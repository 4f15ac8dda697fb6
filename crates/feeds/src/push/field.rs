//! Converts one field of a message from raw JSON text to a checked value, or to a rejection that names the field.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use domain::message::{
    NAME_BYTES_MAX, REF_BYTES_MAX, Reject, RejectCode, WORDS_MAX, without_remark,
};
use domain::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::push::invisible;
use crate::push::object::AtMost;

/// A field with its position for the rejection: `ref`, or `outcomes[2].price`.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    raw: Option<&'a RawValue>,
    key: &'static str,
    within: Option<(&'static str, usize)>,
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.within {
            Some((list, index)) => write!(f, "`{list}[{index}].{}`", self.key),
            None => write!(f, "`{}`", self.key),
        }
    }
}

impl<'a> Field<'a> {
    /// A field of the message itself.
    pub(super) fn top(key: &'static str, raw: Option<&'a RawValue>) -> Self {
        Self { raw, key, within: None }
    }

    /// A field of an item of one of the message's lists.
    pub(super) fn of_item(
        list: &'static str,
        index: usize,
        key: &'static str,
        raw: Option<&'a RawValue>,
    ) -> Self {
        Self { raw, key, within: Some((list, index)) }
    }

    /// The field itself, if it is present and not `null`.
    pub(super) fn given(self) -> Option<Self> {
        self.raw.map(|_| self)
    }

    /// The JSON text of the value, exactly as sent.
    pub(super) fn json(self) -> Result<&'a str, Reject> {
        self.raw
            .map(RawValue::get)
            .ok_or_else(|| self.refuse(RejectCode::InvalidMessage, "is missing"))
    }

    pub(super) fn text(self) -> Result<Cow<'a, str>, Reject> {
        json_text(self.json()?).ok_or_else(|| self.must_be("a string"))
    }

    /// A participant's, competition's or tournament's name, trimmed; if it is too long, without the remark after it.
    pub(super) fn name(self) -> Result<Box<str>, Reject> {
        let text = self.text()?;
        let name = text.trim();
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let long = name.len() > NAME_BYTES_MAX || words.count() > WORDS_MAX;
        self.bounded(if long { without_remark(name) } else { name }, NAME_BYTES_MAX)
    }

    /// A `ref` or `group`: the source's own id, kept byte for byte.
    pub(super) fn reference(self) -> Result<Box<str>, Reject> {
        self.bounded(&self.text()?, REF_BYTES_MAX)
    }

    pub(super) fn instant(self) -> Result<Timestamp, Reject> {
        Timestamp::parse(&self.text()?)
            .map_err(|error| self.refuse(RejectCode::InvalidMessage, &format!("is {error}")))
    }

    /// `true` or `false`; absent is false.
    pub(super) fn flag(self) -> Result<bool, Reject> {
        match self.raw.map(RawValue::get) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(self.must_be("true or false")),
        }
    }

    pub(super) fn integer(self, range: &RangeInclusive<i32>) -> Result<i32, Reject> {
        parse_integer(self.json()?, range).ok_or_else(|| self.must_be(&within(range)))
    }

    pub(super) fn integers<const MAX: usize>(
        self,
        range: &RangeInclusive<i32>,
    ) -> Result<Vec<i32>, Reject> {
        self.list::<&RawValue, MAX>("a list of integers")?
            .iter()
            .map(|raw| parse_integer(raw.get(), range))
            .collect::<Option<_>>()
            .ok_or_else(|| self.must_be(&format!("a list, each {}", within(range))))
    }

    /// A list of at most `MAX` items.
    pub(super) fn list<T: Deserialize<'a>, const MAX: usize>(
        self,
        what: &str,
    ) -> Result<Vec<T>, Reject> {
        let AtMost(items) =
            serde_json::from_str::<AtMost<T, MAX>>(self.json()?).map_err(|_| self.must_be(what))?;
        if items.len() > MAX {
            let problem = format!("has more than {MAX} items");
            return Err(self.refuse(RejectCode::TooLarge, &problem));
        }
        Ok(items)
    }

    /// A rejection with a description of the expected value.
    pub(super) fn must_be(self, what: &str) -> Reject {
        self.refuse(RejectCode::InvalidMessage, &format!("must be {what}"))
    }

    /// A rejection that begins with the field's name.
    pub(super) fn refuse(self, code: RejectCode, problem: &str) -> Reject {
        Reject::new(code, format!("{self} {problem}"))
    }

    fn bounded(self, text: &str, bytes_max: usize) -> Result<Box<str>, Reject> {
        if text.is_empty() {
            return Err(self.refuse(RejectCode::InvalidMessage, "is empty"));
        }
        if text.len() > bytes_max {
            let problem = format!("has {} bytes; at most {bytes_max} are taken", text.len());
            return Err(self.refuse(RejectCode::TooLarge, &problem));
        }
        if let Some(character) = invisible::find_invisible(text) {
            let problem = format!("has U+{:04X}, an invisible character", u32::from(character));
            return Err(self.refuse(RejectCode::InvalidMessage, &problem));
        }
        Ok(text.into())
    }
}

/// The offending text, short and plain enough for an error message.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(40).map(|c| if invisible::is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

/// The text of a raw JSON string; `None` if it is no string, or its escapes are not valid text (`"\ud800"`).
fn json_text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

fn parse_integer(json: &str, range: &RangeInclusive<i32>) -> Option<i32> {
    json.parse().ok().filter(|number| range.contains(number))
}

fn within(range: &RangeInclusive<i32>) -> String {
    format!("an integer from {} to {}", range.start(), range.end())
}
