//! Arguments of `linesman export`.

use std::path::PathBuf;

use archive::{ExportFormat, Table};
use clap::{Args, ValueEnum};
use domain::Timestamp;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The table
    #[arg(long)]
    pub(crate) table: TableName,
    /// Rows published at this time or later, for example `2026-11-14T18:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    pub(crate) from: Timestamp,
    /// Rows published before this time
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse)]
    pub(crate) to: Timestamp,
    /// Only this sport; `epochs` and `internal` are not divided by sport
    #[arg(long, value_name = "SPORT")]
    pub(crate) sport: Option<String>,
    /// The format [default: by the extension of the file, or csv]
    #[arg(long)]
    format: Option<FormatName>,
    /// The file [default: stdout]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
}

impl ExportArgs {
    pub(crate) fn format(&self) -> ExportFormat {
        let end = self.out.as_ref().and_then(|out| out.extension()?.to_str());
        match (self.format, end) {
            (Some(FormatName::Parquet), _) | (None, Some("parquet")) => ExportFormat::Parquet,
            (Some(FormatName::Ndjson), _) | (None, Some("ndjson" | "jsonl")) => {
                ExportFormat::Ndjson
            }
            (Some(FormatName::Csv), _) | (None, _) => ExportFormat::Csv,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    Parquet,
    Csv,
    Ndjson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableName {
    Odds,
    Scores,
    Events,
    Reads,
    Closing,
    Epochs,
    Internal,
}

impl From<TableName> for Table {
    fn from(name: TableName) -> Self {
        match name {
            TableName::Odds => Self::Odds,
            TableName::Scores => Self::Scores,
            TableName::Events => Self::Events,
            TableName::Reads => Self::Reads,
            TableName::Closing => Self::Closing,
            TableName::Epochs => Self::Epochs,
            TableName::Internal => Self::Internal,
        }
    }
}
