//! Value and arbitrage: results of the analytics for a sport, with the age of every price.
use askama::Template;
use domain::{BookmakerSet, Timestamp, World};
use market::analysis::exact::Billionths;
use market::analysis::{
    Analysis, Arbitrage, ArbitrageSelection, Leg, Middle, MiddleSelection, Reference, Value,
    ValueSelection,
};
use market::book::Outcome;
use market::snapshot::EventRow;

use crate::context::Web;
use crate::dashboard::asset;
use crate::dashboard::board::chart::price_at;
use crate::dashboard::board::choice::{Choice, Link, analysis_filter, market_title};
use crate::dashboard::board::frame::clock_text;
use crate::dashboard::board::screen;
use crate::dashboard::board::text::{line_text, percent, price_text};
use crate::dashboard::page::Shell;
use crate::dashboard::page_error::PageError;

/// Maximum number of results of each kind on the page.
const RESULTS_MAX: usize = 25;
/// Total stake of an arbitrage, and maximum cost of a middle in billionths.
const STAKE: u32 = 100;
const COST_MAX: u32 = 50_000_000;

#[derive(Template)]
#[template(path = "board_value.html")]
struct ValuePage {
    shell: Shell,
    style: &'static str,
    sports: Vec<Link>,
    formats: Vec<Link>,
    regions: Vec<Link>,
    sport: String,
    back: String,
    sandbox: bool,
    cut: Timestamp,
    cut_text: String,
    arbitrages: Vec<Found>,
    values: Vec<ValueRow>,
    middles: Vec<Found>,
}

/// An arbitrage or a middle.
struct Found {
    event: String,
    href: String,
    what: String,
    legs: Vec<LegText>,
    /// Profit, or the break-even probability of a middle.
    worth: String,
    note: &'static str,
    oldest_age_s: u64,
}

struct LegText {
    name: String,
    price: String,
    who: String,
    age_s: u64,
}

struct ValueRow {
    event: String,
    href: String,
    what: String,
    leg: LegText,
    fair: String,
    percent: String,
    books: u32,
    note: &'static str,
    oldest_age_s: u64,
}

/// Renders the page of a sport. Takes milliseconds: not for a thread that answers requests.
pub(crate) fn render(web: &Web, shell: Shell, choice: Choice) -> Result<String, PageError> {
    let catalogue = &web.api.catalogue;
    let world = web.settings.board.ok_or(PageError::NotFound)?;
    let published = web.api.world(world).published();
    let snapshot = &published.snapshot;
    let analysis = published.per_publication(Analysis::default);
    let in_region = choice.region.map_or(BookmakerSet::ALL, |own| catalogue.bookmakers_in(&[own]));
    let bookmakers = choice.bookmakers.map_or(in_region, |own| own.intersection(in_region));
    let filter = analysis_filter(&choice, None, bookmakers);
    let limit = RESULTS_MAX;
    let arbitrages =
        ArbitrageSelection { filter: filter.clone(), min_profit: 0, stake: STAKE, limit };
    let values = ValueSelection {
        filter: filter.clone(),
        reference: Reference::default(),
        min_ev: 0,
        limit,
    };
    let middles = MiddleSelection { filter, max_cost: COST_MAX, limit };
    let writer = Writer { web, choice };
    let (arbitrages, values, middles) = (
        arbitrages.select(snapshot, analysis),
        values.select(snapshot, analysis),
        middles.select(snapshot, analysis),
    );
    let sport = catalogue.sport(choice.sport);
    let path = format!("/board/{}/value", sport.key);
    let [_, formats, regions] = choice.switches(catalogue, &path, "");
    let sports = choice
        .sports(catalogue)
        .into_iter()
        .map(|link| Link { href: link.href.replacen('?', "/value?", 1), ..link });
    let page = ValuePage {
        shell,
        style: asset::board_style_path(),
        sports: sports.collect(),
        formats,
        regions,
        sport: sport.title.to_string(),
        back: format!("/board/{}{}", sport.key, choice.query(catalogue)),
        sandbox: world == World::Sandbox,
        cut: snapshot.cut_at,
        cut_text: clock_text(snapshot.cut_at),
        arbitrages: arbitrages.results.iter().map(|own| writer.arbitrage(own)).collect(),
        values: values.results.iter().map(|own| writer.value(own)).collect(),
        middles: middles.results.iter().map(|own| writer.middle(own)).collect(),
    };
    Ok(page.render()?)
}

struct Writer<'a> {
    web: &'a Web,
    choice: Choice,
}

impl Writer<'_> {
    fn arbitrage(&self, own: &Arbitrage<'_>) -> Found {
        let note = match (own.suspect, own.push) {
            (true, _) => "suspect",
            (false, true) => "stakes may be returned",
            (false, false) => "",
        };
        Found {
            event: screen::title(own.event),
            href: self.href(own.event),
            what: market_title(own.line.market).to_owned(),
            legs: own.legs.iter().map(|staked| self.leg(own.event, &staked.leg)).collect(),
            worth: share(own.profit),
            note,
            oldest_age_s: own.ages.oldest_s,
        }
    }

    fn middle(&self, own: &Middle<'_>) -> Found {
        Found {
            event: screen::title(own.event),
            href: self.href(own.event),
            what: market_title(own.market).to_owned(),
            legs: own.legs.iter().map(|leg| self.leg(own.event, leg)).collect(),
            worth: share(own.break_even),
            note: "",
            oldest_age_s: own.ages.oldest_s,
        }
    }

    fn value(&self, own: &Value<'_>) -> ValueRow {
        ValueRow {
            event: screen::title(own.event),
            href: self.href(own.event),
            what: market_title(own.line.market).to_owned(),
            leg: self.leg(own.event, &own.leg),
            fair: price_at(own.fair.probability.into(), self.choice.format),
            percent: share(own.ev),
            books: own.fair.books,
            note: if own.suspect { "suspect" } else { "" },
            oldest_age_s: own.oldest_age_s,
        }
    }

    fn leg(&self, event: &EventRow, leg: &Leg) -> LegText {
        let outcome = Outcome { name: leg.name, quote: leg.quote, point: leg.point };
        let line = leg.point.map(|point| format!(" {}", line_text(point, leg.name)));
        LegText {
            name: format!("{}{}", event.outcome_text(leg.name), line.unwrap_or_default()),
            price: price_text(&outcome, self.choice.format),
            who: self.web.api.catalogue.bookmaker(leg.bookmaker).title.to_string(),
            age_s: leg.age_s,
        }
    }

    fn href(&self, event: &EventRow) -> String {
        let catalogue = &self.web.api.catalogue;
        format!("/board/event/{}{}", event.id, self.choice.query(catalogue))
    }
}

fn share(billionths: Billionths) -> String {
    percent(i64::try_from(billionths).unwrap_or(i64::MAX / 2))
}
