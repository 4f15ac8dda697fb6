//! The cost of one large world: `cargo bench -p linesman-serve --bench scale`. 2,000 events and 200,000 odds records
//! with invented names; memory as reported by the kernel, times as CPU of one core.
#![expect(clippy::print_stdout, reason = "a bench is read from the terminal")]
#![expect(clippy::indexing_slicing, reason = "a bench may stop where its invented data is wrong")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use domain::market::PointRule;
use domain::message::{Body, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome};
use domain::{BookmakerId, Catalogue, Format, Line, Market, Quote, Shape, SportId, Timestamp};
use market::book::IMAGE_VERSION;
use market::{Book, Ids, Limits, Snapshot};

const EVENTS: usize = 2_000;
const RECORDS: usize = 200_000;
/// Number of tournaments listed at one time.
const TOURNAMENTS: usize = 10;
/// Players per tournament.
const FIELD: usize = 144;
/// Number of bookmakers, each of which prices every event.
const BOOKMAKERS: usize = 33;
/// Matchups per bookmaker and tournament.
const PAIRINGS: usize = 10;
/// Records that change between two publications.
const MOVES: usize = 10_000;
/// Publications measured; the mean is printed.
const ROUNDS: u32 = 20;
/// 2026-11-14T12:00:00Z.
const START: Timestamp = Timestamp::from_secs(1_794_657_600);
const REFRESH: Duration = Duration::from_secs(30);
const STALE_AFTER: Duration = Duration::from_secs(90);

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let catalogue = Arc::new(Catalogue::load(None)?);
    let world = World::invent(&catalogue)?;
    let before = resident_kib()?;
    let mut book = Book::new(Arc::clone(&catalogue), Ids::Minted { salt: 7 });
    book.set_limits(Limits::NONE);
    for message in world.listings.iter().chain(&world.odds) {
        book.apply("bench", message, START)?;
    }
    let snapshot = Snapshot::cut(&book, 0, START, STALE_AFTER, api::wires(domain::World::Live));
    let held = resident_kib()? - before;
    println!("{} events, {} records", snapshot.events(), snapshot.records());
    println!("book and one snapshot          {:8} MiB", held / 1024);
    println!("for each record                {:8} bytes", held * 1024 / u64::try_from(RECORDS)?);
    let (book, last) = publish(book, &world, snapshot, before)?;
    hear_known(book, &world)?;
    drop(last);
    restart(&world, &catalogue)
}

/// Prices change, every source sends a heartbeat, the next snapshot is cut: the work of every 30 s.
fn publish(
    mut book: Book,
    world: &World,
    mut snapshot: Snapshot,
    before: u64,
) -> Result<(Book, Snapshot), Failure> {
    let (mut applying, mut cutting) = (Duration::ZERO, Duration::ZERO);
    let mut two_held = 0;
    let mut now = START;
    for round in 0..ROUNDS {
        now = now.plus(REFRESH);
        let moved = world.moved(round);
        let started = cpu()?;
        for message in &moved {
            book.apply("bench", message, now)?;
        }
        for bookmaker in &world.bookmakers {
            book.apply("bench", &beat(*bookmaker), now)?;
        }
        applying += cpu()? - started;
        let started = cpu()?;
        let next = Snapshot::cut(&book, 0, now, STALE_AFTER, api::wires(domain::World::Live));
        cutting += cpu()? - started;
        drop(moved);
        two_held = two_held.max(resident_kib()? - before);
        snapshot = next;
    }
    println!("with two snapshots alive       {:8} MiB", two_held / 1024);
    println!("apply {MOVES} moved records     {:8} ms", ms(applying / ROUNDS));
    println!("cut, every record stamped      {:8} ms", ms(cutting / ROUNDS));
    let whole = (applying + cutting) / ROUNDS;
    println!("apply and publish              {:8} ms (target 250)", ms(whole));
    Ok((book, snapshot))
}

/// Messages per second for known refs: half change prices, half confirm them.
fn hear_known(mut book: Book, world: &World) -> Result<(), Failure> {
    let mut now = START.plus(REFRESH * (ROUNDS + 1));
    let (mut heard, mut taken) = (0, Duration::ZERO);
    for round in 0..4 {
        let moved = world.moved(round);
        for messages in [&moved, &moved] {
            now = now.plus(REFRESH);
            let started = cpu()?;
            for message in messages {
                book.apply("bench", message, now)?;
            }
            taken += cpu()? - started;
            heard += u32::try_from(messages.len())?;
        }
    }
    println!("decide and absorb              {:8} messages/s", rate(heard, taken));
    Ok(())
}

