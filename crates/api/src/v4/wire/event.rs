//! Events and scores.
//!
//! An event is rendered when it changes: the part up to its start, the part with its sides, and its score. The time is
//! inserted between them in the requested format.

use std::io::Write as _;

use domain::{Catalogue, Status, Timestamp, World, v4};
use market::Snapshot;
use market::rendered::Rendered;
use market::snapshot::EventRow;
use serde_json::{Value, json};

use crate::answers::Answer;
use crate::v1::wire::object::{flag, list, object, push_plain, push_text, schema, text};
use crate::v4::selection::{Selection, Style};
use crate::v4::wire::window::{choose, days};
use crate::v4::wire::{Source, V4, array};

object!(Event: "An event." {
    ID: "id" = event_id(),
    SPORT_KEY: "sport_key" = text("Sport key."),
    SPORT_TITLE: "sport_title" = text("Display name of the sport."),
    COMMENCE_TIME: "commence_time" = schema("Time", "Start time."),
    HOME_TEAM: "home_team" = text_or_null("The home side; null for golf."),
    AWAY_TEAM: "away_team" = text_or_null("The away side; null for golf."),
    HOME_ROTATION: "home_rotation" optional = json!({ "type": "null" }),
    AWAY_ROTATION: "away_rotation" optional = json!({ "type": "null" }),
});

object!(ScoreRecord: "The score of an event." {
    ID: "id" = event_id(),
    SPORT_KEY: "sport_key" = text("Sport key."),
    SPORT_TITLE: "sport_title" = text("Display name of the sport."),
    COMMENCE_TIME: "commence_time" = schema("Time", "Start time."),
    COMPLETED: "completed" = flag("True if the event is final."),
    HOME_TEAM: "home_team" = text_or_null("The home side; null for golf."),
    AWAY_TEAM: "away_team" = text_or_null("The away side; null for golf."),
    SCORES: "scores" = json!({
        "type": ["array", "null"],
        "items": { "$ref": "#/components/schemas/Score" },
        "description": "Both sides, for golf the leader and the runner-up; null before the start.",
    }),
    LAST_UPDATE: "last_update" = json!({
        "anyOf": [{ "$ref": "#/components/schemas/Time" }, { "type": "null" }],
        "description": "Time at which the score last changed; null if there is none.",
    }),
});

object!(Score: "A side's score." {
    NAME: "name" = text("The side; for golf the player."),
    SCORE: "score" = text("A whole number; for golf the sum of the rounds."),
});

pub(super) fn event_id() -> Value {
    json!({
        "type": "string",
        "pattern": "^[0-9a-f]{32}$",
        "description": "The event's ID: opaque, stable across restarts, nodes and bookmakers.",
    })
}

pub(super) fn text_or_null(meaning: &str) -> Value {
    json!({ "type": ["string", "null"], "description": meaning })
}

/// Schema of an event's bookmakers; `of` is the schema of one.
pub(super) fn bookmakers(of: &str) -> Value {
    list(of, "Bookmakers with prices for the filter, in the order of their keys.")
}

/// Hexadecimal digits of an id.
const ID_LENGTH: usize = 32;
/// Start of the sport's key in the rendered text.
const KEY_START: usize =
    Event::ID.first.len() + 1 + ID_LENGTH + 1 + Event::SPORT_KEY.next.len() + 1;

/// A rendered event.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventText<'a>(&'a Rendered);

pub(super) fn render(catalogue: &Catalogue, world: World, event: &EventRow) -> Rendered {
    let details = &event.details;
    let called = (&*details.competition, details.title.as_deref());
    let name = v4::sport_name(catalogue, world, details.sport, called);
    let mut out = String::with_capacity(320);
    out.push_str(Event::ID.first);
    out.push('"');
    event.id.push_hex(&mut out);
    out.push('"');
    out.push_str(Event::SPORT_KEY.next);
    push_plain(&name.key, &mut out);
    let key_end = end(&out).saturating_sub(1);
    out.push_str(Event::SPORT_TITLE.next);
    push_text(&name.title, &mut out);
    out.push_str(Event::COMMENCE_TIME.next);
    let head_end = end(&out);
    for (key, side) in [(Event::HOME_TEAM, &details.home), (Event::AWAY_TEAM, &details.away)] {
        out.push_str(key.next);
        match side.as_ref().filter(|_| details.title.is_none()) {
            Some(name) => push_text(name, &mut out),
            None => out.push_str("null"),
        }
    }
    let sides_end = end(&out);
    push_scores(event, &mut out);
    let bytes = out.into_boxed_str().into_boxed_bytes();
    Rendered { bytes, ends: [head_end, sides_end, key_end], hash: 0 }
}

