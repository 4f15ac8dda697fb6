//! People who want more than their share: more requests, more keys, more memory, more of the disk.

mod account;
mod people;
