//! Applies a compiled mapping to one document: events, their markets and scores (A31).

use std::borrow::Cow;
use std::collections::HashMap;

use domain::catalogue::{Shape, SportId};
use domain::line::Line;
use domain::market::{Market, PointRule};
use domain::message::{Correction, Fixture, Listing, OfferedOutcome, ScoreBody};
use domain::price::{Format, Quote};
use domain::score::Status;

use super::compile::Mapping;
use super::document::{NodeId, ROOT};
use super::path::{Item, Path, Reading};
use super::place::{Fault, Place};
use super::rule::{EventRule, MarketRule, OutcomeRule, PriceFormat, ScoreRule};
use super::value::{Condition, Scope, Value, shorten};
use crate::adapter::gather::Found;
use crate::adapter::{Coverage, Drift, Gather, Read, Settings, dropped};

/// Applies the mapping to a document.
///
/// # Errors
/// Too many items failed, or the paths visit too many nodes.
pub(super) fn run(
    mapping: &Mapping,
    settings: &Settings,
    reading: &Reading<'_>,
) -> Result<Read, Drift> {
    let coverage = if mapping.complete { Coverage::Complete } else { Coverage::Delta };
    let scope =
        Scope { reading, tables: &mapping.tables, symbols: &mapping.symbols, zone: &mapping.zone };
    let mut run = Run {
        mapping,
        settings,
        scope,
        gather: Gather::new(settings, coverage),
        joins: Vec::new(),
    };
    run.joins = mapping.markets.iter().map(|rule| run.join(rule)).collect();
    for (index, nodes) in run.events().into_iter().enumerate() {
        let item = Item { nodes: &nodes, list: mapping.event.group.is_some() };
        if holds_all(&mapping.event.when, scope, item) {
            run.event(item, Place::of("event", index));
        }
        if reading.is_exhausted() {
            let reason = "the paths of this mapping look at too many values; use `join`";
            return Err(Drift::new(format!("event[{index}]"), reason));
        }
    }
    run.gather.finish()
}

struct Run<'r> {
    mapping: &'r Mapping,
    settings: &'r Settings,
    scope: Scope<'r>,
    gather: Gather<'r>,
    /// For each market rule that joins the same items to every event: those items by ref.
    joins: Vec<Option<HashMap<String, Vec<NodeId>>>>,
}

/// The event whose markets are being read.
struct Event {
    reference: Box<str>,
    sport: SportId,
    home: Option<Box<str>>,
    away: Option<Box<str>>,
}

impl<'r> Run<'r> {
    /// The items that are events, grouped if the mapping says so.
    fn events(&self) -> Vec<Vec<NodeId>> {
        let root = Item { nodes: &[ROOT], list: false };
        let here = Path::here();
        let rule = &self.mapping.event;
        let nodes = self.scope.reading.nodes(rule.each.as_ref().unwrap_or(&here), root);
        let Some(group) = &rule.group else {
            return nodes.into_iter().map(|id| vec![id]).collect();
        };
        let mut groups: Vec<Vec<NodeId>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for id in nodes {
            let value = self.text_of(group, Item { nodes: &[id], list: false });
            let place = *places.entry(value.clone()).or_insert(groups.len());
            // Items without a value do not form a group.
            match groups.get_mut(place).filter(|_| !value.is_empty()) {
                Some(group) => group.push(id),
                None => groups.push(vec![id]),
            }
        }
        groups
    }

    fn text_of(&self, value: &Value, item: Item<'_>) -> String {
        value.text(self.scope, item).unwrap_or_default().into_owned()
    }

    /// The items of a rule by the ref they belong to, if the items are the same for every event.
    fn join(&self, rule: &MarketRule) -> Option<HashMap<String, Vec<NodeId>>> {
        let each = rule.each.as_ref().filter(|each| each.is_constant())?;
        let join = rule.join.as_ref()?;
        let root = Item { nodes: &[ROOT], list: false };
        let mut items: HashMap<String, Vec<NodeId>> = HashMap::new();
        for id in self.scope.reading.nodes(each, root) {
            let reference = self.text_of(join, Item { nodes: &[id], list: false });
            items.entry(reference).or_default().push(id);
        }
        Some(items)
    }

    fn event(&mut self, item: Item<'_>, place: Place<'_>) {
        self.gather.tried();
        let event = match self.listed(item) {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(fault) => {
                self.gather.fail(place.fault(fault));
                return;
            }
        };
        let mapping = self.mapping;
        for (index, rule) in mapping.markets.iter().enumerate() {
            self.markets(rule, index, &event, item, place.part("market", index));
        }
        if let Some(rule) = mapping.score.as_ref()
            && holds_all(&rule.when, self.scope, item)
            && let Err(fault) = self.score(rule, &event, item)
        {
            self.gather.fail(place.named("score").fault(fault));
        }
    }

