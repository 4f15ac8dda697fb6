//! The archive of history: a columnar copy of a world's log, in Parquet files that operators own and can query.
//!
//! An [`Archive`] is in a folder or in a bucket ([`Location`]). Entries are converted to rows ([`Part`]) and read back
//! without loss ([`Archive::entries`]). Files are written first and become part of the archive by a [`Commit`], which
//! is created exclusively: of two writers one loses, reads the other's commit and continues after it. A process that is
//! killed leaves the archive as it was before or as it is after a commit.
//!
//! Calls block. They read no clock, except to sign requests to a bucket.

mod archive;
mod bucket;
mod catalogues;
mod changed;
mod closing;
mod commit;
mod compact;
mod confirmations;
mod copy;
mod date;
mod durable;
mod entries;
mod error;
mod event_cache;
mod event_index;
mod event_past;
mod event_rows;
mod export;
mod folder;
mod frame;
mod image;
mod new_file;
mod object;
mod parquet_file;
mod parquet_read;
mod part;
mod path;
mod priced;
mod retention;
mod rows;
mod scored;
mod source;
mod starts;
mod store;
mod table;
mod verify;

pub use archive::{Archive, Outcome};
pub use bucket::{BucketOptions, Credentials};
pub use changed::{Changed, ChangedPrices};
pub use commit::{Blob, Catalogue, Commit, Image, Lineage, SCHEMA, TableFile, Unclosed};
pub use compact::{Compact, Compacted};
pub use copy::Copied;
pub use entries::{ENTRIES_MAX, Entries, Publication};
pub use error::ArchiveError;
pub use event_index::StartedEvent;
pub use export::{Export, ExportFormat};
pub use part::{Part, Rows};
pub use path::{
    BasePrices, ClosingLine, EventPast, Hold, PathHead, PathPlace, Point, PointOutcome, RecordPath,
    Wanted,
};
pub use starts::{StartBy, Started};
pub use store::Location;
pub use table::Table;
pub use verify::{Fault, Verified};

use domain::Timestamp;
use market::Change;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub seq: u64,
    /// Time at which it was written.
    pub at: Timestamp,
    pub change: Change,
}
