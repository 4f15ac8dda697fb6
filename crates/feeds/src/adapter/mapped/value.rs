//! Values (A29): the source of a text, and the filters applied to it.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::suggest::did_you_mean;
use domain::time::Timestamp;
use jiff::tz::TimeZone;
use regex::Regex;

use super::document::{Document, ROOT, Symbols};
use super::json;
use super::names::Names;
use super::number::Ratio;
use super::path::{Item, Path, Reading, collapse, is_true, unquote};
use super::{scan, time};

/// Maximum length of a text before a filter, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum size of a compiled regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

const FILTERS: [&str; 16] = [
    "trim",
    "lower",
    "regex",
    "replace",
    "map",
    "default",
    "json",
    "div",
    "mul",
    "abs",
    "complement",
    "prob",
    "time",
    "iso",
    "epoch_s",
    "epoch_ms",
];

/// A text from the input: the first alternative that is not empty.
#[derive(Clone, Debug)]
pub(super) struct Value(Vec<Pipeline>);

#[derive(Clone, Debug)]
struct Pipeline {
    source: Source,
    filters: Vec<Filter>,
}

#[derive(Clone, Debug)]
enum Source {
    Text(Box<str>),
    Path(Path),
    Template(Vec<Part>),
}

#[derive(Clone, Debug)]
enum Part {
    Text(Box<str>),
    Value(Pipeline),
}

#[derive(Clone, Debug)]
enum Filter {
    Trim,
    Lower,
    Regex(Regex, usize),
    Replace(Regex, Box<str>),
    Map(usize),
    Default(Box<str>),
    Json(Option<Path>),
    Div(Ratio),
    Mul(Ratio),
    Abs,
    Complement,
    Prob,
    Time(Box<str>, TimeZone),
    Iso,
    EpochS,
    EpochMs,
}

/// A table of a mapping: text to text.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) entries: HashMap<Box<str>, Box<str>>,
    /// `"*"`: the result for any other text.
    pub(super) otherwise: Option<Box<str>>,
}

/// The inputs that values are computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'d> {
    pub(super) reading: &'d Reading<'d>,
    pub(super) tables: &'d [Table],
    pub(super) symbols: &'d Symbols,
    pub(super) zone: &'d TimeZone,
}

impl Value {
    /// A constant text.
    pub(super) fn constant(text: &str) -> Self {
        let source = Source::Text(text.into());
        Self(vec![Pipeline { source, filters: Vec::new() }])
    }

    /// Parses the alternatives of a value.
    ///
    /// # Errors
    /// The fault, as a sentence.
    pub(super) fn parse(texts: &[&str], names: &mut Names<'_>) -> Result<Self, String> {
        let alternatives: Result<Vec<_>, _> =
            texts.iter().map(|text| Pipeline::parse(text, names)).collect();
        Ok(Self(alternatives?))
    }

    /// The path, if the value is only a path.
    pub(super) fn as_path(&self) -> Option<&Path> {
        match &*self.0 {
            [Pipeline { source: Source::Path(path), filters }] if filters.is_empty() => Some(path),
            _ => None,
        }
    }

    /// The text for an item; empty if there is none.
    ///
    /// # Errors
    /// There is a text, but a filter cannot read it.
    pub(super) fn text<'d>(
        &'d self,
        scope: Scope<'d>,
        item: Item<'_>,
    ) -> Result<Cow<'d, str>, String> {
        let mut fault = None;
        for alternative in &self.0 {
            match alternative.text(scope, item) {
                Ok(text) if text.is_empty() => {}
                Ok(text) => return Ok(text),
                Err(reason) => fault = fault.or(Some(reason)),
            }
        }
        fault.map_or(Ok(Cow::Borrowed("")), Err)
    }

    /// The instant for an item, if it has one.
    ///
    /// # Errors
    /// There is a text, but it is no time.
    pub(super) fn instant(
        &self,
        scope: Scope<'_>,
        item: Item<'_>,
    ) -> Result<Option<Timestamp>, String> {
        let text = self.text(scope, item)?;
        if text.is_empty() {
            return Ok(None);
        }
        let instant = time::parse_iso(&text, scope.zone);
        instant.map(Some).ok_or_else(|| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("`{}` is a number: add `| epoch_s` or `| epoch_ms`", shorten(&text)),
            false => format!("`{}` is not an ISO 8601 time: add `| time('…')`", shorten(&text)),
        })
    }
}

