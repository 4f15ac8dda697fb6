//! Recordings of real sources, if they are next to the workspace. They belong to others and are not part of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use domain::catalogue::Catalogue;
use domain::message::{Body, RejectCode};

use super::{catalogue, written};
use crate::push::{looks_like_text, parse_line, split_lines};

/// Sources of the recordings that the embedded catalogue does not carry: closed or renamed bookmakers, and
/// a statistics project that quotes closing lines.
const OTHER_BOOKMAKERS: [&str; 6] =
    ["5dimes", "bookmaker", "nflverse", "sportbet", "sportsbook", "sportsint"];

fn folder() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let folder = workspace.join("../shared/data/matching");
    folder.is_dir().then_some(folder)
}

fn recordings(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            recordings(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "ndjson") {
            found.push(path);
        }
    }
}

fn with_other_bookmakers() -> Catalogue {
    let entry =
        |key| format!("[[bookmaker]]\nkey = \"{key}\"\ntitle = \"{key}\"\nregions = [\"us\"]\n");
    let file: String = OTHER_BOOKMAKERS.map(entry).concat();
    Catalogue::load(Some(&file)).unwrap()
}

#[test]
fn real_recordings_are_read_whole() {
    let Some(folder) = folder() else {
        println!("no recordings beside the workspace; nothing checked");
        return;
    };
    let (embedded, extended) = (catalogue(), with_other_bookmakers());
    let mut files = Vec::new();
    recordings(&folder, &mut files);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &files {
        let body = fs::read(file).unwrap();
        assert!(looks_like_text(&body), "{}", file.display());
        for (number, line) in split_lines(&body) {
            let place = format!("{}:{number}", file.display());
            let problem = match parse_line(line, embedded, None) {
                Ok(_) => "read",
                Err(reject) => {
                    // Everything else about the line must be valid, which the second catalogue shows.
                    assert_eq!(reject.code, RejectCode::UnknownBookmaker, "{place}: {reject}");
                    "unknown_bookmaker"
                }
            };
            let message = parse_line(line, &extended, None);
            let message = message.unwrap_or_else(|reject| panic!("{place}: {reject}"));
            let again = written(&message, &extended);
            *counts.entry(problem).or_default() += 1;
            *counts.entry(kind(&message.body)).or_default() += 1;
            assert_eq!(parse_line(again.as_bytes(), &extended, None), Ok(message), "{place}");
        }
    }
    println!("{} recordings: {counts:?}", files.len());
}

fn kind(body: &Body) -> &'static str {
    match body {
        Body::Event { .. } => "event",
        Body::Odds(_) => "odds",
        Body::Score(_) => "score",
        Body::Remove { .. } => "remove",
        Body::Heartbeat { .. } => "heartbeat",
    }
}
