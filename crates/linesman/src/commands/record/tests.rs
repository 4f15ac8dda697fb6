//! Logs in temporary folders, recorded, and the text read back into an empty book, within one process.

use std::collections::BTreeSet;
use std::time::Duration;

use change_log::{ChangeLog, Options};
use domain::Format;
use domain::message::{Body, FeedMessage, OddsBody};
use feeds::sandbox::Simulation;
use market::book::{IMAGE_VERSION, OutcomeName};
use market::{CHANGE_VERSION, Snapshot, Verdict};
use tempfile::TempDir;

use super::*;

const IDS: Ids = Ids::Derived { salt: 7 };
const STEP: Duration = Duration::from_secs(30);

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(1_794_657_600 + secs)
}

/// A world whose changes are logged.
struct Source {
    dir: TempDir,
    catalogue: Arc<Catalogue>,
    book: Book,
    log: ChangeLog,
}

impl Source {
    fn new(segment_bytes: u64) -> Self {
        let dir = TempDir::new().unwrap();
        let options = Options { segment_bytes, ..Options::default() };
        let (log, _) = ChangeLog::open(dir.path(), options).unwrap();
        let catalogue = Arc::new(Catalogue::load(None).unwrap());
        let book = Book::new(Arc::clone(&catalogue), IDS);
        Self { dir, catalogue, book, log }
    }

    /// Logs changes that were already absorbed, with one sync for all.
    fn write(&mut self, at: Timestamp, changes: &[Change]) {
        let encoded: Vec<Vec<u8>> = changes
            .iter()
            .map(|change| {
                let mut bytes = Vec::new();
                change.encode(&mut bytes);
                bytes
            })
            .collect();
        let entries = encoded.iter().map(|bytes| (CHANGE_VERSION, bytes.as_slice()));
        self.log.append(at.as_millis(), entries).unwrap();
    }

    fn found(&mut self, at: Timestamp) {
        let founded = Change::Founded { ids: IDS };
        self.book.absorb(&founded, at);
        self.write(at, &[founded]);
    }

    fn hear(&mut self, feed: &str, at: Timestamp, messages: &[FeedMessage]) {
        let mut changes = Vec::new();
        for message in messages {
            let now = message.ts.map_or(at, |ts| ts.max(at));
            changes.extend(self.book.apply(feed, message, now).unwrap().change);
        }
        changes.push(Change::Cut { at });
        self.write(at, &changes);
    }

    fn say(&mut self, feed: &str, secs: i64, line: &str) {
        let message = push::parse_line(line.as_bytes(), &self.catalogue, None).unwrap();
        self.hear(feed, at(secs), &[message]);
    }

    fn checkpoint(&mut self) {
        let seq = self.log.last_seq();
        self.log.write_checkpoint(seq, IMAGE_VERSION, &self.book.to_image()).unwrap();
    }

    fn record(&self, from: Option<Timestamp>, to: Timestamp) -> anyhow::Result<String> {
        let mut out = Vec::new();
        let deviations = record(&self.catalogue, self.dir.path(), Span { from, to }, &mut out)?;
        assert_eq!(deviations, Deviations { inexact: 0, lost: 0 });
        Ok(String::from_utf8(out)?)
    }

    fn replayed(&self, recording: &str) -> Book {
        let mut book = Book::new(Arc::clone(&self.catalogue), Ids::Minted { salt: 3 });
        for (_, line) in push::split_lines(recording.as_bytes()) {
            let message = push::parse_line(line, &self.catalogue, None).unwrap();
            let decided = book.apply("tape", &message, at(1_000_000_000)).unwrap();
            assert_ne!(decided.verdict, Verdict::Superseded, "{}", String::from_utf8_lossy(line));
        }
        book
    }

    #[track_caller]
    fn check(&self, recording: &str) {
        let now = at(0);
        let (replayed, original) = (shown(&self.replayed(recording), now), shown(&self.book, now));
        assert!(!original.is_empty());
        let differ: Vec<&String> = replayed.symmetric_difference(&original).take(4).collect();
        assert!(differ.is_empty(), "{differ:#?}");
    }
}

