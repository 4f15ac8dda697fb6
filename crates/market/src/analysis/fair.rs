//! Fair probabilities: of each source without its margin, and of all of them combined (N12, N13, N15).

use domain::{BookmakerId, BookmakerSet, Format, Price, Quote, RecordId, Timestamp};

use crate::analysis::best::LinePage;
use crate::analysis::exact::{Billionths, Measure, ONE, Rounding};
use crate::analysis::filter::{Filter, LineCursor, Pager, Refused, Scope};
use crate::analysis::line::{Analysis, MarketLine, Offer, is_field};
use crate::analysis::method::{Method, WithoutMargin};
use crate::book::OutcomeName;
use crate::snapshot::{EventRow, Snapshot};

/// The bookmakers whose prices are the reference, and the method that removes their margins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    pub method: Method,
    /// The named bookmakers; all if absent.
    pub named: Option<BookmakerSet>,
    pub min_books: usize,
}

/// A request for fair probabilities.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FairSelection {
    pub filter: Filter,
    pub reference: Reference,
    pub limit: usize,
    pub after: Option<LineCursor>,
}

/// A line's fair probabilities.
#[derive(Debug)]
pub struct FairLine<'a> {
    pub event: &'a EventRow,
    pub line: &'a MarketLine,
    /// Number of names in the field.
    pub field: usize,
    pub oldest_age_s: u64,
    pub outcomes: Vec<FairOutcome>,
    pub sources: Vec<FairSource>,
}

/// An outcome's fair probability.
#[derive(Clone, Copy, Debug)]
pub struct FairOutcome {
    pub name: OutcomeName,
    pub fair: Fair,
}

/// A published probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fair {
    /// In billionths.
    pub probability: u32,
    /// Number of sources that price the outcome.
    pub books: u32,
}

/// A bookmaker whose prices are part of fair probabilities.
#[derive(Clone, Debug)]
pub struct FairSource {
    pub bookmaker: BookmakerId,
    pub record: RecordId,
    pub booksum: Billionths,
    pub hold: Billionths,
    pub parameter: Option<Billionths>,
    /// Number of names of the field that it prices.
    pub priced: usize,
    pub last_update: Timestamp,
    pub age_s: u64,
}

impl Fair {
    /// The price of the published probability; `None` if that is 0 or 1 (N10).
    pub fn quote(self) -> Option<Quote> {
        let whole = u64::try_from(ONE).unwrap_or(u64::MAX);
        let probability = u64::from(self.probability);
        let price = Price::from_ratio(whole.checked_sub(probability)?, probability)?;
        // No bookmaker quoted it, so its format is the one from which other formats are computed.
        Some(Quote { price, format: Format::Fractional })
    }
}

impl FairSelection {
    pub fn select<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        analysis: &'a Analysis,
    ) -> LinePage<FairLine<'a>> {
        let Some(scope) = Scope::new(&self.filter, snapshot, analysis, |_| true) else {
            return LinePage::default();
        };
        let mut page = LinePage { max_age_s: scope.max_age.as_secs(), ..LinePage::default() };
        let named = self.reference.named.unwrap_or(BookmakerSet::ALL);
        scope.count_partial(&named, &mut page.refused);
        let mut pager = Pager::new(self.after.as_ref(), self.limit);
        for (event, line) in scope.lines() {
            if !line.offers.iter().any(|offer| named.contains(offer.bookmaker)) {
                continue;
            }
            let sources = Sources::new(&scope, line, &self.reference, &mut page.refused);
            match sources.verdict(self.reference.min_books, None) {
                Verdict::Thin => page.refused.thin += 1,
                Verdict::Undefined => page.refused.undefined += 1,
                Verdict::Defined if pager.admits(&scope, line) => {
                    page.lines.push(sources.fair_line(&scope, event));
                }
                Verdict::Defined => {}
            }
        }
        page.next = pager.next;
        page
    }
}

/// Whether sources have a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Defined,
    Thin,
    Undefined,
}

/// The sources of a line's fair probabilities.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    line: &'a MarketLine,
    /// For each of the line's names: true if it belongs to the field.
    in_field: Vec<bool>,
    pub(crate) sources: Vec<Source<'a>>,
    /// Bookmakers for whose offers the method has no result.
    without_result: Vec<BookmakerId>,
    /// For each of the line's names, the sources' probabilities in ascending order, each with the source's position.
    probabilities: Vec<Vec<(f64, usize)>>,
}

