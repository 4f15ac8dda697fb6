//! The pages for people, over a socket, as a browser without scripts would use them.

mod board;
pub(crate) mod browser;
mod console;
mod explore;
mod flow;
mod guard;
mod mail;
mod overview;
mod proxy;
mod status;
mod usage;
mod watch;
