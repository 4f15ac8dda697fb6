//! What a hostile feed, disk or client may try against the whole program.

mod feeds;
mod pushes;
