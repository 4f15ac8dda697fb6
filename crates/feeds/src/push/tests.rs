//! Tests of ingest, by subject.

mod body;
mod hostile;
mod lines;
mod properties;
mod recordings;

use std::sync::LazyLock;

use domain::catalogue::Catalogue;
use domain::message::{FeedMessage, Reject};

use crate::push::{parse_line, write_line};

/// The embedded catalogue, loaded once: loading it for every case would dominate the run time.
fn catalogue() -> &'static Catalogue {
    static EMBEDDED: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::load(None).unwrap());
    &EMBEDDED
}

/// Parses a line with a token that is bound to no bookmaker.
fn parse(line: &str) -> Result<FeedMessage, Reject> {
    parse_line(line.as_bytes(), catalogue(), None)
}

fn written(message: &FeedMessage, catalogue: &Catalogue) -> String {
    let mut out = String::new();
    write_line(message, catalogue, &mut out);
    out
}