#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) offer: &'a Offer,
    fair: &'a WithoutMargin,
    priced: usize,
}

impl<'a> Sources<'a> {
    /// The sources of a reference in a line. Counts the named bookmakers that are not used.
    pub(crate) fn new(
        scope: &Scope<'_>,
        line: &'a MarketLine,
        reference: &Reference,
        refused: &mut Refused,
    ) -> Self {
        let fresh = |offer: &&Offer| !scope.is_stale(offer.last_update) && !offer.underround;
        let in_field = field(line, line.offers.iter().filter(fresh));
        let size = in_field.iter().filter(|own| **own).count();
        let mut found = Self {
            line,
            in_field,
            sources: Vec::new(),
            without_result: Vec::new(),
            probabilities: Vec::new(),
        };
        let named = reference.named.unwrap_or(BookmakerSet::ALL);
        for offer in line.offers.iter().filter(|offer| named.contains(offer.bookmaker)) {
            let priced = offer.prices.iter().filter(|own| found.is_in_field(own.name)).count();
            if scope.is_stale(offer.last_update) {
                refused.stale += 1;
            } else if 10 * priced < 9 * size {
                refused.incomplete += 1;
            } else if offer.underround {
                refused.underround += 1;
            } else if let Some(fair) = offer.without_margin(reference.method, line.winners()) {
                found.sources.push(Source { offer, fair, priced });
            } else {
                found.without_result.push(offer.bookmaker);
            }
        }
        found.sort_probabilities();
        found
    }

    fn is_in_field(&self, name: u16) -> bool {
        self.in_field.get(usize::from(name)).copied().unwrap_or(false)
    }

    fn sort_probabilities(&mut self) {
        let row = || Vec::with_capacity(self.sources.len());
        let mut table: Vec<Vec<(f64, usize)>> = self.line.names.iter().map(|_| row()).collect();
        for (at, source) in self.sources.iter().enumerate() {
            for (priced, own) in source.offer.prices.iter().zip(&source.fair.probabilities) {
                if let Some(row) = table.get_mut(usize::from(priced.name))
                    && self.is_in_field(priced.name)
                {
                    row.push((*own, at));
                }
            }
        }
        table
            .iter_mut()
            .for_each(|row| row.sort_unstable_by(|one, other| one.0.total_cmp(&other.0)));
        self.probabilities = table;
    }

    /// The position of a bookmaker among the sources.
    pub(crate) fn position(&self, bookmaker: BookmakerId) -> Option<usize> {
        self.sources.iter().position(|source| source.offer.bookmaker == bookmaker)
    }

    /// Whether there is a result, without one bookmaker or with all.
    pub(crate) fn verdict(&self, min_books: usize, without: Option<BookmakerId>) -> Verdict {
        let others = |bookmaker: &BookmakerId| Some(*bookmaker) != without;
        let left = self.sources.iter().filter(|source| others(&source.offer.bookmaker)).count();
        if left == 0 && self.without_result.iter().any(others) {
            Verdict::Undefined
        } else if left < min_books.max(1) {
            Verdict::Thin
        } else {
            Verdict::Defined
        }
    }

    /// The age of the oldest source, leaving one of them out.
    pub(crate) fn oldest_age_s(&self, scope: &Scope<'_>, without: Option<usize>) -> u64 {
        let others = self.sources.iter().enumerate().filter(|(at, _)| Some(*at) != without);
        others.map(|(_, source)| scope.age_s(source.offer.last_update)).max().unwrap_or(0)
    }

    /// For each of the line's names the median over the sources that price it, scaled so that all add up to the
    /// number of winners (N13). `without` leaves out one source.
    pub(crate) fn consensus(&self, without: Option<usize>) -> Vec<Option<Fair>> {
        let mut medians: Vec<Option<(f64, u32)>> =
            self.probabilities.iter().map(|row| median(row, without)).collect();
        scale(&mut medians, f64::from(self.line.winners()));
        let publish = |(probability, books): (f64, u32)| Fair {
            probability: billionths(probability)
                .and_then(|own| u32::try_from(own).ok())
                .unwrap_or_default(),
            books,
        };
        medians.into_iter().map(|own| own.map(publish)).collect()
    }

