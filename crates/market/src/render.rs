//! JSON of records, events and scores: fields exactly as the interface has them, in its order (D12).
//!
//! A record is rendered when it changed, once for all formats. `last_update` moves with every heartbeat, so
//! it is not part of the text: it is stamped into its place when an answer is put together (D28).

use std::fmt::Write;

use domain::message::Fixture;
use domain::{Format, RecordId, Sport, Status, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::book::{Event, EventTexts, Outcome, OutcomeName};

/// A record's JSON in pieces: the head up to the format, then the rest once per format, in one buffer.
#[derive(Debug)]
pub(crate) struct RecordText {
    buffer: Box<str>,
    head_end: u32,
    american_end: u32,
    decimal_end: u32,
    /// Of the buffer: names what the record says.
    hash: u64,
}

/// What stands where the stamp goes.
const NO_STAMP: &str = "0000-00-00T00:00:00Z";

impl RecordText {
    pub(crate) fn render(
        event: &Event,
        sport: &Sport,
        bookmaker: &str,
        market: &str,
        record: RecordId,
        outcomes: &[Outcome],
    ) -> Self {
        let mut out = String::with_capacity(512);
        out.push_str("{\"id\":\"");
        record.push_to(&mut out);
        out.push_str("\",\"sport_key\":\"");
        out.push_str(&sport.key);
        out.push_str("\",\"event_id\":\"");
        event.id.push_to(&mut out);
        out.push_str("\",\"bookmaker\":\"");
        out.push_str(bookmaker);
        out.push_str("\",\"market\":\"");
        out.push_str(market);
        out.push_str("\",\"format\":\"");
        let head_end = end(&out);
        push_rest(event, outcomes, Format::American, &mut out);
        let american_end = end(&out);
        push_rest(event, outcomes, Format::Decimal, &mut out);
        let decimal_end = end(&out);
        push_rest(event, outcomes, Format::Fractional, &mut out);
        let hash = xxh3_64(out.as_bytes());
        Self { buffer: out.into(), head_end, american_end, decimal_end, hash }
    }

    /// A number that another text has only by chance.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// How many bytes [`RecordText::write`] appends.
    pub(crate) fn len(&self, format: Format) -> usize {
        self.piece(0, Some(self.head_end)).len() + self.rest(format).len()
    }

    /// Appends the whole record in one format with its freshness stamped in.
    pub(crate) fn write(&self, format: Format, last_update: &[u8; 20], out: &mut Vec<u8>) {
        out.extend_from_slice(self.piece(0, Some(self.head_end)));
        let stamp_at = out.len() + format.key().len() + BEFORE_STAMP.len();
        out.extend_from_slice(self.rest(format));
        if let Some(stamp) = out.get_mut(stamp_at..stamp_at + last_update.len()) {
            stamp.copy_from_slice(last_update);
        }
    }

    fn rest(&self, format: Format) -> &[u8] {
        match format {
            Format::American => self.piece(self.head_end, Some(self.american_end)),
            Format::Decimal => self.piece(self.american_end, Some(self.decimal_end)),
            Format::Fractional => self.piece(self.decimal_end, None),
        }
    }

    fn piece(&self, from: u32, to: Option<u32>) -> &[u8] {
        let at = |end: u32| usize::try_from(end).unwrap_or(0);
        let to = to.map_or(self.buffer.len(), at);
        self.buffer.as_bytes().get(at(from)..to).unwrap_or_default()
    }
}

fn end(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

/// Between a record's format and its stamp.
const BEFORE_STAMP: &str = "\",\"last_update\":\"";

/// What of a record depends on the format, and what stands between.
fn push_rest(event: &Event, outcomes: &[Outcome], format: Format, out: &mut String) {
    out.push_str(format.key());
    out.push_str(BEFORE_STAMP);
    out.push_str(NO_STAMP);
    out.push_str("\",\"outcomes\":");
    push_outcomes(event, outcomes, format, out);
    out.push('}');
}

fn push_outcomes(event: &Event, outcomes: &[Outcome], format: Format, out: &mut String) {
    out.push('[');
    for (i, outcome) in outcomes.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str("{\"name\":");
        push_json_str(event.outcome_text(outcome.name), out);
        out.push_str(",\"price\":");
        outcome.quote.write_json(format, out);
        out.push_str(",\"point\":");
        match outcome.point {
            Some(point) => point.write_json(out),
            None => out.push_str("null"),
        }
        out.push('}');
    }
    out.push(']');
}

/// The JSON of an event and of its score.
pub(crate) fn event_texts(event: &Event, sport: &Sport) -> EventTexts {
    let (home, away) = match &event.fixture {
        Fixture::HeadToHead { home, away } => (home.clone(), away.clone()),
        Fixture::Field { .. } => (leader(event, 0), leader(event, 1)),
    };
    EventTexts {
        event: event_text(event, sport).into(),
        score: score_text(event, sport, &home, &away).into(),
        home,
        away,
    }
}

fn event_text(event: &Event, sport: &Sport) -> String {
    let mut out = String::with_capacity(320);
    out.push_str("{\"id\":\"");
    event.id.push_to(&mut out);
    push_key(&mut out, "sport_key");
    push_json_str_after_quote(&mut out, &sport.key);
    if let Fixture::Field { title } = &event.fixture {
        out.push_str(",\"title\":");
        push_json_str(title, &mut out);
    }
    out.push_str(",\"competition\":");
    push_json_str(&event.competition, &mut out);
    push_time(&mut out, ",\"commence_time\":\"", event.commence_time);
    match &event.fixture {
        Fixture::HeadToHead { home, away } => push_teams(&mut out, home, away),
        Fixture::Field { .. } => out.push_str(",\"home_team\":null,\"away_team\":null"),
    }
    out.push_str(",\"status\":\"");
    out.push_str(event.score.status.key());
    out.push_str("\",\"markets\":[");
    for (i, market) in event.open_markets().into_iter().enumerate() {
        out.push_str(if i == 0 { "\"" } else { ",\"" });
        out.push_str(market.key());
        out.push('"');
    }
    out.push_str("]}");
    out
}

fn score_text(event: &Event, sport: &Sport, home: &str, away: &str) -> String {
    let score = &event.score;
    let mut out = String::with_capacity(320);
    out.push_str("{\"event_id\":\"");
    event.id.push_to(&mut out);
    push_key(&mut out, "sport_key");
    push_json_str_after_quote(&mut out, &sport.key);
    out.push_str(",\"status\":\"");
    out.push_str(score.status.key());
    out.push('"');
    push_teams(&mut out, home, away);
    out.push_str(",\"home_score\":");
    push_number(&mut out, score.home);
    out.push_str(",\"away_score\":");
    push_number(&mut out, score.away);
    out.push_str(",\"periods\":[");
    push_periods(event, &mut out);
    push_time(&mut out, "],\"updated_at\":\"", event.score_changed);
    if let (true, Status::Final, Some(winner)) = (sport.bouts, score.status, score.winner) {
        out.push_str(",\"winner\":");
        push_json_str(
            match winner {
                domain::Side::Home => home,
                domain::Side::Away => away,
            },
            &mut out,
        );
    }
    out.push('}');
    out
}

/// For golf, the rounds of the leader and the runner-up, as far as both have played (D10).
fn push_periods(event: &Event, out: &mut String) {
    let mut first = true;
    let mut push = |number: u32, home: i32, away: i32| {
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        let written = write!(
            out,
            "{comma}{{\"number\":{number},\"home_score\":{home},\"away_score\":{away}}}"
        );
        debug_assert!(written.is_ok());
    };
    if let [leader, runner_up, ..] = &*event.score.leaders {
        for (number, (home, away)) in (1..).zip(leader.rounds.iter().zip(&runner_up.rounds)) {
            push(number, *home, *away);
        }
    }
    for period in &event.score.periods {
        push(period.number, period.home, period.away);
    }
}

fn leader(event: &Event, place: usize) -> Box<str> {
    event.score.leaders.get(place).map_or("TBD".into(), |leader| {
        event.outcome_text(OutcomeName::Entrant(leader.entrant)).into()
    })
}

fn push_teams(out: &mut String, home: &str, away: &str) {
    out.push_str(",\"home_team\":");
    push_json_str(home, out);
    out.push_str(",\"away_team\":");
    push_json_str(away, out);
}

fn push_number(out: &mut String, number: Option<i32>) {
    match number {
        Some(number) => {
            let written = write!(out, "{number}");
            debug_assert!(written.is_ok());
        }
        None => out.push_str("null"),
    }
}

fn push_time(out: &mut String, before: &str, time: Timestamp) {
    out.push_str(before);
    out.extend(time.seconds_text().map(char::from));
    out.push('"');
}

/// Closes the string before it and opens the next field's.
fn push_key(out: &mut String, key: &str) {
    out.push_str("\",\"");
    out.push_str(key);
    out.push_str("\":\"");
}

/// Catalogue keys need no escaping.
fn push_json_str_after_quote(out: &mut String, key: &str) {
    out.push_str(key);
    out.push('"');
}

/// Writes a JSON string.
pub(crate) fn push_json_str(text: &str, out: &mut String) {
    // Without a way out in the middle, the compiler looks at many bytes at a time. Nearly all texts are plain.
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    out.push('"');
    if text.bytes().fold(true, |all, byte| all & plain(byte)) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let written = write!(out, "\\u{:04x}", u32::from(c));
                debug_assert!(written.is_ok());
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
