//! What strangers and feeds gone wrong try, and what becomes of it.

mod feeds;
