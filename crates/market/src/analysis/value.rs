//! Prices above their fair value according to the reference (N17).

use crate::analysis::arbitrage::Ranking;
use crate::analysis::exact::{Billionths, cmp_expected_value, expected_value};
use crate::analysis::fair::{Fair, Reference, Sources, Verdict};
use crate::analysis::filter::{Filter, Leg, Refused, Scope, Underround};
use crate::analysis::line::{Analysis, MarketLine};
use crate::snapshot::{EventRow, Snapshot};

/// A request for values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueSelection {
    pub filter: Filter,
    pub reference: Reference,
    /// In billionths.
    pub min_ev: u32,
    pub limit: usize,
}

/// An offered price above the fair one.
#[derive(Debug)]
pub struct Value<'a> {
    pub event: &'a EventRow,
    pub line: &'a MarketLine,
    pub leg: Leg,
    /// The fair probability, from the reference without this bookmaker.
    pub fair: Fair,
    pub ev: Billionths,
    /// Age of the oldest of the leg and the sources.
    pub oldest_age_s: u64,
    /// True if it is more likely a mistake than an opportunity.
    pub suspect: bool,
}

/// An expected value above this is suspect: 0.25.
const SUSPECT_EV: Billionths = 250_000_000;

impl ValueSelection {
    pub fn select<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        analysis: &'a Analysis,
    ) -> Ranking<Value<'a>> {
        let Some(scope) = Scope::new(&self.filter, snapshot, analysis, |_| true) else {
            return Ranking::default();
        };
        let mut ranking = Ranking { max_age_s: scope.max_age.as_secs(), ..Ranking::default() };
        scope.count_partial(scope.bookmakers(), &mut ranking.refused);
        let mut found = Vec::new();
        for (event, line) in scope.lines() {
            match self.values(&scope, event, line, &mut ranking.refused, &mut found) {
                Some(Verdict::Thin) => ranking.refused.thin += 1,
                Some(Verdict::Undefined) => ranking.refused.undefined += 1,
                Some(Verdict::Defined) | None => {}
            }
        }
        found.sort_by(|one: &Value<'_>, other: &Value<'_>| {
            let bet = |own: &Value<'_>| (own.fair.probability, own.leg.quote.price);
            other.ev.cmp(&one.ev).then_with(|| cmp_expected_value(bet(other), bet(one)))
        });
        ranking.fill(found, self.limit, |value| value);
        ranking
    }

    /// Adds the values of a line; returns whether its reference has a result for any of its offers, or `None` if the
    /// line has no offer that can be bet on.
    fn values<'a>(
        &self,
        scope: &Scope<'a>,
        event: &'a EventRow,
        line: &'a MarketLine,
        refused: &mut Refused,
        found: &mut Vec<Value<'a>>,
    ) -> Option<Verdict> {
        let offers = scope.usable(line, Underround::Refuse, refused);
        if offers.is_empty() {
            return None;
        }
        // The reference is not the subject of the request, so its unused offers are not counted.
        let sources = Sources::new(scope, line, &self.reference, &mut Refused::default());
        let mut of_all = None;
        let mut line_verdict = Verdict::Thin;
        for offer in offers {
            let verdict = sources.verdict(self.reference.min_books, Some(offer.bookmaker));
            if verdict != Verdict::Defined {
                if line_verdict != Verdict::Defined && verdict == Verdict::Undefined {
                    line_verdict = verdict;
                }
                continue;
            }
            line_verdict = Verdict::Defined;
            let without = sources.position(offer.bookmaker);
            let own;
            let consensus: &[Option<Fair>] = match without {
                None => of_all.get_or_insert_with(|| sources.consensus(None)),
                Some(_) => {
                    own = sources.consensus(without);
                    &own
                }
            };
            let sources_age_s = sources.oldest_age_s(scope, without);
            for priced in &offer.prices {
                let fair = consensus.get(usize::from(priced.name)).copied().flatten();
                let Some(fair) = fair.filter(|fair| fair.books > 0) else { continue };
                let ev = expected_value(fair.probability, priced.quote.price);
                if ev <= self.min_ev.into() {
                    continue;
                }
                let Some(leg) = scope.leg(line, offer, priced) else { continue };
                let oldest_age_s = sources_age_s.max(leg.age_s);
                let suspect = ev > SUSPECT_EV;
                found.push(Value { event, line, leg, fair, ev, oldest_age_s, suspect });
            }
        }
        Some(line_verdict)
    }
}