/// The book as users see it, without ids.
fn shown(book: &Book, now: Timestamp) -> BTreeSet<String> {
    let snapshot = Snapshot::cut(book, 0, now, STEP, &[]);
    let mut shown = BTreeSet::new();
    for (sport, _) in book.catalogue().sports() {
        let view = snapshot.sport(sport);
        for event in &view.events {
            let details = &event.details;
            let sides = (&details.title, &details.home, &details.away);
            let name = format!(
                "{sport:?} {sides:?} {:?} {} {:?}",
                details.competition, event.commence_time, details.markets
            );
            // A player's number depends on the order of arrival.
            let mut score = domain::Score::clone(&details.score);
            let leaders = std::mem::take(&mut score.leaders).into_iter().map(|leader| {
                (event.outcome_text(OutcomeName::Entrant(leader.entrant)).to_owned(), leader.rounds)
            });
            let leaders: Vec<_> = leaders.collect();
            shown.insert(format!("{name} {score:?} {leaders:?} {}", details.score_changed));
            for row in event.records.clone().filter_map(|at| view.record(at)) {
                let mut text =
                    format!("{name} {:?} {:?} {}", row.bookmaker, row.market, row.last_update);
                for outcome in &*row.record.outcomes {
                    let name = event.outcome_text(outcome.name);
                    let price = outcome.quote.to_json(Format::Fractional);
                    text += &format!(" {name:?} {price} {:?}", outcome.point);
                }
                shown.insert(text);
            }
        }
    }
    shown
}

const LISTED: &str = r#"{"type":"event","ref":"b-1","sport":"mma","competition":"Card \"9\"","commence_time":"2026-11-15T03:00:00Z","home":"Tomas Veldt","away":"Oren Castellane","ts":"2026-11-14T12:00:00Z"}"#;
const LISTED_TOO: &str = r#"{"type":"event","ref":"7","sport":"mma","competition":"9","commence_time":"2026-11-15T03:30:00Z","home":"OREN CASTELLANE","away":"Tomás Veldt","ts":"2026-11-14T12:00:01Z"}"#;
const QUOTED: &str = r#"{"type":"odds","ref":"b-1","bookmaker":"fanduel","market":"moneyline","format":"american","outcomes":[{"name":"Tomas Veldt","price":140},{"name":"Oren Castellane","price":-165}],"ts":"2026-11-14T11:59:00.250Z"}"#;
const QUOTED_TOO: &str = r#"{"type":"odds","ref":"7","bookmaker":"bet365","market":"spread","format":"decimal","outcomes":[{"name":"Tomás Veldt","price":1.91,"point":-3.5},{"name":"OREN CASTELLANE","price":1.91,"point":3.5}]}"#;
const BEAT: &str = r#"{"type":"heartbeat","bookmaker":"fanduel","ts":"2026-11-14T12:00:50Z"}"#;
const SCORED: &str = r#"{"type":"score","ref":"7","status":"live","home_score":0,"away_score":1,"periods":[{"number":1,"home_score":9,"away_score":10}]}"#;

/// Messages of two feeds about one bout, within the minute after noon.
fn minute() -> Source {
    let mut source = Source::new(700);
    source.found(at(0));
    for (feed, secs, line) in [
        ("north", 0, LISTED),
        ("south", 2, LISTED_TOO),
        ("north", 3, QUOTED),
        ("south", 20, QUOTED_TOO),
        ("north", 51, BEAT),
        ("south", 55, SCORED),
    ] {
        source.say(feed, secs, line);
    }
    source
}