    /// The event, listed if the mapping lists it; `None` if its sport is not ours.
    fn listed(&mut self, item: Item<'_>) -> Result<Option<Event>, Fault> {
        let (rule, scope) = (&self.mapping.event, self.scope);
        let reference = field("ref", rule.reference.text(scope, item))?;
        if reference.is_empty() {
            return Err(("ref", "is empty".to_owned()));
        }
        let upstream = field("sport", rule.sport.text(scope, item))?;
        if upstream.is_empty() {
            return Err(("sport", "is empty".to_owned()));
        }
        let Some(sport) = self.gather.sport(&upstream) else {
            return Ok(None);
        };
        let side = |key, value: &Option<Value>| {
            let text =
                value.as_ref().map(|value| field(key, value.text(scope, item))).transpose()?;
            Ok::<_, Fault>(text.filter(|text| !text.is_empty()).map(|text| Box::from(&*text)))
        };
        let (home, away) = (side("home", &rule.home)?, side("away", &rule.away)?);
        if rule.list.iter().all(|condition| condition.holds(scope, item)) {
            let listing = self.listing(rule, item, sport, (home.clone(), away.clone()))?;
            self.gather.list(&reference, listing)?;
            if let Some(bookmaker) = self.settings.bookmaker.filter(|_| self.confirms_all()) {
                self.gather.confirm(bookmaker, sport);
            }
        }
        let mut event = Event { reference: (&*reference).into(), sport, home, away };
        // A ref is one event: missing names are those of its listing.
        if let Some(Fixture::HeadToHead { home, away }) =
            self.gather.listing(&reference).map(|listing| &listing.fixture)
        {
            event.home = event.home.or_else(|| Some(home.clone()));
            event.away = event.away.or_else(|| Some(away.clone()));
        }
        Ok(Some(event))
    }

    fn confirms_all(&self) -> bool {
        self.mapping.complete && self.mapping.markets.iter().all(|market| market.ts.is_none())
    }

    fn listing(
        &self,
        rule: &EventRule,
        item: Item<'_>,
        sport: SportId,
        (home, away): (Option<Box<str>>, Option<Box<str>>),
    ) -> Result<Listing, Fault> {
        let text = |key, value: &Option<Value>| match value {
            Some(value) => Ok(Box::from(&*field(key, value.text(self.scope, item))?)),
            None => Ok(Box::default()),
        };
        let start = rule.commence_time.as_ref().map(|value| value.instant(self.scope, item));
        let start = field("commence_time", start.transpose())?.flatten();
        let fixture = match self.settings.catalogue.sport(sport).shape {
            Shape::Field => Fixture::Field { title: text("title", &rule.title)? },
            Shape::HeadToHead => Fixture::HeadToHead {
                home: home.ok_or_else(|| ("home", "is empty".to_owned()))?,
                away: away.ok_or_else(|| ("away", "is empty".to_owned()))?,
            },
        };
        Ok(Listing {
            sport,
            competition: text("competition", &rule.competition)?,
            commence_time: start.ok_or_else(|| ("commence_time", "is empty".to_owned()))?,
            fixture,
        })
    }

    fn markets(
        &mut self,
        rule: &'r MarketRule,
        index: usize,
        event: &Event,
        item: Item<'_>,
        place: Place<'_>,
    ) {
        let joined = self.joins.get(index).and_then(Option::as_ref);
        let nodes = match (&rule.each, joined) {
            (None, _) => return self.market(rule, event, item, place),
            (Some(_), Some(joined)) => joined.get(&*event.reference).cloned().unwrap_or_default(),
            (Some(each), None) => {
                let mut nodes = self.scope.reading.nodes(each, item);
                if let Some(join) = &rule.join {
                    nodes.retain(|id| {
                        self.text_of(join, Item { nodes: &[*id], list: false }) == *event.reference
                    });
                }
                nodes
            }
        };
        for (number, id) in nodes.iter().enumerate() {
            let item = Item { nodes: &[*id], list: false };
            self.market(rule, event, item, place.part("", number));
        }
    }

    fn market(&mut self, rule: &'r MarketRule, event: &Event, item: Item<'_>, place: Place<'_>) {
        if !holds_all(&rule.when, self.scope, item) {
            return;
        }
        match self.found(rule, event, item, place) {
            Ok(Some(found)) => self.gather.offer(found),
            Ok(None) => {}
            Err(fault) => {
                self.gather.tried();
                self.gather.fail(place.fault(fault));
            }
        }
    }

