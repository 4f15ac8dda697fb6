//! Clients that try to exceed their share: of requests, keys, memory and disk.

mod account;
mod people;
