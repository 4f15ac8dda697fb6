//! Offers as rows of prices, and the margin that a bookmaker adds to fair chances.

use domain::message::OfferedOutcome;
use domain::{Line, Market, Quote};

use super::bookmaker::Profile;
use super::event::{Contest, Event, Names};
use super::grid::Ladder;
use super::noise::count;

/// Maximum chance of a side; beyond it a winner market is withdrawn.
const DECIDED: f64 = 0.975;
/// Minimum of the chances still open, per winning position; below it a market of many is withdrawn.
const DOUBT: f64 = 0.1;

/// One market of one bookmaker on one event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offer {
    pub(crate) market: Market,
    pub(crate) group: Group,
    pub(crate) rows: Vec<Row>,
}

/// One price. Its selection becomes a name only when it is sent: most offers are only compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) selection: Selection,
    pub(crate) quote: Quote,
    pub(crate) point: Option<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Home,
    Away,
    Draw,
    Over,
    Under,
    /// Position in the field.
    Player(usize),
}

/// The pairing, if a market has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Only,
    ThreeBall { round: i64, group: u64 },
    Matchup(usize),
}

impl Group {
    /// The `group` of the message.
    pub(crate) fn label(self) -> Option<Box<str>> {
        match self {
            Self::Only => None,
            Self::ThreeBall { round, group } => {
                Some(format!("r{}-g{}", round + 1, group + 1).into())
            }
            Self::Matchup(number) => Some(format!("m{}", number + 1).into()),
        }
    }
}

impl Offer {
    /// The offer of the same market and pairing among others.
    pub(crate) fn among<'a>(&self, others: &'a [Self]) -> Option<&'a Self> {
        let same = |other: &&Self| other.market == self.market && other.group == self.group;
        others.iter().find(same)
    }

    /// The outcomes by name, as of the event's revision at an instant.
    pub(crate) fn outcomes(&self, event: &Event, at: i64) -> Vec<OfferedOutcome> {
        let names = event.revisions.get(event.revision_at(at)).map(|r| &r.names);
        let field = match &event.contest {
            Contest::Field(tournament) => tournament.names(),
            Contest::Duel(_) => &[],
        };
        let name = |selection: Selection| -> Option<&str> {
            match (selection, names) {
                (Selection::Home, Some(Names::Sides { home, .. })) => Some(home),
                (Selection::Away, Some(Names::Sides { away, .. })) => Some(away),
                (Selection::Draw, _) => Some("Draw"),
                (Selection::Over, _) => Some("Over"),
                (Selection::Under, _) => Some("Under"),
                (Selection::Player(i), _) => field.get(i).map(|name| &**name),
                (Selection::Home | Selection::Away, Some(Names::Title(_)) | None) => None,
            }
        };
        let rows = self.rows.iter();
        rows.filter_map(|row| {
            Some(OfferedOutcome {
                name: name(row.selection)?.into(),
                quote: row.quote,
                point: row.point,
            })
        })
        .collect()
    }
}

/// A bookmaker's profile and its grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pricer<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) ladder: &'a Ladder,
}

impl Pricer<'_> {
    /// Two prices that include the bookmaker's margin, which shrinks if one side is nearly certain.
    pub(crate) fn two_way(&self, one: f64, other: f64) -> Option<[Quote; 2]> {
        if one.max(other) > DECIDED {
            return None;
        }
        let margin = self.profile.margin * (4.0 * one * other).sqrt() + 0.002;
        Some([
            self.ladder.at_least(one + margin / 2.0)?,
            self.ladder.at_least(other + margin / 2.0)?,
        ])
    }

    /// Prices for each of many, of whom `places` win. `None` if the grid cannot hold the margin any more: the market
    /// is nearly decided, and is withdrawn.
    pub(crate) fn many_way(
        &self,
        chances: &[f64],
        places: usize,
        margin: f64,
    ) -> Option<Vec<Quote>> {
        let doubt: f64 = chances.iter().map(|p| p.min(1.0 - p)).sum();
        if doubt < DOUBT * count(places) {
            return None;
        }
        let mut quotes = Vec::with_capacity(chances.len());
        let mut sum = 0.0;
        for p in chances {
            let quote = self.ladder.at_least((p * (1.0 + margin) + 0.0004).min(0.985))?;
            let part = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
            let (profit, stake) = (part(quote.price.profit()), part(quote.price.stake()));
            sum += stake / (profit + stake);
            quotes.push(quote);
        }
        (sum >= 1.005 * count(places)).then_some(quotes)
    }
}

pub(crate) const fn row(selection: Selection, quote: Quote, point: Option<Line>) -> Row {
    Row { selection, quote, point }
}
