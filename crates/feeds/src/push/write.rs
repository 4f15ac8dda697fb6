//! The inverse of the parser: writes a message as one line that parses to an equal message.

use std::fmt::{self, Write};

use domain::catalogue::Catalogue;
use domain::message::{
    Body, Correction, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome, ScoreBody,
};
use domain::price::{Format, Quote};
use domain::time::Timestamp;

/// Appends the message to `out` as one NDJSON line with its line end.
///
/// `catalogue` is the one that the message's ids come from. Prices are written in the format they were quoted in. The
/// contract has one format per message, so outcomes with several formats, or with a price that its format cannot
/// express exactly, are written as fractions: the prices stay exact and only the quoted format is lost.
/// [`crate::push::parse_line`] returns neither.
pub fn write_line(message: &FeedMessage, catalogue: &Catalogue, out: &mut String) {
    match &message.body {
        Body::Event { reference, listing } => write_event(reference, listing, catalogue, out),
        Body::Odds(odds) => write_odds(odds, catalogue, out),
        Body::Score(score) => write_score(score, out),
        Body::Remove { reference } => {
            out.push_str(r#"{"type":"remove""#);
            text_field("ref", reference, out);
        }
        Body::Heartbeat { bookmaker, sport } => {
            out.push_str(r#"{"type":"heartbeat""#);
            text_field("bookmaker", &catalogue.bookmaker(*bookmaker).key, out);
            if let Some(sport) = sport {
                text_field("sport", &catalogue.sport(*sport).key, out);
            }
        }
    }
    if let Some(ts) = message.ts {
        instant_field("ts", ts, out);
    }
    if let Some(seconds) = message.fresh_for_s {
        push(out, format_args!(",\"fresh_for\":{seconds}"));
    }
    out.push_str("}\n");
}

fn write_event(reference: &str, listing: &Listing, catalogue: &Catalogue, out: &mut String) {
    out.push_str(r#"{"type":"event""#);
    text_field("ref", reference, out);
    text_field("sport", &catalogue.sport(listing.sport).key, out);
    text_field("competition", &listing.competition, out);
    instant_field("commence_time", listing.commence_time, out);
    match &listing.fixture {
        Fixture::HeadToHead { home, away } => {
            text_field("home", home, out);
            text_field("away", away, out);
        }
        Fixture::Field { title } => text_field("title", title, out),
    }
}

fn write_odds(odds: &OddsBody, catalogue: &Catalogue, out: &mut String) {
    out.push_str(r#"{"type":"odds""#);
    text_field("ref", &odds.reference, out);
    text_field("bookmaker", &catalogue.bookmaker(odds.bookmaker).key, out);
    text_field("market", odds.market.key(), out);
    let format = common_format(&odds.outcomes);
    text_field("format", format.key(), out);
    if let Some(group) = &odds.group {
        text_field("group", group, out);
    }
    list_field("outcomes", &odds.outcomes, out, |outcome, out| {
        out.push_str(r#"{"name":"#);
        push_text(&outcome.name, out);
        out.push_str(r#","price":"#);
        outcome.quote.write_json(format, out);
        if let Some(point) = outcome.point {
            out.push_str(r#","point":"#);
            point.write_json(out);
        }
        out.push('}');
    });
}

fn write_score(score: &ScoreBody, out: &mut String) {
    out.push_str(r#"{"type":"score""#);
    text_field("ref", &score.reference, out);
    text_field("status", score.status.key(), out);
    for (key, side) in [("home_score", score.home), ("away_score", score.away)] {
        match side {
            Some(side) => push(out, format_args!(",\"{key}\":{side}")),
            None => push(out, format_args!(",\"{key}\":null")),
        }
    }
    list_field("periods", &score.periods, out, |period, out| {
        let (number, home, away) = (period.number, period.home, period.away);
        push(out, format_args!(r#"{{"number":{number},"home_score":{home},"away_score":{away}}}"#));
    });
    if let Some(winner) = &score.winner {
        text_field("winner", winner, out);
    }
    if !score.leaders.is_empty() {
        list_field("leaders", &score.leaders, out, |(name, rounds), out| {
            out.push_str(r#"{"name":"#);
            push_text(name, out);
            list_field("rounds", rounds, out, |round, out| {
                push(out, format_args!("{round}"));
            });
            out.push('}');
        });
    }
    match score.correction {
        Correction::Yes => out.push_str(r#","correction":true"#),
        Correction::No => {}
    }
}

/// The format in which all outcomes can be written exactly.
fn common_format(outcomes: &[OfferedOutcome]) -> Format {
    let Some(first) = outcomes.first() else {
        return Format::Decimal;
    };
    let format = first.quote.format;
    let reads_back = |quote: Quote| {
        let json = quote.to_json(format);
        Quote::parse(json.trim_matches('"'), format) == Ok(quote)
    };
    if outcomes.iter().all(|outcome| reads_back(outcome.quote)) {
        format
    } else {
        Format::Fractional
    }
}

fn text_field(key: &str, text: &str, out: &mut String) {
    push(out, format_args!(",\"{key}\":"));
    push_text(text, out);
}

/// Writes seconds if that is exact, as most sources do, otherwise milliseconds.
fn instant_field(key: &str, instant: Timestamp, out: &mut String) {
    push(out, format_args!(",\"{key}\":\""));
    if instant.as_millis() % 1000 == 0 {
        out.extend(instant.seconds_text().map(char::from));
    } else {
        out.extend(instant.millis_text().map(char::from));
    }
    out.push('"');
}

fn list_field<T>(key: &str, items: &[T], out: &mut String, write: impl Fn(&T, &mut String)) {
    push(out, format_args!(",\"{key}\":["));
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

/// A JSON string. Only the characters that RFC 8259 requires are escaped.
fn push_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0'..='\u{1f}' => push(out, format_args!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Writing to a `String` cannot fail.
fn push(out: &mut String, text: fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok());
}
