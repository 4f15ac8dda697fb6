//! Connecting to the servers: timeouts, and the server versions that keep acknowledged messages.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_nats::{Client, ConnectOptions, ServerAddr};

use crate::{error::LogError, stream::StreamLocation};

/// Timeout of a connection attempt, after which the next server is tried.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
/// Maximum pause between two reconnection attempts: a node that is reachable again should not be delayed by more.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Interval of pings on an idle connection. After two unanswered pings the connection is closed and its reads are
/// sent to another server, three to five seconds after the first fell silent.
const PING_EVERY: Duration = Duration::from_millis(1500);
/// The first version that lost nothing in the tests in which 2.9 did (`docs/operations/faults.md`).
const OLDEST: (u32, u32) = (2, 10);

/// Time until the next attempt.
fn reconnect_pause(attempts: usize) -> Duration {
    let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
    Duration::from_millis(50).saturating_mul(attempts).min(RECONNECT_PAUSE_MAX)
}

/// Connects to one of the servers.
pub(super) async fn connect(
    location: &StreamLocation,
    options: ConnectOptions,
) -> Result<Client, LogError> {
    let addresses = parse_addresses(&location.url)?;
    let client = with_login(options, &addresses)
        .name("linesman")
        .connection_timeout(CONNECT_TIME_MAX)
        .ping_interval(PING_EVERY)
        .reconnect_delay_callback(reconnect_pause)
        .connect(addresses)
        .await
        .map_err(|error| LogError::Unavailable(Box::new(error)))?;
    warn_if_old(&client.server_info().version);
    Ok(client)
}

/// Logs once that the servers are too old. They are used nevertheless: a single server loses nothing.
fn warn_if_old(version: &str) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if is_old(version) && !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            event = "nats.outdated",
            version,
            "this version of NATS may lose acknowledged messages when its servers lose contact; run 2.10 or newer"
        );
    }
}

/// `false` also if the text is no version.
fn is_old(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < OLDEST,
        _ => false,
    }
}

/// Checks that a text is a list of addresses separated by commas.
///
/// # Errors
/// One of them is malformed. The error does not repeat it: it may hold a password.
pub fn check_addresses(url: &str) -> Result<(), LogError> {
    parse_addresses(url).map(drop)
}

/// Logs in with the user and password of the first address that contains them, or with its token
/// (`nats://TOKEN@host:4222`). The client itself does not use the login in an address.
pub fn with_login(options: ConnectOptions, addresses: &[ServerAddr]) -> ConnectOptions {
    match addresses.iter().find_map(|address| Some((address.username()?, address.password()))) {
        Some((user, Some(password))) => {
            options.user_and_password(user.to_owned(), password.to_owned())
        }
        Some((token, None)) => options.token(token.to_owned()),
        None => options,
    }
}

fn parse_addresses(url: &str) -> Result<Vec<ServerAddr>, LogError> {
    url.split(',')
        .map(|address| address.trim().parse())
        .collect::<Result<_, _>>()
        .map_err(|_| LogError::Unavailable("not an address such as nats://host:4222".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_2_10_are_old() {
        for old in ["2.9.10", "v2.9.25", "2.9.0-beta.1", "1.4.1"] {
            assert!(is_old(old), "{old}");
        }
        for good in ["2.10.0", "2.10.27", "2.15.1", "3.0.0", "v2.11.1-rc.2", "", "x", "2"] {
            assert!(!is_old(good), "{good}");
        }
    }
}
