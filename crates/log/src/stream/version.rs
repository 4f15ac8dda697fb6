//! Which versions of the servers keep what they have acknowledged.

use std::sync::atomic::{AtomicBool, Ordering};

/// The first one that lost nothing where 2.9 did (`docs/operations/faults.md`).
const OLDEST: (u32, u32) = (2, 10);

/// Tells the operator once where the servers are older than should be trusted. It goes on all the same: one server
/// that is never cut off from others loses nothing.
pub(crate) fn warn_if_old(version: &str) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if is_old(version) && !TOLD.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            version,
            "this version of NATS may lose what it has acknowledged when its servers are cut off from each other; run 2.10 or newer"
        );
    }
}

/// `false` also for what is no version at all.
fn is_old(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < OLDEST,
        _ => false,
    }
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
