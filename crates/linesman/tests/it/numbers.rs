//! Real prices of real bookmakers pushed into the real program: each is returned exactly, in every format.
//!
//! The recordings may not be copied into the repository; they are read where they are, and the test reports if they
//! are missing.

mod odds;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use domain::{Catalogue, Format, Quote, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::harness::{Service, TestProgram, wait_for};
use odds::Odds;
use source::{Message, Offered, Source};

/// Lines per push: few enough that an unoptimised service answers within seconds.
const BATCH: usize = 500;
/// Time between the events of consecutive sources, so that no two sources share an event.
const APART: Duration = Duration::from_secs(60 * 86_400);
const MINUTE: Duration = Duration::from_secs(60);
/// Distinct prices in one market.
const FIELD: usize = 400;

/// The folder of real recordings, if it exists.
fn data() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    path.is_dir().then_some(path)
}

#[tokio::test]
async fn every_real_price_comes_back_exactly_in_every_format() {
    let Some(data) = data() else {
        println!("no recordings at ../shared/data beside the repository: nothing is checked");
        return;
    };
    let begun = Instant::now();
    let mut sources = source::recordings(&data);
    let mut texts = source::price_texts(&data);
    for offered in sources.iter().flat_map(Source::offers) {
        texts.insert(offered);
    }
    let distinct = check_texts(&texts);
    sources.push(source::of_texts(&distinct, FIELD));
    println!(
        "{} sources, {} price texts of which {} are prices, read in {:?}",
        sources.len(),
        texts.len(),
        distinct.len(),
        begun.elapsed()
    );

    let program = TestProgram::new().set("LINESMAN_CATALOGUE__FILE", "catalogue.toml");
    program.write("catalogue.toml", &strangers(&sources));
    let (key, token) = (program.live_key().await, program.feed("recorded").await);
    let service = program.start().await;
    let mut expected = ExpectedMarket::default();
    let first = Timestamp::parse("2022-01-01T00:00:00Z").unwrap();
    let mut begins = first;
    for (number, source) in sources.iter().enumerate() {
        let lines = expected.place(source, number, begins);
        for batch in lines.chunks(BATCH) {
            let answer = service.post(&token, batch.concat()).await.unwrap();
            let receipt = answer.json();
            assert_eq!(receipt["rejected"], serde_json::json!([]), "{}", source.name);
            assert_eq!(receipt["superseded"], 0, "{}", source.name);
        }
        begins = begins.plus(APART);
    }
    println!("{} markets pushed by {:?}", expected.markets.len(), begun.elapsed());
    let prices = expected.check(&service, &key).await;
    println!("{prices} prices compared, all formats counted, by {:?}", begun.elapsed());
}

/// Parses every text without the service, and returns those that are prices.
fn check_texts(texts: &BTreeSet<(Format, String)>) -> Vec<(Format, String)> {
    let mut prices = Vec::new();
    for (format, text) in texts {
        let (ours, theirs) = (Odds::read(text, *format), Quote::parse(text, *format));
        let (Some(odds), Ok(quote)) = (&ours, &theirs) else {
            assert!(ours.is_none() && theirs.is_err(), "{text} {format:?}: {ours:?}, {theirs:?}");
            continue;
        };
        for shown in Format::ALL {
            assert_eq!(quote.to_json(shown), odds.show(shown), "{text} {format:?} as {shown:?}");
        }
        prices.push((*format, text.clone()));
    }
    prices
}

/// The bookmakers of the recordings that the program does not know, as catalogue entries.
fn strangers(sources: &[Source]) -> String {
    let catalogue = Catalogue::load(None).unwrap();
    let named = sources.iter().flat_map(|source| &source.messages);
    let named: BTreeSet<&String> = named.filter_map(|message| message.bookmaker.as_ref()).collect();
    let mut text = String::new();
    for key in named.into_iter().filter(|key| catalogue.bookmaker_id(key).is_none()) {
        writeln!(text, "[[bookmaker]]\nkey = \"{key}\"\ntitle = \"{key}\"\nregions = [\"us\"]")
            .unwrap();
    }
    text
}

/// A market: sport, start of its event, bookmaker, market.
type Place = (String, String, String, String);
/// Name and point of an outcome.
type Outcome = (String, String);

/// The expected records.
#[derive(Default)]
struct ExpectedMarket {
    markets: BTreeMap<Place, BTreeMap<Outcome, Odds>>,
}

/// A record as returned, with its prices as texts.
#[derive(Deserialize)]
struct Record {
    event_id: String,
    bookmaker: String,
    market: String,
    outcomes: Vec<Offered>,
}

#[derive(Deserialize)]
struct Event {
    id: String,
    commence_time: String,
}

