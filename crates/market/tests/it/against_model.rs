//! Random histories: for any messages in any order, the book answers like the naive model, and so do its replay and
//! its checkpoint.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use domain::message::{
    Body, Correction, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome, ScoreBody,
};
use domain::{
    BookmakerId, BookmakerSet, EventId, Format, Line, Market, Period, Quote, Region, SportId,
    Status, Timestamp,
};
use linesman_market::select::{Cursor, EventIds};
use linesman_market::{
    BoutSelection, Cell as CellState, Change, EventSelection, Ids, OddsSelection, ScoreSelection,
    Snapshot, Verdict,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::histories::{
    BOOKMAKERS, Names, Pick, Prices, REFS, SPORTS, Scored, Step, What, When, a_step,
};
use crate::model::{Happening, Model};
use crate::shown;
use crate::test_book::{
    LIFETIMES, SALT, STALE_AFTER, TestBook, all_bouts, all_events, all_odds, all_scores, at,
    everything, replayed, restored, walk,
};
use crate::vocabulary::{LINES, PEOPLE, PRICES, TITLES};

const IDS: Ids = Ids::Minted { salt: SALT };

/// The book and the model, compared with each other.
pub(crate) struct Pair {
    pub(crate) test: TestBook,
    model: Model,
    last: Option<(&'static str, FeedMessage)>,
    last_odds: Option<(&'static str, Body)>,
    last_ts: Timestamp,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let test = TestBook::open();
        let model = Model::new(Arc::clone(&test.catalogue));
        Self { test, model, last: None, last_odds: None, last_ts: at(0) }
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Say { feed, when, what } => {
                self.say(
                    feed,
                    FeedMessage { ts: self.ts(*when), fresh_for_s: None, body: self.body(what) },
                );
            }
            Step::Again => {
                if let Some((feed, message)) = self.last.take() {
                    self.say(feed, message);
                }
            }
            Step::Confirm(when) => {
                if let Some((feed, body)) = self.last_odds.take() {
                    self.say(feed, FeedMessage { ts: self.ts(*when), fresh_for_s: None, body });
                }
            }
            Step::Wait(ms) => self.test.now = self.test.now.plus(Duration::from_millis(*ms)),
            Step::Expire => self.expire(),
            Step::Restart => {
                let book = restored(&self.test.book);
                assert_eq!(self.everything(), everything(&book, self.test.now));
                self.test.book = book;
            }
            Step::Replay => {
                let book = replayed(&self.test.catalogue, IDS, &self.test.changes);
                assert_eq!(self.everything(), everything(&book, self.test.now));
                self.test.book = book;
            }
            Step::Compare => self.compare(),
        }
    }

    fn ts(&self, when: When) -> Option<Timestamp> {
        match when {
            When::Unsaid => None,
            When::Off(ms) => Some(Timestamp::from_millis(self.test.now.as_millis() + ms)),
            When::Last => Some(self.last_ts),
        }
    }

    fn everything(&self) -> String {
        everything(&self.test.book, self.test.now)
    }

    fn say(&mut self, feed: &'static str, message: FeedMessage) {
        let made = self.test.changes.len();
        let said = self.test.hear(feed, &message);
        let told = match self.test.changes.get(made) {
            Some((Change::Listed(listed), _)) => Some(listed.event),
            _ => None,
        };
        let merged_before = self.model.merged.len();
        let expected = self.model.hear(feed, &message, self.test.now, told);
        assert_eq!(said, expected, "{feed} said {message:?}");
        let mut merged: Vec<EventId> = Vec::new();
        for (change, _) in &self.test.changes[made..] {
            if let Change::Merged { younger, .. } = change {
                merged.push(*younger);
            }
        }
        let expected: Vec<EventId> =
            self.model.merged[merged_before..].iter().map(|(younger, _)| *younger).collect();
        assert_eq!(merged, expected, "{feed} said {message:?}");
        if said == Ok(Verdict::Superseded) || said.is_err() {
            assert_eq!(made, self.test.changes.len(), "nothing changes by what is not taken");
        }
        self.last_ts = message.ts.unwrap_or(self.last_ts);
        if matches!(message.body, Body::Odds(_)) {
            self.last_odds = Some((feed, message.body.clone()));
        }
        self.last = Some((feed, message));
    }

    fn expire(&mut self) {
        let now = self.test.now;
        let made = self.test.changes.len();
        self.test.expire();
        let (mut events, mut sources) = (Vec::new(), Vec::new());
        for (change, _) in &self.test.changes[made..] {
            if let Change::Expired { event } = change {
                events.push(*event);
            }
            if let Change::SourceForgotten { bookmaker, sport } = change {
                sources.push((self.test.sport(sport), self.test.bookmaker(bookmaker)));
            }
        }
        assert_eq!(events.len() + sources.len(), self.test.changes.len() - made);
        assert_eq!((events, sources), self.model.expire(now, LIFETIMES));
    }

    fn body(&self, what: &What) -> Body {
        match what {
            What::Event { at: place, sport, names, hours, competition } => {
                let (reference, usual, pair) = REFS[*place];
                let sport = self.test.sport(sport.map_or(usual, |sport| SPORTS[sport]));
                let listing = Listing {
                    sport,
                    competition: (*competition).into(),
                    commence_time: at(hours * 3600),
                    fixture: self.fixture(sport, pair, names),
                };
                Body::Event { reference: reference.into(), listing }
            }
            What::Odds { at, bookmaker, market, group, prices } => {
                let (reference, usual, pair) = REFS[*at];
                let markets = &self.test.catalogue.sport(self.test.sport(usual)).markets;
                let market = match market {
                    Pick::Usual(n) => markets[n % markets.len()],
                    Pick::Any(market) => *market,
                };
                let pairing = [Market::Matchup, Market::ThreeBall].contains(&market);
                let odd = matches!(prices, Prices::Odd(_));
                Body::Odds(OddsBody {
                    reference: reference.into(),
                    bookmaker: self.test.bookmaker(BOOKMAKERS[*bookmaker]),
                    market,
                    group: group.filter(|_| pairing || odd).map(Into::into),
                    outcomes: offered(prices, pair, market),
                })
            }
            What::Score { at, body } => Body::Score(scored(REFS[*at].0, body)),
            What::Remove { at } => Body::Remove { reference: REFS[*at].0.into() },
            What::Beat { bookmaker, sport } => Body::Heartbeat {
                bookmaker: self.test.bookmaker(BOOKMAKERS[*bookmaker]),
                sport: sport.map(|sport| self.test.sport(SPORTS[sport])),
            },
        }
    }

    fn fixture(&self, sport: SportId, usual: (usize, usize), names: &Names) -> Fixture {
        if self.test.catalogue.sport(sport).shape == domain::Shape::Field {
            return Fixture::Field { title: TITLES[names.title / 2][names.title % 2].into() };
        }
        let usual = if usual.0 == usual.1 { (1, 3) } else { usual };
        let (home, away) = names.pair.unwrap_or(usual);
        let home: Box<str> = PEOPLE[home][names.spellings.0].into();
        let away: Box<str> = PEOPLE[away][names.spellings.1].into();
        let (home, away) = if names.swapped { (away, home) } else { (home, away) };
        Fixture::HeadToHead { home, away }
    }

    /// Compares every answer with the model's.
    fn compare(&self) {
        let now = self.test.now;
        let snapshot = self.test.snapshot();
        shown::check(&snapshot);
        let health = self.test.book.vitals().health(now, STALE_AFTER);
        assert_eq!(health.degraded, self.model.is_degraded(now, STALE_AFTER));
        let mut active = 0;
        for (sport, _) in self.test.catalogue.sports() {
            let view = snapshot.sport(sport);
            let summary = self.model.summary(sport, now, STALE_AFTER);
            active += u32::from(summary.0);
            let (open, pricing) = (view.events_open as usize, view.bookmakers as usize);
            assert_eq!((view.active, open, pricing), summary);
            self.compare_odds(&snapshot, sport);
            self.compare_events(&snapshot, sport);
            self.compare_bouts(&snapshot, sport);
            self.compare_cells(&snapshot, sport);
        }
        assert_eq!(health.sports_active, active);
    }

    /// No bookmaker, all, by region, and each alone.
    fn bookmaker_filters(&self) -> Vec<(BookmakerSet, Option<BookmakerId>)> {
        let mut filters = vec![(BookmakerSet::ALL, None)];
        for regions in [&[Region::Us][..], &[Region::Uk, Region::Au]] {
            filters.push((self.test.catalogue.bookmakers_in(regions), None));
        }
        for key in BOOKMAKERS {
            let id = self.test.bookmaker(key);
            filters.push((BookmakerSet::just(id), Some(id)));
            let in_us = self.test.catalogue.bookmakers_in(&[Region::Us]);
            filters.push((BookmakerSet::just(id).intersection(in_us), Some(id)));
        }
        filters
    }

    /// No scope, and scopes of some events, including removed and unknown ones.
    fn scopes(&self) -> Vec<EventIds> {
        let mut some: Vec<EventId> =
            self.model.events.iter().step_by(2).map(|event| event.id).collect();
        some.push(EventId::from_number(1));
        some.sort_unstable();
        vec![None, Some(some.into())]
    }

    fn compare_odds(&self, snapshot: &Snapshot, sport: SportId) {
        let rows = self.model.records(sport);
        let markets = &self.test.catalogue.sport(sport).markets;
        let turn = Cell::new(0);
        for (bookmakers, bookmaker) in self.bookmaker_filters() {
            for market in std::iter::once(None).chain(markets.iter().copied().map(Some)) {
                for events in self.scopes() {
                    turn.set(turn.get() + 1);
                    let format = turn.get() % 3;
                    let expected: Vec<&Value> = rows
                        .iter()
                        .filter(|row| bookmakers.contains(row.bookmaker))
                        .filter(|row| market.is_none_or(|market| market == row.market))
                        .filter(|row| events.as_ref().is_none_or(|e| e.contains(&row.event)))
                        .map(|row| &row.answers[format])
                        .collect();
                    let whole =
                        OddsSelection { bookmakers, bookmaker, market, events, ..all_odds(sport) };
                    let pages = (whole, Format::ALL[format]);
                    compare_odds_pages(&pages, snapshot, &expected, 1 + turn.get() % 4);
                }
            }
        }
    }

    fn compare_events(&self, snapshot: &Snapshot, sport: SportId) {
        let listed = self.model.listed_events(sport);
        let statuses = std::iter::once(None).chain(Status::ALL.into_iter().map(Some));
        for (status, events) in
            statuses.flat_map(|s| self.scopes().into_iter().map(move |e| (s, e)))
        {
            let wanted = |event: &&&Happening| {
                status.is_none_or(|status| status == event.status())
                    && events.as_ref().is_none_or(|e| e.contains(&event.id))
            };
            let of_status: Vec<&Happening> = listed.iter().filter(wanted).copied().collect();
            let expected: Vec<Value> =
                of_status.iter().map(|event| self.model.score_json(event)).collect();
            for limit in [500, 1, 2] {
                let page = |after: Option<Cursor>| {
                    let events = events.clone();
                    let of = ScoreSelection { status, events, limit, after, ..all_scores(sport) };
                    let page = shown::scores(snapshot, &of);
                    (page.items, page.next)
                };
                assert_eq!(walk(page), expected);
            }
            for (from, to) in [(None, None), (Some(at(86_400)), Some(at(90_000)))] {
                let within = |event: &&&Happening| {
                    from.is_none_or(|from| event.start >= from)
                        && to.is_none_or(|to| event.start < to)
                };
                let expected: Vec<Value> = of_status
                    .iter()
                    .filter(within)
                    .map(|event| self.model.event_json(event))
                    .collect();
                let page = |after: Option<Cursor>| {
                    let (events, limit) = (events.clone(), 2);
                    let of = EventSelection {
                        status,
                        events,
                        from,
                        to,
                        limit,
                        after,
                        ..all_events(sport)
                    };
                    let page = shown::events(snapshot, &of);
                    (page.items, page.next)
                };
                assert_eq!(walk(page), expected);
            }
        }
        for event in &self.model.events {
            let here = event.sport == sport && listed.iter().any(|shown| shown.id == event.id);
            assert_eq!(snapshot.sport(sport).event(event.id).is_some(), here);
        }
        for (younger, elder) in &self.model.merged {
            let view = snapshot.sport(sport);
            let shown = |id: EventId| view.event(id).map(|event| event.id);
            assert_eq!(shown(*younger), shown(*elder), "both ids answer");
        }
    }

    /// Checks that every cell has the state that the model finds, and that the priced ones are those of the odds.
    fn compare_cells(&self, snapshot: &Snapshot, sport: SportId) {
        let view = snapshot.sport(sport);
        let mut priced: Vec<(EventId, BookmakerId, Market)> = Vec::new();
        for event in &view.events {
            snapshot.visit_cells(sport, event, |bookmaker, market, cell| {
                let place = (event.id, bookmaker, market);
                let expected = self.model.cell(place, self.test.now, STALE_AFTER);
                if let CellState::Unsure { may_be } = cell {
                    // The model has no possible duplicates.
                    let mut pairs = self.test.book.unsure();
                    let is_pair = |pair: (EventId, EventId)| {
                        pair == (event.id, may_be) || pair == (may_be, event.id)
                    };
                    assert!(pairs.any(|unsure| is_pair((unsure.one, unsure.other))));
                    assert!(matches!(
                        expected,
                        CellState::NotListed { .. } | CellState::NotOffered { .. }
                    ));
                    return;
                }
                assert_eq!(cell, expected, "{place:?}");
                if matches!(cell, CellState::Priced { .. }) {
                    priced.push(place);
                }
            });
        }
        let mut quoted: Vec<(EventId, BookmakerId, Market)> = self
            .model
            .records(sport)
            .iter()
            .map(|row| (row.event, row.bookmaker, row.market))
            .collect();
        quoted.dedup();
        assert_eq!(priced, quoted);
    }

    fn compare_bouts(&self, snapshot: &Snapshot, sport: SportId) {
        if !self.test.catalogue.sport(sport).bouts {
            return;
        }
        for (n, (bookmakers, _)) in self.bookmaker_filters().into_iter().enumerate() {
            let format = Format::ALL[n % 3];
            let passes = |id| bookmakers.contains(id);
            let now = self.test.now;
            let expected = self.model.grouped_json(sport, passes, format, now, STALE_AFTER);
            let whole = BoutSelection { bookmakers, ..all_bouts(sport) };
            assert_eq!(shown::bouts(snapshot, &whole, format).0, expected);
            let page = |after: Option<Cursor>| {
                let one = BoutSelection { limit: 1, after, ..whole.clone() };
                let (json, next) = shown::bouts(snapshot, &one, format);
                (json["bouts"].as_array().unwrap().clone(), next)
            };
            assert_eq!(Value::Array(walk(page)), expected["bouts"]);
        }
    }
}

fn compare_odds_pages(
    (whole, format): &(OddsSelection, Format),
    snapshot: &Snapshot,
    expected: &[&Value],
    limit: usize,
) {
    let rows = shown::records(snapshot, whole, *format);
    assert!(rows.next.is_none());
    assert_eq!(rows.items.iter().collect::<Vec<&Value>>(), expected, "{whole:?}");
    let paged = walk(|after| {
        let of = OddsSelection { limit, after, ..whole.clone() };
        let page = shown::records(snapshot, &of, *format);
        assert!(page.items.len() <= limit);
        (page.items, page.next)
    });
    assert_eq!(paged, rows.items, "{whole:?}");
}

fn offered(prices: &Prices, pair: (usize, usize), market: Market) -> Vec<OfferedOutcome> {
    let quote = |at: usize| Quote::parse(PRICES[at].text, PRICES[at].format).unwrap();
    let line = |at: usize| Line::parse(LINES[at]).unwrap();
    match prices {
        Prices::None => Vec::new(),
        Prices::Odd(outcomes) => outcomes
            .iter()
            .map(|(name, price, point)| OfferedOutcome {
                name: (*name).into(),
                quote: quote(*price),
                point: point.map(line),
            })
            .collect(),
        Prices::Usual { spellings, prices, line: at, draw, turned } => {
            // Golf has no pair of sides: the position of the line selects players.
            let (one, other) = if pair.0 == pair.1 { (*at, at + 1) } else { pair };
            let totals = [Market::TotalPoints, Market::TotalRounds].contains(&market);
            let (first, second) = if totals {
                ("Over", "Under")
            } else {
                (PEOPLE[one][spellings.0], PEOPLE[other][spellings.1])
            };
            let point = (totals || market == Market::Spread).then(|| line(*at));
            let mut outcomes = vec![
                OfferedOutcome { name: first.into(), quote: quote(prices.0), point },
                OfferedOutcome { name: second.into(), quote: quote(prices.1), point },
            ];
            if *draw && market == Market::Moneyline {
                let quote = quote(prices.0);
                outcomes.push(OfferedOutcome { name: "Draw".into(), quote, point: None });
            }
            if *turned {
                outcomes.reverse();
            }
            outcomes
        }
    }
}

fn scored(reference: &str, body: &Scored) -> ScoreBody {
    let periods = (1..).take(body.periods).map(|number| Period { number, home: 6, away: 4 });
    let leaders = body.leaders.iter().map(|(who, spelling, rounds)| {
        let rounds = [68, 71, 66, 70].into_iter().take(*rounds).collect();
        (PEOPLE[*who][*spelling].into(), rounds)
    });
    ScoreBody {
        reference: reference.into(),
        status: body.status,
        home: body.home,
        away: body.away,
        periods: periods.collect(),
        winner: body.winner.map(Into::into),
        leaders: leaders.collect(),
        correction: if body.correction { Correction::Yes } else { Correction::No },
    }
}

proptest! {
    #![proptest_config(crate::test_book::cases(256))]

    #[test]
    fn the_book_answers_as_the_model_does(
        steps in proptest::collection::vec(a_step(), 1..150)
    ) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.take(step);
        }
        pair.take(&Step::Compare);
        pair.take(&Step::Replay);
        pair.take(&Step::Restart);
    }
}
