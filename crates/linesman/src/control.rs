//! The connection of a command line to a running server, and waiting until its change is effective there.
//!
//! The server listens on a Unix socket in the data folder that only the folder's owner can connect to. A command is one
//! line of JSON, the answer is one line of text.

mod client;
mod event_view;
mod protocol;
mod server;

pub(crate) use client::{ask_server, make_effective};
pub(crate) use event_view::{EventView, PairView};
pub(crate) use protocol::ControlCommand;
pub(crate) use server::Control;
