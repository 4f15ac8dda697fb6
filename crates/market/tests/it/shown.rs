//! Rows as JSON, in the form that the model writes: the data of a book that clients can see.

use domain::{Catalogue, Format, SportId, Status};
use linesman_market::book::EventDetails;
use linesman_market::rendered::{Rendered, WireSlot};
use linesman_market::select::{BoutSelection, EventSelection, OddsSelection, ScoreSelection};
use linesman_market::snapshot::{EventRow, RecordRow};
use linesman_market::{Page, Snapshot, Wire};
use serde_json::{Value, json};

/// A wire that renders every field that a wire may use.
#[derive(Debug)]
pub(crate) struct AllFields;

impl Wire for AllFields {
    fn slot(&self) -> WireSlot {
        WireSlot::new(0)
    }

    fn render_event(&self, _: &Catalogue, event: &EventRow) -> Rendered {
        let EventDetails { competition, title, home, away, score, score_changed, markets, .. } =
            &*event.details;
        let names = format!("{title:?} {home:?} {away:?}");
        rendered(format!(
            "{} {} {:?} {competition:?} {names} {names} {score:?} {score_changed} {markets:?}",
            event.id, event.commence_time, event.status,
        ))
    }

    fn render_record(&self, _: &Catalogue, event: &EventRow, record: &RecordRow) -> Rendered {
        let mut out = format!("{:120}", format!("{} {}", event.id, record.id));
        for format in Format::ALL {
            out += &format!("{:60}", format.key());
            for outcome in &*record.record.outcomes {
                let name = event.outcome_text(outcome.name);
                let (price, point) = (outcome.quote.to_json(format), outcome.point);
                out += &format!(r#"{{"name":{name:?},"price":{price},"point":{point:?}}},"#);
            }
        }
        rendered(out)
    }
}

fn rendered(text: String) -> Rendered {
    Rendered { bytes: text.into_bytes().into(), ends: [0; 3], hash: 0 }
}

/// Checks that the stored form of each row is what would be rendered now.
pub(crate) fn check(snapshot: &Snapshot) {
    let catalogue = snapshot.catalogue();
    for view in catalogue.sports().map(|(sport, _)| snapshot.sport(sport)) {
        for event in &view.events {
            let kept = snapshot.rendered_event(&AllFields, event);
            assert_eq!(kept.bytes, AllFields.render_event(catalogue, event).bytes);
            for record in event.records.clone().filter_map(|at| view.record(at)) {
                let kept = snapshot.rendered_record(&AllFields, event, record);
                assert_eq!(kept.bytes, AllFields.render_record(catalogue, event, record).bytes);
            }
        }
    }
}

pub(crate) fn records(
    snapshot: &Snapshot,
    selection: &OddsSelection,
    format: Format,
) -> Page<Value> {
    let (view, catalogue) = (snapshot.sport(selection.sport), snapshot.catalogue());
    let page = selection.select(snapshot);
    let write = |row: &RecordRow| {
        let event = &view.events[usize::try_from(row.event).unwrap()];
        json!({
            "id": row.id.to_string(),
            "sport_key": &*catalogue.sport(event.details.sport).key,
            "event_id": event.id.to_string(),
            "bookmaker": &*catalogue.bookmaker(row.bookmaker).key,
            "market": row.market.key(),
            "format": format.key(),
            "last_update": row.last_update.to_string(),
            "outcomes": outcomes(event, row, format, Points::Shown),
        })
    };
    Page { items: page.items.into_iter().map(write).collect(), next: page.next }
}

#[derive(Clone, Copy, PartialEq)]
enum Points {
    Shown,
    LeftOut,
}

fn outcomes(event: &EventRow, row: &RecordRow, format: Format, points: Points) -> Value {
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let write = |outcome: &linesman_market::book::Outcome| {
        let mut json = json!({
            "name": event.outcome_text(outcome.name),
            "price": number(&outcome.quote.to_json(format)),
        });
        if points == Points::Shown {
            json["point"] = outcome.point.map_or(Value::Null, |point| {
                let mut text = String::new();
                point.write_json(&mut text);
                number(&text)
            });
        }
        json
    };
    row.record.outcomes.iter().map(write).collect()
}

pub(crate) fn events(snapshot: &Snapshot, selection: &EventSelection) -> Page<Value> {
    let page = selection.select(snapshot);
    let write = |row: &EventRow| {
        let details = &row.details;
        let side =
            |name: &Option<Box<str>>| json!(name.as_ref().filter(|_| details.title.is_none()));
        let markets: Vec<&str> = details.markets.iter().map(|market| market.key()).collect();
        let mut json = json!({
            "id": row.id.to_string(),
            "sport_key": &*snapshot.catalogue().sport(details.sport).key,
            "competition": details.competition,
            "commence_time": row.commence_time.to_string(),
            "home_team": side(&details.home),
            "away_team": side(&details.away),
            "status": row.status.key(),
            "markets": markets,
        });
        if let Some(title) = &details.title {
            json["title"] = json!(title);
        }
        json
    };
    Page { items: page.items.into_iter().map(write).collect(), next: page.next }
}

pub(crate) fn scores(snapshot: &Snapshot, selection: &ScoreSelection) -> Page<Value> {
    let page = selection.select(snapshot);
    let write = |row: &EventRow| {
        let (details, score) = (&row.details, &row.details.score);
        let sport = snapshot.catalogue().sport(details.sport);
        let side = |name: &Option<Box<str>>| name.as_deref().unwrap_or("TBD").to_owned();
        let (home, away) = (side(&details.home), side(&details.away));
        let periods = details.periods().map(|period| {
            json!({
                "number": period.number, "home_score": period.home, "away_score": period.away
            })
        });
        let mut json = json!({
            "event_id": row.id.to_string(),
            "sport_key": &*sport.key,
            "status": row.status.key(),
            "home_team": home,
            "away_team": away,
            "home_score": score.home,
            "away_score": score.away,
            "periods": periods.collect::<Value>(),
            "updated_at": details.score_changed.to_string(),
        });
        if let (true, Status::Final, Some(winner)) = (sport.bouts, score.status, score.winner) {
            json["winner"] = json!(if winner == domain::Side::Home { home } else { away });
        }
        json
    };
    Page { items: page.items.into_iter().map(write).collect(), next: page.next }
}

/// A page of bouts, as one object.
pub(crate) fn bouts(
    snapshot: &Snapshot,
    selection: &BoutSelection,
    format: Format,
) -> (Value, Option<linesman_market::select::Cursor>) {
    let catalogue = snapshot.catalogue();
    let key = |id| &*catalogue.bookmaker(id).key;
    let page = selection.select(snapshot);
    let bouts = page.items.into_iter().map(|(event, rows)| {
        let books = rows.into_iter().map(|row| {
            json!({
                "book": key(row.bookmaker),
                "last_update": row.last_update.to_string(),
                "outcomes": outcomes(event, row, format, Points::LeftOut),
            })
        });
        json!({
            "home": event.details.home,
            "away": event.details.away,
            "commence_time": event.commence_time.to_string(),
            "books": books.collect::<Value>(),
        })
    });
    let sources = snapshot.sport(selection.sport).sources.iter();
    let passing = sources.filter(|row| selection.bookmakers.contains(row.bookmaker)).map(|row| {
        json!({
            "book": key(row.bookmaker),
            "last_update": row.source.read_at.to_string(),
            "stale": row.stale,
            "latency_ms": row.source.latency_ms,
        })
    });
    let whole = json!({
        "sport": &*catalogue.sport(selection.sport).key,
        "generated_at": String::from_utf8(snapshot.cut_at.millis_text().to_vec()).unwrap(),
        "sources": passing.collect::<Value>(),
        "bouts": bouts.collect::<Value>(),
    });
    (whole, page.next)
}

/// Every record, event and score of a sport, and its bouts.
pub(crate) fn all(snapshot: &Snapshot, sport: SportId) -> Value {
    use crate::test_book::{all_bouts, all_events, all_odds, all_scores};
    let odds = Format::ALL.map(|format| records(snapshot, &all_odds(sport), format).items);
    json!([
        odds,
        events(snapshot, &all_events(sport)).items,
        scores(snapshot, &all_scores(sport)).items,
        bouts(snapshot, &all_bouts(sport), Format::American).0,
    ])
}
