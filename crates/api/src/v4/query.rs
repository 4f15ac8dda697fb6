//! Parses a query string into a selection (V3, V6, V9 to V12).

use std::borrow::Cow;

use domain::suggest::{closest, did_you_mean};
use domain::v4::{BookmakerSet, Region, RegionSet};
use domain::{Catalogue, EventId, Market, Shape, Sport, Timestamp};
use market::select::EventIds;

use http::percent::decode;

use crate::v1::query::{Query, short};
use crate::v4::error::{Code, Refused};
use crate::v4::param::{EVENT_IDS_MAX, Param};
use crate::v4::selection::{Markets, Price, Selection, SportFilter, Style, What};
use crate::v4::target_path::{Subject, TargetPath};

/// The non-empty parameters of a request.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    subject: Subject,
    historical: bool,
    values: [Option<Cow<'a, str>>; Param::COUNT],
}

/// The requested bookmakers, and the number of regions they count as.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    bookmakers: BookmakerSet,
    regions: u32,
}

/// Markets of the prior interface that event odds accept but that have no data.
const EMPTY_MARKETS: [&str; 3] = ["btts", "draw_no_bet", "double_chance"];
const EMPTY_MARKET_STARTS: [&str; 8] =
    ["alternate_", "team_totals", "player_", "batter_", "pitcher_", "h2h_", "spreads_", "totals_"];

impl<'a> Values<'a> {
    /// Extracts the known parameters from a query. Others are ignored.
    pub(crate) fn new(query: Query<'a>, target: TargetPath<'_>) -> Result<Self, Refused> {
        let (subject, historical) = (target.subject, target.is_historical());
        let mut values = Self { subject, historical, values: Default::default() };
        for (name, value) in query.pairs() {
            let name = decode(name);
            let known = target.params().find(|param| name.as_deref() == Some(param.name()));
            let Some(param) = known else { continue };
            let Some(value) = decode(value) else {
                let text = format!(": {} is not UTF-8 text", param.name());
                return Err(Refused::new(param.code(), &text));
            };
            let Some(slot) = values.values.get_mut(param.index()) else { continue };
            match slot {
                _ if value.is_empty() => {}
                None => *slot = Some(value),
                Some(held) if param.is_list() => {
                    let held = held.to_mut();
                    held.push(',');
                    held.push_str(&value);
                }
                // The first value of any other parameter counts.
                Some(_) => {}
            }
        }
        Ok(values)
    }

    fn get(&self, param: Param) -> Option<&str> {
        self.values.get(param.index())?.as_deref()
    }

    /// The distinct items of a list.
    fn list(&self, param: Param) -> Vec<&str> {
        let mut items: Vec<&str> = Vec::new();
        let given = self.get(param).into_iter().flat_map(|list| list.split(','));
        for item in given.map(str::trim).filter(|item| !item.is_empty()) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        items
    }

    /// The selection of the request, and its price.
    pub(crate) fn selection(
        &self,
        target: TargetPath<'_>,
        sport: SportFilter,
        catalogue: &Catalogue,
    ) -> Result<(Selection, Price), Refused> {
        let mut selection = Selection::of_events(sport);
        let price = match self.subject {
            Subject::Odds => {
                selection.what = What::Odds;
                let wanted = self.wanted(catalogue)?;
                selection.bookmakers = wanted.bookmakers;
                let counted = self.markets(&mut selection, catalogue)?;
                Price::Credits(counted.saturating_mul(wanted.regions))
            }
            Subject::EventOdds => {
                let wanted = self.wanted(catalogue)?;
                selection.bookmakers = wanted.bookmakers;
                self.markets(&mut selection, catalogue)?;
                self.flag(Param::IncludeMultipliers)?;
                selection.what = What::EventOdds(event_id(target)?);
                selection.style.set(Style::OF_EVENT);
                Price::EachMarket(wanted.regions)
            }
            Subject::EventMarkets => {
                selection.bookmakers = self.wanted(catalogue)?.bookmakers;
                selection.markets = Markets::ALL;
                selection.what = What::EventMarkets(event_id(target)?);
                selection.style.set(Style::OF_EVENT);
                selection.style.set(Style::MARKETS_ONLY);
                Price::Credits(1)
            }
            Subject::Scores => {
                let days = self.days()?;
                selection.what = What::Scores { days: days.unwrap_or(0) };
                Price::Credits(if days.is_some() { 2 } else { 1 })
            }
            Subject::Participants => {
                selection.what = What::Participants;
                Price::Credits(1)
            }
            Subject::Sports => {
                selection.what = What::Sports { all: self.flag(Param::All)? };
                Price::Free
            }
            Subject::Events if self.historical => Price::Credits(1),
            Subject::Events => Price::Free,
        };
        self.style(&mut selection.style)?;
        selection.events = self.event_ids()?;
        (selection.from, selection.to) = self.range()?;
        if let SportFilter::Upcoming(_) = selection.sport {
            (selection.from, selection.to) = (None, None);
        }
        Ok((selection, price))
    }

