//! Parses a query string into a selection: strictly, with helpful messages (D4, D16).

mod analysis;
mod past;
mod refusal;
pub(crate) mod stream;
mod table;

use std::borrow::Cow;

use domain::suggest::did_you_mean;
use domain::{
    BookmakerId, BookmakerSet, Catalogue, EventId, Format, Market, MarketAlias, Region, Sport,
    SportId, Status, Timestamp,
};
use market::coverage::{CoverageSelection, ExplainSelection};
use market::select::{Cursor, EventIds, NamePrefix};
use market::{BoutSelection, CellFilter, EventSelection, OddsSelection, ScoreSelection};

use crate::answers::{CatalogueTerms, List, Selector};
use crate::error::{ApiError, ErrorCode};
use crate::operation::Operation;
use crate::position::LogPosition;
use crate::v1::param::{
    EVENT_IDS_MAX, GROUP_BY_BOUT, LIMIT_DEFAULT, LIMIT_MAX, NAME_CHARS_MAX, NAME_CHARS_MIN, Param,
    REGION_DEFAULT,
};
pub(crate) use crate::v1::query::refusal::short;
pub(crate) use crate::v1::query::refusal::unknown_value;
use crate::v1::query::refusal::{repeated, unknown};
use crate::v1::region::{self, RegionTable, Regions};
use crate::v1::target_path::TargetPath;
use crate::v1::wire::cursor::{self, Paging};
use http::percent::decode;
use http::{Line, cut, parts};

/// An undecoded query string.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    text: &'a str,
}

/// The parameters of an operation: all known, each given once and not empty.
#[derive(Debug)]
pub(crate) struct Values<'a>([Option<Cow<'a, str>>; Param::COUNT]);

/// Lookup tables for the names in a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) regions: &'a RegionTable,
}

impl<'a> Query<'a> {
    pub(crate) fn new(query: &'a str) -> Self {
        Self { text: query }
    }

    pub(crate) fn pairs(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = parts(self.text, b'&');
        pairs.filter(|pair| !pair.is_empty()).map(|pair| cut(pair, b'=').unwrap_or((pair, "")))
    }

    /// The first value of a parameter, before validation.
    pub(crate) fn first(self, name: &str) -> Option<Cow<'a, str>> {
        let named = |(key, _): &(&'a str, &str)| decode(key).is_some_and(|key| key == name);
        self.pairs().find(named).and_then(|(_, value)| decode(value))
    }

    pub(crate) fn values(
        self,
        operation: Operation,
        query_key: bool,
    ) -> Result<Values<'a>, ApiError> {
        let mut values = Values([const { None }; Param::COUNT]);
        for (name, value) in self.pairs() {
            let name = decode(name).ok_or_else(|| {
                ApiError::new(ErrorCode::InvalidParameter, "a parameter's name is not UTF-8 text")
            })?;
            let known = operation.row().params().iter().find(|param| param.name() == name);
            let Some(&param) = known.filter(|param| query_key || **param != Param::ApiKey) else {
                return Err(unknown(operation, &name));
            };
            let slot = values.0.get_mut(param.index());
            if slot.as_ref().is_some_and(|slot| slot.is_some()) {
                return Err(ApiError::param(param.name(), repeated(param)));
            }
            let value = decode(value).ok_or_else(|| {
                ApiError::param(param.name(), format!("`{name}` is not UTF-8 text"))
            })?;
            if value.is_empty() {
                let text = format!("`{name}` is empty; leave it out or give it a value");
                return Err(ApiError::param(param.name(), text));
            }
            if let Some(slot) = slot {
                *slot = Some(value);
            }
        }
        Ok(values)
    }

    /// Writes the `Link` to the next page after `cursor`, of the same publication if it was requested by time. The key
    /// is left out.
    pub(crate) fn put_next_page(
        self,
        line: &mut Line<'_>,
        path: &str,
        cursor: &str,
        as_of: Option<Timestamp>,
    ) {
        // Neither of the two request readers accepts control characters in a target.
        line.text("<");
        line.text(path);
        line.text("?");
        // Percent-encoded names are the same names: `api%5Fkey` holds a key too.
        let left_out = |name: &'a str| {
            decode(name).is_none_or(|name| {
                [Param::Cursor, Param::ApiKey, Param::AsOf].iter().any(|param| param.name() == name)
            })
        };
        for (name, value) in self.pairs().filter(|(name, _)| !left_out(name)) {
            line.text(name);
            line.text("=");
            line.text(value);
            line.text("&");
        }
        if let Some(as_of) = as_of {
            put_as_of(line, as_of);
            line.text("&");
        }
        line.text(Param::Cursor.name());
        line.text("=");
        line.text(cursor);
        line.text(">; rel=\"next\"");
    }

    /// Writes the `Link` to the coverage of the sport in the path, with the filters that coverage accepts too, of the
    /// same publication if it was requested by time.
    pub(crate) fn put_help(self, line: &mut Line<'_>, path: &str, as_of: Option<Timestamp>) {
        line.text("<");
        line.text(path.rsplit_once('/').map_or(path, |(sport, _)| sport));
        line.text("/coverage");
        let mut before = "?";
        let taken = |name: &'a str| {
            let filters = [Param::Market, Param::Bookmaker, Param::Regions, Param::Region];
            decode(name).is_some_and(|name| filters.iter().any(|param| param.name() == name))
        };
        for (name, value) in self.pairs().filter(|(name, _)| taken(name)) {
            line.text(before);
            line.text(name);
            line.text("=");
            line.text(value);
            before = "&";
        }
        if let Some(as_of) = as_of {
            line.text(before);
            put_as_of(line, as_of);
        }
        line.text(">; rel=\"help\"");
    }
}

