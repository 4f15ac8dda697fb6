//! The cost of a delivery and of a connection, compared with nchan, which also keeps messages for clients that
//! reconnect, and with NATS over its WebSocket, which does not.
//!
//! All send the same number of bytes at the same pace: one change, or ten, in every publication. They alternate within
//! every second, so that a slow machine slows down all of them, and a ratio compares two deliveries that are a
//! fraction of a second apart. Times differ from run to run, so the user instructions and system calls of a delivery
//! are counted as well, which do not.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::subscribers::{Subscribers, Transport, WAIT_MAX, now_ms};
use super::{Followed, INTERVAL_MS, RECORDS, SUBSCRIBERS, bar};
use crate::Effort;
use crate::bar::{Bar, Better, Unit};
use crate::instructions::{Callgrind, Within};
use crate::machine::running_seconds;
use crate::nats::{Nats, SUBSCRIBE};
use crate::nchan::Nchan;
use crate::rounds::median;
use crate::service::{Setup, get};

/// Number of publications in a round.
const PUBLICATIONS: usize = 10;
/// Time without bytes after which a delivery is complete.
const QUIET: Duration = Duration::from_millis(50);
/// Number of subscribers when instructions are counted.
const COUNTED: usize = 512;
/// The function that delivers.
const DELIVER: &str = "api::v1::stream::group::Group::deliver";
/// Number of publications when instructions are counted.
const COUNTED_PUBLICATIONS: usize = 4;

/// Transport, and number of changes in a publication.
type Kind = (Transport, usize);

/// The kinds of deliveries with their names: ours, and NATS if it is shown for comparison.
const KINDS: [(Kind, &str, Option<&str>); 4] = [
    ((Transport::Sse, 1), "stream, 0.3 KB over SSE: CPU of a delivery against nchan's", None),
    ((Transport::Sse, 10), "stream, 3 KB over SSE: the same", None),
    (
        (Transport::WebSocket, 1),
        "stream, 0.3 KB over WebSocket: the same",
        Some("stream, 0.3 KB over WebSocket: CPU of a delivery of NATS against nchan's"),
    ),
    (
        (Transport::WebSocket, 10),
        "stream, 3 KB over WebSocket: the same",
        Some("stream, 3 KB over WebSocket: CPU of a delivery of NATS against nchan's"),
    ),
];

/// Another server for comparison.
pub(super) enum Other {
    Nchan(Nchan),
    Nats(Nats),
}

impl Other {
    fn pid(&self) -> u32 {
        match self {
            Self::Nchan(nchan) => nchan.pid(),
            Self::Nats(nats) => nats.pid(),
        }
    }

    /// `None` if it does not support the transport.
    fn subscribe(&self, transport: Transport, count: usize) -> Result<Option<Subscribers>> {
        match (self, transport) {
            (Self::Nchan(nchan), _) => {
                Subscribers::open(nchan.address, &transport.request("/sub", ""), count).map(Some)
            }
            (Self::Nats(nats), Transport::WebSocket) => {
                let asked = transport.request("/", "");
                let mut subscribers = Subscribers::open(nats.address, &asked, count)?;
                subscribers.say(SUBSCRIBE).map(|()| Some(subscribers))
            }
            (Self::Nats(_), Transport::Sse) => Ok(None),
        }
    }

    fn version(&self) -> Option<&str> {
        match self {
            Self::Nchan(_) => None,
            Self::Nats(nats) => Some(&nats.version),
        }
    }

    fn publish(&mut self, bytes: usize) -> Result<()> {
        match self {
            Self::Nchan(nchan) => nchan.publish(bytes),
            Self::Nats(nats) => nats.publish(bytes),
        }
    }
}

/// Memory of idle subscribers, measured before other measurements increase the servers' memory.
pub(super) fn memory_bars(ours: &Followed<'_>, nchan: &Nchan) -> Result<[Bar; 2]> {
    let mine = memory(ours.service.pid(), || ours.subscribe(Transport::Sse, SUBSCRIBERS))?;
    let asked = Transport::Sse.request("/sub", "");
    let theirs = memory(nchan.worker()?, || Subscribers::open(nchan.address, &asked, SUBSCRIBERS))?;
    let note = format!("{mine:.0} B, nchan {theirs:.0} B");
    let name = "stream: memory of an idle subscriber against nchan's";
    let memory = bar(name, Unit::Times, Better::Less, (1.2, 0.6), mine / theirs, note);
    let name = "stream: connections in 1 GB, from that";
    let held = f64::from(1 << 30) / mine;
    let held = bar(name, Unit::Count, Better::More, (80_000.0, 160_000.0), held, String::new());
    Ok([memory, held])
}

