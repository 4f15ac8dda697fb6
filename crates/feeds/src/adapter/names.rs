//! Resolves upstream names of bookmakers, sports and markets to ours: the operator's tables override the kind's own.

use std::collections::BTreeMap;

use domain::catalogue::{BookmakerId, Catalogue, SportId};
use domain::market::{Market, MarketAlias};

/// Tables from upstream names to ours; an empty text marks a name as known and ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub bookmakers: BTreeMap<String, String>,
    /// A `*` in the upstream name matches any text; the longest matching name wins.
    pub sports: BTreeMap<String, String>,
    pub markets: BTreeMap<String, String>,
}

/// The result of resolving an upstream name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<T> {
    Is(T),
    Ignored,
    Unmapped,
}

impl Names {
    /// Adds the entries of `over`, which replace entries of the same name.
    #[must_use]
    pub fn overlaid(mut self, over: &Self) -> Self {
        let lay = |under: &mut BTreeMap<String, String>, over: &BTreeMap<String, String>| {
            under.extend(over.iter().map(|(from, to)| (from.clone(), to.clone())));
        };
        lay(&mut self.bookmakers, &over.bookmakers);
        lay(&mut self.sports, &over.sports);
        lay(&mut self.markets, &over.markets);
        self
    }

    /// Resolves a name; a name without an entry is one of ours, or unmapped.
    pub fn bookmaker(&self, upstream: &str, catalogue: &Catalogue) -> Known<BookmakerId> {
        resolve(self.bookmakers.get(upstream), upstream, |key| catalogue.bookmaker_id(key))
    }

    /// As [`Names::bookmaker`]; an exact entry takes precedence over one with a `*`.
    pub fn sport(&self, upstream: &str, catalogue: &Catalogue) -> Known<SportId> {
        let exact = self.sports.get(upstream);
        let entry = exact.or_else(|| {
            let fitting = self.sports.iter().filter(|(pattern, _)| fits(pattern, upstream));
            fitting.max_by_key(|(pattern, _)| pattern.len()).map(|(_, ours)| ours)
        });
        resolve(entry, upstream, |key| catalogue.sport_id(key))
    }

    /// As [`Names::bookmaker`]; `totals` is the sport's own totals market.
    pub fn market(&self, upstream: &str, sport: SportId, catalogue: &Catalogue) -> Known<Market> {
        resolve(self.markets.get(upstream), upstream, |key| match MarketAlias::parse(key) {
            Some(MarketAlias::Is(market)) => Some(market),
            Some(MarketAlias::TheSportsTotals) => catalogue.sport(sport).totals,
            None => Market::parse(key),
        })
    }
}

fn resolve<T>(
    entry: Option<&String>,
    upstream: &str,
    find: impl Fn(&str) -> Option<T>,
) -> Known<T> {
    match entry.map(String::as_str) {
        Some("") => Known::Ignored,
        Some(ours) => find(ours).map_or(Known::Unmapped, Known::Is),
        None => find(upstream).map_or(Known::Unmapped, Known::Is),
    }
}

/// True if a pattern with any number of `*` matches the whole text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    let Some(mut rest) = rest.strip_suffix(last) else {
        return false;
    };
    parts.all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_the_longest_name_counts() {
        for (pattern, text, expected) in [
            ("tennis_*", "tennis_atp_munich", true),
            ("tennis_*", "table_tennis", false),
            ("*_winner", "golf_masters_winner", true),
            ("golf_*_winner", "golf_winner", false),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("*", "", true),
            ("mma", "mma", true),
            ("mma", "mma2", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        let catalogue = Catalogue::load(None).unwrap();
        let entry = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let names = Names {
            sports: [entry("americanfootball_*", "american_football"), entry("*", "")].into(),
            ..Names::default()
        };
        let football = catalogue.sport_id("american_football").unwrap();
        assert_eq!(names.sport("americanfootball_nfl", &catalogue), Known::Is(football));
        assert_eq!(names.sport("soccer_epl", &catalogue), Known::Ignored);
        assert_eq!(Names::default().sport("soccer_epl", &catalogue), Known::Unmapped);
        assert_eq!(Names::default().sport("american_football", &catalogue), Known::Is(football));
        assert_eq!(
            Names::default().market("totals", football, &catalogue),
            Known::Is(Market::TotalPoints)
        );
    }
}