    /// The market with its outcomes; `None` if its name or bookmaker is not ours.
    fn found(
        &mut self,
        rule: &'r MarketRule,
        event: &Event,
        item: Item<'_>,
        place: Place<'_>,
    ) -> Result<Option<Found>, Fault> {
        let scope = self.scope;
        let key = field("key", rule.key.text(scope, item))?;
        if key.is_empty() {
            self.gather.drop_one(dropped::IGNORED);
            return Ok(None);
        }
        let Some(market) = self.gather.market(&key, event.sport) else {
            return Ok(None);
        };
        let bookmaker = match (&rule.bookmaker, self.settings.bookmaker) {
            (Some(value), _) => match &*field("bookmaker", value.text(scope, item))? {
                "" => return Err(("bookmaker", "is empty".to_owned())),
                name => self.gather.bookmaker(name),
            },
            (None, Some(bookmaker)) => Some(bookmaker),
            (None, None) => {
                return Err((
                    "bookmaker",
                    "is named neither here nor in the configuration".to_owned(),
                ));
            }
        };
        let Some(bookmaker) = bookmaker else {
            return Ok(None);
        };
        let group = rule.group.as_ref().map(|value| field("group", value.text(scope, item)));
        let group = group.transpose()?.filter(|group| !group.is_empty());
        let ts = rule.ts.as_ref().map(|value| field("ts", value.instant(scope, item)));
        let ts = ts.transpose()?.flatten();
        let format = self.price_format(rule, item)?;
        let suspended = rule.suspended.iter().any(|condition| condition.holds(scope, item));
        let mut found = Found {
            reference: event.reference.clone(),
            bookmaker,
            sport: event.sport,
            market,
            group: group.map(|group| (&*group).into()),
            outcomes: Vec::new(),
            ts,
            suspended,
        };
        if !suspended {
            for (index, outcome) in rule.outcomes.iter().enumerate() {
                let place = place.part("outcome", index);
                let context = Context { event, market, format, place };
                self.outcomes(outcome, &context, item, &mut found.outcomes);
            }
        }
        Ok(Some(found))
    }

    fn price_format(&self, rule: &MarketRule, item: Item<'_>) -> Result<Option<Format>, Fault> {
        match &rule.format {
            PriceFormat::Is(format) => Ok(Some(*format)),
            PriceFormat::Auto => Ok(None),
            PriceFormat::Named(value) => {
                let name = field("format", value.text(self.scope, item))?.to_lowercase();
                if name == "auto" {
                    return Ok(None);
                }
                let unknown = || {
                    (
                        "format",
                        format!(
                            "`{}` is not american, decimal, fractional or auto",
                            shorten(&name)
                        ),
                    )
                };
                Format::parse(&name).map(Some).ok_or_else(unknown)
            }
        }
    }

    fn outcomes(
        &mut self,
        rule: &OutcomeRule,
        context: &Context<'_>,
        item: Item<'_>,
        outcomes: &mut Vec<OfferedOutcome>,
    ) {
        let nodes = match &rule.each {
            Some(each) => self.scope.reading.nodes(each, item),
            None => return self.outcome(rule, context, item, outcomes),
        };
        for id in nodes {
            self.outcome(rule, context, Item { nodes: &[id], list: false }, outcomes);
        }
    }

    fn outcome(
        &mut self,
        rule: &OutcomeRule,
        context: &Context<'_>,
        item: Item<'_>,
        outcomes: &mut Vec<OfferedOutcome>,
    ) {
        if !holds_all(&rule.when, self.scope, item) {
            return;
        }
        match read_outcome(rule, context, item, self.scope) {
            Ok(None) => {}
            Ok(Some(outcome)) => {
                self.gather.tried();
                outcomes.push(outcome);
            }
            Err(fault) => {
                self.gather.tried();
                self.gather.fail(context.place.fault(fault));
            }
        }
    }

    fn score(&mut self, rule: &ScoreRule, event: &Event, item: Item<'_>) -> Result<(), Fault> {
        let scope = self.scope;
        let status = field("status", rule.status.text(scope, item))?;
        if status.is_empty() {
            return Ok(());
        }
        let unknown =
            || ("status", format!("`{}` is not scheduled, live or final", shorten(&status)));
        let status = Status::parse(&status).ok_or_else(unknown)?;
        let side = |key, value: &Option<Value>| {
            let text =
                value.as_ref().map(|value| field(key, value.text(scope, item))).transpose()?;
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                return Ok(None);
            };
            let number = text.parse::<i32>().ok().filter(|number| (0..=9_999).contains(number));
            number.map(Some).ok_or_else(|| (key, format!("`{}` is not a score", shorten(&text))))
        };
        let winner = match &rule.winner {
            Some(value) => field("winner", value.text(scope, item))?,
            None => Cow::Borrowed(""),
        };
        let winner: Option<Box<str>> = match &*winner {
            "" => None,
            name => event.name(name).map(Into::into),
        };
        let score = ScoreBody {
            reference: event.reference.clone(),
            status,
            home: side("home_score", &rule.home_score)?,
            away: side("away_score", &rule.away_score)?,
            periods: Vec::new(),
            winner,
            leaders: Vec::new(),
            correction: Correction::No,
        };
        self.gather.score(score, None);
        Ok(())
    }
}

