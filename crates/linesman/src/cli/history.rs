//! Arguments of `linesman history`.

use clap::{Args, Subcommand};
use domain::Timestamp;

use crate::cli::ListArgs;

pub(super) const EXAMPLE: &str = "Example:\n  linesman history status\n  linesman history verify";

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryVerb {
    /// Show what the archive holds, how far it is behind the log, and what it takes by table and day
    #[command(after_help = "Example:\n  linesman history status --json")]
    Status(ListArgs),
    /// Add everything that was published to the archive of the running server now; returns when it is committed
    #[command(after_help = "Example:\n  linesman history flush")]
    Flush,
    /// Put the files of each table, sport and day together now, today's as well; returns when that is committed
    #[command(after_help = "Example:\n  linesman history compact --before 2026-11-14\n\n\
                      The running server does so by itself once a day is over.")]
    Compact(CompactArgs),
    /// Check every file's checksum, and that every entry is there once; exit 1 and report any fault
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
    /// Where the archive's `files.json` is read: a folder, or an address such as `s3://odds/archive/live` [default:
    /// where the server has it]
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Also make this number of publications again, chosen at random, and compare them with the log
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) sample: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Only files of days before this one (UTC)
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub(crate) before: Option<String>,
}

/// A day, as it was written.
fn parse_date(text: &str) -> Result<String, String> {
    match Timestamp::parse(&format!("{text}T00:00:00Z")) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("give a date such as 2026-11-14".to_owned()),
    }
}
