use std::collections::BTreeSet;

use domain::message::RejectCode;
use domain::{Format, Market, MarketAlias, Region, Status};

use super::*;
use crate::error::ErrorCode;
use crate::operation::Operation;
use crate::v1::param::Param;

fn embedded() -> Value {
    value(&Catalogue::load(None).unwrap())
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(target) => document.pointer(target.strip_prefix('#').unwrap()).expect(target),
        None => value,
    }
}

/// Visits every object in the document.
fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            visit(fields);
            fields.values().for_each(|value| walk(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_parameter_of_every_operation_is_described() {
    let document = embedded();
    for operation in Operation::v1() {
        let Some(template) = operation.row().path else { continue };
        let item = &document["paths"][template];
        assert_eq!(item["get"]["operationId"], operation.name());
        assert!(
            item["head"].is_null(),
            "HEAD is GET without the body; generated clients need no second method"
        );
        let none = Vec::new();
        let listed = item["parameters"].as_array().unwrap_or(&none);
        let names: BTreeSet<&str> = listed
            .iter()
            .map(|parameter| resolve(&document, parameter)["name"].as_str().unwrap())
            .collect();
        for param in operation.row().params().iter().filter(|param| **param != Param::ApiKey) {
            let mut listed = listed.iter().map(|listed| resolve(&document, listed));
            let described = listed.find(|listed| listed["name"] == param.name());
            let described = described.unwrap_or_else(|| panic!("{template} {}", param.name()));
            assert_eq!(described["description"], param.meaning());
            assert!(described["schema"].is_object());
        }
        // The operation accepts every parameter that is described.
        for name in names.iter().filter(|name| !template.contains(**name)) {
            let known = operation.row().params().iter().any(|param| param.name() == *name);
            let ranged = operation.is_file() && ["Range", "If-Range"].contains(name);
            let resumed = operation.is_stream() && *name == "Last-Event-ID";
            assert!(known || *name == "If-None-Match" || ranged || resumed, "{template} {name}");
        }
        assert_eq!(names.contains("Last-Event-ID"), operation.is_stream(), "{template}");
    }
    assert_eq!(
        document["components"]["securitySchemes"]["ApiKeyQuery"]["name"],
        Param::ApiKey.name()
    );
}

#[test]
fn every_code_is_described_with_its_status_and_an_example() {
    let document = embedded();
    let known =
        &document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"];
    let mut seen = BTreeSet::new();
    for (_, item) in document["paths"].as_object().unwrap() {
        for (_, operation) in item.as_object().unwrap().iter().filter(|(_, held)| held.is_object())
        {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let content = &resolve(&document, response)["content"]["application/json"];
                for (slug, example) in content["examples"].as_object().into_iter().flatten() {
                    if let Some(code) = example["value"]["error"]["code"].as_str() {
                        assert_eq!(code, slug);
                        seen.insert((status.clone(), code.to_owned()));
                    }
                }
            }
        }
    }
    for code in ErrorCode::ALL {
        assert!(known["enum"].as_array().unwrap().contains(&code.slug().into()), "{code:?}");
        let entry = (code.status().to_string(), code.slug().to_owned());
        assert!(seen.contains(&entry), "{code:?} is nowhere described with an example");
    }
}

#[test]
fn every_value_of_every_set_is_in_the_document() {
    let text = document();
    let catalogue = Catalogue::load(None).unwrap();
    let names = Market::ALL
        .iter()
        .map(|market| market.key())
        .chain(MarketAlias::KEYS)
        .chain(Format::ALL.iter().map(|format| format.key()))
        .chain(Region::ALL.iter().map(|region| region.key()))
        .chain(Status::ALL.iter().map(|status| status.key()))
        .chain(RejectCode::ALL.iter().map(|code| code.slug()))
        .chain(catalogue.sports().map(|(_, sport)| &*sport.key))
        .chain(catalogue.bookmakers().map(|(_, bookmaker)| &*bookmaker.key));
    for name in names {
        assert!(text.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn references_lead_somewhere_and_operation_ids_are_unique() {
    let document = embedded();
    let mut ids = BTreeSet::new();
    walk(&document, &mut |fields| {
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(target.strip_prefix('#').unwrap()).is_some(), "{target}");
        }
        if let Some(id) = fields.get("operationId").and_then(Value::as_str) {
            assert!(ids.insert(id.to_owned()), "{id} twice");
        }
    });
    let mut held = Vec::new();
    walk(&document, &mut |fields| held.extend(fields.get("$ref").and_then(Value::as_str)));
    for (kind, components) in document["components"].as_object().unwrap() {
        // Security schemes are used by name and not by `$ref`; the kinds of a message by `$ref`.
        for name in components.as_object().unwrap().keys().filter(|_| kind != "securitySchemes") {
            let target = format!("#/components/{kind}/{name}");
            assert!(held.contains(&&*target), "{target} is not used");
        }
    }
}

#[test]
fn no_example_is_missing() {
    let document = embedded();
    walk(&document, &mut |fields| {
        for (name, example) in
            fields.get("examples").and_then(Value::as_object).into_iter().flatten()
        {
            assert!(!example["value"].is_null(), "{name}");
        }
    });
    let target = &document["paths"][Operation::GetEvent.row().path.unwrap()]["get"]["responses"]["200"]
        ["content"]["application/json"]["examples"]["event"]["x-request"];
    assert!(target.as_str().unwrap().ends_with(example::EVENT_ID));
}

#[test]
fn an_operators_own_sports_and_bookmakers_are_in_the_document() {
    let file = r#"
        [[bookmaker]]
        key = "corner_shop"
        title = "Corner Shop"
        regions = ["uk"]
    "#;
    let document = text(&Catalogue::load(Some(file)).unwrap());
    assert!(document.contains("\"corner_shop\""));
}

/// Each decision that concerns users, with phrases that the document must contain.
const DECISIONS: [(&str, &[&str]); 32] = [
    ("D1", &["Every answer that is not 2xx or 304 has one shape", "x-request-id"]),
    ("D2", &["429 and 503 carry `Retry-After`", "405 carries `Allow`"]),
    (
        "D3",
        &[
            "Checks come in this order: key (401), burst (429), path (404), method (405), maintenance (503), sport (404), scope (403), parameters (400), event (404), unchanged (304), quota (429), and then 200",
        ],
    ),
    (
        "D4",
        &[
            "Parameters are strict",
            "Unknown ids in `event_ids` match nothing",
            "(,[^,]+){0,199}$",
            "even one that another overrides",
        ],
    ),
    ("D5", &["\\\"10/11\\\"", "^[1-9][0-9]*/[1-9][0-9]*$"]),
    ("D6", &["`-110` is `1.909`", "never `-100`", "`-200000` is `1.0005`", "comes back as quoted"]),
    (
        "D7",
        &[
            "`group_by=bout` on a fight sport",
            "GroupedBouts",
            "`limit` then counts bouts",
            "latency_ms",
        ],
    ),
    ("D8", &["commence_from", "at this instant or later", "before this instant"]),
    ("D9", &["A postponed event is scheduled with a new time"]),
    ("D10", &["the leader and the runner-up", "TBD"]),
    ("D11", &["2026-11-14T23:38:00Z", "`generated_at` has milliseconds"]),
    ("D12", &["`winner` only for a finished fight", "\"additionalProperties\": false"]),
    ("D13", &["Ids are opaque, URL-safe and stable"]),
    (
        "D14",
        &[
            "published every 30 seconds",
            "private, max-age=",
            "X-API-Key, Accept-Encoding",
            "no-store",
        ],
    ),
    ("D15", &["rel=\\\"next\\\"", "stays valid across snapshots", "market key and record id"]),
    (
        "D16",
        &[
            "no region filter applies",
            "`regions` wins over its alias",
            "(`totals` for golf) is 400",
            "named twice counts once",
        ],
    ),
    (
        "D17",
        &[
            "`burst_per_minute` (60 unless",
            "`requests_per_day` (10000)",
            "HEAD costs what GET costs",
            "tightest quota window",
            "Windows are UTC",
        ],
    ),
    ("D18", &["the last six a checksum", "up to 7 days", "refused from the moment"]),
    ("D19", &["nothing simulated ever reaches it"]),
    ("D20", &["`api_key`, on every endpoint", "Sunset", "Deprecation"]),
    ("D21", &["`odds:read`", "the list of sports stays whole"]),
    ("D22", &["Without a good read for 90 seconds", "degraded"]),
    ("D23", &["During maintenance `/v1/status` answers 200"]),
    (
        "D24",
        &[
            "stay for 72 hours",
            "never goes back unless",
            "suspended or withdrawn market has no record",
        ],
    ),
    ("D25", &["gzip, br and zstd", "HTTP/1.1 and HTTP/2", "no CORS headers"]),
    ("D26", &["\"american_football\"", "`total_points` (tennis)"]),
    ("D27", &["whichever comes first: 429 `quota_exceeded`"]),
    ("D28", &["last confirmed, changed or not"]),
    ("D29", &["`updated_at` is when the score last changed"]),
    ("D30", &["one record for each bookmaker, market and pairing"]),
    (
        "D31",
        &[
            "Every event has a score record",
            "`events` counts scheduled and live ones",
            "or it has none",
        ],
    ),
    ("D32", &["within 10 s", "within 30 s", "after 75 s"]),
];

#[test]
fn every_decision_is_told() {
    let text = document();
    for (decision, words) in DECISIONS {
        for words in words {
            assert!(text.contains(words), "{decision}: {words}");
        }
    }
}

#[test]
fn the_guides_numbers_are_filled_in() {
    let guide = guide();
    for name in ["{limit", "{region", "{target", "{head"] {
        assert!(!guide.contains(name), "{name}");
    }
}

#[test]
fn paths_lead_to_their_operations() {
    for operation in Operation::v1() {
        let Some(template) = operation.row().path else { continue };
        let path = template.replace("{sport_key}", "mma").replace("{event_id}", "evt_1");
        let path = path.replace("{table}", "odds").replace("{date}", "2026-11-14");
        let place = crate::v1::target_path::TargetPath::parse(&path).unwrap();
        assert_eq!(place.operation, operation);
    }
}

#[test]
fn every_fault_a_sandbox_key_can_ask_for_is_told() {
    let document = document();
    for fault in crate::admission::fault::Fault::ALL {
        assert!(document.contains(&format!("`{}`", fault.key())), "{}", fault.key());
    }
}