/// Bytes per idle subscriber.
fn memory(pid: u32, subscribe: impl FnOnce() -> Result<Subscribers>) -> Result<f64> {
    let before = shell::resident_bytes(pid)?;
    let mut subscribers = subscribe()?;
    subscribers.read_for(Duration::from_secs(5))?;
    let bytes = shell::resident_bytes(pid)?.saturating_sub(before);
    Ok(crate::float(bytes) / float(SUBSCRIBERS))
}

/// Processor time of deliveries.
pub(super) fn bars(
    ours: &Followed<'_>,
    others: [Other; 2],
    counted: &[Counted],
    effort: Effort,
) -> Result<Vec<Bar>> {
    let mut turns = Turns { ours, others };
    let (mut bars, mut fastest) = (Vec::new(), f64::INFINITY);
    for ((kind, name, beside), counted) in KINDS.into_iter().zip(counted) {
        // The bytes per subscriber are the same in all rounds.
        let alone = turns.play(kind, 0, 1, 1)?;
        let played = turns.play(kind, alone.bytes, SUBSCRIBERS, effort.rounds)?;
        let each = |spent: Vec<f64>, alone: Vec<f64>| {
            let alone = median(alone);
            let each = spent.into_iter().map(|spent| (spent - alone) * 1e6 / float(SUBSCRIBERS));
            each.collect::<Vec<f64>>()
        };
        let mine = each(played.own, alone.own);
        let others = played.others.into_iter().zip(alone.others);
        let others: Vec<Vec<f64>> = others.map(|(spent, alone)| each(spent, alone)).collect();
        let [theirs, nats] = &*others else { anyhow::bail!("there are two others") };
        let ratio = |own: &[f64]| {
            let ratios = own.iter().zip(theirs).map(|(own, other)| own / other.max(1e-3));
            median(ratios.collect())
        };
        let (measured, of_nats) = (ratio(&mine), ratio(nats));
        let [mine, theirs, nats] = [mine, theirs.clone(), nats.clone()].map(median);
        fastest = fastest.min(mine);
        let note = format!("{mine:.2} µs, nchan {theirs:.2} µs; {counted}");
        shell::say(&format!("{name}: {measured:.2} ({note})"));
        bars.push(bar(name, Unit::Times, Better::Less, (1.0, 0.6), measured, note));
        if let Some(name) = beside {
            let version = turns.others.iter().find_map(Other::version).unwrap_or_default();
            let note = format!("{nats:.2} µs, NATS {version}, which keeps nothing");
            let none = (f64::NAN, f64::NAN);
            bars.push(bar(name, Unit::Times, Better::Less, none, of_nats, note));
        }
    }
    let name = "stream: deliveries a second and core, from the cheapest";
    let rate = 1e6 / fastest;
    bars.push(bar(name, Unit::PerSecond, Better::More, (1e5, 2.5e5), rate, String::new()));
    Ok(bars)
}

/// The servers that alternate.
struct Turns<'a> {
    ours: &'a Followed<'a>,
    others: [Other; 2],
}

/// Processor time in seconds, per publication.
struct Played {
    own: Vec<f64>,
    others: Vec<Vec<f64>>,
    /// Bytes of one of our deliveries.
    bytes: usize,
}