fn restart(world: &World, catalogue: &Arc<Catalogue>) -> Result<(), Failure> {
    let mut book = Book::new(Arc::clone(catalogue), Ids::Minted { salt: 7 });
    book.set_limits(Limits::NONE);
    for message in world.listings.iter().chain(&world.odds) {
        book.apply("bench", message, START)?;
    }
    let started = cpu()?;
    let image = book.to_image();
    println!("to_image                       {:8} ms", ms(cpu()? - started));
    println!("image                          {:8} KiB", image.len() / 1024);
    drop(book);
    let started = cpu()?;
    let book = Book::from_image(IMAGE_VERSION, &image, Arc::clone(catalogue))?;
    let read = cpu()? - started;
    let snapshot = Snapshot::cut(&book, 0, START, STALE_AFTER, api::wires(domain::World::Live));
    let whole = cpu()? - started;
    println!("from_image                     {:8} ms", ms(read));
    println!("from_image and first cut       {:8} ms (target 1000)", ms(whole));
    println!("records after the restart      {:8}", snapshot.records());
    Ok(())
}

/// All messages of this world.
struct World {
    bookmakers: Vec<BookmakerId>,
    listings: Vec<FeedMessage>,
    odds: Vec<FeedMessage>,
}

impl World {
    fn invent(catalogue: &Catalogue) -> Result<Self, Failure> {
        let bookmakers: Vec<BookmakerId> =
            catalogue.bookmakers().map(|(id, _)| id).take(BOOKMAKERS).collect();
        let mut world = Self { bookmakers, listings: Vec::new(), odds: Vec::new() };
        let (golf, fights): (Vec<_>, Vec<_>) =
            catalogue.sports().partition(|(_, sport)| sport.shape == Shape::Field);
        for at in 0..TOURNAMENTS {
            world.tournament(golf.first().ok_or("golf is in the catalogue")?.0, at)?;
        }
        for at in TOURNAMENTS..EVENTS {
            let (id, sport) =
                fights.get(at % fights.len()).ok_or("there are head-to-head sports")?;
            world.fight(*id, &sport.markets, at)?;
        }
        // The first tournament fills up the difference to the round number.
        let missing = RECORDS.checked_sub(world.odds.len()).ok_or("fewer records were wanted")?;
        for more in 0..missing {
            let bookmaker = world.bookmakers[more % BOOKMAKERS];
            let pairing = PAIRINGS + more / BOOKMAKERS;
            world.odds.push(matchup(0, bookmaker, pairing)?);
        }
        Ok(world)
    }

    fn list(&mut self, sport: SportId, at: usize, fixture: Fixture) -> Result<(), Failure> {
        let hours = u64::try_from(1 + at % 300)?;
        let listing = Listing {
            sport,
            competition: format!("Northern Circuit, week {}", at % 52).into(),
            commence_time: START.plus(Duration::from_secs(3600 * hours)),
            fixture,
        };
        self.listings.push(say(Body::Event { reference: reference(at), listing }));
        Ok(())
    }

    fn fight(&mut self, sport: SportId, markets: &[Market], at: usize) -> Result<(), Failure> {
        let (home, away) = (person(2 * at), person(2 * at + 1));
        self.list(sport, at, Fixture::HeadToHead { home: home.clone(), away: away.clone() })?;
        for bookmaker in self.bookmakers.iter().take(BOOKMAKERS - usize::from(at.is_multiple_of(3)))
        {
            for market in markets {
                let (one, other, lines) = match market.point_rule() {
                    PointRule::None => (&*home, &*away, None),
                    PointRule::Signed => (&*home, &*away, Some((-14, 14))),
                    PointRule::Total => ("Over", "Under", Some((190, 190))),
                };
                let outcomes = vec![
                    priced(one, at, lines.map(|lines| lines.0))?,
                    priced(other, at + 7, lines.map(|lines| lines.1))?,
                ];
                self.odds.push(quoted(at, *bookmaker, *market, None, outcomes));
            }
        }
        Ok(())
    }

