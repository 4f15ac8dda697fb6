//! The reason why a price is there or missing, searched from end to end (`docs/api/promises.md`, coverage).

use std::time::Duration;

use domain::{BookmakerId, EventId, Market, Status, Timestamp};
use linesman_market::Cell;

use crate::model::{Model, Pricing};

impl Model {
    /// The state of a cell, without possible duplicates.
    pub(crate) fn cell(
        &self,
        (event, bookmaker, market): (EventId, BookmakerId, Market),
        now: Timestamp,
        stale_after: Duration,
    ) -> Cell {
        let event = self.event(event);
        let own = |price: &&Pricing| {
            price.event == event.id && price.bookmaker == bookmaker && price.market == market
        };
        let priced: Vec<&Pricing> =
            self.prices.iter().filter(own).filter(|price| !price.outcomes.is_empty()).collect();
        if let Some(last_update) = priced.iter().map(|price| price.confirmed).max() {
            let records = u32::try_from(priced.len()).unwrap();
            let stale = now.since(last_update) > stale_after;
            return Cell::Priced { records, last_update, stale };
        }
        if event.status() == Status::Final {
            return Cell::Ended;
        }
        let feeds: Vec<&str> = self
            .quoted
            .iter()
            .filter(|(sport, of, _)| *sport == event.sport && *of == bookmaker)
            .map(|(.., feed)| feed.as_str())
            .collect();
        let of_sport =
            |source: &&super::Reading| source.sport == event.sport && source.bookmaker == bookmaker;
        let Some(source) = self.sources.iter().find(of_sport).filter(|_| !feeds.is_empty()) else {
            return Cell::NoSource;
        };
        let lists = |feed: &str| event.listers.iter().any(|(lister, _)| lister == feed);
        let closed: Vec<&Pricing> = self.prices.iter().filter(own).collect();
        if let Some(since) = closed.iter().filter(|p| lists(&p.feed)).map(|p| p.ts).max() {
            return Cell::Suspended { since };
        }
        let withdrawn = |price: &&Pricing| {
            let refs = self.offers.iter().filter(|offer| {
                offer.feed == price.feed && offer.event == event.id && !offer.active
            });
            refs.map(|offer| offer.ts).fold(price.ts, Timestamp::max)
        };
        if let Some(since) = closed.iter().map(withdrawn).max() {
            return Cell::Withdrawn { since };
        }
        let last_read = source.read.unwrap();
        if source.is_stale(now, stale_after) {
            Cell::SourceStale { last_read }
        } else if feeds.iter().any(|feed| lists(feed)) {
            Cell::NotOffered { last_read }
        } else {
            Cell::NotListed { last_read }
        }
    }
}
