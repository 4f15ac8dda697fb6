//! What a hostile feed, disk or client may try on the real program, and what it must not be able to do to the others.

mod control;
mod feeds;
mod pushes;
mod stop;