impl ExpectedMarket {
    /// The lines to push for a source. Every event gets a unique start, by which it is identified.
    fn place(&mut self, source: &Source, number: usize, begins: Timestamp) -> Vec<String> {
        let mut starts: BTreeMap<&str, (String, String)> = BTreeMap::new();
        let mut lines = Vec::new();
        let mut start = begins;
        for own in &source.messages {
            let mut message = own.clone();
            let reference = own.reference.as_str();
            if message.kind == "event" {
                let sport = message.sport.clone().unwrap();
                // A repeated listing is the same event.
                let (_, at) = starts.entry(reference).or_insert_with(|| {
                    start = start.plus(MINUTE);
                    (sport, start.to_string())
                });
                message.commence_time = Some(at.clone());
            } else {
                let (sport, start) = starts[reference].clone();
                let part = |part: &Option<String>| part.clone().unwrap();
                let place = (sport, start, part(&message.bookmaker), part(&message.market));
                let format = Format::parse(&part(&message.format)).unwrap();
                self.markets.insert(place, message.expected(format));
            }
            message.reference = format!("{number}/{reference}");
            lines.push(format!("{}\n", serde_json::to_string(&message).unwrap()));
        }
        lines
    }

    /// Reads everything back in every format; returns the number of prices compared.
    async fn check(&self, service: &Service, key: &str) -> usize {
        let sports: BTreeSet<&str> =
            self.markets.keys().map(|(sport, ..)| sport.as_str()).collect();
        let mut compared = 0;
        for sport in sports {
            let expected = self.markets.keys().filter(|(of, ..)| of == sport).count();
            let path = format!(
                "/v1/sports/{sport}/odds?limit=500&regions=us,uk,eu,au&odds_format=american"
            );
            // The snapshot contains all records when their number is right.
            let all = async || {
                (pages::<Record>(service, &path, key).await.len() >= expected).then_some(())
            };
            wait_for(&format!("{expected} records of {sport}"), all).await;
            let events = format!("/v1/sports/{sport}/events?limit=500");
            let events = pages::<Event>(service, &events, key).await;
            let starts: BTreeMap<&str, &str> = events
                .iter()
                .map(|event| (event.id.as_str(), event.commence_time.as_str()))
                .collect();
            for format in Format::ALL {
                let path = format!(
                    "/v1/sports/{sport}/odds?limit=500&regions=us,uk,eu,au&odds_format={}",
                    format.key()
                );
                let records = pages::<Record>(service, &path, key).await;
                assert_eq!(records.len(), expected, "{sport}");
                compared += records
                    .iter()
                    .map(|record| {
                        self.check_record(sport, starts[record.event_id.as_str()], record, format)
                    })
                    .sum::<usize>();
            }
        }
        compared
    }

    fn check_record(&self, sport: &str, start: &str, record: &Record, format: Format) -> usize {
        let (bookmaker, market) = (record.bookmaker.clone(), record.market.clone());
        let place = (sport.to_owned(), start.to_owned(), bookmaker, market);
        let expected: BTreeMap<Outcome, String> = self.markets[&place]
            .iter()
            .map(|(outcome, odds)| (outcome.clone(), odds.show(format)))
            .collect();
        let shown: BTreeMap<Outcome, String> = record
            .outcomes
            .iter()
            .map(|outcome| (outcome.outcome(), outcome.price.get().to_owned()))
            .collect();
        assert_eq!(shown, expected, "{place:?} {format:?}");
        shown.len()
    }
}

/// All pages of an endpoint, as typed records: a JSON number keeps its digits in a [`RawValue`].
async fn pages<T: for<'a> Deserialize<'a>>(service: &Service, path: &str, key: &str) -> Vec<T> {
    let mut records = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(path) = next {
        let answer = service.answered(&path, key).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        records.extend(serde_json::from_str::<Vec<T>>(answer.text()).unwrap());
        next = answer.next_page();
    }
    records
}

impl Message {
    fn expected(&self, format: Format) -> BTreeMap<Outcome, Odds> {
        let outcomes = self.outcomes.as_ref().unwrap().iter();
        outcomes
            .map(|offered| {
                let odds = Odds::read(&offered.price_text(), format);
                (offered.outcome(), odds.unwrap_or_else(|| panic!("{offered:?}")))
            })
            .collect()
    }
}

impl Offered {
    /// Name and point, the point without trailing zeros.
    fn outcome(&self) -> Outcome {
        let point = self.point.as_deref().map_or("null", RawValue::get);
        let point = if point.contains('.') {
            point.trim_end_matches('0').trim_end_matches('.')
        } else {
            point
        };
        (self.name.clone(), point.to_owned())
    }

    fn price_text(&self) -> String {
        self.price.get().trim_matches('"').to_owned()
    }
}
