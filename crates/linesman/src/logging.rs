//! Structured logs on stderr: text on a terminal, JSON otherwise. A line that cannot be written is dropped: stderr may
//! be a file on a full disk, or a closed pipe.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Targets that are not logged unless the operator's filter names them: the crate for the agents' protocol writes
/// several lines per message. Messages are counted in `linesman_mcp_messages_total`.
const QUIET: &str = "rmcp=off";

pub(crate) fn start(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{}", log.filter))
        .with_context(|| format!("log.filter `{}` is invalid", log.filter))?;
    let json = match log.format {
        LogFormat::Json => true,
        LogFormat::Human => false,
        LogFormat::Auto => !io::stderr().is_terminal(),
    };
    // Errors of writing to stderr would be reported on stderr, and end the thread.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .log_internal_errors(false)
        .with_writer(io::stderr);
    let started = if json { builder.json().try_init() } else { builder.try_init() };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}
