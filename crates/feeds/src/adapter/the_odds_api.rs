//! `the_odds_api`: The Odds API v4. Reads `/events`, `/odds` and `/scores` of one upstream sport each, and computes
//! the cost of calls.
//!
//! A unit is `events/KEY`, `odds/KEY` or `scores/KEY` with the upstream's sport key. Outcomes are matched by name:
//! the first one is rarely the home side. Lay prices are dropped.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use domain::catalogue::{Shape, SportId};
use domain::line::Line;
use domain::market::{Market, PointRule};
use domain::message::{Correction, Fixture, Listing, OfferedOutcome, ScoreBody};
use domain::price::{Format, Quote};
use domain::score::Status;
use domain::time::Timestamp;
use serde::Deserialize;

use crate::adapter::gather::{Found, check_name};
use crate::adapter::names::Known;
use crate::adapter::pull::Pull;
use crate::adapter::{
    BODY_BYTES_MAX, Coverage, Drift, Gather, Names, Read, Settings, Translator, dropped,
};

mod body;

use body::{Bookmaker, Event, Outcome};

/// The upstream's names.
const TABLES: &str = include_str!("the_odds_api.toml");
/// Number of bookmakers that cost as much as one region.
const BOOKMAKERS_PER_REGION: u64 = 10;

/// Reads bodies of The Odds API.
#[derive(Debug)]
pub struct TheOddsApi {
    settings: Settings,
    format: Format,
}

/// A sport from upstream's `/sports`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UpstreamSport {
    pub key: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub active: bool,
    #[serde(default)]
    pub has_outrights: bool,
}

/// The reason why upstream refuses to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The month's credits are used up.
    Spent,
    /// The key or the request is wrong; upstream's own text.
    Refused(String),
}

/// The built-in table from the upstream's names to ours, which the operator's entries override.
pub fn own_names() -> Names {
    #[derive(Default, Deserialize)]
    struct Tables {
        bookmakers: BTreeMap<String, String>,
        sports: BTreeMap<String, String>,
        markets: BTreeMap<String, String>,
    }
    let tables: Tables = toml::from_str(TABLES).unwrap_or_default();
    Names { bookmakers: tables.bookmakers, sports: tables.sports, markets: tables.markets }
}

/// The format to request: American if every region is American.
pub fn odds_format<'r>(regions: impl IntoIterator<Item = &'r str>) -> Format {
    let mut regions = regions.into_iter().peekable();
    let american = regions.peek().is_some() && regions.all(|region| region.starts_with("us"));
    if american { Format::American } else { Format::Decimal }
}

/// The credits of a call for odds: markets times regions; ten bookmakers requested by name count as one region.
pub fn call_cost(markets: usize, regions: usize, bookmakers: usize) -> u64 {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let regions = match bookmakers {
        0 => count(regions),
        named => count(named).div_ceil(BOOKMAKERS_PER_REGION),
    };
    count(markets).saturating_mul(regions)
}

/// True if a call leaves the reserve untouched.
pub fn affords(cost: u64, remaining: u64, reserve: u64) -> bool {
    remaining.checked_sub(cost).is_some_and(|left| left >= reserve)
}

/// The interval, stretched so that the plan until the end of the month can be paid; `None` if no credits above the
/// reserve remain.
pub fn stretched(
    interval: Duration,
    planned: u64,
    remaining: u64,
    reserve: u64,
) -> Option<Duration> {
    let free = remaining.checked_sub(reserve).filter(|free| *free > 0)?;
    if planned <= free {
        return Some(interval);
    }
    let ms = interval.as_millis().saturating_mul(u128::from(planned)) / u128::from(free);
    Some(Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)))
}

/// The refusal in an answer with this status, if it is one of upstream's own.
pub fn refusal(status: u16, body: &[u8]) -> Option<Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Error {
        message: String,
        error_code: String,
    }
    if !matches!(status, 401 | 403 | 422) {
        return None;
    }
    let error: Error = serde_json::from_slice(body).unwrap_or_default();
    if status == 401 && error.error_code == "OUT_OF_USAGE_CREDITS" {
        return Some(Refusal::Spent);
    }
    let message: String = error.message.chars().filter(|c| !c.is_control()).take(300).collect();
    let message = if message.is_empty() { format!("status {status}") } else { message };
    Some(Refusal::Refused(message))
}

/// Reads `/sports`.
///
/// # Errors
/// It is not a list of sports.
pub fn sports(bytes: &[u8]) -> Result<Vec<UpstreamSport>, Drift> {
    serde_json::from_slice(bytes).map_err(|error| not_a_list("sports", &error))
}

impl TheOddsApi {
    /// `format` is the one that was requested ([`odds_format`]): a number alone does not show it.
    pub fn new(settings: Settings, format: Format) -> Self {
        let names = own_names().overlaid(&settings.names);
        Self { settings: Settings { names, ..settings }, format }
    }

    /// Our sport for an upstream key; `None` if it is not read.
    pub fn wants(&self, key: &str) -> Option<SportId> {
        match self.settings.names.sport(key, &self.settings.catalogue) {
            Known::Is(sport) => Some(sport),
            Known::Ignored | Known::Unmapped => None,
        }
    }
}

