//! The parameters of the five analytics: lines, bookmakers, and reference (N1 and the table of parameters).

use domain::{BookmakerSet, Catalogue, Market, SportId, Status};
use market::analysis::{
    AnalysisSelection, ArbitrageSelection, BestSelection, FairSelection, Filter, LineCursor,
    Method, MiddleSelection, Reference, ValueSelection, can_arbitrage, can_middle, winners,
};

use crate::answers::Selector;
use crate::error::ApiError;
use crate::v1::param::{
    BOOKMAKERS_MAX, CONSENSUS, MAX_AGE_S_MAX, MAX_COST_DEFAULT, MIN_BOOKS_DEFAULT, MIN_BOOKS_MAX,
    PLACES_MAX, Param, REFERENCES_MAX, STAKE_DEFAULT, STAKE_MAX,
};
use crate::v1::query::{Lookup, Values, short, unknown_value};
use crate::v1::wire::cursor;
use domain::suggest::did_you_mean;

/// One, in billionths.
const ONE: u32 = 1_000_000_000;

impl Values<'_> {
    pub(super) fn best(&self, sport: SportId, lookup: Lookup<'_>) -> Result<Selector, ApiError> {
        let filter = self.filter(sport, lookup, None, every)?;
        let (limit, after) = (self.limit()?, self.line_cursor()?);
        self.written(AnalysisSelection::Best(BestSelection { filter, limit, after }))
    }

    pub(super) fn fair(&self, sport: SportId, lookup: Lookup<'_>) -> Result<Selector, ApiError> {
        let mut filter = self.filter(sport, lookup, None, every)?;
        // This operation has no parameters for the bookmakers to bet with.
        filter.bookmakers = BookmakerSet::ALL;
        let reference = self.reference(lookup.catalogue, filter.market)?;
        let (limit, after) = (self.limit()?, self.line_cursor()?);
        self.written(AnalysisSelection::Fair(FairSelection { filter, reference, limit, after }))
    }

    pub(super) fn arbitrages(
        &self,
        sport: SportId,
        lookup: Lookup<'_>,
    ) -> Result<Selector, ApiError> {
        self.written(AnalysisSelection::Arbitrage(ArbitrageSelection {
            filter: self.filter(sport, lookup, Some(Status::Scheduled), can_arbitrage)?,
            min_profit: self.share(Param::MinProfit, 0)?,
            stake: self.whole(Param::Stake, STAKE_MAX)?.unwrap_or(STAKE_DEFAULT),
            limit: self.limit()?,
        }))
    }

    pub(super) fn expected_values(
        &self,
        sport: SportId,
        lookup: Lookup<'_>,
    ) -> Result<Selector, ApiError> {
        let filter = self.filter(sport, lookup, Some(Status::Scheduled), every)?;
        let reference = self.reference(lookup.catalogue, filter.market)?;
        let min_ev = self.share(Param::MinEv, 0)?;
        let limit = self.limit()?;
        self.written(AnalysisSelection::Value(ValueSelection { filter, reference, min_ev, limit }))
    }

    pub(super) fn middles(&self, sport: SportId, lookup: Lookup<'_>) -> Result<Selector, ApiError> {
        self.written(AnalysisSelection::Middle(MiddleSelection {
            filter: self.filter(sport, lookup, Some(Status::Scheduled), can_middle)?,
            max_cost: self.share(Param::MaxCost, MAX_COST_DEFAULT)?,
            limit: self.limit()?,
        }))
    }

    /// A selection with its odds format.
    fn written(&self, selection: AnalysisSelection) -> Result<Selector, ApiError> {
        Ok(Selector::Analysis(Box::new(selection), self.format()?))
    }

    fn filter(
        &self,
        sport: SportId,
        lookup: Lookup<'_>,
        status: Option<Status>,
        has_lines: fn(Market) -> bool,
    ) -> Result<Filter, ApiError> {
        let market = self.market(lookup.catalogue.sport(sport))?;
        if let Some(market) = market.filter(|market| !has_lines(*market)) {
            let keys: Vec<&str> =
                Market::ALL.into_iter().filter(|own| has_lines(*own)).map(Market::key).collect();
            let (name, keys) = (market.key(), keys.join(", "));
            let text = format!("this endpoint has no lines for `{name}`; it has them for {keys}");
            return Err(ApiError::param(Param::Market.name(), text));
        }
        let named = self.bookmaker_list(Param::Bookmakers, BOOKMAKERS_MAX, lookup.catalogue)?;
        Ok(Filter {
            sport,
            market,
            events: self.event_ids()?,
            from: self.instant(Param::CommenceFrom)?,
            to: self.instant(Param::CommenceTo)?,
            status: self.status()?.or(status),
            bookmakers: self.among_regions(named, lookup.regions)?.0,
            max_age_s: self.whole(Param::MaxAge, MAX_AGE_S_MAX)?,
        })
    }

    fn reference(
        &self,
        catalogue: &Catalogue,
        market: Option<Market>,
    ) -> Result<Reference, ApiError> {
        let name = Param::Method.name();
        let method = match self.get(Param::Method) {
            None => Method::Power,
            Some(key) => Method::parse(key).ok_or_else(|| {
                let keys = Method::ALL.iter().map(|method| method.key());
                ApiError::param(name, unknown_value("method", key, keys))
            })?,
        };
        if let Some(market) = market.filter(|market| !method.supports(winners(*market))) {
            let key = market.key();
            let text = format!("`shin` is for markets with one winner, which `{key}` is not");
            return Err(ApiError::param(name, text));
        }
        let named = match self.get(Param::Reference) {
            None | Some(CONSENSUS) => None,
            Some(_) => self.bookmaker_list(Param::Reference, REFERENCES_MAX, catalogue)?,
        };
        let default = if named.is_some() { 1 } else { MIN_BOOKS_DEFAULT };
        let min_books = self.whole(Param::MinBooks, MIN_BOOKS_MAX)?.unwrap_or(default);
        let min_books = usize::try_from(min_books).unwrap_or(usize::MAX);
        Ok(Reference { method, named, min_books })
    }

    fn bookmaker_list(
        &self,
        param: Param,
        most: usize,
        catalogue: &Catalogue,
    ) -> Result<Option<BookmakerSet>, ApiError> {
        let (Some(list), name) = (self.get(param), param.name()) else { return Ok(None) };
        let mut set = BookmakerSet::default();
        for (count, key) in (1..).zip(list.split(',')) {
            if count > most {
                let text = format!("`{name}` takes at most {most} bookmakers");
                return Err(ApiError::param(name, text));
            }
            set.insert(catalogue.bookmaker_id(key).ok_or_else(|| {
                let near = did_you_mean(key, catalogue.bookmakers().map(|(_, own)| &*own.key));
                let key = short(key);
                let text = format!("there is no bookmaker `{key}`; /v1/books lists them{near}");
                ApiError::param(name, text)
            })?);
        }
        Ok(Some(set))
    }

    /// A whole number of at least 1, without leading zeros.
    fn whole(&self, param: Param, most: u32) -> Result<Option<u32>, ApiError> {
        let Some(text) = self.get(param) else { return Ok(None) };
        let written = text.len() <= 7
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && !text.starts_with('0');
        let number = text.parse().ok().filter(|number| written && (1..=most).contains(number));
        number.map(Some).ok_or_else(|| {
            let name = param.name();
            ApiError::param(name, format!("`{name}` must be a whole number from 1 to {most}"))
        })
    }

    /// A number from 0 to 1, in billionths.
    fn share(&self, param: Param, default: u32) -> Result<u32, ApiError> {
        let Some(text) = self.get(param) else { return Ok(default) };
        parse_share(text).ok_or_else(|| {
            let name = param.name();
            let text = format!(
                "`{name}` must be a number from 0 to 1 with up to {PLACES_MAX} places, such as 0.02"
            );
            ApiError::param(name, text)
        })
    }

    fn line_cursor(&self) -> Result<Option<LineCursor>, ApiError> {
        let Some(text) = self.get(Param::Cursor) else { return Ok(None) };
        cursor::decode_line(text).map(Some).ok_or_else(Self::bad_cursor)
    }
}

/// Accepts any market.
fn every(_: Market) -> bool {
    true
}

fn parse_share(text: &str) -> Option<u32> {
    let (whole, places) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let whole = match whole {
        "0" => 0,
        "1" => ONE,
        _ => return None,
    };
    let digits = places.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || places.len() > PLACES_MAX {
        return None;
    }
    let millionths: u32 = format!("{places:0<6}").parse().ok()?;
    whole.checked_add(millionths * (ONE / 1_000_000)).filter(|share| *share <= ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_from_0_to_1_with_up_to_six_places() {
        for (text, billionths) in [
            ("0", 0),
            ("1", ONE),
            ("0.05", 50_000_000),
            ("0.000001", 1000),
            ("1.000000", ONE),
            ("0.250", 250_000_000),
        ] {
            assert_eq!(parse_share(text), Some(billionths), "{text}");
        }
        for bad in
            ["", ".5", "0.", "1.000001", "2", "0.0000001", "-0.1", "+0.1", "1e-3", "00.1", "0,5"]
        {
            assert_eq!(parse_share(bad), None, "{bad}");
        }
    }
}