impl Pipeline {
    fn parse(text: &str, names: &mut Names<'_>) -> Result<Self, String> {
        let mut parts = scan::split(text, '|').into_iter();
        let first = parts.next().unwrap_or_default().trim();
        let source = if first.len() >= 2 && first.starts_with('\'') && first.ends_with('\'') {
            Source::Text(unquote(first).into())
        } else if scan::split(first, '{').len() > 1 || first.starts_with('{') {
            Source::Template(parse_template(first, names)?)
        } else if first.is_empty() {
            return Err(format!("`{text}`: a path is missing"));
        } else {
            Source::Path(Path::parse(first, names.symbols)?)
        };
        let filters: Result<Vec<_>, _> = parts.map(|part| Filter::parse(part, names)).collect();
        Ok(Self { source, filters: filters? })
    }

    fn text<'d>(&'d self, scope: Scope<'d>, item: Item<'_>) -> Result<Cow<'d, str>, String> {
        let mut text = match &self.source {
            Source::Text(text) => Cow::Borrowed(&**text),
            Source::Path(path) => scope.reading.text(path, item),
            Source::Template(parts) => Cow::Owned(fill(parts, scope, item)?),
        };
        for filter in &self.filters {
            scope.reading.spend(text.len());
            if text.len() > TEXT_BYTES_MAX {
                return Err(format!(
                    "a text of {} bytes; at most {TEXT_BYTES_MAX} are taken",
                    text.len()
                ));
            }
            // Filters keep an empty text empty, except for `default`.
            if !text.is_empty() || matches!(filter, Filter::Default(_)) {
                text = filter.apply(text, scope)?;
            }
        }
        Ok(text)
    }
}

/// The texts and values of a template such as `{path}/{path}`.
fn parse_template(text: &str, names: &mut Names<'_>) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('{') {
        if !before.is_empty() {
            parts.push(Part::Text(before.into()));
        }
        let from = rest.get(before.len()..).unwrap_or_default();
        let end = scan::closing(from).ok_or_else(|| format!("`{text}`: `{{` without `}}`"))?;
        let inner = from.get(1..end).unwrap_or_default();
        parts.push(Part::Value(Pipeline::parse(inner, names)?));
        rest = from.get(end + 1..).unwrap_or_default();
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.into()));
    }
    Ok(parts)
}

/// Fills a template; empty if one of its values is empty.
fn fill(parts: &[Part], scope: Scope<'_>, item: Item<'_>) -> Result<String, String> {
    let mut filled = String::new();
    for part in parts {
        match part {
            Part::Text(text) => filled.push_str(text),
            Part::Value(value) => {
                let text = value.text(scope, item)?;
                if text.is_empty() {
                    return Ok(String::new());
                }
                filled.push_str(&text);
            }
        }
    }
    Ok(filled)
}

impl Filter {
    fn parse(text: &str, names: &mut Names<'_>) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let rest = rest.trim();
        if name == "json" {
            let path = rest.strip_prefix('.').unwrap_or(rest);
            let path = (!path.is_empty()).then(|| Path::parse(path, names.symbols)).transpose()?;
            return Ok(Self::Json(path));
        }
        let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        if inner.is_none() && !rest.is_empty() {
            return Err(format!("`{text}` is not a filter: expected `(` after its name"));
        }
        let arguments: Vec<Cow<'_, str>> =
            inner.filter(|inner| !inner.trim().is_empty()).map_or_else(Vec::new, |inner| {
                scan::split(inner, ',').into_iter().map(|part| unquote(part.trim())).collect()
            });
        let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
        Self::build(name, &arguments, names).map_err(|reason| format!("`{text}`: {reason}"))
    }