    fn style(&self, style: &mut Style) -> Result<(), Refused> {
        if self.one_of(Param::OddsFormat, ["decimal", "american"])? == Some("american") {
            style.set(Style::AMERICAN);
        }
        if self.one_of(Param::DateFormat, ["iso", "unix"])? == Some("unix") {
            style.set(Style::UNIX);
        }
        for (param, with) in [
            (Param::IncludeLinks, Style::LINKS),
            (Param::IncludeSids, Style::SIDS),
            (Param::IncludeBetLimits, Style::BET_LIMITS),
            (Param::IncludeRotationNumbers, Style::ROTATION_NUMBERS),
        ] {
            if self.flag(param)? {
                style.set(with);
            }
        }
        Ok(())
    }

    fn one_of(&self, param: Param, allowed: [&'static str; 2]) -> Result<Option<&str>, Refused> {
        let value = self.get(param);
        if value.is_some_and(|value| !allowed.contains(&value)) {
            let [one, other] = allowed;
            return Err(Refused::new(param.code(), &format!(": use {one} or {other}")));
        }
        Ok(value)
    }

    fn flag(&self, param: Param) -> Result<bool, Refused> {
        Ok(self.one_of(param, ["true", "false"])? == Some("true"))
    }

    fn days(&self) -> Result<Option<u8>, Refused> {
        match self.get(Param::DaysFrom) {
            None => Ok(None),
            Some("1") => Ok(Some(1)),
            Some("2") => Ok(Some(2)),
            Some("3") => Ok(Some(3)),
            Some(_) => Err(Refused::new(Param::DaysFrom.code(), ": use 1, 2 or 3")),
        }
    }

    /// The selected bookmakers. Both parameters are validated, though at most one is used.
    fn wanted(&self, catalogue: &Catalogue) -> Result<Wanted, Refused> {
        let names = catalogue.v4();
        let mut regions = RegionSet::default();
        for key in self.list(Param::Regions) {
            regions.insert(Region::parse(key).ok_or_else(|| {
                let keys = Region::ALL.map(Region::key);
                let (near, key) = (did_you_mean(key, keys.into_iter()), short(key));
                let text = format!(": there is no `{key}`; use {}{near}", keys.join(", "));
                Refused::new(Code::InvalidRegion, &text)
            })?);
        }
        let keys = self.list(Param::Bookmakers);
        let mut bookmakers = BookmakerSet::default();
        for key in &keys {
            let found = names.find_bookmakers(catalogue, key).ok_or_else(|| {
                let near = closest(key, names.bookmaker_keys(catalogue));
                let near = near.map(|near| format!("; the nearest key is `{near}`"));
                let (near, key) = (near.unwrap_or_default(), short(key));
                let text = format!(": there is no bookmaker `{key}`{near}");
                Refused::new(Code::InvalidBookmakers, &text)
            })?;
            bookmakers = bookmakers.union(found);
        }
        if !keys.is_empty() {
            let tens = u32::try_from(keys.len().div_ceil(10)).unwrap_or(u32::MAX);
            return Ok(Wanted { bookmakers, regions: tens });
        }
        if regions.count() == 0 {
            let text = ": send regions (such as us) or bookmakers (such as draftkings)";
            return Err(Refused::new(Code::MissingRegion, text));
        }
        Ok(Wanted { bookmakers: names.bookmakers_in(regions), regions: regions.count() })
    }

    /// The markets, and how many of them are charged.
    fn markets(&self, selection: &mut Selection, catalogue: &Catalogue) -> Result<u32, Refused> {
        let sport: Option<&Sport> = match &selection.sport {
            SportFilter::Whole(sport) | SportFilter::Key(sport, _) => Some(catalogue.sport(*sport)),
            SportFilter::All | SportFilter::Upcoming(_) => None,
        };
        let field = sport.is_some_and(|sport| sport.shape == Shape::Field);
        let mut keys = self.list(Param::Markets);
        if keys.is_empty() {
            keys.push(if field { "outrights" } else { "h2h" });
        }
        let (mut counted, mut unknown, mut of_others) = (0, Vec::new(), Vec::new());
        for sent in keys {
            let base =
                sent.strip_suffix("_lay").filter(|base| matches!(*base, "h2h" | "outrights"));
            let (is_lay, key) = (base.is_some(), base.unwrap_or(sent));
            match key {
                "h2h" | "spreads" | "totals" if field => of_others.push(sent),
                "outrights" if !field => of_others.push(sent),
                "h2h" | "spreads" | "totals" | "outrights" if is_lay => {}
                "h2h" => selection.markets.insert(Market::Moneyline),
                "spreads" => selection.markets.insert(Market::Spread),
                "totals" => selection.markets.insert_totals(),
                "outrights" => selection.markets.insert(Market::Outright),
                other => match self.more_markets(other, sport.filter(|_| field)) {
                    More::Market(market) => selection.markets.insert(market),
                    More::Empty => continue,
                    More::Unknown => unknown.push(short(other)),
                },
            }
            counted += u32::from(!is_lay);
        }
        if !unknown.is_empty() {
            let text = format!(
                ": {}. Supported are h2h, spreads, totals, outrights, h2h_lay and outrights_lay",
                unknown.join(", ")
            );
            return Err(Refused::new(Code::InvalidMarket, &text));
        }
        if !of_others.is_empty() {
            let has = match (field, self.subject) {
                (false, _) => "h2h, spreads and totals",
                (true, Subject::EventOdds) => "outrights, and golf's own such as top5 and matchup",
                (true, _) => "outrights",
            };
            let are = if of_others.len() == 1 { "is" } else { "are" };
            let text =
                format!(": {} {are} not offered here; this sport has {has}", of_others.join(", "));
            return Err(Refused::new(Code::InvalidMarketCombo, &text));
        }
        if let Some(sport) = sport {
            selection.markets = selection.markets.of_sport(sport);
        }
        Ok(counted)
    }

    /// Markets that event odds accept beyond the six.
    fn more_markets(&self, key: &str, field: Option<&Sport>) -> More {
        if self.subject != Subject::EventOdds {
            return More::Unknown;
        }
        let own = field.and_then(|field| {
            let market = Market::parse(key).filter(|market| field.offers(*market))?;
            Some(market).filter(|market| *market != Market::Outright)
        });
        if let Some(own) = own {
            return More::Market(own);
        }
        let empty = EMPTY_MARKETS.contains(&key)
            || EMPTY_MARKET_STARTS.iter().any(|start| key.starts_with(start));
        if empty { More::Empty } else { More::Unknown }
    }

    fn event_ids(&self) -> Result<EventIds, Refused> {
        let texts = self.list(Param::EventIds);
        if texts.is_empty() {
            return Ok(None);
        }
        if texts.len() > EVENT_IDS_MAX {
            let text =
                format!(": at most {EVENT_IDS_MAX} are taken, and these are {}", texts.len());
            return Err(Refused::new(Code::InvalidEventIds, &text));
        }
        let mut ids = Vec::with_capacity(texts.len());
        for text in texts {
            let id = parse_id(text).ok_or_else(|| {
                let text =
                    format!(": `{}` is no event ID; they are 32 hexadecimal digits", short(text));
                Refused::new(Code::InvalidEventIds, &text)
            })?;
            ids.extend(id);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some(ids.into()))
    }

    fn range(&self) -> Result<(Option<Timestamp>, Option<Timestamp>), Refused> {
        let from = self.instant(Param::CommenceTimeFrom)?;
        let to = self.instant(Param::CommenceTimeTo)?;
        if let (Some(from), Some(to)) = (from, to)
            && to <= from
        {
            let text = ": commenceTimeTo must be later than commenceTimeFrom";
            return Err(Refused::new(Code::InvalidCommenceTimeRange, text));
        }
        Ok((from, to))
    }

    fn instant(&self, param: Param) -> Result<Option<Timestamp>, Refused> {
        let Some(text) = self.get(param) else { return Ok(None) };
        parse_time(text).map(Some).ok_or_else(|| {
            let text = ": use the form YYYY-MM-DDTHH:MM:SSZ, such as 2026-11-14T23:38:00Z";
            Refused::new(param.code(), text)
        })
    }

    /// The second of the requested publication.
    pub(crate) fn date(&self) -> Result<Timestamp, Refused> {
        let Some(text) = self.get(Param::Date) else {
            let text = ": send date, such as date=2026-11-14T23:38:00Z";
            return Err(Refused::new(Code::MissingHistoricalTimestamp, text));
        };
        let seconds = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        seconds.map(Timestamp::from_secs).or_else(|| parse_time(text)).ok_or_else(|| {
            let text = ": use the form YYYY-MM-DDTHH:MM:SSZ, or seconds since 1970";
            Refused::new(Code::InvalidHistoricalTimestamp, text)
        })
    }
}

/// Parses exactly `YYYY-MM-DDTHH:MM:SSZ`, for any year.
fn parse_time(text: &str) -> Option<Timestamp> {
    const CYCLE_SECS: i64 = 146_097 * 86_400;
    let (year, rest) = text.split_at_checked(4)?;
    let year: i64 = year.parse().ok().filter(|_| year.bytes().all(|byte| byte.is_ascii_digit()))?;
    // The calendar repeats every 400 years.
    let same = format!("{:04}{rest}", 2000 + year % 400);
    // Only the canonical form is accepted.
    let parsed = Timestamp::parse(&same).ok().filter(|parsed| parsed.to_string() == same)?;
    let cycles = (year - year % 400 - 2000) / 400;
    Some(Timestamp::from_secs(parsed.as_secs() + cycles * CYCLE_SECS))
}

enum More {
    Market(Market),
    /// Known, but without data.
    Empty,
    Unknown,
}

fn event_id(target: TargetPath<'_>) -> Result<Option<EventId>, Refused> {
    target.event.and_then(parse_id).ok_or_else(|| {
        let text = ": an event ID is 32 hexadecimal digits in lower case";
        Refused::new(Code::InvalidEventId, text)
    })
}

/// Parses an event id in either form. `None` if it has neither; `Some(None)` if no event can have it.
fn parse_id(text: &str) -> Option<Option<EventId>> {
    match EventId::parse_hex(text) {
        Ok(id) => Some(id),
        Err(_) => EventId::parse(text).map(Some),
    }
}
