//! The poll transport: units are read one after the other when they are due (A12, A13).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use feeds::adapter::{Drift, Read};
use reqwest::Url;
use tokio::time::{Instant, sleep, timeout};

use crate::fetch::{Client, Fetched, Request, shown};
use crate::report::{State, TAPE_ENDED};
use crate::runner::{Context, Made, Runner, random};
use crate::schedule::{Breaker, MISSING_WAIT, REFUSED_WAIT, Rate, Unit};
use crate::settings::Secret;
use crate::sink::NotTaken;
use crate::tape::{Played, Player};

/// Maximum number of pages of one read.
const PAGES_MAX: usize = 100;
/// Interval of the checks for late reads and started events.
const TICK: Duration = Duration::from_secs(1);

/// A unit of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitSpec {
    pub(crate) name: Box<str>,
    /// A fixed interval; `None` if the schedule decides.
    pub(crate) every: Option<Duration>,
}

/// The content of an answer.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// `None` if the answer holds nothing to send, such as a list of units.
    pub(crate) read: Option<Read>,
    /// The parameter for requesting the next page.
    pub(crate) next: Option<String>,
}

/// The meaning of an answer that is not a good one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Try again soon.
    Failed(String),
    /// The credentials are not accepted.
    Refused(String),
    /// There are no credits left.
    Spent(String),
    /// The unit does not exist.
    Missing,
}

/// An upstream that is polled.
pub(crate) trait Upstream: Send + std::fmt::Debug {
    /// The units known now.
    fn units(&self) -> Vec<UnitSpec>;

    /// Decides whether a unit is read now: some cost credits, some have no data at the moment.
    fn wants(&mut self, _runner: &mut Runner, _unit: &str) -> Wants {
        Wants::Yes
    }

    /// # Errors
    /// A secret cannot be read.
    fn request(&self, unit: &str, page: Option<&str>) -> Result<Request, String>;

    fn receive(&mut self, unit: &str, fetched: &Fetched, at: Timestamp) -> Result<Received, Drift>;

    /// Uses the headers of any answer.
    fn note_headers(&mut self, _runner: &Runner, _fetched: &Fetched) {}

    /// The interval, stretched as the budget requires.
    fn stretched(&mut self, _unit: &str, every: Duration, _now: Timestamp) -> Duration {
        every
    }

    /// Begins a read; forgets the rest of a failed one.
    fn begin(&mut self) {}

    fn refusal(&self, fetched: &Fetched) -> Refusal {
        match fetched.status {
            401 | 403 => Refusal::Refused(format!("upstream answered {}", fetched.status)),
            404 => Refusal::Missing,
            status => Refusal::Failed(format!("upstream answered {status}")),
        }
    }
}

/// Whether a unit is read now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    Yes,
    /// Not now; check again after its interval.
    NotNow,
    /// Too few credits.
    Spent(String),
}

/// The validators for conditional requests.
#[derive(Clone, Debug, Default)]
struct Validators {
    etag: Option<String>,
    last_modified: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Poll<U> {
    runner: Runner,
    upstream: U,
    client: Client,
    units: Vec<Unit>,
    fixed: HashMap<Box<str>, Duration>,
    validators: HashMap<Box<str>, Validators>,
    breakers: HashMap<String, Breaker>,
    rate: Rate,
    /// Units that had a good read since the start.
    good: HashSet<Box<str>>,
}

/// The reason why a read failed, and the wait that upstream asks for.
enum Failure {
    Upstream(Refusal, Option<Duration>),
    Drift(Vec<u8>, Drift),
    NotTaken(NotTaken),
}

impl From<NotTaken> for Failure {
    fn from(why: NotTaken) -> Self {
        Self::NotTaken(why)
    }
}

impl<U: Upstream> Poll<U> {
    pub(crate) fn new(
        context: Context,
        upstream: U,
        identity: Option<&[u8]>,
    ) -> Result<Self, String> {
        let access = &context.settings.access;
        Ok(Self {
            client: Client::new(access, identity)?,
            rate: Rate::new(access.rate_per_minute),
            runner: Runner::new(context),
            upstream,
            units: Vec::new(),
            fixed: HashMap::new(),
            validators: HashMap::new(),
            breakers: HashMap::new(),
            good: HashSet::new(),
        })
    }

