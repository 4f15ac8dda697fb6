//! Attacks of a hostile feed, disk, user or client on the real program, which must not affect the others.

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
