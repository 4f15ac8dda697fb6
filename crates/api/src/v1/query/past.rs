//! The parameters of the history of prices.

use domain::{BookmakerSet, EventId, SportId};
use engine::{BookmakerKeys, ClosingRequest, PathRequest};
use market::OddsSelection;

use super::{Lookup, Values, event_not_found, unknown_value};
use crate::error::ApiError;
use crate::v1::param::{CHANGES, POINTS_DEFAULT, POINTS_MAX, Param};
use crate::v1::target_path::TargetPath;
use crate::v1::wire::cursor::{Paging, decode_path};
use crate::v1::wire::path_selection::{ClosingSelection, PathSelection};

/// Bookmaker keys, so that the selection does not depend on the rest of the catalogue it was read with.
fn keys_of(bookmakers: BookmakerSet, lookup: Lookup<'_>) -> BookmakerKeys {
    let asked = lookup.catalogue.bookmakers().filter(|(id, _)| bookmakers.contains(*id));
    Some(asked.map(|(_, bookmaker)| bookmaker.key.clone()).collect())
}

impl Values<'_> {
    pub(super) fn price_path(
        &self,
        target: TargetPath<'_>,
        sport: SportId,
        lookup: Lookup<'_>,
    ) -> Result<PathSelection, ApiError> {
        let market = self.market(lookup.catalogue.sport(sport))?;
        let bookmaker = self.bookmaker(lookup.catalogue)?;
        let bookmakers = keys_of(self.bookmakers(bookmaker, lookup.regions)?, lookup);
        let format = self.format()?;
        let (from, to) = (self.instant(Param::From)?, self.instant(Param::To)?);
        let all = self.changes()?;
        let limit = self.limit_of(Param::PointLimit, POINTS_DEFAULT, POINTS_MAX)?;
        let after = match self.get(Param::Cursor) {
            Some(text) => Some(decode_path(text).ok_or_else(Self::bad_cursor)?),
            None => None,
        };
        // A malformed id is an unknown event too.
        let event = target.event.and_then(EventId::parse).ok_or_else(event_not_found)?;
        let sport = lookup.catalogue.sport(sport).key.clone();
        let request = PathRequest { sport, event, bookmakers, market, from, to, all, limit, after };
        Ok(PathSelection { request, format })
    }

    pub(super) fn closing(
        &self,
        sport: SportId,
        lookup: Lookup<'_>,
    ) -> Result<ClosingSelection, ApiError> {
        let (odds, format, _) = self.flat_odds(sport, lookup)?;
        let OddsSelection { bookmakers, market, events, limit, .. } = odds;
        let (from, to) = (self.instant(Param::CommenceFrom)?, self.instant(Param::CommenceTo)?);
        let after = self.cursor(Paging::Records)?;
        let sport = lookup.catalogue.sport(sport).key.clone();
        let bookmakers = keys_of(bookmakers, lookup);
        let request = ClosingRequest { sport, bookmakers, market, events, from, to, limit, after };
        Ok(ClosingSelection { request, format })
    }

    /// True if changes that were never published are requested too.
    fn changes(&self) -> Result<bool, ApiError> {
        let Some(text) = self.get(Param::Changes) else { return Ok(false) };
        let [published, all] = CHANGES;
        match text {
            _ if text == published => Ok(false),
            _ if text == all => Ok(true),
            _ => {
                let text = unknown_value("choice", text, CHANGES.into_iter());
                Err(ApiError::param(Param::Changes.name(), text))
            }
        }
    }
}
