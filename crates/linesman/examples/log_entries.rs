//! Prints every entry of a world's log on NATS as one JSON text per line: `cargo xtask faults` checks answers against
//! them.
//!
//! For tests only: `linesman record` prints a log as messages, and leaves out entries that change nothing. Here a
//! price that is in the log twice is printed twice.

use std::io::{self, Write as _};

use anyhow::{Context as _, bail};
use change_log::{StreamLocation, StreamLog};
use market::Change;
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, name] = words.as_slice() else {
        bail!("usage: log_entries NATS_URL NAME");
    };
    let runtime = tokio::runtime::Runtime::new().context("no runtime")?;
    let place = StreamLocation {
        url: url.clone(),
        name: name.clone(),
        replicas: None,
        entry_bytes_max: u32::MAX,
    };
    let log = StreamLog::find(runtime.handle(), &place)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for entry in log.read_from(log.first_seq())? {
        let entry = entry?;
        let change = Change::decode(entry.version, &entry.payload)?;
        writeln!(out, "{}", json!({ "seq": entry.seq, "at_ms": entry.at_ms, "change": change }))?;
    }
    Ok(out.flush()?)
}