    fn build(name: &str, arguments: &[&str], names: &Names<'_>) -> Result<Self, String> {
        let number =
            |text: &str| Ratio::parse(text).ok_or_else(|| format!("`{text}` is not a number"));
        Ok(match (name, arguments) {
            ("trim", []) => Self::Trim,
            ("lower", []) => Self::Lower,
            ("abs", []) => Self::Abs,
            ("complement", []) => Self::Complement,
            ("prob", []) => Self::Prob,
            ("iso", []) => Self::Iso,
            ("epoch_s", []) => Self::EpochS,
            ("epoch_ms", []) => Self::EpochMs,
            ("default", [text]) => Self::Default((*text).into()),
            ("div", [by]) => Self::Div(number(by)?),
            ("mul", [by]) => Self::Mul(number(by)?),
            ("map", [table]) => Self::Map(names.table(table)?),
            ("regex", [pattern]) => {
                let regex = parse_regex(pattern)?;
                let group = usize::from(regex.captures_len() > 1);
                Self::Regex(regex, group)
            }
            ("regex", [pattern, group]) => {
                let regex = parse_regex(pattern)?;
                let group = group.parse().ok().filter(|group| *group < regex.captures_len());
                let group = group.ok_or("there is no such group in the expression")?;
                Self::Regex(regex, group)
            }
            ("replace", [pattern, with]) => Self::Replace(parse_regex(pattern)?, (*with).into()),
            ("time", [form]) => {
                time::check_form(form)?;
                Self::Time((*form).into(), names.zone.clone())
            }
            ("time", [form, zone]) => {
                time::check_form(form)?;
                Self::Time((*form).into(), time::parse_zone(zone)?)
            }
            (known, _) if FILTERS.contains(&known) => {
                return Err("the wrong number of arguments".to_owned());
            }
            (unknown, _) => {
                let near = did_you_mean(unknown, FILTERS.into_iter());
                return Err(format!("there is no filter `{unknown}`{near}"));
            }
        })
    }

    fn apply<'d>(&'d self, text: Cow<'d, str>, scope: Scope<'d>) -> Result<Cow<'d, str>, String> {
        let compute = |compute: &dyn Fn(Ratio) -> Option<Ratio>| {
            let number = Ratio::parse(&text).ok_or_else(|| not_a_number(&text))?;
            let result =
                compute(number).ok_or_else(|| format!("`{}` is too large", shorten(&text)))?;
            Ok(Cow::Owned(result.to_text()))
        };
        match self {
            Self::Trim => Ok(Cow::Owned(text.trim().to_owned())),
            Self::Lower => Ok(Cow::Owned(text.to_lowercase())),
            Self::Default(other) => {
                Ok(if text.is_empty() { Cow::Borrowed(&**other) } else { text })
            }
            Self::Regex(regex, group) => {
                let found = regex.captures(&text).and_then(|captures| captures.get(*group));
                Ok(Cow::Owned(found.map_or("", |found| found.as_str()).trim().to_owned()))
            }
            Self::Replace(regex, with) => {
                Ok(Cow::Owned(collapse(&regex.replace_all(&text, &**with)).into_owned()))
            }
            Self::Map(table) => {
                let table = scope.tables.get(*table);
                let found =
                    table.and_then(|table| table.entries.get(&*text).or(table.otherwise.as_ref()));
                Ok(Cow::Borrowed(found.map_or("", |found| found)))
            }
            Self::Json(path) => parse_inner(&text, path.as_ref(), scope),
            Self::Div(by) => compute(&|number| number.checked_div(*by)),
            Self::Mul(by) => compute(&|number| number.checked_mul(*by)),
            Self::Abs => compute(&Ratio::abs),
            Self::Complement => compute(&Ratio::complement),
            Self::Prob => {
                let number = Ratio::parse(&text).ok_or_else(|| not_a_number(&text))?;
                Ok(Cow::Owned(number.odds().unwrap_or_default()))
            }
            Self::Time(form, zone) => {
                let instant = time::parse_form(&text, form, zone);
                instant.map(instant_text).ok_or_else(|| {
                    format!("`{}` is not a time of the form `{form}`", shorten(&text))
                })
            }
            Self::Iso => {
                let instant = time::parse_iso(&text, scope.zone);
                instant
                    .map(instant_text)
                    .ok_or_else(|| format!("`{}` is not a time", shorten(&text)))
            }
            Self::EpochS => epoch(&text, Ratio::parse("1000")),
            Self::EpochMs => epoch(&text, Ratio::parse("1")),
        }
    }
}

