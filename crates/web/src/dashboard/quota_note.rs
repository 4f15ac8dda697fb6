//! Notes about keys whose quota runs low, shown on every page.

use accounts::{KeyView, Window, WindowStanding, alert_percent};
use domain::Timestamp;

use crate::dashboard::key_line::KeyLine;
use crate::dashboard::time_text::{TimeText, number};

/// Maximum number of keys in the banner.
const NOTES_MAX: usize = 3;

/// A note about a key whose quota runs low.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuotaNote {
    /// `warn` or `bad`.
    pub(crate) tone: &'static str,
    pub(crate) percent: u32,
    pub(crate) text: String,
}

/// Keys that reached a share of their quota worth a note, the fullest first.
pub(crate) fn notes(keys: &[KeyView], now: Timestamp) -> Vec<QuotaNote> {
    let mut notes: Vec<QuotaNote> = keys
        .iter()
        .filter_map(|view| {
            let quota = view.standing?.quota;
            let percent = alert_percent(&quota)?;
            let text = format!(
                "{} ({}) has used {} % of its requests for the {}: {} of {} are left. Resets at {} UTC.",
                KeyLine::new(view, now).name,
                view.record.hint,
                share(&quota),
                window_name(quota.window),
                number(quota.remaining),
                number(quota.limit),
                TimeText::time(quota.resets_at),
            );
            let tone = if percent >= 95 { "bad" } else { "warn" };
            Some(QuotaNote { tone, percent: share(&quota), text })
        })
        .collect();
    notes.sort_by_key(|note| std::cmp::Reverse(note.percent));
    notes.truncate(NOTES_MAX);
    notes
}

fn share(standing: &WindowStanding) -> u32 {
    let percent = u64::from(standing.used) * 100 / u64::from(standing.limit.max(1));
    u32::try_from(percent).unwrap_or(u32::MAX)
}

const fn window_name(window: Window) -> &'static str {
    match window {
        Window::Minute => "minute",
        Window::Day => "day",
        Window::Month => "month",
    }
}
