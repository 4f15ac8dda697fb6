//! The reader's choice: a sport's market, a price format, and the bookmakers of a region or selected bookmakers.
use domain::{BookmakerSet, Catalogue, EventId, Format, Market, Region, SportId};
use market::analysis::Filter;

use crate::dashboard::form::{self, Form};
use crate::dashboard::page_error::PageError;

/// Markets in the order of the menu.
const MARKETS: [Market; 11] = [
    Market::Moneyline,
    Market::Spread,
    Market::TotalPoints,
    Market::TotalRounds,
    Market::Outright,
    Market::Top5,
    Market::Top10,
    Market::Top20,
    Market::RoundLeader,
    Market::Matchup,
    Market::ThreeBall,
];

/// The choice in a page's query; invalid values mean the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Choice {
    pub(crate) sport: SportId,
    pub(crate) market: Market,
    pub(crate) format: Format,
    pub(crate) region: Option<Region>,
    /// Selected bookmakers; `None` means all of the region.
    pub(crate) bookmakers: Option<BookmakerSet>,
}

/// A link to another choice.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) title: String,
    pub(crate) href: String,
    pub(crate) current: bool,
}

impl Choice {
    /// # Errors
    /// The sport has no market.
    pub(crate) fn read(
        catalogue: &Catalogue,
        sport: SportId,
        query: &Form,
    ) -> Result<Self, PageError> {
        let offered = offered(&catalogue.sport(sport).markets);
        let market = Market::parse(query.get("market")).filter(|own| offered.contains(own));
        let market = market.or(offered.first().copied()).ok_or(PageError::NotFound)?;
        let format = Format::parse(query.get("format")).unwrap_or(Format::Decimal);
        let mut bookmakers = None;
        for id in query.all("bookmaker").filter_map(|key| catalogue.bookmaker_id(key)) {
            bookmakers.get_or_insert_with(BookmakerSet::default).insert(id);
        }
        Ok(Self { sport, market, format, region: Region::parse(query.get("region")), bookmakers })
    }

    /// The URL query for this choice.
    pub(crate) fn query(&self, catalogue: &Catalogue) -> String {
        form::query(&self.fields(catalogue))
    }

    /// The query's fields for this choice.
    pub(crate) fn fields<'a>(&self, catalogue: &'a Catalogue) -> Vec<(&'static str, &'a str)> {
        let region = self.region.map_or("all", Region::key);
        let mut fields =
            vec![("market", self.market.key()), ("format", self.format.key()), ("region", region)];
        if let Some(chosen) = self.bookmakers {
            let own = catalogue.bookmakers().filter(|(id, _)| chosen.contains(*id));
            fields.extend(own.map(|(_, own)| ("bookmaker", &*own.key)));
        }
        fields
    }

    pub(crate) fn market_title(&self) -> &'static str {
        market_title(self.market)
    }

    /// Links for market, format and region under one path; `filter` is kept.
    pub(crate) fn switches(
        &self,
        catalogue: &Catalogue,
        path: &str,
        filter: &str,
    ) -> [Vec<Link>; 3] {
        let link = |title: &str, other: Self| Link {
            title: title.to_owned(),
            href: format!("{path}{}{filter}", other.query(catalogue)),
            current: other == *self,
        };
        let markets = offered(&catalogue.sport(self.sport).markets);
        let markets = markets
            .into_iter()
            .map(|market| link(market_title(market), Self { market, ..*self }))
            .collect();
        let formats = Format::ALL
            .into_iter()
            .map(|format| link(format_title(format), Self { format, ..*self }))
            .collect();
        let regions = [None].into_iter().chain(Region::ALL.map(Some));
        let regions = regions
            .map(|region| {
                let title = region.map_or("All".to_owned(), |own| own.key().to_uppercase());
                link(&title, Self { region, ..*self })
            })
            .collect();
        [markets, formats, regions]
    }

    /// Links to the other sports. Format and region are kept; the market is dropped if the sport lacks it.
    pub(crate) fn sports(&self, catalogue: &Catalogue) -> Vec<Link> {
        let shown = catalogue.sports().filter(|(_, sport)| !offered(&sport.markets).is_empty());
        shown
            .map(|(id, sport)| {
                let market = offered(&sport.markets).first().copied().unwrap_or(self.market);
                let market =
                    if sport.markets.contains(&self.market) { self.market } else { market };
                Link {
                    title: sport.title.to_string(),
                    href: format!(
                        "/board/{}{}",
                        sport.key,
                        Self { market, ..*self }.query(catalogue)
                    ),
                    current: id == self.sport,
                }
            })
            .collect()
    }
}

/// Selects lines for the analysis: one event's in its market, or those of all scheduled events.
pub(crate) fn analysis_filter(
    choice: &Choice,
    event: Option<EventId>,
    bookmakers: BookmakerSet,
) -> Filter {
    Filter {
        sport: choice.sport,
        market: event.map(|_| choice.market),
        events: event.map(|event| [event].into()),
        from: None,
        to: None,
        status: event.is_none().then_some(domain::Status::Scheduled),
        bookmakers,
        max_age_s: None,
    }
}

fn offered(markets: &[Market]) -> Vec<Market> {
    MARKETS.into_iter().filter(|market| markets.contains(market)).collect()
}

pub(crate) const fn market_title(market: Market) -> &'static str {
    match market {
        Market::Moneyline => "Moneyline",
        Market::Spread => "Spread",
        Market::TotalPoints => "Total points",
        Market::TotalRounds => "Total rounds",
        Market::Outright => "Outright",
        Market::Top5 => "Top 5",
        Market::Top10 => "Top 10",
        Market::Top20 => "Top 20",
        Market::RoundLeader => "Round leader",
        Market::Matchup => "Matchup",
        Market::ThreeBall => "Three ball",
    }
}

const fn format_title(format: Format) -> &'static str {
    match format {
        Format::American => "American",
        Format::Decimal => "Decimal",
        Format::Fractional => "Fractional",
    }
}
