//! A bookmaker's offers on an event: its knowledge at a read, and the prices it derives from that.
//!
//! The two are separate so that most reads cost nothing: a [`View`] is cheap, and as long as it is the same, so are
//! the prices.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use domain::{Line, Market};

use super::bookmaker::Style;
use super::contest::{Fair, Spread};
use super::discipline::Discipline;
use super::event::{Contest, Duel, Event, Knowledge};
use super::field::{FieldFair, field_offers};
use super::golf::Tournament;
use super::noise::{TICK_S, logistic, logit, to_tick};
use super::rows::{Group, Offer, Pricer, Selection, row};

/// The inputs of a bookmaker's prices at a read; `None` for closed or suspended markets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Duel {
        winner: Option<Knowledge>,
        /// Lines move before prices: line makers hear news in half the time.
        lines: Option<Knowledge>,
    },
    Field(Option<i64>),
}

/// A read: when the feed saw it, and when it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) at: i64,
    pub(crate) arrival: i64,
}

/// An event with the fair chances computed so far.
#[derive(Debug)]
pub(crate) struct Priced<'a> {
    pub(crate) event: &'a Event,
    duels: RefCell<HashMap<Knowledge, Rc<Fair>>>,
    fields: RefCell<HashMap<i64, Rc<FieldFair>>>,
}

/// Publication interval (D14).
const PUBLISHED_S: i64 = 30;
/// Interval at which live prices are recomputed.
const LIVE_REQUOTE_S: i64 = 30;
/// Time for which a market stays closed after an incident, in addition to the bookmaker's delay.
const SUSPENDED_S: i64 = 20;
/// Chance of a draw if it is priced; it never happens.
const DRAW: f64 = 0.02;
/// If lines are held at standard juice, chances this close to even count as even.
const JUICE_BAND: f64 = 0.012;
/// Repricing intervals of a golf tournament in seconds: in play, and otherwise.
const GOLF_LIVE_S: i64 = 180;
const GOLF_QUIET_S: i64 = 1800;

impl<'a> Priced<'a> {
    pub(crate) fn new(event: &'a Event) -> Self {
        Self { event, duels: RefCell::default(), fields: RefCell::default() }
    }

    fn duel_fair(&self, duel: &Duel, known: Knowledge) -> Rc<Fair> {
        let mut held = self.duels.borrow_mut();
        Rc::clone(held.entry(known).or_insert_with(|| Rc::new(duel.fair(known))))
    }

    fn field_fair(&self, tournament: &Tournament, at: i64) -> Rc<FieldFair> {
        let mut held = self.fields.borrow_mut();
        Rc::clone(held.entry(at).or_insert_with(|| Rc::new(FieldFair::of(tournament, at))))
    }
}

