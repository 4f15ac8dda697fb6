//! Where UTC minutes, days and calendar months begin and end.

use domain::Timestamp;
use jiff::{ToSpan, tz::Offset};
use store::{Window, WindowStarts};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// The window around an instant, in milliseconds: its start, and the start of the next one.
pub(crate) fn bounds(window: Window, now: Timestamp) -> (i64, i64) {
    match window {
        Window::Minute => fixed(MINUTE_MS, now),
        Window::Day => fixed(DAY_MS, now),
        // The month's end cannot be computed only in the last month of the year 9999.
        Window::Month => month(now).unwrap_or_else(|| fixed(DAY_MS, now)),
    }
}

pub(crate) fn starts(now: Timestamp) -> WindowStarts {
    WindowStarts {
        minute_ms: bounds(Window::Minute, now).0,
        day_ms: bounds(Window::Day, now).0,
        month_ms: bounds(Window::Month, now).0,
    }
}

fn fixed(length_ms: i64, now: Timestamp) -> (i64, i64) {
    let start_ms = now.as_millis().div_euclid(length_ms) * length_ms;
    (start_ms, start_ms + length_ms)
}

fn month(now: Timestamp) -> Option<(i64, i64)> {
    let instant = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?;
    let first = Offset::UTC.to_datetime(instant).date().first_of_month();
    let next = first.checked_add(1.month()).ok()?;
    let ms = |date: jiff::civil::Date| {
        Some(Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?.as_millisecond())
    };
    Some((ms(first)?, ms(next)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_and_end_on_utc_boundaries() {
        let check = |window, now: &str, start: &str, end: &str| {
            let ms = |text| Timestamp::parse(text).unwrap().as_millis();
            assert_eq!(bounds(window, Timestamp::parse(now).unwrap()), (ms(start), ms(end)));
        };
        let leap = "2028-02-29T23:59:59.999Z";
        check(Window::Minute, leap, "2028-02-29T23:59:00Z", "2028-03-01T00:00:00Z");
        check(Window::Day, leap, "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z");
        check(Window::Month, leap, "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z");
        check(
            Window::Month,
            "2026-12-01T00:00:00Z",
            "2026-12-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
        );
        check(
            Window::Month,
            "1969-12-31T12:00:00Z",
            "1969-12-01T00:00:00Z",
            "1970-01-01T00:00:00Z",
        );
    }

    #[test]
    fn the_last_month_there_is_still_has_a_window_around_it() {
        let now = Timestamp::from_millis(i64::MAX);
        let (start, end) = bounds(Window::Month, now);
        assert!(start <= now.as_millis() && now.as_millis() < end);
    }
}