/// Appends the scores, or null before the start and if there are none.
fn push_scores(event: &EventRow, out: &mut String) {
    let score = &event.details.score;
    let mut scores: Vec<(&str, i64)> = Vec::new();
    if event.status != Status::Scheduled {
        let (home, away) = (event.details.home.as_deref(), event.details.away.as_deref());
        if event.details.title.is_some() {
            let sums = score.leaders.iter().map(|l| l.rounds.iter().copied().map(i64::from).sum());
            scores.extend([home, away].into_iter().flatten().zip(sums));
        } else if let (Some(home), Some(away), Some(one), Some(other)) =
            (home, away, score.home, score.away)
        {
            scores.extend([(home, i64::from(one)), (away, i64::from(other))]);
        }
    }
    if scores.is_empty() {
        out.push_str("null");
        return;
    }
    for (i, (name, score)) in scores.into_iter().enumerate() {
        out.push(if i == 0 { '[' } else { ',' });
        out.push_str(Score::NAME.first);
        push_text(name, out);
        out.push_str(Score::SCORE.next);
        push_plain(&score.to_string(), out);
        out.push('}');
    }
    out.push(']');
}

impl<'a> EventText<'a> {
    pub(super) fn of(snapshot: &Snapshot, wire: V4, event: &'a EventRow) -> Self {
        Self(snapshot.rendered_event(&wire, event))
    }

    /// The key of the event's sport.
    pub(super) fn sport_key(self) -> &'a str {
        let [_, _, key_end] = self.0.ends;
        let key = self.0.bytes.get(KEY_START..at(key_end)).unwrap_or_default();
        std::str::from_utf8(key).unwrap_or_default()
    }

    /// Appends the event up to its sides and rotation numbers, without the closing brace.
    pub(super) fn write(self, event: &EventRow, style: Style, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head());
        put_time(event.commence_time, style, out);
        out.extend_from_slice(self.sides());
        if style.has(Style::ROTATION_NUMBERS) {
            for key in [Event::HOME_ROTATION, Event::AWAY_ROTATION] {
                out.extend_from_slice(key.next.as_bytes());
                out.extend_from_slice(b"null");
            }
        }
    }

    fn write_score(self, event: &EventRow, style: Style, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head());
        put_time(event.commence_time, style, out);
        out.extend_from_slice(ScoreRecord::COMPLETED.next.as_bytes());
        let completed: &[u8] = if event.status == Status::Final { b"true" } else { b"false" };
        out.extend_from_slice(completed);
        out.extend_from_slice(self.sides());
        out.extend_from_slice(ScoreRecord::SCORES.next.as_bytes());
        out.extend_from_slice(self.scores());
        out.extend_from_slice(ScoreRecord::LAST_UPDATE.next.as_bytes());
        if self.scores() == b"null" {
            out.extend_from_slice(b"null");
        } else {
            put_time(event.details.score_changed, style, out);
        }
        out.push(b'}');
    }

    fn head(self) -> &'a [u8] {
        self.0.bytes.get(..at(self.0.ends[0])).unwrap_or_default()
    }

    fn sides(self) -> &'a [u8] {
        self.0.bytes.get(at(self.0.ends[0])..at(self.0.ends[1])).unwrap_or_default()
    }

    fn scores(self) -> &'a [u8] {
        self.0.bytes.get(at(self.0.ends[1])..).unwrap_or_default()
    }
}

/// Appends a time in the requested format.
pub(super) fn put_time(time: Timestamp, style: Style, out: &mut Vec<u8>) {
    if style.has(Style::UNIX) {
        let written = write!(out, "{}", time.as_secs());
        debug_assert!(written.is_ok());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(&time.seconds_text());
    out.push(b'"');
}

pub(super) fn events(source: &Source<'_>, selection: &Selection) -> Answer {
    let chosen = choose(source, selection, |event| event.status != Status::Final);
    let mut out = Vec::with_capacity(256 * chosen.len() + 2);
    for (_, _, event) in &chosen {
        let text = EventText::of(source.snapshot, source.wire, event);
        text.write(event, selection.style, &mut out);
        out.extend_from_slice(b"},");
    }
    array(out, chosen.len())
}

pub(super) fn scores(source: &Source<'_>, selection: &Selection, past: u8) -> Answer {
    let since = (past > 0).then(|| source.snapshot.cut_at.minus(days(past)));
    let wanted = |event: &EventRow| {
        event.status != Status::Final || since.is_some_and(|since| event.commence_time >= since)
    };
    let chosen = choose(source, selection, wanted);
    let mut out = Vec::with_capacity(384 * chosen.len() + 2);
    for (_, _, event) in &chosen {
        let text = EventText::of(source.snapshot, source.wire, event);
        text.write_score(event, selection.style, &mut out);
        out.push(b',');
    }
    array(out, chosen.len())
}

pub(super) fn end(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

fn at(end: u32) -> usize {
    usize::try_from(end).unwrap_or(usize::MAX)
}
