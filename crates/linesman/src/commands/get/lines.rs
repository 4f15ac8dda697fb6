//! Records of price histories as rows: a row is an outcome, with the surrounding fields repeated.

use serde_json::{Map, Value, json};

/// An object is one row.
pub(super) fn whole(record: &Value) -> Vec<Value> {
    vec![record.clone()]
}

/// The outcomes of an opening and a closing line, with the prices of both.
pub(super) fn closing(record: &Value) -> Vec<Value> {
    let lines = ["open", "close"].map(|line| {
        let outcomes = record.get(line).and_then(|line| line.get("outcomes"));
        (line, outcomes.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default())
    });
    let mut names: Vec<&Value> = Vec::new();
    for name in lines.iter().flat_map(|(_, outcomes)| outcomes.iter()).filter_map(name_of) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let around = fields_of(record, &[]);
    let row = |name: &Value| {
        let mut row = around.clone();
        row.insert("name".to_owned(), name.clone());
        for (line, outcomes) in &lines {
            let outcome = outcomes.iter().find(|one| name_of(one) == Some(name));
            let field = |field: &str| outcome.and_then(|one| one.get(field)).cloned();
            let mut both = row.get(*line).and_then(Value::as_object).cloned().unwrap_or_default();
            both.shift_remove("outcomes");
            both.extend(["point", "price"].map(|name| (name.to_owned(), json!(field(name)))));
            row.insert((*line).to_owned(), Value::Object(both));
        }
        Value::Object(row)
    };
    names.into_iter().map(row).collect()
}

/// The outcomes of each change. A change that withdrew prices is a row too: it contains the reason.
pub(super) fn path(record: &Value) -> Vec<Value> {
    let around = fields_of(record, &["open", "close", "points"]);
    let mut rows = Vec::new();
    for point in record.get("points").and_then(Value::as_array).into_iter().flatten() {
        let mut change = around.clone();
        change.extend(fields_of(point, &["outcomes"]));
        let outcomes = point.get("outcomes").and_then(Value::as_array);
        let outcomes = outcomes.map(Vec::as_slice).unwrap_or_default();
        let with =
            |outcome: &Value| {
                let mut row = change.clone();
                row.extend(["name", "point", "price"].map(|field| {
                    (field.to_owned(), outcome.get(field).cloned().unwrap_or_default())
                }));
                Value::Object(row)
            };
        match outcomes {
            [] => rows.push(with(&Value::Null)),
            outcomes => rows.extend(outcomes.iter().map(with)),
        }
    }
    rows
}

fn name_of(outcome: &Value) -> Option<&Value> {
    outcome.get("name")
}

fn fields_of(record: &Value, left_out: &[&str]) -> Map<String, Value> {
    let fields = record.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !left_out.contains(&name.as_str()));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_prices_of_both_lines() {
        let record = json!({
            "id": "odd_1",
            "open": { "exact": true, "outcomes": [
                { "name": "A", "price": 150, "point": -3.5 },
                { "name": "B", "price": -170, "point": 3.5 },
            ] },
            "close": { "by": "live", "outcomes": [{ "name": "A", "price": 140, "point": -4.5 }] },
        });
        let first = json!({
            "id": "odd_1",
            "open": { "exact": true, "point": -3.5, "price": 150 },
            "close": { "by": "live", "point": -4.5, "price": 140 },
            "name": "A",
        });
        let rows = closing(&record);
        assert_eq!(rows.first(), Some(&first));
        assert_eq!((rows.len(), &rows[1]["close"]["price"]), (2, &Value::Null));
        assert_eq!(closing(&json!({ "id": "odd_1", "open": null, "close": null })).len(), 0);
    }

    #[test]
    fn a_change_without_prices_is_a_row() {
        let record = json!({ "id": "odd_1", "open": {}, "close": null, "points": [
            { "at": "t1", "reason": null, "outcomes": [{ "name": "A", "price": 150, "point": null }] },
            { "at": "t2", "reason": "no_prices", "outcomes": [] },
        ] });
        let rows = path(&record);
        assert_eq!((rows.len(), &rows[0]["price"]), (2, &json!(150)));
        let last = json!({
            "id": "odd_1", "at": "t2", "reason": "no_prices", "name": null, "point": null, "price": null,
        });
        assert_eq!(rows.last(), Some(&last));
    }
}
