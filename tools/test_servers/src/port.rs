//! Ports for servers that are restarted while other tests run.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;

/// Below the ports of outgoing connections, so that a port is still free after a restart.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// Locks of this process's ports, held until it ends: a port stays reserved while its server is down.
static GIVEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A free port that no other process gets from here while this process lives.
///
/// # Errors
/// No port is free.
pub fn free_port() -> Result<u16> {
    let locks = std::env::temp_dir().join(format!("linesman-ports-{}", geteuid().as_raw()));
    fs::create_dir_all(&locks).with_context(|| format!("cannot make {}", locks.display()))?;
    let mut given = GIVEN.lock().map_err(|_| anyhow::anyhow!("a test has failed in here"))?;
    // Processes that start one after the other begin at different ports.
    let begin = std::process::id().wrapping_mul(64);
    for step in 0..PORTS.len() {
        let offset = (begin as usize).wrapping_add(step) % PORTS.len();
        let port = PORTS.start + u16::try_from(offset)?;
        let path = locks.join(port.to_string());
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        if file.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.push(file);
            return Ok(port);
        }
    }
    bail!("there are no free ports between {} and {}", PORTS.start, PORTS.end)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_port_is_given_twice_though_nobody_listens_there() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| PORTS.contains(port)));
    }
}
