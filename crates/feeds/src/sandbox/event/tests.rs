use super::*;
use crate::sandbox::schedule::Schedule;

/// Predicted chances against results.
#[derive(Default)]
struct Tally {
    expected: f64,
    variance: f64,
    came: f64,
}

impl Tally {
    fn add(&mut self, p: f64, came: bool) {
        self.expected += p;
        self.variance += p * (1.0 - p);
        self.came += f64::from(u8::from(came));
    }

    #[track_caller]
    fn check(&self, what: &str, deviations: f64) {
        let off = (self.came - self.expected) / self.variance.sqrt();
        assert!(off.abs() < deviations, "{what}: {} for {}", self.came, self.expected);
    }
}

fn home_won(duel: &Duel) -> bool {
    let last = duel.timeline().steps.last().unwrap();
    last.home > last.away
}

fn total_of(duel: &Duel) -> i32 {
    let last = duel.timeline().steps.last().unwrap();
    match duel.rules {
        Rules::Football(_) => last.home + last.away,
        Rules::Tennis(_) => last.periods.iter().map(|set| set.home + set.away).sum(),
        Rules::Fight(_) => i32::try_from(last.periods.len()).unwrap(),
    }
}

#[test]
fn what_comes_of_chances_is_what_they_said() {
    let schedule = Schedule { seed: 4 };
    let events = schedule.events(1_800_000_000, 1_800_000_000 + 10 * 86_400);
    for sport in [Discipline::Mma, Discipline::Boxing, Discipline::Tennis, Discipline::Football] {
        let (mut at_start, mut favourites, mut midway, mut overs) =
            (Tally::default(), Tally::default(), Tally::default(), Tally::default());
        for event in events.iter().filter(|event| event.discipline == sport) {
            let Contest::Duel(duel) = &event.contest else {
                continue;
            };
            if event.removed.is_some() {
                continue;
            }
            let revision = duel.forms.len() - 1;
            let known = |at, step| Knowledge { at, news: true, step, revision };
            let fair = duel.fair(known(duel.start, None));
            at_start.add(fair.home, home_won(duel));
            if fair.home > 0.6 {
                favourites.add(fair.home, home_won(duel));
            }
            if let Some(half) = fair.total.line(0.0) {
                overs.add(fair.total.above(half), 2 * total_of(duel) > half);
            }
            let timeline = duel.timeline();
            let half_way = duel.start + (timeline.closed - duel.start) / 2;
            let seen = known(half_way, timeline.step_at(half_way));
            midway.add(duel.fair(seen).home, home_won(duel));
        }
        assert!(at_start.variance > 40.0);
        at_start.check("at the start", 4.0);
        favourites.check("favourites", 4.0);
        midway.check("midway", 5.0);
        // A fight that ends in the second half of a round has passed a line that its complete rounds have not.
        if !matches!(sport, Discipline::Mma | Discipline::Boxing) {
            overs.check("overs", 5.0);
        }
    }
}

#[test]
fn opinion_drifts_jumps_on_news_and_meets_the_truth() {
    let schedule = Schedule { seed: 4 };
    let events = schedule.events(1_800_000_000, 1_800_000_000);
    let (mut moved, mut jumped) = (0, 0);
    for event in &events {
        let Contest::Duel(duel) = &event.contest else {
            continue;
        };
        let home =
            |at: i64, news: bool| duel.fair(Knowledge { at, news, step: None, revision: 0 }).home;
        let truth = home(duel.start, true);
        if (home(duel.listed, true) - truth).abs() > 0.005 {
            moved += 1;
        }
        if duel.news.is_some() && (home(duel.start, false) - truth).abs() > 0.01 {
            jumped += 1;
        }
    }
    assert!(moved > 50 && jumped > 20, "{moved} {jumped}");
}