    /// Reads until it is dropped.
    pub(crate) async fn run(mut self) {
        if let Some(tape) = self.runner.context.settings.tape.clone() {
            if let Err(why) = self.play(&tape).await {
                self.runner.reporter().note_failed(State::Failed, why, self.runner.now());
            }
            return std::future::pending().await;
        }
        loop {
            self.renew_units();
            let now = self.runner.now();
            let next = self.units.iter().min_by_key(|unit| unit.due).map(|unit| unit.name.clone());
            let due =
                self.units.iter().map(|unit| unit.due).min().map(|due| due.max(self.rate.next()));
            self.runner.reporter().note_next(due);
            let wait = due.map_or(TICK, |due| due.since(now));
            if let (true, Some(unit)) = (wait.is_zero(), next) {
                self.read(&unit).await;
                continue;
            }
            let read_now = Arc::clone(&self.runner.context.read_now);
            tokio::select! {
                () = sleep(wait.min(TICK)) => {}
                () = read_now.notified() => self.units.iter_mut().for_each(|unit| unit.due = now),
            }
            if let Err(why) = self.runner.tick().await {
                self.runner.note_not_taken(why);
            }
        }
    }

    fn renew_units(&mut self) {
        let specs = self.upstream.units();
        self.units.retain(|unit| specs.iter().any(|spec| spec.name == unit.name));
        for spec in specs {
            if !self.units.iter().any(|unit| unit.name == spec.name) {
                self.units.push(Unit::new(spec.name.clone(), self.runner.now()));
            }
            match spec.every {
                Some(every) => drop(self.fixed.insert(spec.name, every)),
                None => drop(self.fixed.remove(&spec.name)),
            }
        }
    }

    fn unit(&mut self, name: &str) -> Option<&mut Unit> {
        self.units.iter_mut().find(|unit| &*unit.name == name)
    }

    /// The current interval of a unit.
    async fn every(&mut self, unit: &str) -> Result<Duration, NotTaken> {
        let now = self.runner.now();
        if let Some(every) = self.fixed.get(unit) {
            return Ok(*every);
        }
        let schedule = self.runner.context.settings.schedule.clone();
        let every = schedule.every(self.runner.ledger().await?.starts(unit), now);
        Ok(self.upstream.stretched(unit, every, now))
    }

    /// Reads one unit and schedules its next read.
    async fn read(&mut self, unit: &str) {
        let begun = self.runner.now();
        let every = match self.every(unit).await {
            Ok(every) => every,
            Err(why) => return self.fail(unit, Failure::NotTaken(why)),
        };
        match self.upstream.wants(&mut self.runner, unit) {
            Wants::Yes => {}
            Wants::NotNow => {
                self.good.insert(unit.into());
                if let Some(unit) = self.unit(unit) {
                    unit.note_good(begun, every, random());
                }
                return;
            }
            Wants::Spent(why) => {
                self.runner.reporter().set(State::Spent, why, begun);
                if let Some(unit) = self.unit(unit) {
                    unit.note_good(begun, Duration::from_secs(3600), random());
                }
                return;
            }
        }
        let clock = Instant::now();
        match self.fetch_and_take(unit, every).await {
            Ok(unchanged) => {
                self.good.insert(unit.into());
                // The read may have changed the interval.
                let every = self.every(unit).await.unwrap_or(every);
                let now = self.runner.now();
                self.runner.reporter().note_good(now, every, unchanged, clock.elapsed());
                if let Some(unit) = self.unit(unit) {
                    unit.note_good(begun, every, random());
                }
            }
            Err(failure) => self.fail(unit, failure),
        }
    }

