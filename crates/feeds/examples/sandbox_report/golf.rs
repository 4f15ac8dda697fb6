//! A golf tournament: one bookmaker's prices for the first fifteen players, from before the first tee time to the
//! end.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use domain::message::{Body, FeedMessage, Fixture};
use domain::{BookmakerId, Catalogue, Market, Status, Timestamp};
use linesman_feeds::sandbox::Simulation;

use crate::page::Page;
use crate::svg::{Frame, Svg, area, number, percent_ticks, real};
use crate::tape::implied;

const SAMPLE_S: i64 = 1800;
const DAY_S: i64 = 86_400;
/// Time before the first tee time at which the chart begins.
const BEFORE_S: i64 = 6 * 3600;
const SHOWN: usize = 15;
const MARKETS: [Market; 4] = [Market::Top20, Market::Top10, Market::Top5, Market::Outright];
const CLASSES: [&str; 4] = ["n4", "n3", "n2", "n1"];

/// Top 20, 10, 5, winner; `None` if the market is not offered.
type Chances = [Option<f64>; 4];
type Sample = (i64, Chances);

/// A tournament followed by its prices.
struct Followed {
    title: Box<str>,
    competition: Box<str>,
    field: usize,
    start: i64,
    over: i64,
    players: BTreeMap<Box<str>, Vec<Sample>>,
    leaders: Vec<(Box<str>, Vec<i32>)>,
}

pub(crate) fn draw(
    simulation: &Simulation,
    catalogue: &Catalogue,
    day: Timestamp,
    page: &mut Page,
) {
    let bookmaker = catalogue.bookmaker_id("pinnacle").expect("a bookmaker of the catalogue");
    let golf = follow(simulation, catalogue, day, bookmaker);
    page.section(
        "golf",
        "A golf tournament's probabilities",
        "Probabilities implied by Pinnacle's prices (margin included) for the fifteen players whose chance to win was \
         highest at any time. Areas are nested: the winner is in the top 5, and so on, so an area for fewer \
         places never rises above one for more. Dashed lines are the first tee times of the rounds: prices jump in the eight hours of play after each and \
         only drift until the next. Below a name: the final position and the rounds.",
    );
    page.caption(&format!("{}, {}, {} players", golf.title, golf.competition, golf.field));
    page.legend(&[("n1", "wins"), ("n2", "top 5"), ("n3", "top 10"), ("n4", "top 20")]);
    page.add(&panels(&golf));
}

fn follow(
    simulation: &Simulation,
    catalogue: &Catalogue,
    day: Timestamp,
    bookmaker: BookmakerId,
) -> Followed {
    let first = simulation.world_at(day);
    let (reference, mut golf) = choose(catalogue, &first, day, bookmaker);
    let mut at = golf.start - BEFORE_S;
    while at <= golf.start + 4 * DAY_S {
        let world = simulation.world_at(Timestamp::from_secs(at));
        if golf.sample(&world, &reference, bookmaker, at) {
            break;
        }
        at += SAMPLE_S;
    }
    golf
}

/// The next large tournament to start.
fn choose(
    catalogue: &Catalogue,
    world: &[FeedMessage],
    day: Timestamp,
    bookmaker: BookmakerId,
) -> (Box<str>, Followed) {
    let mut fields: HashMap<&str, usize> = HashMap::new();
    for message in world {
        if let Body::Odds(odds) = &message.body
            && odds.market == Market::Outright
            && odds.bookmaker == bookmaker
        {
            fields.insert(&odds.reference, odds.outcomes.len());
        }
    }
    let golf = catalogue.sport_id("golf");
    let listed = world.iter().filter_map(|message| match &message.body {
        Body::Event { reference, listing } if Some(listing.sport) == golf => {
            Some((reference, listing))
        }
        Body::Event { .. }
        | Body::Odds(_)
        | Body::Score(_)
        | Body::Remove { .. }
        | Body::Heartbeat { .. } => None,
    });
    let large = listed.filter(|(reference, listing)| {
        let field = fields.get(&***reference).copied().unwrap_or(0);
        field >= 120 && listing.commence_time > day.plus(Duration::from_secs(6 * 3600))
    });
    let (reference, listing) =
        large.min_by_key(|(_, listing)| listing.commence_time).expect("there is always a next one");
    let Fixture::Field { title } = &listing.fixture else {
        return (reference.clone(), Followed::none());
    };
    let start = listing.commence_time.as_secs();
    let golf = Followed {
        title: title.clone(),
        competition: listing.competition.clone(),
        field: fields.get(&**reference).copied().unwrap_or(0),
        start,
        over: start + 4 * DAY_S,
        ..Followed::none()
    };
    (reference.clone(), golf)
}

