//! One hour of the sources: fresh and stale ones, and the scheduled faults of each hour.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::message::{Body, FeedMessage};
use domain::{BookmakerId, Catalogue, SportId, Timestamp};
use linesman_feeds::sandbox::Simulation;

use crate::book::STALE_MS;
use crate::page::Page;
use crate::svg::{Frame, Svg, clock, number, real};

const HOUR_S: i64 = 3600;
const TICK_S: i64 = 10;
const LEFT: f64 = 136.0;
const STRIP: f64 = 4.0;
const ROW: f64 = 26.0;

/// Time of the last read of each source, as far as a client can tell.
type Sources = BTreeMap<(BookmakerId, SportId), Timestamp>;
/// Stale periods, in seconds of the hour.
type Spells<K> = BTreeMap<K, Vec<(i64, i64)>>;

#[derive(Default)]
struct Hour {
    sources: Sources,
    references: BTreeMap<Box<str>, SportId>,
    stale: Spells<(BookmakerId, SportId)>,
    inactive: Spells<SportId>,
    /// Second of the hour, and the kind of disruption.
    disruptions: Vec<(i64, &'static str)>,
}

pub(crate) fn draw(
    simulation: &Simulation,
    catalogue: &Catalogue,
    day: Timestamp,
    page: &mut Page,
) {
    page.section(
        "freshness",
        "An hour of freshness and scheduled faults",
        "Each bookmaker has five strips, one for each sport in the order of the lower rows; a source is stale when it \
         has had no good read for 90 seconds. The scheduled faults are the same every hour: one bookmaker is \
         always stale (so the service's status is always degraded), one is silent for five minutes, and boxing is \
         not read at the end of the hour, so that the sport is not active for the last two minutes.",
    );
    page.legend(&[("fresh", "fresh"), ("stale", "stale"), ("inactive", "sport not active")]);
    let from = day.plus(Duration::from_secs(13 * 3600));
    let hour = Hour::watch(simulation, from);
    page.add(&chart(&hour, catalogue, from));
}

impl Hour {
    fn watch(simulation: &Simulation, from: Timestamp) -> Self {
        let mut hour = Self::default();
        let mut now = from;
        for message in simulation.world_at(from) {
            hour.take(&message, None);
        }
        for second in (0..HOUR_S).step_by(10) {
            hour.judge(second, now);
            let next = now.plus(Duration::from_secs(TICK_S.unsigned_abs()));
            for message in simulation.between(now, next) {
                hour.take(&message, Some(second + TICK_S));
            }
            now = next;
        }
        hour
    }

    /// `second` is the second of the hour, once the observation has begun.
    fn take(&mut self, message: &FeedMessage, second: Option<i64>) {
        let ts = message.ts.unwrap_or_default();
        let mut seen = |bookmaker, sport| {
            let newest = self.sources.entry((bookmaker, sport)).or_insert(ts);
            *newest = ts.max(*newest);
        };
        match &message.body {
            Body::Event { reference, listing } => {
                let known = self.references.insert(reference.clone(), listing.sport).is_some();
                let what = if reference.contains("postponed") { "postponed" } else { "replaced" };
                self.disruptions.extend(second.filter(|_| known).map(|at| (at, what)));
            }
            Body::Odds(odds) => {
                if let Some(sport) = self.references.get(&odds.reference) {
                    seen(odds.bookmaker, *sport);
                }
            }
            Body::Heartbeat { bookmaker, sport } => {
                sport.iter().for_each(|sport| seen(*bookmaker, *sport));
            }
            Body::Remove { .. } => {
                self.disruptions.extend(second.map(|at| (at, "cancelled")));
            }
            Body::Score(_) => {}
        }
    }

    fn judge(&mut self, second: i64, now: Timestamp) {
        let mut active = BTreeSet::new();
        for (source, ts) in &self.sources {
            if now.as_millis() - ts.as_millis() > STALE_MS {
                extend(self.stale.entry(*source).or_default(), second);
            } else {
                active.insert(source.1);
            }
        }
        let sports: BTreeSet<SportId> = self.sources.keys().map(|(_, sport)| *sport).collect();
        for sport in sports.difference(&active) {
            extend(self.inactive.entry(*sport).or_default(), second);
        }
    }
}

fn extend(spells: &mut Vec<(i64, i64)>, second: i64) {
    match spells.last_mut().filter(|last| last.1 == second) {
        Some(last) => last.1 += TICK_S,
        None => spells.push((second, second + TICK_S)),
    }
}

fn chart(hour: &Hour, catalogue: &Catalogue, from: Timestamp) -> String {
    let bookmakers: BTreeSet<BookmakerId> = hour.sources.keys().map(|(id, _)| *id).collect();
    let top = 34.0;
    let height = top + ROW * number(bookmakers.len()) + 5.0 * 20.0 + 56.0;
    let mut svg = Svg::new(1120.0, height, "Fresh and stale sources over one hour");
    let frame = Frame { left: LEFT, top, right: 1062.0, bottom: height - 40.0 };
    let x = frame.across((0.0, real(HOUR_S)));
    let mut y = top;
    for id in bookmakers {
        let key = &catalogue.bookmaker(id).key;
        svg.label("end", (LEFT - 10.0, y + 15.0), key);
        for (at, (sport, about)) in catalogue.sports().enumerate() {
            let strip = y + 1.0 + number(at) * (STRIP + 0.5);
            if !hour.sources.contains_key(&(id, sport)) {
                continue;
            }
            let title = format!("{key}, {}", about.title);
            svg.bar("fresh", (LEFT, strip), (frame.width(), STRIP), &title);
            for (start, end) in hour.stale.get(&(id, sport)).into_iter().flatten() {
                let size = (x.at(real(*end)) - x.at(real(*start)), STRIP);
                let title = format!("{title}: stale from {} to {}", minute(*start), minute(*end));
                svg.bar("stale", (x.at(real(*start)), strip), size, &title);
            }
        }
        y += ROW;
    }
    y += 10.0;
    for (sport, about) in catalogue.sports() {
        svg.label(
            "end strong",
            (LEFT - 10.0, y + 12.0),
            &about.title.replace("Mixed Martial Arts", "MMA"),
        );
        svg.bar("fresh", (LEFT, y + 2.0), (frame.width(), 14.0), "active");
        for (start, end) in hour.inactive.get(&sport).into_iter().flatten() {
            let size = (x.at(real(*end)) - x.at(real(*start)), 14.0);
            let title = format!("not active from {} to {}", minute(*start), minute(*end));
            svg.bar("inactive", (x.at(real(*start)), y + 2.0), size, &title);
        }
        y += 20.0;
    }
    for (second, what) in &hour.disruptions {
        let place = x.at(real(*second));
        svg.line("mark", (place, top - 4.0), (place, frame.bottom));
        svg.label(
            "tick mid",
            (place, top - 10.0),
            &format!("a bout is {what}").replace("bout is replaced", "fighter is replaced"),
        );
    }
    for five in 0..=12_i64 {
        let place = x.at(real(five * 300));
        svg.line("rug", (place, frame.bottom), (place, frame.bottom + 4.0));
        let at = clock(from.as_secs() + five * 300);
        svg.label("tick mid", (place, frame.bottom + 17.0), &at);
    }
    svg.label("name mid", (f64::midpoint(LEFT, 1062.0), height - 6.0), "time, UTC");
    svg.finish()
}

fn minute(second: i64) -> String {
    format!(":{:02}:{:02}", second / 60, second % 60)
}