    fn fail(&mut self, name: &str, failure: Failure) {
        let (now, max) = (self.runner.now(), self.runner.context.settings.access.backoff_max);
        let (host, reporter) = (self.host(name), self.runner.reporter().clone());
        let wait = |unit: &mut Unit, wait: Duration| unit.due = now.plus(wait);
        match failure {
            Failure::NotTaken(why) => {
                self.runner.note_not_taken(why);
                if let Some(unit) = self.unit(name) {
                    unit.note_failed(now, max, None, random());
                }
            }
            Failure::Drift(body, drift) => {
                reporter.quarantine(name, &body, &drift, now);
                if let Some(unit) = self.unit(name) {
                    unit.note_failed(now, max, None, random());
                }
            }
            Failure::Upstream(Refusal::Refused(why), _) => {
                reporter.note_failed(State::Refused, why, now);
                self.units.iter_mut().for_each(|unit| wait(unit, REFUSED_WAIT));
            }
            Failure::Upstream(Refusal::Spent(why), _) => {
                reporter.note_failed(State::Spent, why, now);
                self.units.iter_mut().for_each(|unit| wait(unit, Duration::from_secs(3600)));
            }
            Failure::Upstream(Refusal::Missing, _) => {
                reporter.note_failed(
                    State::Retrying,
                    format!("{name}: upstream does not have it (404)"),
                    now,
                );
                if let Some(unit) = self.unit(name) {
                    wait(unit, MISSING_WAIT);
                }
            }
            Failure::Upstream(Refusal::Failed(why), retry_after) => {
                reporter.note_failed(State::Retrying, format!("{name}: {why}"), now);
                let breaker = self.breakers.entry(host.clone()).or_default();
                breaker.note(false);
                let is_open = breaker.is_open();
                let due = self.unit(name).map(|unit| {
                    unit.note_failed(now, max, retry_after, random());
                    unit.due
                });
                // One probe at a time: the other units of the host wait for it.
                if let (true, Some(due)) = (is_open || retry_after.is_some(), due) {
                    let hosts: Vec<String> =
                        self.units.iter().map(|unit| self.host(&unit.name)).collect();
                    let units = self.units.iter_mut().zip(hosts);
                    for (unit, _) in units.filter(|(_, own)| *own == host) {
                        unit.due = unit.due.max(due);
                    }
                }
            }
        }
    }

    fn host(&self, unit: &str) -> String {
        let request = self.upstream.request(unit, None);
        let url = request.ok().and_then(|request| Url::parse(&request.url).ok());
        url.and_then(|url| url.host_str().map(|host| format!("{host}:{}", url.port().unwrap_or(0))))
            .unwrap_or_default()
    }

    /// Requests all pages of a unit and sends their messages. `true`: nothing has changed.
    async fn fetch_and_take(&mut self, unit: &str, every: Duration) -> Result<bool, Failure> {
        let sent_at = self.runner.now();
        self.upstream.begin();
        let (mut whole, mut page): (Option<Read>, Option<String>) = (None, None);
        let mut at = sent_at;
        for n in 0..PAGES_MAX {
            let fetched = self.fetch(unit, page.as_deref()).await?;
            if n == 0 {
                let age = fetched.number("age").unwrap_or(0);
                at = sent_at.minus(Duration::from_secs(age));
            }
            if fetched.status == 304 {
                self.runner.take_unchanged(self.made(unit, at, every)).await?;
                return Ok(true);
            }
            let received = self.upstream.receive(unit, &fetched, at);
            let received = received.map_err(|drift| Failure::Drift(fetched.body.clone(), drift))?;
            if n == 0 && received.next.is_none() {
                self.note_validators(unit, &fetched);
            }
            whole = match (whole, received.read) {
                (Some(mut whole), Some(more)) => {
                    whole.append(more);
                    Some(whole)
                }
                (whole, more) => whole.or(more),
            };
            page = received.next;
            if page.is_none() {
                break;
            }
        }
        if page.is_some() {
            let why = format!("it has more than {PAGES_MAX} pages");
            return Err(Failure::Upstream(Refusal::Failed(why), None));
        }
        if let Some(read) = whole {
            self.runner.take(read, self.made(unit, at, every)).await?;
        }
        Ok(false)
    }