#[test]
fn a_log_becomes_lines_that_say_the_same_to_an_empty_service() {
    let source = minute();
    let whole = source.record(None, at(60)).unwrap();
    source.check(&whole);
    assert_eq!(whole.lines().count(), 5, "{whole}");
    // Although older than the listing, it is sent after it.
    let quoted = whole.lines().nth(1).unwrap();
    let end = r#""ts":"2026-11-14T11:59:00.250Z","recorded_at":"2026-11-14T12:00:03.000Z"}"#;
    assert!(quoted.ends_with(end), "{quoted}");
    assert!(!whole.lines().next().unwrap().contains("recorded_at"));

    let end = source.record(Some(at(60)), at(60)).unwrap();
    source.check(&end);
    assert!(end.lines().all(|line| line.contains(r#""recorded_at":"2026-11-14T12:01:00.000Z""#)));
    let begun = source.record(None, at(2)).unwrap();
    assert_eq!(begun, whole.lines().next().map(|line| format!("{line}\n")).unwrap());
}

#[test]
fn a_log_without_its_beginning_is_recorded_from_a_checkpoint_on() {
    let mut source = minute();
    source.checkpoint();
    source.say("north", 70, &QUOTED.replace("-165", "-170").replace("11:59:00", "12:01:09"));
    source.checkpoint();
    source.say("north", 80, &QUOTED.replace("-165", "-175").replace("11:59:00", "12:01:19"));
    for from in [None, Some(at(0)), Some(at(75)), Some(at(90))] {
        source.check(&source.record(from, at(100)).unwrap());
    }
    assert!(source.log.retain(i64::MAX, u64::MAX).unwrap() > 0);
    for from in [None, Some(at(70)), Some(at(75)), Some(at(90))] {
        source.check(&source.record(from, at(100)).unwrap());
    }
    let refused = source.record(Some(at(30)), at(100)).unwrap_err().to_string();
    assert!(refused.contains("--from 2026-11-14T12:01:10.000Z or later"), "{refused}");
    // A book founded anew needs nothing from before it, and a damaged checkpoint is not needed.
    source.found(at(110));
    source.say("north", 110, LISTED);
    for item in std::fs::read_dir(source.dir.path()).unwrap() {
        let path = item.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "ckp") {
            std::fs::write(path, b"damaged").unwrap();
        }
    }
    source.check(&source.record(None, at(120)).unwrap());
    source.check(&source.record(Some(at(110)), at(120)).unwrap());
    let refused = source.record(Some(at(75)), at(120)).unwrap_err().to_string();
    assert!(refused.contains("--from 2026-11-14T12:01:50.000Z or later"), "{refused}");
}

#[test]
fn a_log_that_is_not_there_or_is_damaged_is_told_and_left_alone() {
    let source = minute();
    let span = Span { from: None, to: at(60) };
    let nowhere = source.dir.path().join("live");
    let refused = record(&source.catalogue, &nowhere, span, &mut io::sink()).unwrap_err();
    assert!(refused.to_string().contains("there is no log at"), "{refused}");
    assert!(!nowhere.exists());
    let empty = Source::new(700);
    let refused = empty.record(None, at(60)).unwrap_err();
    assert!(refused.to_string().contains("empty"), "{refused}");

    let mut segments: Vec<_> =
        std::fs::read_dir(source.dir.path()).unwrap().map(|item| item.unwrap().path()).collect();
    segments.sort();
    let mut bytes = std::fs::read(&segments[0]).unwrap();
    bytes[70] ^= 1;
    std::fs::write(&segments[0], &bytes).unwrap();
    let deviations = record(&source.catalogue, source.dir.path(), span, &mut io::sink()).unwrap();
    assert_eq!(deviations.lost, 1, "all else is recorded");
    assert_eq!(std::fs::read(&segments[0]).unwrap(), bytes);
}

/// Every sport and market, with the sandbox's scheduled faults, over a restart without a gap in time.
#[test]
fn the_simulated_market_is_recorded_over_a_restart() {
    let mut source = Source::new(1 << 20);
    let simulation = Simulation::new(11, Arc::clone(&source.catalogue));
    // A few bookmakers are enough, and fast.
    let some = |messages: Vec<FeedMessage>| -> Vec<FeedMessage> {
        let is_some = |message: &FeedMessage| match &message.body {
            Body::Odds(OddsBody { bookmaker, .. }) | Body::Heartbeat { bookmaker, .. } => {
                bookmaker.index().is_multiple_of(4)
            }
            Body::Event { .. } | Body::Score(_) | Body::Remove { .. } => true,
        };
        messages.into_iter().filter(is_some).collect()
    };
    let start = at(0);
    source.found(start);
    source.hear("sandbox", start, &some(simulation.world_at(start)));
    let mut now = start;
    let mut restarted = 0;
    for step in 1..=8 {
        let before = now;
        now = now.plus(STEP);
        if step == 4 {
            source.found(now);
            let world = some(simulation.world_at(now));
            restarted = world.len();
            source.hear("sandbox", now, &world);
        } else {
            source.hear("sandbox", now, &some(simulation.between(before, now)));
        }
    }
    let whole = source.record(None, now).unwrap();
    source.check(&whole);
    source.check(&source.record(Some(start.plus(5 * STEP)), now).unwrap());
    // Nearly all messages after the restart were known.
    let said = |recording: &str| recording.lines().count();
    let (to, from) = (start.plus(4 * STEP), start.plus(3 * STEP));
    let over = said(&source.record(None, to).unwrap()) - said(&source.record(None, from).unwrap());
    assert!(over < restarted / 4, "{over} lines of {restarted}");
}
