//! Recordings of several formats, converted to ingest messages.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use domain::Format;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// An ingest message with the fields that these sources have; others (`ts`) are dropped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Message {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sport: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) competition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commence_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) away: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bookmaker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) market: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcomes: Option<Vec<Offered>>,
}

/// An outcome with the texts of its numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Offered {
    pub(crate) name: String,
    pub(crate) price: Box<RawValue>,
    pub(crate) point: Option<Box<RawValue>>,
}

/// One recording.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) messages: Vec<Message>,
}

impl Source {
    /// Every price with its format.
    pub(crate) fn offers(&self) -> impl Iterator<Item = (Format, String)> {
        self.messages.iter().flat_map(|message| {
            let format = message.format.as_deref().and_then(Format::parse);
            let outcomes = message.outcomes.iter().flatten();
            outcomes.map(move |offered| (format.unwrap(), offered.price_text()))
        })
    }
}

/// All recordings with prices of whole markets.
pub(crate) fn recordings(data: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    for path in files(&data.join("matching"), ".ndjson") {
        let text = read(&path);
        if text.contains("\"odds\"") {
            let messages = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            sources.push(Source { name: path.display().to_string(), messages });
        }
    }
    for path in files(&data.join("odds_api/v4_json"), "") {
        sources.extend(aggregator(&path));
    }
    sources
}

/// A file of The Odds API, version 4.
#[derive(Deserialize)]
struct Listed {
    id: String,
    sport_key: String,
    sport_title: String,
    home_team: Option<String>,
    away_team: Option<String>,
    #[serde(default)]
    bookmakers: Vec<Book>,
}

#[derive(Deserialize)]
struct Book {
    key: String,
    markets: Vec<Market>,
}

#[derive(Deserialize)]
struct Market {
    key: String,
    outcomes: Vec<Offered>,
}

fn aggregator(path: &Path) -> Option<Source> {
    let events: Vec<Listed> = serde_json::from_str(&read(path)).unwrap();
    let markets =
        || events.iter().flat_map(|event| &event.bookmakers).flat_map(|book| &book.markets);
    // American prices are recognised by their signs: some outcome of a file is always the favourite.
    let is_american = |offered: &Offered| offered.price.get().starts_with('-');
    let american = markets().any(|market| market.outcomes.iter().any(is_american));
    let format = if american { Format::American } else { Format::Decimal };
    let mut messages = Vec::new();
    for event in &events {
        let sport = match event.sport_key.split_once('_')?.0 {
            "mma" => "mma",
            "americanfootball" => "american_football",
            "golf" => "golf",
            _ => continue,
        };
        let title = (sport == "golf").then(|| event.sport_title.clone());
        messages.push(Message {
            kind: "event".to_owned(),
            reference: event.id.clone(),
            sport: Some(sport.to_owned()),
            competition: Some(event.sport_title.clone()),
            home: event.home_team.clone(),
            away: event.away_team.clone(),
            title,
            ..Message::default()
        });
        for book in &event.bookmakers {
            let odds = book.markets.iter().filter_map(|market| odds(event, book, market, format));
            messages.extend(odds);
        }
    }
    (!messages.is_empty()).then(|| Source { name: path.display().to_string(), messages })
}

fn odds(event: &Listed, book: &Book, market: &Market, format: Format) -> Option<Message> {
    let key = match market.key.as_str() {
        "h2h" => "moneyline",
        "spreads" => "spread",
        "totals" => "total_points",
        "outrights" => "outright",
        // Lay prices are not used here.
        _ => return None,
    };
    Some(Message {
        kind: "odds".to_owned(),
        reference: event.id.clone(),
        bookmaker: Some(book.key.clone()),
        market: Some(key.to_owned()),
        format: Some(format.key().to_owned()),
        outcomes: Some(market.outcomes.clone()),
        ..Message::default()
    })
}

/// A tournament for every few hundred texts, each of which is the price of one player.
pub(crate) fn of_texts(texts: &[(Format, String)], field: usize) -> Source {
    let mut messages = Vec::new();
    for format in Format::ALL {
        let texts: Vec<&str> =
            texts.iter().filter(|(of, _)| *of == format).map(|(_, text)| text.as_str()).collect();
        for (number, chunk) in texts.chunks(field).enumerate() {
            let reference = format!("{}-{number}", format.key());
            let offered = |(player, text): (usize, &&str)| {
                let text = text.trim_start_matches('+');
                let json = if format == Format::Fractional {
                    format!("\"{text}\"")
                } else {
                    text.to_owned()
                };
                let price = RawValue::from_string(json).unwrap();
                Offered { name: player_name(player), price, point: None }
            };
            messages.push(Message {
                kind: "event".to_owned(),
                reference: reference.clone(),
                sport: Some("golf".to_owned()),
                competition: Some("Tour".to_owned()),
                title: Some(format!("{} {}", player_name(number), format.key())),
                ..Message::default()
            });
            messages.push(Message {
                kind: "odds".to_owned(),
                reference,
                bookmaker: Some("bet365".to_owned()),
                market: Some("outright".to_owned()),
                format: Some(format.key().to_owned()),
                outcomes: Some(chunk.iter().enumerate().map(offered).collect()),
                ..Message::default()
            });
        }
    }
    Source { name: "all price texts".to_owned(), messages }
}

