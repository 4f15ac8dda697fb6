//! The pages for people, over a socket, as a browser without scripts would use them.

mod browser;
mod flow;
mod guard;
mod status;
