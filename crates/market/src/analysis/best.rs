//! The best price of every outcome (N14).

use std::cmp::{Ordering, Reverse};

use domain::BookmakerId;

use crate::analysis::exact::{Billionths, Measure, Rounding, Sum};
use crate::analysis::filter::{Filter, Leg, LineCursor, Pager, Refused, Scope, Underround};
use crate::analysis::line::{Analysis, MarketLine, Offer, Priced};
use crate::snapshot::{EventRow, Snapshot};

/// A request for best prices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BestSelection {
    pub filter: Filter,
    pub limit: usize,
    pub after: Option<LineCursor>,
}

/// A page of lines.
#[derive(Debug)]
pub struct LinePage<T> {
    pub max_age_s: u64,
    pub refused: Refused,
    pub lines: Vec<T>,
    pub next: Option<LineCursor>,
}

/// The best prices of a line.
#[derive(Debug)]
pub struct BestLine<'a> {
    pub event: &'a EventRow,
    pub line: &'a MarketLine,
    pub booksum: Billionths,
    pub hold: Billionths,
    pub oldest_age_s: u64,
    pub outcomes: Vec<Best>,
}

/// The best price of an outcome.
#[derive(Clone, Debug)]
pub struct Best {
    pub leg: Leg,
    /// Other bookmakers with the same price, in the order of their keys.
    pub also: Vec<BookmakerId>,
}

impl BestSelection {
    pub fn select<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        analysis: &'a Analysis,
    ) -> LinePage<BestLine<'a>> {
        let Some(scope) = Scope::new(&self.filter, snapshot, analysis, |_| true) else {
            return LinePage::default();
        };
        let mut page = LinePage { max_age_s: scope.max_age.as_secs(), ..LinePage::default() };
        scope.count_partial(scope.bookmakers(), &mut page.refused);
        let mut pager = Pager::new(self.after.as_ref(), self.limit);
        for (event, line) in scope.lines() {
            let offers = scope.usable(line, Underround::Show, &mut page.refused);
            if !offers.is_empty() && pager.admits(&scope, line) {
                page.lines.push(BestLine::new(&scope, event, line, &offers));
            }
        }
        page.next = pager.next;
        page
    }
}

impl<'a> BestLine<'a> {
    fn new(
        scope: &Scope<'_>,
        event: &'a EventRow,
        line: &'a MarketLine,
        offers: &[&Offer],
    ) -> Self {
        let outcomes = best(scope, line, offers);
        let sum = Sum::of(outcomes.iter().map(|own| own.leg.quote.price));
        let hold = Measure::Hold { winners: line.winners() };
        Self {
            event,
            line,
            booksum: sum.measure(Measure::Booksum, Rounding::HalfEven),
            hold: sum.measure(hold, Rounding::HalfEven),
            oldest_age_s: outcomes.iter().map(|own| own.leg.age_s).max().unwrap_or(0),
            outcomes,
        }
    }
}

impl<T> Default for LinePage<T> {
    fn default() -> Self {
        Self { max_age_s: 0, refused: Refused::default(), lines: Vec::new(), next: None }
    }
}

/// The best price of every outcome that an offer prices, in the order of the line's names: the highest; of equals the
/// freshest, then the first by key.
pub(crate) fn best(scope: &Scope<'_>, line: &MarketLine, offers: &[&Offer]) -> Vec<Best> {
    let mut found: Vec<Vec<(&Offer, &Priced)>> = vec![Vec::new(); line.names.len()];
    for offer in offers {
        for priced in &offer.prices {
            let Some(best) = found.get_mut(usize::from(priced.name)) else { continue };
            match best.first().map(|(_, held)| priced.quote.price.cmp(&held.quote.price)) {
                Some(Ordering::Less) => continue,
                Some(Ordering::Greater) => best.clear(),
                Some(Ordering::Equal) | None => {}
            }
            best.push((offer, priced));
        }
    }
    found.into_iter().filter_map(|equals| pick(scope, line, &equals)).collect()
}

/// Selects one of the offers with the same price, which are in the order of their keys.
fn pick(scope: &Scope<'_>, line: &MarketLine, equals: &[(&Offer, &Priced)]) -> Option<Best> {
    let (offer, priced) = *equals.iter().min_by_key(|(offer, _)| Reverse(offer.last_update))?;
    let others = equals.iter().map(|(other, _)| other.bookmaker);
    Some(Best {
        leg: scope.leg(line, offer, priced)?,
        also: others.filter(|other| *other != offer.bookmaker).collect(),
    })
}
