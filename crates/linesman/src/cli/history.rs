//! Arguments of `linesman history`.

use clap::Subcommand;

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
    /// Check every file's checksum, and that every entry is there once; exit 1 and report any fault
    #[command(
        after_help = "Example:\n  linesman history verify\n\nIt only reads; a server may run meanwhile."
    )]
    Verify,
}
