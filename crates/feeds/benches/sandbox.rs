//! Time that the sandbox takes: a whole world from scratch (budget 200 ms) and a 30 s step (budget 20 ms). A plain
//! program: `cargo bench -p linesman-feeds --bench sandbox`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{Catalogue, Timestamp};
use linesman_feeds::sandbox::Simulation;

/// Odd, so that instants fall on all hours and minutes.
const STRIDE_S: i64 = 7 * 86_400 + 4_321;
/// 2026-11-14T23:38:00Z.
const FIRST_S: i64 = 1_794_699_480;
const RUNS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let catalogue = Arc::new(Catalogue::load(None)?);
    let simulation = Simulation::new(1, catalogue);
    let instants = (0..).map(|i| Timestamp::from_secs(FIRST_S + i * STRIDE_S)).take(RUNS);
    let (mut worlds, mut steps, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for at in instants {
        let next = at.plus(Duration::from_secs(30));
        let world = best_of_three(&mut worlds, || simulation.world_at(at));
        let step = best_of_three(&mut steps, || simulation.between(at, next));
        messages.push((world.len(), step.len()));
    }
    report("world from nothing", &mut worlds);
    report("30 s step", &mut steps);
    let most = messages.iter().fold((0, 0), |most, held| (most.0.max(held.0), most.1.max(held.1)));
    println!("messages: at most {} in a world, {} in a step", most.0, most.1);
    Ok(())
}

/// The scheduler's clock is coarse and the machine is shared: the minimum of three is the cost of the work.
fn best_of_three<T>(times: &mut Vec<Duration>, mut work: impl FnMut() -> Vec<T>) -> Vec<T> {
    let mut least = Duration::MAX;
    let mut done = Vec::new();
    for _ in 0..3 {
        let watch = Watch::start();
        done = work();
        least = least.min(watch.elapsed());
    }
    times.push(least);
    done
}

/// Processor time if the system reports it, so that other programs do not count.
struct Watch {
    begun: Instant,
    used: Option<Duration>,
}

impl Watch {
    fn start() -> Self {
        Self { begun: Instant::now(), used: processor_time() }
    }

    fn elapsed(&self) -> Duration {
        let used = self.used.zip(processor_time()).map(|(before, now)| now.saturating_sub(before));
        used.unwrap_or_else(|| self.begun.elapsed())
    }
}

/// Nanoseconds on the processor, the first number of the scheduler's statistics.
fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let used = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(used))
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() - 1) * share / 100).copied().unwrap_or_default();
    println!("{what}: median {:.1?}, 95 % {:.1?}, most {:.1?}", at(50), at(95), at(100));
}
