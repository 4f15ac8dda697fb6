//! What a hostile feed, disk, user or client may try on the real program, and what it must not be able to do to the
//! others.

mod accounts;
mod control;
mod damage;
mod disk;
mod feeds;
mod ids;
mod modes;
mod nats;
mod pushes;
mod stop;
