//! A running world: one writer of its log, followers on other nodes, and the publications that answers are made from.
//!
//! One thread owns the book and the log ([`Writer`]); all other threads read immutable values through atomic pointers
//! ([`WorldHandle`], [`Published`]). A reader never waits for the writer. If several nodes share a log, each has a
//! [`Node`] in that thread's place: it follows the log, and writes while it is the leader.

mod alone;
mod archiver;
mod batch;
mod begun;
mod catalogues;
mod checkpoint_schedule;
mod entries;
mod error;
pub mod feed_stats;
mod follower;
mod forward;
mod gap_note;
mod history;
mod identities;
mod leadership;
mod live;
mod made_once;
mod node;
mod options;
mod piece;
mod price_history;
mod publication;
mod queue;
mod receipt;
mod replay;
mod sample;
mod simulator;
mod start;
mod worker;
mod world;
mod writer;

pub use alone::{AloneError, operate_alone};
pub use archive::Compact;
pub use archive::{ClosingLine, PathPlace, Point, PointOutcome, RecordPath, StartBy, Table};
pub use archiver::Archiver;
pub use batch::{Lines, Outcome, Terms};
pub use begun::{ARCHIVE_NOTE_FILE, ArchiveNote, open_archive};
pub use error::{NotTaken, OperateError, WorldError};
pub use forward::{Sender, operate_remotely, serve_forwards};
pub use gap_note::GAP_NOTE_FILE;
pub use history::{
    BookmakerKeys, ChangeWalk, ClosedRecord, ClosingPage, ClosingRequest, EventPaths, ExportError,
    ExportFile, ExportPieces, ExportRequest, History, HistoryError, HistoryStats, IsSought, Passed,
    PassedEvent, PassedRecord, PastPublication, PathError, PathRequest, Place, Reach, Reached,
    Stride, Walk, WalkedChange,
};
pub use identities::{EventView, Identities, RefView};
pub use leadership::Leadership;
pub use live::{LiveStep, WholeSnapshots};
pub use made_once::MadeOnce;
pub use node::{Membership, Node};
pub use options::{HistoryOptions, WorldOptions};
pub use piece::Piece;
pub use price_history::{PriceHistory, PricePath, PricePoint};
pub use publication::Published;
pub use queue::Reserved;
pub use receipt::{Anomaly, Receipt};
pub use replay::{Base, Logged, Replay, replay_book};
pub use sample::{Sampled, not_archived, sample};
pub use simulator::{SANDBOX_IDS, play_back};
pub use world::{Past, Shared, WorldHandle, WorldStats, Worlds};
pub use writer::Writer;
