//! The cost of the worst known messages: `cargo bench -p linesman-market --bench worst`. Each shape builds a world at
//! its limits and then sends messages to it. Times are CPU time of one core. Parsing a message from JSON is not
//! included: that happens before the writer, and is linear.
#![expect(clippy::print_stdout, reason = "a bench is read from the terminal")]

mod shapes;
mod world;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use linesman_market::effort;
use rustix::time::{ClockId, clock_gettime};

use shapes::{SHAPES, Shape};
use world::World;

/// Maximum mean cost of a message of any shape.
const GOAL: Duration = Duration::from_micros(200);
/// Maximum cost of any message, whatever the content of the book.
const MUST: Duration = Duration::from_millis(2);
/// Maximum number of measured messages of a shape, and maximum time for them.
const MESSAGES_MAX: usize = 300;
const SHAPE_MAX: Duration = Duration::from_secs(2);

type Failure = Box<dyn Error>;

/// The cost of a shape's messages.
#[derive(Default)]
struct Cost {
    messages: u32,
    refused: u32,
    spent: Duration,
    worst: Duration,
    effort: usize,
}

fn main() -> Result<ExitCode, Failure> {
    println!("goal {} µs a message, must {} µs", GOAL.as_micros(), MUST.as_micros());
    println!(
        "{:9} {:52} {:>8} {:>8} {:>7}  {:>8}",
        "type", "shape", "mean µs", "worst µs", "effort", "refused"
    );
    let only = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    let mut within = true;
    for shape in &SHAPES {
        if only.as_ref().is_some_and(|only| !shape.name.contains(only.as_str())) {
            continue;
        }
        let cost = measure(shape)?;
        let mean = cost.spent / cost.messages.max(1);
        let verdict = match () {
            () if cost.worst > MUST => "ABOVE THE MUST",
            () if mean > GOAL => "above the goal",
            () => "",
        };
        within &= cost.worst <= MUST;
        println!(
            "{:9} {:52} {:8.1} {:8.1} {:7}  {:>8}  {verdict}",
            shape.of,
            shape.name,
            micros(mean),
            micros(cost.worst),
            cost.effort,
            format!("{}/{}", cost.refused, cost.messages),
        );
    }
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(shape: &Shape) -> Result<Cost, Failure> {
    let mut world = World::new()?;
    (shape.build)(&mut world);
    let mut cost = Cost::default();
    let begun = cpu();
    for n in 0..MESSAGES_MAX {
        let Some((feed, message)) = (shape.say)(&mut world, n) else { break };
        let before = cpu();
        let said = world.apply(&feed, &message);
        let spent = cpu().saturating_sub(before);
        cost.messages += 1;
        cost.refused += u32::from(said.is_err());
        cost.spent += spent;
        cost.worst = cost.worst.max(spent);
        cost.effort = cost.effort.max(effort::spent());
        if cpu().saturating_sub(begun) > SHAPE_MAX {
            break;
        }
    }
    Ok(cost)
}

fn micros(spent: Duration) -> f64 {
    spent.as_secs_f64() * 1e6
}

/// CPU time of this thread so far.
fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    Duration::from_secs(part(spent.tv_sec)) + Duration::from_nanos(part(spent.tv_nsec))
}
