//! `linesman match`: which events of several recordings are the same, without a server.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use domain::message::{Body, FeedMessage, Reject};
use domain::{Catalogue, Timestamp};
use feeds::push;
use market::{Book, Ids};
use serde_json::json;

use crate::cli::{MatchArgs, output};

/// Ids in the output only have to tell events apart.
const IDS: Ids = Ids::Minted { salt: 0 };

pub(crate) fn run(catalogue: &Arc<Catalogue>, args: &MatchArgs) -> anyhow::Result<()> {
    let mut book = Book::new(Arc::clone(catalogue), IDS);
    let mut listed: Vec<(String, String)> = Vec::new();
    let mut feeds = HashSet::new();
    let mut skipped = Skipped::default();
    for file in &args.files {
        let feed = feed_name(file)?;
        if !feeds.insert(feed.clone()) {
            bail!("two recordings are called `{feed}`; a feed is named by its file's stem");
        }
        let mut seen = HashSet::new();
        let text =
            std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
        for (number, line) in push::split_lines(&text) {
            let message = match push::parse_line(line, catalogue, None) {
                Ok(message) => message,
                Err(reject) => {
                    skipped.note(file, number, &reject);
                    continue;
                }
            };
            let Body::Event { reference, .. } = &message.body else { continue };
            let reference = reference.to_string();
            // A recording may be of any day: its own clock is what counts.
            let message = FeedMessage { ts: None, body: message.body };
            book.apply(&feed, &message, Timestamp::default())
                .with_context(|| format!("{}:{number}", file.display()))?;
            if seen.insert(reference.clone()) {
                listed.push((feed.clone(), reference));
            }
        }
    }
    skipped.tell();
    for (feed, reference) in listed {
        report(&book, &feed, &reference, args.json)?;
    }
    Ok(())
}

/// Lines that are no messages: an operator who tries a new feed wants to know of them.
#[derive(Default)]
struct Skipped {
    lines: usize,
    first: Option<String>,
}

impl Skipped {
    fn note(&mut self, file: &Path, number: usize, reject: &Reject) {
        self.lines += 1;
        self.first.get_or_insert_with(|| {
            format!("{}:{number}: {}: {reject}", file.display(), reject.code.slug())
        });
    }

    fn tell(&self) {
        if let Some(first) = &self.first {
            let text = format!(
                "{} lines could not be read and are left out; the first: {first}",
                self.lines
            );
            output::print_trouble(&text);
        }
    }
}

fn report(book: &Book, feed: &str, reference: &str, json: bool) -> anyhow::Result<()> {
    let Some(known) = book.identity(feed, reference) else { return Ok(()) };
    let others = known.feeds.len() - 1;
    let why = match others {
        0 => "no other feed lists these participants within the sport's window".to_owned(),
        _ => format!(
            "same participants and start within the sport's window as {}",
            known.feeds.join(", ")
        ),
    };
    let line = if json {
        json!({
            "feed": feed, "ref": reference, "event_id": known.event.to_string(), "confidence": 1.0, "why": why,
        })
        .to_string()
    } else {
        format!("{feed} {reference} {} {why}", known.event)
    };
    Ok(output::print_line(&line)?)
}

fn feed_name(file: &Path) -> anyhow::Result<String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.map(ToOwned::to_owned)
        .with_context(|| format!("{} has no name to call the feed by", file.display()))
}
