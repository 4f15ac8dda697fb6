//! The change log: an embedded, append-only, numbered, durable list of opaque entries, with checkpoints.
//!
//! A [`ChangeLog`] owns a folder, a [`StreamLog`] writes to NATS JetStream; [`Log`] is either. Payloads are bytes
//! with a version chosen by the caller. Calls block: the owner is a writer thread. The program locks the folder
//! against a second writer; a [`LogView`] reads without a lock.
//!
//! Invariants: an entry is acknowledged only after it is on disk; no number is assigned twice, as far as the folder
//! shows; damage loses only the entries it affects, and is always reported.

mod any;
mod batch;
mod bytes;
mod checkpoint;
mod error;
mod files;
mod folder;
mod frame;
mod log;
mod position;
mod read;
mod reader;
mod segment;
mod stream;
mod view;

pub use crate::{
    any::{Entries, Log, LogLocation},
    batch::{BatchLimit, Batches},
    checkpoint::{Checkpoint, decode_checkpoint},
    error::{Damage, LogError},
    folder::{Cut, Recovery},
    frame::{FRAME_HEAD_BYTES, Frame, decode_frame},
    log::{ChangeLog, Options},
    position::{Position, READER_DELAY_MAX},
    read::ReadLog,
    reader::{Entry, Gap, Losses, Reader},
    stream::{
        Follower, LeaderClient, LeaderServer, NoAnswer, Request, StreamLocation, StreamLog,
        StreamReader, Tip, check_addresses, with_login,
    },
    view::LogView,
};
