//! The pages for people, over a socket, as a browser without scripts would use them.

mod board;
mod browser;
mod flow;
mod guard;
mod status;
mod watch;