impl Translator for TheOddsApi {
    fn translate(&mut self, unit: &str, bytes: &[u8], _at: Timestamp) -> Result<Read, Drift> {
        if bytes.len() > BODY_BYTES_MAX {
            let reason = format!("{} bytes; at most {BODY_BYTES_MAX} are taken", bytes.len());
            return Err(Drift::new("/", reason));
        }
        let (kind, coverage) = match unit.split('/').next() {
            Some("events") => (Kind::Events, Coverage::Events),
            Some("scores") => (Kind::Scores, Coverage::Delta),
            _ => (Kind::Odds, Coverage::Prices),
        };
        let mut reader = Reader {
            gather: Gather::new(&self.settings, coverage),
            settings: &self.settings,
            format: self.format,
            kind,
        };
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Drift::new(format!("byte {}", error.valid_up_to()), "not UTF-8"))?;
        let (mut pull, mut event, mut index) = (Pull::new(text), Event::default(), 0);
        let read = pull.list(|pull| {
            let from = pull.clone();
            match event.read(pull) {
                Some(()) => reader.event(index, &event),
                // A bad event does not affect the others.
                None => {
                    let reason = event.fault(pull.offset());
                    *pull = from;
                    pull.skip()?;
                    reader.bad_event(index, reason);
                }
            }
            index += 1;
            Some(())
        });
        if read.is_none() || !pull.is_done() {
            let reason = format!("not the expected list of events, from byte {}", pull.offset());
            return Err(Drift::new("/", reason));
        }
        reader.gather.finish()
    }
}

fn not_a_list(path: &str, error: &serde_json::Error) -> Drift {
    Drift::new(path, format!("not the expected list: {error}"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Events,
    Odds,
    Scores,
}

struct Reader<'s> {
    gather: Gather<'s>,
    settings: &'s Settings,
    format: Format,
    kind: Kind,
}

type Fault = (&'static str, String);

impl Reader<'_> {
    fn bad_event(&mut self, index: usize, reason: String) {
        self.gather.tried();
        self.gather.fail(Drift::new(format!("[{index}]"), reason));
    }

    fn event(&mut self, index: usize, event: &Event<'_>) {
        self.gather.tried();
        let Some(sport) = self.gather.sport(&event.sport_key) else {
            return;
        };
        if let Err((field, reason)) = self.listed(event, sport) {
            self.gather.fail(Drift::new(format!("[{index}].{field}"), reason));
            return;
        }
        match self.kind {
            Kind::Events => {}
            Kind::Odds => {
                for bookmaker in &event.bookmakers {
                    self.bookmaker(index, event, sport, bookmaker);
                }
            }
            Kind::Scores => {
                if let Err((field, reason)) = self.score(event) {
                    self.gather.fail(Drift::new(format!("[{index}].{field}"), reason));
                }
            }
        }
    }

    fn listed(&mut self, event: &Event<'_>, sport: SportId) -> Result<(), Fault> {
        let name = |key, name: &Option<Cow<'_, str>>| {
            let name = name.as_deref().map(str::trim).filter(|name| !name.is_empty());
            name.map(Box::from).ok_or((key, "is empty".to_owned()))
        };
        let fixture = match self.settings.catalogue.sport(sport).shape {
            Shape::HeadToHead => Fixture::HeadToHead {
                home: name("home_team", &event.home_team)?,
                away: name("away_team", &event.away_team)?,
            },
            Shape::Field => Fixture::Field { title: event.sport_title.trim().into() },
        };
        let start = Timestamp::parse(&event.commence_time);
        let listing = Listing {
            sport,
            competition: event.sport_title.trim().into(),
            commence_time: start.map_err(|error| ("commence_time", error.to_string()))?,
            fixture,
        };
        self.gather.list(&event.id, listing)
    }

    fn bookmaker(
        &mut self,
        index: usize,
        event: &Event<'_>,
        sport: SportId,
        bookmaker: &Bookmaker<'_>,
    ) {
        let Some(id) = self.gather.bookmaker(&bookmaker.key) else {
            return;
        };
        for of in event.markets.get(bookmaker.markets.clone()).unwrap_or_default() {
            if of.key.ends_with("_lay") {
                self.gather.drop_one(dropped::LAY);
                continue;
            }
            let Some(market) = self.gather.market(&of.key, sport) else {
                continue;
            };
            let ts = of.last_update.as_deref().or(bookmaker.last_update.as_deref());
            let offered = event.outcomes.get(of.outcomes.clone()).unwrap_or_default();
            let mut outcomes = Vec::with_capacity(offered.len());
            for outcome in offered {
                self.gather.tried();
                match read_outcome(outcome, market, self.format) {
                    Ok(outcome) => outcomes.push(outcome),
                    Err((field, reason)) => {
                        let path = format!("[{index}].{}.{}.{field}", bookmaker.key, of.key);
                        self.gather.fail(Drift::new(path, reason));
                    }
                }
            }
            self.gather.offer(Found {
                reference: (&*event.id).into(),
                bookmaker: id,
                sport,
                market,
                group: None,
                outcomes,
                ts: ts.and_then(|ts| Timestamp::parse(ts).ok()),
                suspended: false,
            });
        }
    }

    fn score(&mut self, event: &Event<'_>) -> Result<(), Fault> {
        let Some(scores) = &event.scores else {
            return Ok(());
        };
        let side = |team: &Option<Cow<'_, str>>| {
            let found = scores.iter().find(|score| Some(&*score.name) == team.as_deref());
            let Some(found) = found.filter(|found| !found.score.is_empty()) else {
                return Ok(None);
            };
            let number = found.score.parse::<i32>().ok().filter(|n| (0..=9_999).contains(n));
            number.map(Some).ok_or(("scores", "a score is not a whole number".to_owned()))
        };
        let (home, away) = (side(&event.home_team)?, side(&event.away_team)?);
        if home.is_none() || away.is_none() {
            return Ok(());
        }
        let score = ScoreBody {
            reference: (&*event.id).into(),
            status: if event.completed { Status::Final } else { Status::Live },
            home,
            away,
            periods: Vec::new(),
            winner: None,
            leaders: Vec::new(),
            correction: Correction::No,
        };
        let ts = event.last_update.as_deref().and_then(|ts| Timestamp::parse(ts).ok());
        self.gather.score(score, ts);
        Ok(())
    }
}