impl std::fmt::Debug for Query<'_> {
    /// A query may contain a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Query")
    }
}

impl Values<'_> {
    pub(crate) fn get(&self, param: Param) -> Option<&str> {
        self.0.get(param.index())?.as_deref()
    }

    /// The selection of the request, in normal form.
    pub(crate) fn selector(
        &self,
        target: TargetPath<'_>,
        sport: Option<SportId>,
        lookup: Lookup<'_>,
    ) -> Result<Selector, ApiError> {
        let selector = self.rows(target, sport, lookup)?;
        Ok(if self.is_table()? { Selector::Csv(Box::new(selector)) } else { selector })
    }

    /// The selection of the request as JSON.
    fn rows(
        &self,
        target: TargetPath<'_>,
        sport: Option<SportId>,
        lookup: Lookup<'_>,
    ) -> Result<Selector, ApiError> {
        let selector = match (target.operation, sport) {
            (Operation::ListBooks, _) => Selector::Books,
            (Operation::GetOdds, Some(sport)) => self.odds(sport, lookup)?,
            (Operation::GetScores, Some(sport)) => Selector::List(self.scores(sport)?),
            (Operation::ListEvents, Some(sport)) => Selector::List(self.events(sport)?),
            (Operation::GetEvent, Some(sport)) => {
                // A malformed id is an unknown event too.
                let id = target.event.and_then(EventId::parse).ok_or_else(event_not_found)?;
                Selector::Event(sport, id)
            }
            (Operation::GetCoverage, Some(sport)) => {
                let filter = self.cell_filter(sport, lookup, None)?;
                Selector::Coverage(CoverageSelection { sport, filter })
            }
            (Operation::ExplainEvent, Some(sport)) => {
                let filter = self.cell_filter(sport, lookup, Some(REGION_DEFAULT))?;
                let event = target.event.and_then(EventId::parse).ok_or_else(event_not_found)?;
                Selector::Explain(ExplainSelection { sport, event, filter })
            }
            (Operation::GetPricePath, Some(sport)) => {
                Selector::Path(Box::new(self.price_path(target, sport, lookup)?))
            }
            (Operation::GetClosing, Some(sport)) => {
                Selector::Closing(Box::new(self.closing(sport, lookup)?))
            }
            (Operation::GetBest, Some(sport)) => self.best(sport, lookup)?,
            (Operation::GetFair, Some(sport)) => self.fair(sport, lookup)?,
            (Operation::ListArbitrages, Some(sport)) => self.arbitrages(sport, lookup)?,
            (Operation::ListEv, Some(sport)) => self.expected_values(sport, lookup)?,
            (Operation::ListMiddles, Some(sport)) => self.middles(sport, lookup)?,
            (
                Operation::ListSports
                | Operation::GetStatus
                | Operation::GetHistory
                | Operation::GetStream
                | Operation::GetExport
                | Operation::V4Sports
                | Operation::V4Events
                | Operation::V4Odds
                | Operation::V4Scores
                | Operation::V4EventOdds
                | Operation::V4EventMarkets
                | Operation::V4Participants
                | Operation::V4Historical
                | Operation::Unknown,
                _,
            )
            | (_, None) => Selector::Sports,
        };
        Ok(selector)
    }

    /// The instant of the requested publication.
    pub(crate) fn as_of(&self) -> Result<Option<Timestamp>, ApiError> {
        // A time before the beginning of history is not in history, whatever its year.
        self.instant_by(Param::AsOf, parse_any_year)
    }

    /// The cursor since which changes are requested.
    pub(crate) fn since(&self) -> Result<Option<LogPosition>, ApiError> {
        let Some(text) = self.get(Param::Since) else { return Ok(None) };
        let name = Param::Since.name();
        for other in [Param::Limit, Param::Cursor, Param::AsOf, Param::GroupBy] {
            if self.get(other).is_some() {
                let text = format!("`since` cannot be combined with `{}`", other.name());
                return Err(ApiError::param(name, text));
            }
        }
        self.refuse_table(Param::Since)?;
        let position = LogPosition::decode(text).ok_or_else(|| {
            let text = "`since` is not a cursor; take it from `x-cursor` as it is";
            ApiError::param(name, text)
        });
        position.map(Some)
    }

    fn odds(&self, sport: SportId, lookup: Lookup<'_>) -> Result<Selector, ApiError> {
        let (odds, format, terms) = self.flat_odds(sport, lookup)?;
        if self.is_grouped(lookup.catalogue.sport(sport), odds.market)? {
            self.refuse_table(Param::GroupBy)?;
            let after = self.cursor(Paging::Events)?;
            let OddsSelection { bookmakers, events, limit, .. } = odds;
            let bouts = BoutSelection { sport, bookmakers, events, limit, after };
            return Ok(Selector::Bouts(bouts, format));
        }
        let odds = OddsSelection { after: self.cursor(Paging::Records)?, ..odds };
        Ok(Selector::List(List::Odds(odds, format, terms)))
    }

    /// The first page of ungrouped odds.
    fn flat_odds(
        &self,
        sport: SportId,
        lookup: Lookup<'_>,
    ) -> Result<(OddsSelection, Format, CatalogueTerms), ApiError> {
        let market = self.market(lookup.catalogue.sport(sport))?;
        let bookmaker = self.bookmaker(lookup.catalogue)?;
        let request = bookmaker.map(BookmakerSet::just);
        let (bookmakers, regions) = self.among_regions(request, lookup.regions)?;
        let format = self.format()?;
        let (events, limit, after) = (self.event_ids()?, self.limit()?, None);
        let odds = OddsSelection { sport, bookmakers, bookmaker, market, events, limit, after };
        let is_totals = self.market_alias() == Some(MarketAlias::TheSportsTotals);
        Ok((odds, format, CatalogueTerms { regions, is_totals }))
    }

    fn scores(&self, sport: SportId) -> Result<List, ApiError> {
        Ok(List::Scores(ScoreSelection {
            sport,
            status: self.status()?,
            events: self.event_ids()?,
            limit: self.limit()?,
            after: self.cursor(Paging::Events)?,
        }))
    }

    fn events(&self, sport: SportId) -> Result<List, ApiError> {
        Ok(List::Events(EventSelection {
            sport,
            status: self.status()?,
            events: self.event_ids()?,
            from: self.instant(Param::CommenceFrom)?,
            to: self.instant(Param::CommenceTo)?,
            name: self.name()?,
            limit: self.limit()?,
            after: self.cursor(Paging::Events)?,
        }))
    }

    fn market(&self, sport: &Sport) -> Result<Option<Market>, ApiError> {
        let Some(name) = self.get(Param::Market) else { return Ok(None) };
        if let Some(market) = Market::parse(name) {
            return Ok(Some(market));
        }
        let meant = match self.market_alias() {
            Some(MarketAlias::Is(market)) => Some(market).filter(|market| sport.offers(*market)),
            Some(MarketAlias::TheSportsTotals) => sport.totals,
            None if name.contains(',') => {
                let text = "`market` takes one market; leave it out for all";
                return Err(ApiError::param(Param::Market.name(), text));
            }
            None => {
                let keys = sport.markets.iter().map(|market| market.key());
                let text = unknown_value("market", name, keys);
                return Err(ApiError::param(Param::Market.name(), text));
            }
        };
        meant.map(Some).ok_or_else(|| {
            let keys: Vec<&str> = sport.markets.iter().map(|market| market.key()).collect();
            let text = format!("{} has no market `{name}`; it has {}", sport.key, keys.join(", "));
            ApiError::param(Param::Market.name(), text)
        })
    }

    /// The alias of markets, if one is given.
    fn market_alias(&self) -> Option<MarketAlias> {
        let name = self.get(Param::Market).filter(|name| Market::parse(name).is_none())?;
        MarketAlias::parse(name)
    }

    fn bookmaker(&self, catalogue: &Catalogue) -> Result<Option<BookmakerId>, ApiError> {
        let Some(key) = self.get(Param::Bookmaker) else { return Ok(None) };
        catalogue.bookmaker_id(key).map(Some).ok_or_else(|| {
            let near = did_you_mean(key, catalogue.bookmakers().map(|(_, held)| &*held.key));
            let text =
                format!("there is no bookmaker `{}`; /v1/books lists them{near}", short(key));
            ApiError::param(Param::Bookmaker.name(), text)
        })
    }

    /// The selected bookmakers (D16).
    fn bookmakers(
        &self,
        bookmaker: Option<BookmakerId>,
        table: &RegionTable,
    ) -> Result<BookmakerSet, ApiError> {
        Ok(self.among_regions(bookmaker.map(BookmakerSet::just), table)?.0)
    }

    /// The requested bookmakers in the requested regions, and those regions if any apply.
    fn among_regions(
        &self,
        request: Option<BookmakerSet>,
        table: &RegionTable,
    ) -> Result<(BookmakerSet, Option<Regions>), ApiError> {
        // Both parameters are validated, though at most one is used.
        let alias = self.region_list(Param::Region)?;
        let default = request.is_none().then(|| Regions::just(REGION_DEFAULT));
        let regions = self.region_list(Param::Regions)?.or(alias).or(default);
        let of_regions = regions.map(|regions| table.bookmakers(regions));
        Ok((region::among(request, of_regions), regions))
    }

    /// Filters of coverage cells: as for odds, but each parameter applies by itself.
    fn cell_filter(
        &self,
        sport: SportId,
        lookup: Lookup<'_>,
        default: Option<Region>,
    ) -> Result<CellFilter, ApiError> {
        let market = self.market(lookup.catalogue.sport(sport))?;
        let bookmaker = self.bookmaker(lookup.catalogue)?;
        let alias = self.region_list(Param::Region)?;
        let default = default.filter(|_| bookmaker.is_none()).map(Regions::just);
        let regions = self.region_list(Param::Regions)?.or(alias).or(default);
        let regions = regions.map(|regions| lookup.regions.bookmakers(regions));
        Ok(CellFilter { market, bookmaker, regions })
    }

    fn region_list(&self, param: Param) -> Result<Option<Regions>, ApiError> {
        let Some(list) = self.get(param) else { return Ok(None) };
        let mut regions = Regions::default();
        for key in list.split(',') {
            regions.insert(Region::parse(key).ok_or_else(|| {
                let keys = Region::ALL.iter().map(|region| region.key());
                ApiError::param(param.name(), unknown_value("region", key, keys))
            })?);
        }
        Ok(Some(regions))
    }

    fn format(&self) -> Result<Format, ApiError> {
        let Some(key) = self.get(Param::OddsFormat) else { return Ok(Format::American) };
        Format::parse(key).ok_or_else(|| {
            let keys = Format::ALL.iter().map(|format| format.key());
            ApiError::param(Param::OddsFormat.name(), unknown_value("odds format", key, keys))
        })
    }

    fn status(&self) -> Result<Option<Status>, ApiError> {
        let Some(key) = self.get(Param::Status) else { return Ok(None) };
        Status::parse(key).map(Some).ok_or_else(|| {
            let keys = Status::ALL.iter().map(|status| status.key());
            ApiError::param(Param::Status.name(), unknown_value("status", key, keys))
        })
    }

    fn event_ids(&self) -> Result<EventIds, ApiError> {
        let name = Param::EventIds.name();
        let Some(list) = self.get(Param::EventIds) else { return Ok(None) };
        // Requests usually have about three.
        let mut ids = Vec::with_capacity(4);
        for (count, text) in (1..).zip(parts(list, b',')) {
            if text.is_empty() {
                return Err(ApiError::param(
                    name,
                    "`event_ids` has an empty id; separate ids by single commas",
                ));
            }
            if count > EVENT_IDS_MAX {
                return Err(ApiError::param(
                    name,
                    format!("`event_ids` takes at most {EVENT_IDS_MAX} ids"),
                ));
            }
            // A malformed id matches no event.
            ids.extend(EventId::parse(text));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some(ids.into()))
    }

    fn name(&self) -> Result<Option<NamePrefix>, ApiError> {
        let Some(text) = self.get(Param::Name) else { return Ok(None) };
        if (NAME_CHARS_MIN..=NAME_CHARS_MAX).contains(&text.chars().count()) {
            return Ok(Some(NamePrefix::new(text)));
        }
        let text = format!("`name` must have {NAME_CHARS_MIN} to {NAME_CHARS_MAX} characters");
        Err(ApiError::param(Param::Name.name(), text))
    }

    fn limit(&self) -> Result<usize, ApiError> {
        self.limit_of(Param::Limit, LIMIT_DEFAULT, LIMIT_MAX)
    }

    fn limit_of(&self, param: Param, default: usize, most: usize) -> Result<usize, ApiError> {
        let Some(text) = self.get(param) else { return Ok(default) };
        // Digits only, without leading zeros.
        let digits = text.len() <= 5
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && !text.starts_with('0');
        let limit = text.parse().ok().filter(|limit| digits && (1..=most).contains(limit));
        limit.ok_or_else(|| {
            let text = format!("`limit` must be a whole number from 1 to {most}");
            ApiError::param(param.name(), text)
        })
    }

    fn cursor(&self, paging: Paging) -> Result<Option<Cursor>, ApiError> {
        let Some(text) = self.get(Param::Cursor) else { return Ok(None) };
        cursor::decode(text, paging).map(Some).ok_or_else(Self::bad_cursor)
    }

    fn bad_cursor() -> ApiError {
        let text =
            "`cursor` is not one of this endpoint's; take it from the `Link` header as it is";
        ApiError::param(Param::Cursor.name(), text)
    }

    fn instant(&self, param: Param) -> Result<Option<Timestamp>, ApiError> {
        self.instant_by(param, |text| Timestamp::parse(text).ok())
    }

    fn instant_by(
        &self,
        param: Param,
        parse: fn(&str) -> Option<Timestamp>,
    ) -> Result<Option<Timestamp>, ApiError> {
        let Some(text) = self.get(param) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| {
            let name = param.name();
            let text =
                format!("`{name}` must be an RFC 3339 timestamp such as 2026-11-14T23:38:00Z");
            ApiError::param(name, text)
        })
    }

    fn is_grouped(&self, sport: &Sport, market: Option<Market>) -> Result<bool, ApiError> {
        let name = Param::GroupBy.name();
        let Some(by) = self.get(Param::GroupBy) else { return Ok(false) };
        if by != GROUP_BY_BOUT {
            let text = unknown_value("grouping", by, [GROUP_BY_BOUT].into_iter());
            return Err(ApiError::param(name, text));
        }
        if !sport.bouts {
            let text = format!("`group_by=bout` is for fight sports; {} is not one", sport.key);
            return Err(ApiError::param(name, text));
        }
        if market.is_some_and(|market| market != Market::Moneyline) {
            let text = "`group_by=bout` shows the moneyline; leave `market` out or send moneyline";
            return Err(ApiError::param(Param::Market.name(), text));
        }
        Ok(true)
    }
}

/// Writes the parameter that requests a publication by its time.
fn put_as_of(line: &mut Line<'_>, as_of: Timestamp) {
    line.text(Param::AsOf.name());
    line.text("=");
    line.text(&String::from_utf8_lossy(&as_of.millis_text()));
}

/// Parses an instant of any year; a year before 1900 gives the earliest instant.
fn parse_any_year(text: &str) -> Option<Timestamp> {
    if let Ok(usual) = Timestamp::parse(text) {
        return Some(usual);
    }
    let (year, rest) = text.split_at_checked(4)?;
    let is_year = year.bytes().all(|byte| byte.is_ascii_digit());
    let year: u32 = year.parse().ok().filter(|year| is_year && *year < 1900)?;
    // The calendar repeats every 400 years.
    let same = Timestamp::parse(&format!("{}{rest}", 2000 + year % 400));
    same.ok().map(|_| Timestamp::from_millis(i64::MIN))
}

pub(crate) fn event_not_found() -> ApiError {
    let text = "there is no such event; it may have been cancelled, removed or never listed";
    ApiError::new(ErrorCode::EventNotFound, text)
}
