//! Time, as those outside the program have it.

use std::{
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};

const POLL: Duration = Duration::from_millis(50);

#[expect(clippy::disallowed_methods, reason = "there is no async runtime here to be blocked")]
pub(crate) fn sleep(time: Duration) {
    thread::sleep(time);
}

/// Milliseconds since 1970 by this machine's clock.
#[expect(clippy::disallowed_methods, reason = "what is seen from outside is dated from outside")]
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Looks until something holds.
///
/// # Errors
/// It does not within that time.
pub(crate) fn wait_until(
    what: &str,
    time_max: Duration,
    mut holds: impl FnMut() -> bool,
) -> Result<()> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > time_max {
            bail!("{what}: not after {} s", time_max.as_secs());
        }
        sleep(POLL);
    }
    Ok(())
}