fn read_outcome(
    outcome: &Outcome<'_>,
    market: Market,
    format: Format,
) -> Result<OfferedOutcome, Fault> {
    let name = outcome.name.trim();
    check_name(name).map_err(|reason| ("name", reason))?;
    let quote = Quote::parse(outcome.price, format);
    let quote = quote.map_err(|error| ("price", error.to_string()))?;
    let line = |point: &str| Line::parse(point).map_err(|error| ("point", error.to_string()));
    let point = match market.point_rule() {
        PointRule::None => None,
        PointRule::Signed | PointRule::Total => {
            let point = outcome.point.filter(|point| *point != "null");
            Some(line(point.ok_or(("point", "is missing".to_owned()))?)?)
        }
    };
    Ok(OfferedOutcome { name: name.into(), quote, point })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::Catalogue;

    use super::*;

    #[test]
    fn calls_cost_markets_times_regions_and_the_reserve_is_never_touched() {
        assert_eq!(call_cost(3, 2, 0), 6);
        assert_eq!(call_cost(1, 0, 10), 1);
        assert_eq!(call_cost(2, 1, 11), 4);
        assert!(affords(6, 506, 500));
        assert!(!affords(7, 506, 500));
        assert!(!affords(7, 6, 0));
        let minute = Duration::from_secs(60);
        assert_eq!(stretched(minute, 1_000, 1_500, 500), Some(minute));
        assert_eq!(stretched(minute, 3_000, 1_500, 500), Some(minute * 3));
        assert_eq!(stretched(minute, 0, 500, 500), None);
        assert_eq!(stretched(minute, 0, 0, 500), None);
        assert_eq!(odds_format(["us", "us2"]), Format::American);
        assert_eq!(odds_format(["us", "eu"]), Format::Decimal);
        assert_eq!(odds_format([]), Format::Decimal);
    }

    #[test]
    fn refusals_are_told_apart() {
        let spent =
            br#"{"message":"Usage quota has been reached","error_code":"OUT_OF_USAGE_CREDITS"}"#;
        let key = br#"{"message":"API key is not valid","error_code":"INVALID_KEY"}"#;
        assert_eq!(refusal(401, spent), Some(Refusal::Spent));
        assert_eq!(refusal(401, key), Some(Refusal::Refused("API key is not valid".to_owned())));
        assert_eq!(refusal(422, b"<html>"), Some(Refusal::Refused("status 422".to_owned())));
        assert_eq!(refusal(429, key), None);
        assert_eq!(refusal(500, b""), None);
    }

    #[test]
    fn the_tables_name_what_the_catalogue_has_and_no_bookmaker_twice() {
        let catalogue = Catalogue::load(None).unwrap();
        let names = own_names();
        assert!(names.bookmakers.len() > 40 && names.sports.len() > 4 && names.markets.len() > 3);
        let mut seen = std::collections::HashSet::new();
        for (from, to) in names.bookmakers.iter().filter(|(_, to)| !to.is_empty()) {
            assert!(catalogue.bookmaker_id(to).is_some(), "{from} = {to}");
            assert!(seen.insert(to), "{to} twice");
        }
        assert!(names.sports.values().all(|to| to.is_empty() || catalogue.sport_id(to).is_some()));
        let settings = Settings::new(Arc::new(catalogue));
        let api = TheOddsApi::new(settings, Format::Decimal);
        for (key, ours) in [
            ("tennis_atp_munich", Some("tennis")),
            ("americanfootball_nfl", Some("american_football")),
            ("americanfootball_nfl_super_bowl_winner", None),
            ("golf_masters_tournament_winner", Some("golf")),
            ("soccer_epl", None),
        ] {
            let sport = api.wants(key).map(|id| &*api.settings.catalogue.sport(id).key);
            assert_eq!(sport, ours, "{key}");
        }
    }
}