impl Event {
    /// The participant meant by `@home` or `@away`, or the name itself.
    fn name<'e>(&'e self, name: &'e str) -> Option<&'e str> {
        match name {
            "@home" => self.home.as_deref(),
            "@away" => self.away.as_deref(),
            name => Some(name),
        }
    }
}

/// The data that the outcomes of one market share.
struct Context<'c> {
    event: &'c Event,
    market: Market,
    /// `None`: each price shows its own format.
    format: Option<Format>,
    place: Place<'c>,
}

fn read_outcome(
    rule: &OutcomeRule,
    context: &Context<'_>,
    item: Item<'_>,
    scope: Scope<'_>,
) -> Result<Option<OfferedOutcome>, Fault> {
    let name = field("name", rule.name.text(scope, item))?;
    let price = field("price", rule.price.text(scope, item))?;
    if name.is_empty() || price.is_empty() {
        return Ok(None);
    }
    let Some(name) = context.event.name(&name) else {
        return Ok(None);
    };
    let Some(quote) = read_price(&price, context.format).map_err(|reason| ("price", reason))?
    else {
        return Ok(None);
    };
    let point = match context.market.point_rule() {
        PointRule::None => None,
        PointRule::Signed | PointRule::Total => {
            let text = rule.point.as_ref().map(|value| field("point", value.text(scope, item)));
            let text = text.transpose()?.filter(|text| !text.is_empty());
            let Some(text) = text else {
                return Ok(None);
            };
            let line = Line::parse(&plain_number(&text));
            Some(line.map_err(|error| ("point", error.to_string()))?)
        }
    };
    if context.market.point_rule() == PointRule::Total
        && point.is_some_and(|line| line.quarters() <= 0)
    {
        return Err(("point", "a total must be above zero: add `| abs`".to_owned()));
    }
    crate::adapter::gather::check_name(name).map_err(|reason| ("name", reason))?;
    Ok(Some(OfferedOutcome { name: name.into(), quote, point }))
}

/// Reads a price in the spellings of bookmakers; `None` if it means that there is no price (0, or a decimal 1).
pub(super) fn read_price(text: &str, format: Option<Format>) -> Result<Option<Quote>, String> {
    let format = format.unwrap_or_else(|| guess_format(text));
    if ["EVEN", "EV", "EVS", "EVENS"].iter().any(|even| text.eq_ignore_ascii_case(even)) {
        let even = match format {
            Format::American => "100",
            Format::Decimal => "2",
            Format::Fractional => "1/1",
        };
        return Quote::parse(even, format).map(Some).map_err(|error| error.to_string());
    }
    let text = plain_number(text);
    let digits = || text.bytes().filter(u8::is_ascii_digit);
    let zero = digits().count() > 0 && digits().all(|digit| digit == b'0');
    let stake_only = format == Format::Decimal
        && text.trim_end_matches(['0', '.']) == "1"
        && !text.starts_with("10");
    if zero || stake_only {
        return Ok(None);
    }
    Quote::parse(&text, format).map(Some).map_err(|error| error.to_string())
}

/// Guesses the format: a slash means fractional, a sign American, a point decimal, a whole number from 100 American.
fn guess_format(text: &str) -> Format {
    let whole_hundreds = text.len() >= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if text.contains('/') {
        Format::Fractional
    } else if text.starts_with(['+', '-', '\u{2212}'])
        || whole_hundreds
        || text.bytes().all(|b| b.is_ascii_alphabetic())
    {
        Format::American
    } else {
        Format::Decimal
    }
}

/// Replaces special signs for minus and quarters with plain digits.
fn plain_number(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let part = match c {
            '\u{2212}' | '\u{2013}' => "-",
            '¼' => ".25",
            '½' => ".5",
            '¾' => ".75",
            _ => {
                plain.push(c);
                continue;
            }
        };
        if part != "-" && !plain.ends_with(|c: char| c.is_ascii_digit()) {
            plain.push('0');
        }
        plain.push_str(part);
    }
    Cow::Owned(plain)
}

fn holds_all(conditions: &[Condition], scope: Scope<'_>, item: Item<'_>) -> bool {
    conditions.iter().all(|condition| condition.holds(scope, item))
}

fn field<T>(key: &'static str, read: Result<T, String>) -> Result<T, Fault> {
    read.map_err(|reason| (key, reason))
}
