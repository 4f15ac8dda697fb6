//! Real servers for tests and for a cluster on one machine: PostgreSQL and NATS as they are installed,
//! on free ports and in temporary folders, gone when dropped; and a proxy that fails on demand.
//!
//! No part of the program depends on this crate.

mod nats;
mod postgres;
mod process;
mod proxy;

pub use crate::{
    nats::{Nats, NatsProgram, NatsVersion, nats_program},
    postgres::{Postgres, give_to_postgres, postgres_programs},
    process::{Process, mortal},
    proxy::Proxy,
};

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result};

/// The user that PostgreSQL's package makes, and that the server is run as where we are root.
pub const POSTGRES_USER: &str = "postgres";

/// A port that nobody has at this moment.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr().context("a listener has no address")?.port())
}