/// A name that is unique to the number.
fn player_name(number: usize) -> String {
    const FIRST: [&str; 20] = [
        "Aldo", "Boris", "Cyril", "Dmitri", "Egon", "Fabian", "Goran", "Hakan", "Igor", "Jonas",
        "Kamil", "Lorenz", "Mikkel", "Norbert", "Osvaldo", "Piotr", "Quentin", "Rasmus", "Stefan",
        "Thibault",
    ];
    const LAST: [&str; 20] = [
        "Achterberg",
        "Bukowski",
        "Castellano",
        "Dufresne",
        "Eklund",
        "Farquhar",
        "Giordano",
        "Haraldsen",
        "Ibanez",
        "Jankovic",
        "Kowalczyk",
        "Lindqvist",
        "Moreau",
        "Nakamura",
        "Oyelaran",
        "Petrosyan",
        "Quiroga",
        "Rautio",
        "Sigurdsson",
        "Takahashi",
    ];
    format!("{} {}", FIRST[number % 20], LAST[number / 20 % 20])
}

/// The columns that hold prices, by table.
const TABLES: [(&str, Format, &[&str]); 10] = [
    ("tennis/tennis_data_co_uk", Format::Decimal, &["B365", "EX", "LB", "PS", "Max", "Avg"]),
    ("boxing", Format::Decimal, &["*"]),
    ("combat/book_feeds_2021", Format::Decimal, &["ml_"]),
    ("odds_api/snapshot_2026-04-16", Format::Decimal, &["price"]),
    ("mma/bestfightodds_2008_2020", Format::American, &["*"]),
    ("golf/datagolf_open_close_2026", Format::Fractional, &["open_fractional", "close_fractional"]),
    ("nfl/action_network_game_lines", Format::American, &["odds"]),
    (
        "nfl/nfelo_market",
        Format::American,
        &["home_spread_", "away_spread_", "home_ml_", "away_ml_", "under_price_", "over_price_"],
    ),
    (
        "nfl/nflverse",
        Format::American,
        &[
            "away_moneyline",
            "home_moneyline",
            "away_spread_odds",
            "home_spread_odds",
            "under_odds",
            "over_odds",
            "odds",
        ],
    ),
    ("golf/datagolf_betting_tools", Format::American, &[]),
];

/// Every distinct text in a position of a price; some are not prices ("No Lines").
pub(crate) fn price_texts(data: &Path) -> BTreeSet<(Format, String)> {
    let mut texts = BTreeSet::new();
    for (folder, format, columns) in TABLES {
        for path in files(&data.join(folder), "") {
            let name = path.display().to_string();
            let found = if name.contains(".csv") {
                cells(&read(&path), columns)
            } else if name.ends_with(".json") && columns.is_empty() {
                signed_strings(&serde_json::from_str(&read(&path)).unwrap())
            } else {
                BTreeSet::new()
            };
            texts.extend(found.into_iter().map(|text| (format, text)));
        }
    }
    texts
}

/// The cells of the columns whose names have these prefixes; `*` selects all. Empty cells are left out.
fn cells(table: &str, columns: &[&str]) -> BTreeSet<String> {
    let mut lines = table.lines().map(split);
    let head = lines.next().unwrap_or_default();
    let wanted =
        |name: &str| columns.iter().any(|column| *column == "*" || name.starts_with(column));
    let wanted: Vec<usize> = (0..head.len()).filter(|column| wanted(&head[*column])).collect();
    let mut found = BTreeSet::new();
    for line in lines {
        for column in &wanted {
            found.extend(line.get(*column).filter(|cell| !cell.is_empty()).cloned());
        }
    }
    found
}

/// The cells of a line of CSV.
fn split(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// Texts such as `+1800`, anywhere in a document.
fn signed_strings(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(text) if text.starts_with(['+', '-']) => BTreeSet::from([text.clone()]),
        Value::Array(items) => items.iter().flat_map(signed_strings).collect(),
        Value::Object(fields) => fields.values().flat_map(signed_strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => BTreeSet::new(),
    }
}

/// All files below a folder with this suffix, in order.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|end| end == "gz") {
        MultiGzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
    } else {
        (&*bytes).read_to_string(&mut text).unwrap();
    }
    text
}
