//! The change log: an embedded, append-only, numbered, durable list of opaque entries, with checkpoints.
//!
//! One instance owns one folder (one per world). Payloads are bytes with a version chosen by the
//! caller; this crate knows nothing of markets. It is synchronous: its owner is a writer thread.
//! Locking the folder against a second process is the program's job; a [`LogView`] needs no lock.
//!
//! Invariants: an entry is acknowledged only after it is on disk; a number is not given out twice as
//! far as the folder can tell; damage costs the entries it hit and none behind them, and is never silent.

mod any;
mod bytes;
mod checkpoint;
mod error;
mod files;
mod folder;
mod frame;
mod log;
mod read;
mod reader;
mod segment;
mod stream;
mod view;

pub use crate::{
    any::{Entries, Log, LogLocation},
    checkpoint::{Checkpoint, decode_checkpoint},
    error::{Damage, LogError},
    folder::{Cut, Recovery},
    frame::{FRAME_HEAD_BYTES, Frame, decode_frame},
    log::{ChangeLog, Options},
    read::ReadLog,
    reader::{Entry, Gap, Losses, Reader},
    stream::{
        Follower, LeaderClient, LeaderServer, NoAnswer, Request, StreamLocation, StreamLog,
        StreamReader, Tip, check_addresses, with_login,
    },
    view::LogView,
};
