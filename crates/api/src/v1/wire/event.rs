//! Events. An event and its score are rendered together when one of them changes.

use domain::Catalogue;
use market::rendered::Rendered;
use market::snapshot::EventRow;
use serde_json::{Value, json};

use crate::v1::wire::object::{
    event_id, list, object, push_plain, push_text, push_time, schema, text,
};
use crate::v1::wire::score;

object!(Event: "An event." {
    ID: "id" = event_id(),
    SPORT_KEY: "sport_key" = text("Sport key."),
    TITLE: "title" optional = text("The tournament; present only for golf."),
    COMPETITION: "competition" = text("The league, tour or card it belongs to."),
    COMMENCE_TIME: "commence_time" = schema(
        "Timestamp",
        "Start time; for golf, the first round's tee time.",
    ),
    HOME_TEAM: "home_team" = text_or_null("The home side; null for golf."),
    AWAY_TEAM: "away_team" = text_or_null("The away side; null for golf."),
    STATUS: "status" = schema("Status", "The status of the event."),
    MARKETS: "markets" = list("MarketKey", "The markets that have prices now."),
});

fn text_or_null(meaning: &str) -> Value {
    json!({ "type": ["string", "null"], "description": meaning })
}

/// An event and its score.
pub(super) fn render(catalogue: &Catalogue, event: &EventRow) -> Rendered {
    let mut out = String::with_capacity(640);
    push_event(catalogue, event, &mut out);
    let event_end = u32::try_from(out.len()).unwrap_or(u32::MAX);
    score::push(catalogue, event, &mut out);
    let bytes = out.into_boxed_str().into_boxed_bytes();
    Rendered { bytes, ends: [event_end, 0, 0], hash: 0 }
}

/// The rendered event, and its rendered score.
pub(super) fn texts(rendered: &Rendered) -> (&[u8], &[u8]) {
    let event_end = usize::try_from(rendered.ends[0]).unwrap_or(usize::MAX);
    rendered.bytes.split_at_checked(event_end).unwrap_or_default()
}

fn push_event(catalogue: &Catalogue, event: &EventRow, out: &mut String) {
    let details = &event.details;
    out.push_str(Event::ID.first);
    out.push('"');
    event.id.push_to(out);
    out.push('"');
    out.push_str(Event::SPORT_KEY.next);
    push_plain(&catalogue.sport(details.sport).key, out);
    if let Some(title) = &details.title {
        out.push_str(Event::TITLE.next);
        push_text(title, out);
    }
    out.push_str(Event::COMPETITION.next);
    push_text(&details.competition, out);
    out.push_str(Event::COMMENCE_TIME.next);
    push_time(event.commence_time, out);
    for (key, side) in [(Event::HOME_TEAM, &details.home), (Event::AWAY_TEAM, &details.away)] {
        out.push_str(key.next);
        match side.as_ref().filter(|_| details.title.is_none()) {
            Some(name) => push_text(name, out),
            None => out.push_str("null"),
        }
    }
    out.push_str(Event::STATUS.next);
    push_plain(event.status.key(), out);
    out.push_str(Event::MARKETS.next);
    out.push('[');
    for (i, market) in details.markets.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        push_plain(market.key(), out);
    }
    out.push_str("]}");
}
