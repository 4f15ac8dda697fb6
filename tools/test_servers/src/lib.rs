//! Servers for tests and for a cluster on one machine: installed PostgreSQL and NATS, on free ports and in temporary
//! folders that are removed when dropped; a bucket; and a proxy that fails on demand. No part of the program depends
//! on this crate.

mod nats;
mod port;
mod postgres;
mod process;
mod proxy;
#[cfg(feature = "s3")]
mod s3;

pub use crate::{
    nats::{GroupMember, Nats, NatsProgram, NatsVersion, nats_program, wait_for_nats_group},
    port::free_port,
    postgres::{Postgres, chown_to_postgres, postgres_programs},
    process::{Process, child_command},
    proxy::Proxy,
};

#[cfg(feature = "s3")]
pub use crate::s3::{S3, WriteFault};

/// The user created by PostgreSQL's package; the server runs as this user if we are root.
pub const POSTGRES_USER: &str = "postgres";