impl Followed {
    fn none() -> Self {
        Self {
            title: Box::default(),
            competition: Box::default(),
            field: 0,
            start: 0,
            over: 0,
            players: BTreeMap::new(),
            leaders: Vec::new(),
        }
    }

    /// Adds a sample from a world; returns whether the tournament is over.
    fn sample(
        &mut self,
        world: &[FeedMessage],
        reference: &str,
        who: BookmakerId,
        at: i64,
    ) -> bool {
        let mut chances: BTreeMap<Box<str>, Chances> = BTreeMap::new();
        let mut offered = [false; 4];
        for message in world {
            match &message.body {
                Body::Odds(odds) if &*odds.reference == reference && odds.bookmaker == who => {
                    let Some(slot) = MARKETS.iter().position(|m| *m == odds.market) else {
                        continue;
                    };
                    offered[slot] = true;
                    for outcome in &odds.outcomes {
                        let row = chances.entry(outcome.name.clone()).or_default();
                        row[slot] = Some(implied(outcome.quote.price));
                    }
                }
                Body::Score(score) if &*score.reference == reference => {
                    self.leaders = score.leaders.clone();
                    if score.status == Status::Final {
                        self.over = message.ts.map_or(at, Timestamp::as_secs);
                        return true;
                    }
                }
                Body::Event { .. }
                | Body::Odds(_)
                | Body::Score(_)
                | Body::Remove { .. }
                | Body::Heartbeat { .. } => {}
            }
        }
        for name in self.players.keys() {
            // A player who missed the cut has no chance left; a market without any offer is a different case.
            chances.entry(name.clone()).or_insert(offered.map(|offered| offered.then_some(0.0)));
        }
        for (name, row) in chances {
            self.players.entry(name).or_default().push((at, row));
        }
        false
    }

    fn peak(rows: &[Sample]) -> f64 {
        rows.iter().filter_map(|(_, row)| row[3]).fold(0.0, f64::max)
    }

    /// A player's final position and rounds, if he is on the final board.
    fn finish(&self, name: &str) -> Option<String> {
        let place = self.leaders.iter().position(|(leader, _)| &**leader == name)?;
        let rounds: Vec<String> = self.leaders[place].1.iter().map(i32::to_string).collect();
        Some(format!("{}. {}", place + 1, rounds.join("-")))
    }
}

fn panels(golf: &Followed) -> String {
    let mut order: Vec<_> = golf.players.iter().collect();
    order.sort_by(|a, b| Followed::peak(b.1).total_cmp(&Followed::peak(a.1)));
    let (columns, width, height) = (5_usize, 204.0, 176.0);
    let mut svg =
        Svg::new(1120.0, height * 3.0 + 24.0, "Chances of fifteen golfers over four rounds");
    for (i, (name, rows)) in order.into_iter().take(SHOWN).enumerate() {
        let left = 46.0 + number(i % columns) * (width + 11.0);
        let top = 34.0 + number(i / columns) * height;
        let frame = Frame { left, top, right: left + width, bottom: top + 112.0 };
        player(&mut svg, golf, name, rows, frame);
        let finish = golf.finish(name).unwrap_or("outside the first ten".to_owned());
        svg.label("strong", (left, top - 18.0), name);
        svg.label("tick", (left, top - 5.0), &finish);
        if i % columns == 0 {
            let y = frame.upward((0.0, 1.0));
            for (value, text) in percent_ticks(0, 100, 25) {
                svg.label("tick end", (left - 5.0, y.at(value) + 3.5), &text);
            }
        }
    }
    svg.finish()
}

fn player(svg: &mut Svg, golf: &Followed, name: &str, rows: &[Sample], frame: Frame) {
    let from = golf.start - BEFORE_S;
    let x = frame.across((0.0, real(golf.over - from)));
    let y = frame.upward((0.0, 1.0));
    svg.bar("plot", (frame.left, frame.top), (frame.width(), frame.bottom - frame.top), "");
    for (slot, class) in CLASSES.into_iter().enumerate() {
        let what = ["top 20", "top 10", "top 5", "to win"][slot];
        for run in rows.split(|(_, row)| row[slot].is_none()) {
            let place =
                |(at, row): &Sample| (x.at(real(at - from)), y.within(row[slot].unwrap_or(0.0)));
            let points: Vec<_> = run.iter().map(place).collect();
            svg.path(class, &area(&points, frame.bottom), &format!("{name}, {what}"));
        }
    }
    for percent in [25_i64, 50, 75] {
        let at = y.at(real(percent) / 100.0);
        svg.line("grid", (frame.left, at), (frame.right, at));
    }
    for round in 0..4_i64 {
        let at = x.at(real(golf.start + round * DAY_S - from));
        svg.line("mark", (at, frame.top), (at, frame.bottom));
        svg.label("tick", (at + 2.0, frame.bottom + 13.0), &format!("R{}", round + 1));
    }
}