/// The result of a path in a text that is itself JSON.
fn parse_inner<'d>(
    text: &str,
    path: Option<&Path>,
    scope: Scope<'_>,
) -> Result<Cow<'d, str>, String> {
    let mut document = Document::new(Cow::Borrowed(text), scope.symbols);
    json::parse_json(&mut document).map_err(|fault| fault.to_string())?;
    let reading = Reading::new(&document);
    let item = Item { nodes: &[ROOT], list: false };
    let here = Path::here();
    Ok(Cow::Owned(reading.text(path.unwrap_or(&here), item).into_owned()))
}

fn parse_regex(pattern: &str) -> Result<Regex, String> {
    let built = regex::RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
    built.map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("not a regular expression: {reason}")
    })
}

/// An instant from its number and the milliseconds of one unit.
fn epoch<'d>(text: &str, unit_ms: Option<Ratio>) -> Result<Cow<'d, str>, String> {
    let number =
        Ratio::parse(text).zip(unit_ms).and_then(|(number, unit)| number.checked_mul(unit));
    let ms = number.and_then(|ms| ms.checked_div(Ratio::parse("1000")?)?.millis());
    let ms = ms.ok_or_else(|| not_a_number(text))?;
    Ok(instant_text(Timestamp::from_millis(ms)))
}

fn instant_text<'d>(instant: Timestamp) -> Cow<'d, str> {
    let text = if instant.as_millis() % 1000 == 0 {
        instant.seconds_text().iter().copied().map(char::from).collect()
    } else {
        instant.millis_text().iter().copied().map(char::from).collect()
    };
    Cow::Owned(text)
}

fn not_a_number(text: &str) -> String {
    format!("`{}` is not a number", shorten(text))
}

/// The offending text, short enough for a message.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A condition (A30).
#[derive(Clone, Debug)]
pub(super) struct Condition {
    value: Value,
    test: Test,
    negated: bool,
}

#[derive(Clone, Debug)]
enum Test {
    /// Not empty, `false` or 0.
    Holds,
    In(Vec<Value>),
    Matches(Regex),
}

impl Condition {
    /// Parses `value`, `!value`, `value = x`, `!=`, `=~ 're'`, `!~ 're'` or `in 'a','b'`.
    ///
    /// # Errors
    /// The fault, as a sentence.
    pub(super) fn parse(text: &str, names: &mut Names<'_>) -> Result<Self, String> {
        let text = text.trim();
        let words = [" = ", " != ", " =~ ", " !~ ", " in "];
        let Some((left, word, right)) = scan::split_at_word(text, &words) else {
            let (negated, value) = match text.strip_prefix('!') {
                Some(value) => (true, value),
                None => (false, text),
            };
            return Ok(Self { value: Value::parse(&[value], names)?, test: Test::Holds, negated });
        };
        let right = right.trim();
        let test = match word {
            " = " | " != " => Test::In(vec![operand(right, names)?]),
            " in " => {
                let parts = scan::split(right, ',').into_iter();
                Test::In(parts.map(|part| operand(part.trim(), names)).collect::<Result<_, _>>()?)
            }
            _ => Test::Matches(parse_regex(&unquote(right))?),
        };
        let negated = matches!(word, " != " | " !~ ");
        Ok(Self { value: Value::parse(&[left], names)?, test, negated })
    }

    pub(super) fn constant(holds: bool) -> Self {
        let value = Value::constant(if holds { "true" } else { "" });
        Self { value, test: Test::Holds, negated: false }
    }

    /// True if it holds for an item. A value that cannot be read counts as empty.
    pub(super) fn holds(&self, scope: Scope<'_>, item: Item<'_>) -> bool {
        let text = || self.value.text(scope, item).unwrap_or_default();
        let holds = match &self.test {
            Test::Holds => match self.value.as_path() {
                Some(path) => scope.reading.holds(path, item),
                None => is_true(&text()),
            },
            Test::In(values) => {
                let text = text();
                values.iter().any(|value| value.text(scope, item).is_ok_and(|other| other == text))
            }
            Test::Matches(regex) => {
                let text = text();
                scope.reading.spend(text.len());
                text.len() <= TEXT_BYTES_MAX && regex.is_match(&text)
            }
        };
        holds != self.negated
    }
}

/// The right side of a comparison: a text, or `{path}`.
fn operand(text: &str, names: &mut Names<'_>) -> Result<Value, String> {
    if text.starts_with('{') {
        return Value::parse(&[text], names);
    }
    Ok(Value::constant(&unquote(text)))
}