    fn tournament(&mut self, sport: SportId, at: usize) -> Result<(), Failure> {
        self.list(sport, at, Fixture::Field { title: format!("{} Open", person(at)).into() })?;
        for bookmaker in self.bookmakers.clone() {
            for market in [Market::Outright, Market::Top5, Market::Top10, Market::Top20] {
                let outcomes: Result<Vec<_>, _> =
                    (0..FIELD).map(|n| priced(&person(n), at + 3 * n, None)).collect();
                self.odds.push(quoted(at, bookmaker, market, None, outcomes?));
            }
            for pairing in 0..PAIRINGS {
                self.odds.push(matchup(at, bookmaker, pairing)?);
            }
        }
        Ok(())
    }

    /// As many messages as change between two publications, each with another price than in the previous round.
    fn moved(&self, round: u32) -> Vec<FeedMessage> {
        let step = self.odds.len() / MOVES;
        let quote = Quote::parse(&format!("{}", 101 + round), Format::American).ok();
        let mut moved: Vec<FeedMessage> =
            self.odds.iter().step_by(step).take(MOVES).cloned().collect();
        for message in &mut moved {
            if let (Body::Odds(odds), Some(quote)) = (&mut message.body, quote) {
                odds.outcomes.iter_mut().take(2).for_each(|outcome| outcome.quote = quote);
            }
        }
        moved
    }
}

fn matchup(at: usize, bookmaker: BookmakerId, pairing: usize) -> Result<FeedMessage, Failure> {
    let (one, other) = (2 * pairing % FIELD, (2 * pairing + 1) % FIELD);
    let outcomes = vec![priced(&person(one), at, None)?, priced(&person(other), at, None)?];
    let group = format!("round 1, {pairing}");
    Ok(quoted(at, bookmaker, Market::Matchup, Some(group.into()), outcomes))
}

fn quoted(
    at: usize,
    bookmaker: BookmakerId,
    market: Market,
    group: Option<Box<str>>,
    outcomes: Vec<OfferedOutcome>,
) -> FeedMessage {
    say(Body::Odds(OddsBody { reference: reference(at), bookmaker, market, group, outcomes }))
}

fn priced(name: &str, seed: usize, quarters: Option<i32>) -> Result<OfferedOutcome, Failure> {
    let sign = if seed.is_multiple_of(2) { "-" } else { "" };
    let quote = Quote::parse(&format!("{sign}{}", 105 + seed % 400), Format::American)?;
    Ok(OfferedOutcome { name: name.into(), quote, point: quarters.map(Line::from_quarters) })
}

/// One of 4,096 names.
fn person(n: usize) -> Box<str> {
    const FIRST: [&str; 16] = [
        "Tomas", "Oren", "Milan", "Pavel", "Emilia", "Jan", "Kimiko", "Søren", "Ivo", "Lars",
        "Anouk", "Bo", "Teresa", "Yusuf", "Maren", "Cato",
    ];
    const MIDDLE: [&str; 16] = [
        "A.", "Bran", "Cees", "D.", "Elm", "Finn", "Gray", "Hale", "Ines", "J.", "Kay", "Lo",
        "Moss", "Nye", "Ode", "P.",
    ];
    const LAST: [&str; 16] = [
        "Veldt",
        "Castellane",
        "Dray",
        "Orsk",
        "Rothenburg",
        "Sever",
        "Satō",
        "Kjær",
        "Brandt",
        "Meyn",
        "Ferreira",
        "Lund",
        "Okonkwo",
        "Petrakis",
        "Vance",
        "Zielinski",
    ];
    format!("{} {} {}", FIRST[n % 16], MIDDLE[n / 256 % 16], LAST[n / 16 % 16]).into()
}

fn reference(at: usize) -> Box<str> {
    format!("bench-{at:05}").into()
}

fn say(body: Body) -> FeedMessage {
    FeedMessage { ts: None, fresh_for_s: None, body }
}

fn beat(bookmaker: BookmakerId) -> FeedMessage {
    say(Body::Heartbeat { bookmaker, sport: None })
}

fn ms(time: Duration) -> u128 {
    time.as_millis()
}

fn rate(count: u32, taken: Duration) -> u64 {
    u64::from(count) * 1000 / u64::try_from(taken.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn resident_kib() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|rest| rest.split_whitespace().next());
    Ok(figure.ok_or("the kernel tells VmRSS")?.parse()?)
}

/// CPU time of the only thread, in the kernel's nanoseconds.
fn cpu() -> Result<Duration, Failure> {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat")?;
    let figure = schedstat.split_whitespace().next().ok_or("the kernel tells the run time")?;
    Ok(Duration::from_nanos(figure.parse()?))
}
