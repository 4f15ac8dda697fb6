//! Arguments of `linesman history`.

use clap::{Args, Subcommand};
use domain::Timestamp;

use crate::cli::ListArgs;

pub(super) const EXAMPLE: &str = "Example:\n  linesman history status\n  linesman history verify";

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Show the archive's contents, its lag behind the log, and its size by table and day
    #[command(after_help = "Example:\n  linesman history status --json")]
    Status(ListArgs),
    /// Add all publications to the archive of the running server now; returns when that is committed
    #[command(after_help = "Example:\n  linesman history flush")]
    Flush,
    /// Merge the files of each table, sport and day now, including today's; returns when that is committed
    #[command(after_help = "Example:\n  linesman history compact --before 2026-11-14\n\n\
                      The running server does so by itself after each day.")]
    Compact(CompactArgs),
    /// Verify every file's checksum, and that every entry is present exactly once; exit 1 and report any fault
    #[command(
        after_help = "Example:\n  linesman history verify --sample 20\n\nIt only reads; a server may run meanwhile."
    )]
    Verify(VerifyArgs),
    /// Print macros for `DuckDB`: `odds_at(t)`, `scores_at(t)` and `events_at(t)` return what the API does as of `t`
    #[command(after_help = "Example:\n  linesman history sql > macros.sql\n  \
                      duckdb -init macros.sql -c \"FROM odds_at(TIMESTAMPTZ '2026-11-14 23:38:00Z')\"")]
    Sql(SqlArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Location of the archive's `files.json`: a folder, or an address such as `s3://odds/archive/live` [default: the
    /// server's archive]
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Also rebuild this number of publications, chosen at random, and compare them with the log
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) sample: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Only files of days before this one (UTC)
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub(crate) before: Option<String>,
}

/// A day, as written.
fn parse_date(text: &str) -> Result<String, String> {
    match Timestamp::parse(&format!("{text}T00:00:00Z")) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("give a date such as 2026-11-14".to_owned()),
    }
}