    fn made<'a>(&self, unit: &'a str, at: Timestamp, every: Duration) -> Made<'a> {
        let all_read =
            self.units.iter().all(|own| &*own.name == unit || self.good.contains(&own.name));
        Made { unit, at, every, all_read }
    }

    async fn fetch(&mut self, unit: &str, page: Option<&str>) -> Result<Fetched, Failure> {
        let failed = |why: String| Failure::Upstream(Refusal::Failed(why), None);
        let mut request = self
            .upstream
            .request(unit, page)
            .map_err(|why| Failure::Upstream(Refusal::Refused(why), None))?;
        if let Some(held) = self.validators.get(unit).filter(|_| page.is_none()) {
            let mut put = |name: &str, value: &Option<String>| {
                let value = value.clone().map(|value| (name.to_owned(), Secret::from(value)));
                request.headers.extend(value);
            };
            put("if-none-match", &held.etag);
            put("if-modified-since", &held.last_modified);
        }
        let host = self.host(unit);
        let breaker = self.breakers.entry(host.clone()).or_default();
        breaker.admit();
        self.rate.note(self.runner.now());
        // The client's timeouts are for single phases; this one is for the whole request.
        let limit = self.runner.context.settings.access.timeout;
        let answered = timeout(limit, self.client.send(&request)).await;
        let answered =
            answered.unwrap_or_else(|_| Err("upstream did not answer in time".to_owned()));
        let fetched = answered.map_err(failed)?;
        self.runner.record(unit, Some(fetched.status), &fetched).await;
        self.check(fetched, &host)
    }

    /// Evaluates the headers, and checks that an answer is good.
    fn check(&mut self, fetched: Fetched, host: &str) -> Result<Fetched, Failure> {
        let now = self.runner.now();
        if let Some(date) = fetched.date() {
            self.runner.reporter().note_skew(date, now);
        }
        self.upstream.note_headers(&self.runner, &fetched);
        if matches!(fetched.status, 200 | 304) {
            self.breakers.entry(host.to_owned()).or_default().note(true);
            return Ok(fetched);
        }
        Err(Failure::Upstream(self.upstream.refusal(&fetched), fetched.retry_after(now)))
    }

    fn note_validators(&mut self, unit: &str, fetched: &Fetched) {
        let header = |name: &str| fetched.header(name).map(ToOwned::to_owned);
        let held = Validators { etag: header("etag"), last_modified: header("last-modified") };
        self.validators.insert(unit.into(), held);
    }

    /// Plays a tape instead of using the network.
    async fn play(&mut self, path: &std::path::Path) -> Result<(), String> {
        for played in Player::open(path, self.runner.context.settings.speed)? {
            let Played { record, body, wait, begins } = played?;
            if let Some(first) = begins {
                self.runner.begin_tape(first);
            }
            sleep(wait).await;
            let fetched = Fetched {
                status: record.status.unwrap_or(200),
                headers: record.headers.clone(),
                body,
            };
            self.play_one(&record.unit, fetched).await;
        }
        let now = self.runner.now();
        self.runner.reporter().set(State::Ok, TAPE_ENDED, now);
        Ok(())
    }

    async fn play_one(&mut self, unit: &str, fetched: Fetched) {
        self.renew_units();
        let (now, clock) = (self.runner.now(), Instant::now());
        let played = async {
            let every = self.every(unit).await?;
            let fetched = self.check(fetched, "tape")?;
            self.good.insert(unit.into());
            let made = self.made(unit, now, every);
            if fetched.status == 304 {
                self.runner.take_unchanged(made).await?;
                return Ok((every, true));
            }
            let received = self.upstream.receive(unit, &fetched, now);
            let received = received.map_err(|drift| Failure::Drift(fetched.body.clone(), drift))?;
            if let Some(read) = received.read {
                self.runner.take(read, made).await?;
            }
            Ok::<_, Failure>((every, false))
        };
        match played.await {
            Ok((every, unchanged)) => {
                self.runner.reporter().note_good(now, every, unchanged, clock.elapsed());
            }
            Err(failure) => self.fail(unit, failure),
        }
    }
}

/// The name of a unit that is an address.
pub(crate) fn unit_of(url: &str) -> Box<str> {
    shown(url).into()
}