impl Turns<'_> {
    /// Lets each server send its message in every second, of `bytes` bytes if that is known.
    fn play(
        &mut self,
        (transport, changes): Kind,
        bytes: usize,
        count: usize,
        rounds: usize,
    ) -> Result<Played> {
        let (pid, bytes_min) = (self.ours.service.pid(), count * bytes / 10 * 9);
        let mut own = self.ours.subscribe(transport, count)?;
        let mut followed = Vec::new();
        for other in &self.others {
            followed.push(other.subscribe(transport, count)?);
        }
        // The initial events are not measured.
        own.read_for(Duration::from_secs(2))?;
        let mut played = Played { own: Vec::new(), others: vec![Vec::new(); 2], bytes: 0 };
        let mut before: Option<(f64, u128)> = None;
        for publication in 0..=rounds * PUBLICATIONS {
            // Our change was pushed before, and is published at the whole second.
            let begun = own.read;
            let wait = u64::try_from(INTERVAL_MS - now_ms() % INTERVAL_MS)?;
            own.read_for(Duration::from_millis(wait))?;
            read_all(&mut own, if before.is_some() { begun + bytes_min } else { 0 })?;
            let (spent, interval) = (running_seconds(pid)?, now_ms() / INTERVAL_MS);
            if let Some((spent_before, interval_before)) = before {
                // If the others took too long, there was also a publication without changes, which is delivered in the
                // same way.
                let published = usize::try_from(interval - interval_before)?;
                played.own.push((spent - spent_before) / float(published));
                played.bytes = played.bytes.max((own.read - begun) / count / published);
            }
            before = Some((spent, interval));
            self.ours.change(changes, publication)?;
            let sides = self.others.iter_mut().zip(&mut followed).zip(&mut played.others);
            for ((other, followed), spent) in sides {
                let Some(subscribers) = followed else { continue };
                let (begun, before) = (subscribers.read, running_seconds(other.pid())?);
                other.publish(bytes.max(1))?;
                read_all(subscribers, begun + bytes_min)?;
                spent.push(running_seconds(other.pid())? - before);
            }
        }
        Ok(played)
    }
}

/// Reads until at least this many bytes have arrived and no more follow.
fn read_all(subscribers: &mut Subscribers, bytes: usize) -> Result<()> {
    let begun = Instant::now();
    loop {
        let before = subscribers.read;
        subscribers.read_for(QUIET)?;
        if subscribers.read == before && before >= bytes && begun.elapsed() >= 2 * QUIET {
            return Ok(());
        }
        ensure!(begun.elapsed() < WAIT_MAX, "not all has reached the subscribers");
    }
}

/// Costs of a delivery that do not depend on the machine.
#[derive(Debug)]
pub(super) struct Counted(Within);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Within { instructions, system_calls } = self.0;
        write!(f, "{instructions:.0} user instructions, {system_calls:.2} system calls")
    }
}

/// Counts the cost of deliveries, in the order of measurement.
pub(super) fn count(setup: Setup) -> Result<Vec<Counted>> {
    let (callgrind, market, key) = Callgrind::with_market(setup, RECORDS)?;
    let ours = Followed::new(&callgrind.service, &market, &key)?;
    callgrind.begin()?;
    let mut counted = Vec::new();
    for ((transport, changes), ..) in KINDS {
        let mut subscribers = ours.subscribe(transport, COUNTED)?;
        // Each stream has begun and waits in its group.
        ours.wait_for_deliveries(&mut subscribers)?;
        let before = ours.delivered()?;
        let (counts, ()) = callgrind.count(|| {
            (0..COUNTED_PUBLICATIONS).try_for_each(|publication| {
                ours.change(changes, 500 + publication)?;
                ours.wait_for_deliveries(&mut subscribers)
            })
        })?;
        let delivered = float(ours.delivered()? - before);
        let Within { instructions, system_calls } = counts.within(DELIVER);
        counted.push(Counted(Within {
            instructions: instructions / delivered,
            system_calls: system_calls / delivered,
        }));
    }
    Ok(counted)
}

impl Followed<'_> {
    /// Waits until about one publication was sent to all subscribers.
    fn wait_for_deliveries(&self, subscribers: &mut Subscribers) -> Result<()> {
        let (before, begun) = (self.delivered()?, Instant::now());
        while self.delivered()? - before < subscribers.count() {
            ensure!(begun.elapsed() < WAIT_MAX, "nothing is sent to the subscribers");
            subscribers.read_for(QUIET)?;
        }
        Ok(())
    }

    /// Number of deliveries so far.
    fn delivered(&self) -> Result<usize> {
        self.metric("linesman_stream_lag_seconds_count{")
    }

    /// The sum of all series that start with this text.
    fn metric(&self, start: &str) -> Result<usize> {
        let page = String::from_utf8(get(self.service.operator, "/metrics", "")?.body)?;
        let lines = page.lines().filter(|line| line.starts_with(start));
        Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum())
    }
}

fn float(number: usize) -> f64 {
    crate::float(u64::try_from(number).unwrap_or(u64::MAX))
}
