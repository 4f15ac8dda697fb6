//! Scores.

use domain::{Catalogue, Side, Status};
use market::snapshot::EventRow;
use serde_json::{Value, json};

use crate::v1::wire::object::{
    event_id, list, object, push_number, push_plain, push_text, push_time, schema, text,
};

object!(ScoreRecord: "The score of an event, with period details." {
    EVENT_ID: "event_id" = event_id(),
    SPORT_KEY: "sport_key" = text("Sport key."),
    STATUS: "status" = schema("Status", "The status of the event."),
    HOME_TEAM: "home_team" = text(
        "The home side; for golf the leader, `TBD` before the first score.",
    ),
    AWAY_TEAM: "away_team" = text(
        "The away side; for golf the runner-up, `TBD` before the first score.",
    ),
    HOME_SCORE: "home_score" = number_or_null("The home side's"),
    AWAY_SCORE: "away_score" = number_or_null("The away side's"),
    PERIODS: "periods" = list(
        "Period",
        "Sets, quarters, rounds; for golf the leaders' round totals.",
    ),
    UPDATED_AT: "updated_at" = schema("Timestamp", "Time at which the score last changed."),
    WINNER: "winner" optional = text("The fighter who won; present only for a finished fight."),
});

object!(Period: "A set, quarter or round." {
    NUMBER: "number" = json!({
        "type": "integer",
        "minimum": 1,
        "description": "Counted from 1.",
    }),
    HOME_SCORE: "home_score" = number(
        "The home side's score in it; for golf the leader's total.",
    ),
    AWAY_SCORE: "away_score" = number(
        "The away side's score in it; for golf the runner-up's total.",
    ),
});

fn number_or_null(whose: &str) -> Value {
    json!({
        "type": ["integer", "null"],
        "description": format!("{whose} score; null for golf, and until a source reports it."),
    })
}

fn number(meaning: &str) -> Value {
    json!({ "type": "integer", "description": meaning })
}

/// Name of an unknown leader (D10).
const UNKNOWN: &str = "TBD";

pub(super) fn push(catalogue: &Catalogue, event: &EventRow, out: &mut String) {
    let details = &event.details;
    let (sport, score) = (catalogue.sport(details.sport), &details.score);
    let home = details.home.as_deref().unwrap_or(UNKNOWN);
    let away = details.away.as_deref().unwrap_or(UNKNOWN);
    out.push_str(ScoreRecord::EVENT_ID.first);
    out.push('"');
    event.id.push_to(out);
    out.push('"');
    out.push_str(ScoreRecord::SPORT_KEY.next);
    push_plain(&sport.key, out);
    out.push_str(ScoreRecord::STATUS.next);
    push_plain(score.status.key(), out);
    out.push_str(ScoreRecord::HOME_TEAM.next);
    push_text(home, out);
    out.push_str(ScoreRecord::AWAY_TEAM.next);
    push_text(away, out);
    out.push_str(ScoreRecord::HOME_SCORE.next);
    push_number(score.home, out);
    out.push_str(ScoreRecord::AWAY_SCORE.next);
    push_number(score.away, out);
    out.push_str(ScoreRecord::PERIODS.next);
    out.push('[');
    for (i, period) in details.periods().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(Period::NUMBER.first);
        out.push_str(&period.number.to_string());
        out.push_str(Period::HOME_SCORE.next);
        push_number(Some(period.home), out);
        out.push_str(Period::AWAY_SCORE.next);
        push_number(Some(period.away), out);
        out.push('}');
    }
    out.push(']');
    out.push_str(ScoreRecord::UPDATED_AT.next);
    push_time(details.score_changed, out);
    if let (true, Status::Final, Some(winner)) = (sport.bouts, score.status, score.winner) {
        out.push_str(ScoreRecord::WINNER.next);
        let name = match winner {
            Side::Home => home,
            Side::Away => away,
        };
        push_text(name, out);
    }
    out.push('}');
}
