//! `linesman match`: matches the events of several recordings, without a server.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use domain::Catalogue;
use domain::message::{Body, FeedMessage, Reject};
use feeds::push;
use market::{BatchMatcher, Found};
use serde_json::json;

use crate::cli::{MatchArgs, output};

pub(crate) fn run(catalogue: &Arc<Catalogue>, args: &MatchArgs) -> anyhow::Result<()> {
    let mut matcher = BatchMatcher::new(Arc::clone(catalogue));
    let mut feeds = HashSet::new();
    let mut skipped = Skipped::default();
    for file in &args.files {
        let feed = feed_name(file)?;
        if !feeds.insert(feed.clone()) {
            bail!("two recordings have the name `{feed}`; the file's stem is the feed's name");
        }
        let text =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        for (number, line) in push::split_lines(&text) {
            match push::parse_line(line, catalogue, None) {
                Ok(FeedMessage { body: Body::Event { reference, listing }, .. }) => {
                    matcher.list(&feed, &reference, listing);
                }
                Ok(FeedMessage { body: Body::Odds(odds), .. }) => {
                    let players = odds.outcomes.iter().map(|outcome| &*outcome.name);
                    matcher.note_players(&feed, &odds.reference, players);
                }
                Ok(_) => {}
                Err(reject) => skipped.note(file, number, &reject),
            }
        }
    }
    skipped.print();
    for found in matcher.solve() {
        report(&found, args.json)?;
    }
    Ok(())
}

/// Lines that are not valid messages.
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

    fn print(&self) {
        if let Some(first) = &self.first {
            let text = format!("{} invalid lines skipped; the first: {first}", self.lines);
            output::print_error(&text);
        }
    }
}

fn report(found: &Found, json: bool) -> anyhow::Result<()> {
    let Found { feed, reference, event, confidence, why } = found;
    let confidence = f64::from(*confidence) / 1000.0;
    let line = if json {
        json!({
            "feed": feed, "ref": reference, "event_id": event.to_string(), "confidence": confidence, "why": why,
        })
        .to_string()
    } else {
        format!("{feed} {reference} {event} {confidence:.2} {why}")
    };
    output::print_line(&line)
}

fn feed_name(file: &Path) -> anyhow::Result<String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.map(ToOwned::to_owned)
        .with_context(|| format!("{} has no stem to name the feed by", file.display()))
}
