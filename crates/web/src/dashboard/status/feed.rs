//! Delays as an Atom feed (RFC 4287): one entry per delay, updated when the delay ends.
use http::Reply;

use crate::dashboard::page_request::PageRequest;
use crate::dashboard::status::DelayShown;

pub(super) fn reply(page_request: &PageRequest<'_>, overall: &str, delays: &[DelayShown]) -> Reply {
    let base = escape(&page_request.base());
    let entries: String = delays.iter().map(|shown| entry(&base, shown)).collect();
    let newest = delays.iter().map(|shown| updated(shown).to_owned()).max();
    let newest = newest.unwrap_or_else(|| page_request.now.to_string());
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\
         <id>{base}/status</id><title>Linesman status: {overall}</title><updated>{newest}</updated>\
         <author><name>Linesman</name></author><link rel=\"self\" href=\"{base}/status.atom\"/>\
         <link href=\"{base}/status\"/>{entries}</feed>\n"
    );
    Reply::new(200, "application/atom+xml; charset=utf-8", body)
}

fn updated(shown: &DelayShown) -> &str {
    shown.ended.as_ref().map_or(&shown.began.iso, |ended| &ended.iso)
}

fn entry(base: &str, shown: &DelayShown) -> String {
    let source = &shown.delay.source;
    let (bookmaker, sport) = (escape(&shown.bookmaker), escape(&shown.sport));
    let (title, text) = match &shown.ended {
        None => (
            format!("{bookmaker} {sport} is delayed"),
            format!("No good read in time since {}.", shown.began.iso),
        ),
        Some(ended) => (
            format!("{bookmaker} {sport} was delayed for {}", shown.lasted),
            format!("From {} to {}.", shown.began.iso, ended.iso),
        ),
    };
    format!(
        "<entry><id>{base}/status#{}-{}-{}</id><title>{title}</title><published>{}</published>\
         <updated>{}</updated><link href=\"{base}/status\"/><content type=\"text\">{text}</content></entry>",
        escape(&source.sport),
        escape(&source.bookmaker),
        shown.delay.began_ms,
        shown.began.iso,
        updated(shown),
    )
}

/// Escapes text for XML and drops characters that XML cannot represent.
fn escape(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => {}
            other => out.push(other),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_name_has_in_it_is_text() {
        assert_eq!(
            escape("<b>\"x\" & \u{1}y\u{ffff}\n]]>"),
            "&lt;b&gt;&quot;x&quot; &amp; y ]]&gt;"
        );
    }
}
