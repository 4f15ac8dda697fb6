//! Structured logs on stderr: for people on a terminal, JSON for machines otherwise.
//!
//! A line that cannot be written is lost and nothing else: stderr may be a file on a full disk, or a pipe whose reader
//! ended.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

pub(crate) fn start(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.filter)
        .with_context(|| format!("log.filter `{}` is not a filter", log.filter))?;
    let json = match log.format {
        LogFormat::Json => true,
        LogFormat::Human => false,
        LogFormat::Auto => !io::stderr().is_terminal(),
    };
    // It would complain on stderr of a stderr that cannot be written, and end the thread.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .log_internal_errors(false)
        .with_writer(io::stderr);
    let started = if json { builder.json().try_init() } else { builder.try_init() };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}