    fn fair_line(&self, scope: &Scope<'_>, event: &'a EventRow) -> FairLine<'a> {
        let names = self.line.names.iter().zip(self.consensus(None));
        let sources: Vec<FairSource> =
            self.sources.iter().map(|source| source.describe(scope, self.line)).collect();
        FairLine {
            event,
            line: self.line,
            field: self.in_field.iter().filter(|own| **own).count(),
            oldest_age_s: sources.iter().map(|source| source.age_s).max().unwrap_or(0),
            outcomes: names
                .filter_map(|(name, fair)| Some(FairOutcome { name: *name, fair: fair? }))
                .collect(),
            sources,
        }
    }
}

impl Source<'_> {
    fn describe(&self, scope: &Scope<'_>, line: &MarketLine) -> FairSource {
        let sum = self.offer.sum();
        let hold = Measure::Hold { winners: line.winners() };
        FairSource {
            bookmaker: self.offer.bookmaker,
            record: self.offer.record,
            booksum: sum.measure(Measure::Booksum, Rounding::HalfEven),
            hold: sum.measure(hold, Rounding::HalfEven),
            parameter: self.fair.parameter.and_then(billionths),
            priced: self.priced,
            last_update: self.offer.last_update,
            age_s: scope.age_s(self.offer.last_update),
        }
    }
}

/// For each of a line's names, true if it belongs to the field: all, or in a field market those that at least half of
/// the offers price.
fn field<'a>(line: &MarketLine, offers: impl Iterator<Item = &'a Offer>) -> Vec<bool> {
    if !is_field(line.market) {
        return vec![true; line.names.len()];
    }
    let mut counts = vec![0_usize; line.names.len()];
    let mut all = 0;
    for offer in offers {
        all += 1;
        for priced in &offer.prices {
            if let Some(count) = counts.get_mut(usize::from(priced.name)) {
                *count += 1;
            }
        }
    }
    counts.into_iter().map(|count| count > 0 && 2 * count >= all).collect()
}

/// The median of sorted probabilities, leaving out one source; for an even number the mean of the two in the middle.
/// Returns it with the number of probabilities.
fn median(sorted: &[(f64, usize)], without: Option<usize>) -> Option<(f64, u32)> {
    let gap = sorted.iter().position(|(_, source)| Some(*source) == without);
    let count = sorted.len() - usize::from(gap.is_some());
    let at = |place: usize| {
        let place = place + usize::from(gap.is_some_and(|gap| place >= gap));
        sorted.get(place).map(|(own, _)| *own)
    };
    let upper = at(count / 2).filter(|_| count > 0)?;
    let middle = if count % 2 == 1 { upper } else { (at(count / 2 - 1)? + upper) / 2.0 };
    Some((middle, u32::try_from(count).unwrap_or(u32::MAX)))
}

/// Scales probabilities to add up to the number of winners. None exceeds 1: the excess of one is shared by the
/// others.
fn scale(probabilities: &mut [Option<(f64, u32)>], winners: f64) {
    let mut certain = vec![false; probabilities.len()];
    // Each pass but the last finds another certain one; a field of winners only takes most passes.
    for _ in 0..probabilities.len() {
        let (mut sum, mut left) = (0.0, winners);
        for (own, certain) in probabilities.iter().zip(&certain) {
            match own {
                Some(_) if *certain => left -= 1.0,
                Some((own, _)) => sum += own,
                None => {}
            }
        }
        let factor = if sum > 0.0 && left > 0.0 { left / sum } else { return };
        let mut found = false;
        for (own, certain) in probabilities.iter_mut().zip(&mut certain) {
            let Some((own, _)) = own.as_mut().filter(|_| !*certain) else { continue };
            *own *= factor;
            if *own > 1.0 {
                (*own, *certain, found) = (1.0, true, true);
            }
        }
        if !found {
            return;
        }
    }
}

/// A small non-negative number in billionths, rounded half-even.
fn billionths(number: f64) -> Option<Billionths> {
    let scaled = (number * 1e9).round_ties_even();
    if !(0.0..9e15).contains(&scaled) {
        return None;
    }
    // Without a fraction and below 2^53, a double is its 53 bits shifted right: exact, and without a cast.
    let bits = scaled.to_bits();
    let (exponent, digits) = (bits >> 52, bits & ((1 << 52) - 1) | 1 << 52);
    let shift = 1075_u64.saturating_sub(exponent);
    Some(u32::try_from(shift).ok().and_then(|shift| digits.checked_shr(shift)).unwrap_or(0).into())
}

impl Default for Reference {
    /// All bookmakers, with the default method.
    fn default() -> Self {
        Self { method: Method::Power, named: None, min_books: 2 }
    }
}

#[cfg(test)]
mod tests;
