//! What a feed gone wrong leaves behind, and how an operator gets rid of it.

mod feeds;