impl Pricer<'_> {
    /// The view of this bookmaker. The event is open at the arrival.
    pub(crate) fn view(&self, event: &Event, read: Read) -> View {
        let opened = read.at >= self.profile.opens(event)
            && !event.renamed_within(read.at, read.arrival)
            && (self.profile.style != Style::PreMatch || read.arrival < event.start());
        match &event.contest {
            Contest::Duel(duel) => {
                let delay = self.profile.delay_s;
                let know = |delay| opened.then(|| self.know(event, duel, read.at, delay)).flatten();
                View::Duel { winner: know(delay), lines: know(to_tick(delay / 2)) }
            }
            Contest::Field(tournament) => {
                let at = opened.then(|| Self::golf_turn(tournament, read.at));
                // No prices before the first repricing after the opening.
                View::Field(at.filter(|at| *at >= self.profile.opens(event)))
            }
        }
    }

    fn know(&self, event: &Event, duel: &Duel, at: i64, delay: i64) -> Option<Knowledge> {
        let revision = event.revision_at(at);
        if at < duel.start {
            let every = self.profile.requote_s;
            let phase = self.profile.hash(event.key ^ 0x9f).cast_signed().rem_euclid(every);
            return Some(Knowledge {
                at: (at - phase).div_euclid(every) * every + phase,
                news: duel.news.is_some_and(|news| at >= news.at + delay),
                step: None,
                revision,
            });
        }
        let timeline = duel.timeline();
        let hold = delay + SUSPENDED_S;
        let step = timeline.step_at(at);
        // The old price is withdrawn until the new score is priced.
        let fresh = timeline.step_at(at - delay) != step;
        if at >= timeline.closed || fresh || timeline.incident_within(at - hold, at) {
            return None;
        }
        Some(Knowledge { at: turn(at, LIVE_REQUOTE_S, 0), news: true, step, revision })
    }

    fn golf_turn(tournament: &Tournament, at: i64) -> i64 {
        let every = if tournament.playing(at) { GOLF_LIVE_S } else { GOLF_QUIET_S };
        // All bookmakers price a tournament at the same moment; the phase differs by tournament.
        let phase = tournament.key.cast_signed().rem_euclid(GOLF_LIVE_S / PUBLISHED_S);
        turn(at, every, phase * PUBLISHED_S)
    }

    /// The prices for a view.
    pub(crate) fn offers(&self, priced: &Priced<'_>, view: View) -> Vec<Offer> {
        match (&priced.event.contest, view) {
            (Contest::Duel(duel), View::Duel { winner, lines }) => {
                let mut offers = Vec::with_capacity(3);
                if let Some(known) = winner {
                    let fair = priced.duel_fair(duel, known);
                    offers.extend(self.moneyline(priced.event, &fair));
                }
                if let Some(known) = lines {
                    let fair = priced.duel_fair(duel, known);
                    offers.extend(self.spread(priced.event, &fair));
                    offers.extend(self.total(priced.event, &fair));
                }
                offers
            }
            (Contest::Field(tournament), View::Field(Some(at))) => {
                let fair = priced.field_fair(tournament, at);
                field_offers(*self, priced.event, &fair)
            }
            (Contest::Field(_), View::Field(None) | View::Duel { .. })
            | (Contest::Duel(_), View::Field(_)) => Vec::new(),
        }
    }

    fn moneyline(&self, event: &Event, fair: &Fair) -> Option<Offer> {
        let p = logistic(logit(fair.home) + self.profile.bias_on(event));
        let boxing = event.discipline == Discipline::Boxing;
        let rows = if boxing && self.profile.style == Style::British {
            let [home_quote, away_quote] =
                self.two_way(p * (1.0 - DRAW), (1.0 - p) * (1.0 - DRAW))?;
            let draw = self.ladder.at_least(DRAW * 1.4)?;
            vec![
                row(Selection::Home, home_quote, None),
                row(Selection::Draw, draw, None),
                row(Selection::Away, away_quote, None),
            ]
        } else {
            let [home_quote, away_quote] = self.two_way(p, 1.0 - p)?;
            vec![row(Selection::Home, home_quote, None), row(Selection::Away, away_quote, None)]
        };
        Some(Offer { market: Market::Moneyline, group: Group::Only, rows })
    }

    fn spread(&self, event: &Event, fair: &Fair) -> Option<Offer> {
        if !self.profile.offers(event.discipline, Market::Spread) {
            return None;
        }
        let (half, p) = self.lined(event, &fair.margin)?;
        let [home_quote, away_quote] = self.two_way(p, 1.0 - p)?;
        Some(Offer {
            market: Market::Spread,
            group: Group::Only,
            rows: vec![
                row(Selection::Home, home_quote, Some(Line::from_quarters(-2 * half))),
                row(Selection::Away, away_quote, Some(Line::from_quarters(2 * half))),
            ],
        })
    }

    fn total(&self, event: &Event, fair: &Fair) -> Option<Offer> {
        let market = match event.discipline {
            Discipline::Mma | Discipline::Boxing => Market::TotalRounds,
            Discipline::Tennis | Discipline::Football => Market::TotalPoints,
            Discipline::Golf => return None,
        };
        if !self.profile.offers(event.discipline, market) {
            return None;
        }
        let (half, p) = self.lined(event, &fair.total)?;
        let [over, under] = self.two_way(p, 1.0 - p)?;
        let point = (half > 0).then(|| Line::from_quarters(2 * half))?;
        Some(Offer {
            market,
            group: Group::Only,
            rows: vec![
                row(Selection::Over, over, Some(point)),
                row(Selection::Under, under, Some(point)),
            ],
        })
    }

    /// The bookmaker's line, in halves, and its chance that the result is above it.
    fn lined(&self, event: &Event, spread: &Spread) -> Option<(i32, f64)> {
        let bias = self.profile.bias_on(event);
        // Each point of a game is about a twentieth in log-odds.
        let half = spread.line(bias * 6.0)?;
        let p = logistic(logit(spread.above(half)) + bias);
        let held = matches!(self.profile.style, Style::American | Style::PreMatch)
            && (p - 0.5).abs() < JUICE_BAND;
        Some((half, if held { 0.5 } else { p }))
    }
}

/// The last repricing, at an interval of `every` seconds with a `phase`.
///
/// It is ten seconds after a publication, so that every feed is read once before the next.
fn turn(at: i64, every: i64, phase: i64) -> i64 {
    let first = phase + TICK_S;
    (at - first).div_euclid(every) * every + first
}
