//! Text of instants and durations.
use std::time::Duration;

use domain::Timestamp;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// An instant for machines, as text, and how long ago it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeText {
    pub(crate) iso: String,
    pub(crate) text: String,
    pub(crate) ago: String,
}

impl TimeText {
    /// The time of day, `14:05`.
    pub(crate) fn time(at: Timestamp) -> String {
        at.to_string().get(11..16).unwrap_or_default().to_owned()
    }

    /// The day without its year, `3 Feb`.
    pub(crate) fn day(at: Timestamp) -> String {
        let text = Self::new(at, at).text;
        text.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn new(at: Timestamp, now: Timestamp) -> Self {
        let iso = at.to_string();
        let part = |from: usize, to: usize| iso.get(from..to).unwrap_or_default();
        let month = part(5, 7).parse::<usize>().unwrap_or(1).saturating_sub(1);
        let text = format!(
            "{} {} {}, {} UTC",
            part(8, 10).trim_start_matches('0'),
            MONTHS.get(month).unwrap_or(&""),
            part(0, 4),
            part(11, 16)
        );
        let ago = if at > now {
            format!("in {}", span(at.since(now)))
        } else if now.since(at) < Duration::from_secs(5) {
            "just now".to_owned()
        } else {
            format!("{} ago", span(now.since(at)))
        };
        Self { iso, text, ago }
    }
}

/// A duration in its largest unit, rounded down.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..3600 => (seconds / 60, "min"),
        3600..172_800 => (seconds / 3600, "h"),
        172_800.. => (seconds / 86_400, "days"),
    };
    format!("{count} {unit}")
}

/// A latency as text: small values are exact.
pub(crate) fn latency(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        120_000.. => span(Duration::from_millis(ms)),
    }
}

/// A rate per second from a rate per minute.
pub(crate) fn a_second(a_minute: u64) -> String {
    match a_minute {
        0..60 => format!("0.{:02}", a_minute * 100 / 60),
        60..6000 => format!("{}.{}", a_minute / 60, a_minute % 60 * 10 / 60),
        6000.. => number(a_minute / 60),
    }
}

/// A number with thin non-breaking spaces between thousands.
pub(crate) fn number(value: impl Into<u64>) -> String {
    let digits = value.into().to_string();
    let mut text = String::with_capacity(digits.len() + 6);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_as_people_say_them() {
        let now = Timestamp::parse("2026-11-14T12:00:00Z").unwrap();
        let ago = |text: &str| TimeText::new(Timestamp::parse(text).unwrap(), now).ago;
        assert_eq!(ago("2026-11-14T11:59:58Z"), "just now");
        assert_eq!(ago("2026-11-14T11:59:01Z"), "59 s ago");
        assert_eq!(ago("2026-11-14T11:00:01Z"), "59 min ago");
        assert_eq!(ago("2026-11-13T11:00:00Z"), "25 h ago");
        assert_eq!(ago("2026-11-01T12:00:00Z"), "13 days ago");
        assert_eq!(ago("2026-11-15T12:00:00Z"), "in 24 h");
        let moment = TimeText::new(Timestamp::parse("2026-02-03T04:05:06Z").unwrap(), now);
        assert_eq!(
            (moment.iso.as_str(), moment.text.as_str()),
            ("2026-02-03T04:05:06Z", "3 Feb 2026, 04:05 UTC")
        );
        let at = Timestamp::parse("2026-02-03T04:05:06Z").unwrap();
        assert_eq!(
            (TimeText::day(at), TimeText::time(at)),
            ("3 Feb".to_owned(), "04:05".to_owned())
        );
    }

    #[test]
    fn latencies_and_rates_read_as_people_say_them() {
        let latencies = [0, 999, 1000, 2549, 119_999, 120_000].map(latency);
        assert_eq!(latencies, ["0 ms", "999 ms", "1.0 s", "2.5 s", "119.9 s", "2 min"]);
        let rates = [0, 5, 6, 90, 5999, 600_000].map(|n| a_second(n).replace('\u{202f}', " "));
        assert_eq!(rates, ["0.00", "0.08", "0.10", "1.5", "99.9", "10 000"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = |n: u32| number(n).replace('\u{202f}', " ");
        assert_eq!(
            [shown(0), shown(999), shown(1000), shown(1_234_567)],
            ["0", "999", "1 000", "1 234 567"]
        );
    }
}
