//! The types against `openapi.json`: every property has a field, every example is parsed without unknown fields and
//! serialised unchanged, and every operation and parameter has a method.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::error::ErrorCode;
use crate::export::ExportRequest;
use crate::macros::STRICT;
use crate::price::OddsFormat;
use crate::request::Request;
use crate::stream::StreamRequest;
use crate::types::*;

const DOCUMENT: &str = include_str!("../../../openapi.json");

/// Parameters without a method: `since` and `format` change the type of the response, `region` is an alias of
/// `regions`.
const NO_METHOD: [&str; 4] = ["since", "format", "region", "group_by"];

fn document() -> Json {
    serde_json::from_str(DOCUMENT).unwrap()
}

fn names(value: &Json) -> BTreeSet<&str> {
    value.as_object().into_iter().flat_map(|object| object.keys()).map(String::as_str).collect()
}

macro_rules! fields {
    ($($name:ident)*) => {
        BTreeMap::from([$((stringify!($name), $name::FIELDS)),*])
    };
}

#[test]
fn every_property_has_a_field() {
    let mut known = fields! {
        SportList Sport Bookmaker OddsRecord Outcome GroupedBouts BoutSource Bout BoutBook BoutOutcome ScoreRecord
        Period Event BestLines BestLine BestOutcome FairLines FairLine FairOutcome FairSource Arbitrages Arbitrage
        ArbitrageLeg Values Value Middles Middle MiddleLeg RefusedOffers RefusedLines ServiceStatus RateLimit
        HistoryReach HistoryGap PricePath ClosingRecord OpeningLine ClosingLine PricePoint Coverage CoveredBook CoveredMarket Explanation ExplainedBook Cell PushReceipt
        RejectedLine Removed OddsDelta ScoresDelta EventsDelta StreamHello StreamSnapshot StreamDelta StreamFresh StreamSource StreamCut StreamReset
        StreamEnd FeedEvent FeedOdds FeedScore FeedRemove FeedHeartbeat
    };
    // Fields of errors are read into `Error`.
    let document = document();
    let schemas = &document["components"]["schemas"];
    for (name, schema) in schemas.as_object().unwrap() {
        let properties = names(&schema["properties"]);
        if properties.is_empty() || name == "Error" {
            continue;
        }
        let Some((fields, absent)) = known.remove(name.as_str()) else {
            panic!("no type for {name}; add it to src/types")
        };
        assert_fields(name, schema, (fields, absent));
    }
    // Objects in messages that have no name in the document.
    let outcome = &schemas["FeedOdds"]["properties"]["outcomes"]["items"];
    assert_fields("FeedOutcome", outcome, FeedOutcome::FIELDS);
    let leader = &schemas["FeedScore"]["properties"]["leaders"]["items"];
    assert_fields("FeedLeader", leader, FeedLeader::FIELDS);
    assert_eq!(FeedPeriod::FIELDS, Period::FIELDS);
    assert!(known.is_empty(), "types that the document does not have: {:?}", known.keys());
}

fn assert_fields(
    name: &str,
    schema: &Json,
    (fields, absent): (&'static [&'static str], &'static [&'static str]),
) {
    // A field may have the name of a keyword.
    let plain = |name: &&'static str| name.trim_start_matches("r#");
    let both: BTreeSet<&str> = fields.iter().chain(absent).map(plain).collect();
    assert_eq!(both, names(&schema["properties"]), "{name}");
    let required = schema["required"].as_array().unwrap().iter().filter_map(Json::as_str);
    let required: BTreeSet<&str> = required.collect();
    assert_eq!(fields.iter().map(plain).collect::<BTreeSet<_>>(), required, "{name}");
}

#[test]
fn every_value_has_a_variant() {
    let document = document();
    let mut sets = BTreeSet::new();
    collect(&document["components"]["schemas"], &mut sets);
    let known: [&[&str]; 16] = [
        StartBy::VALUES,
        PriceReason::VALUES,
        OddsFormat::VALUES,
        Market::VALUES,
        Status::VALUES,
        Region::VALUES,
        Method::VALUES,
        ServiceState::VALUES,
        CellState::VALUES,
        FilteredBy::VALUES,
        RejectedCode::VALUES,
        Channel::VALUES,
        StreamMode::VALUES,
        RemovedReason::VALUES,
        ResetReason::VALUES,
        EndCode::VALUES,
    ];
    for set in sets {
        let is_known = known.iter().any(|values| values.iter().eq(set.iter()));
        let is_code = set.iter().all(|code| ErrorCode::VALUES.contains(&code.as_str()));
        assert!(is_known || is_code, "no enumeration for {set:?}");
    }
}

fn collect(value: &Json, sets: &mut BTreeSet<Vec<String>>) {
    if let Some(values) = value.get("enum").and_then(Json::as_array) {
        sets.insert(values.iter().filter_map(Json::as_str).map(str::to_owned).collect());
    }
    match value {
        Json::Array(items) => items.iter().for_each(|item| collect(item, sets)),
        Json::Object(object) => object.values().for_each(|item| collect(item, sets)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Checks that a type parses the value and serialises it unchanged.
fn check<T: DeserializeOwned + Serialize>(value: &Json) {
    // Parsed from text: prices are read digit for digit.
    let read: T = serde_json::from_str(&value.to_string())
        .unwrap_or_else(|error| panic!("{error} in {value}"));
    let written = serde_json::to_value(&read).unwrap();
    assert!(is_same(&written, value), "{written} is not {value}");
}

/// JSON has one kind of number: 3 and 3.0 are the same.
fn is_same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => {
            one.as_f64().unwrap().to_bits() == other.as_f64().unwrap().to_bits()
        }
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

#[test]
fn every_example_is_read_and_written_back() {
    STRICT.set(true);
    let document = document();
    let mut count = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in ["get", "post"].iter().filter_map(|method| item.get(method)) {
            let content = &operation["responses"]["200"]["content"]["application/json"];
            for (name, example) in content["examples"].as_object().into_iter().flatten() {
                let value = &example["value"];
                match (operation["operationId"].as_str().unwrap(), name.as_str()) {
                    ("list_sports", _) => check::<SportList>(value),
                    ("list_books", _) => check::<Vec<Bookmaker>>(value),
                    ("get_status", _) => check::<ServiceStatus>(value),
                    ("get_history", _) => check::<HistoryReach>(value),
                    ("get_odds", "odds_bouts") => check::<GroupedBouts>(value),
                    ("get_odds", _) => check::<Vec<OddsRecord>>(value),
                    ("get_scores", _) => check::<Vec<ScoreRecord>>(value),
                    ("list_events", _) => check::<Vec<Event>>(value),
                    ("get_event", _) => check::<Event>(value),
                    ("get_best", _) => check::<BestLines>(value),
                    ("get_fair", _) => check::<FairLines>(value),
                    ("list_arbitrages", _) => check::<Arbitrages>(value),
                    ("list_ev", _) => check::<Values>(value),
                    ("list_middles", _) => check::<Middles>(value),
                    ("get_coverage", _) => check::<Coverage>(value),
                    ("explain_event", _) => check::<Explanation>(value),
                    ("get_closing", _) => check::<Vec<ClosingRecord>>(value),
                    ("get_price_path", _) => check::<Vec<PricePath>>(value),
                    ("push_messages", _) => check::<PushReceipt>(value),
                    (operation, name) => panic!("{path}: {operation} has an example {name}"),
                }
                count += 1;
            }
        }
    }
    assert!(count > 20, "only {count} examples");
    let stream = &document["paths"]["/v1/stream"]["get"]["responses"]["200"]["content"];
    let stream = stream["text/event-stream"]["examples"]["stream"]["value"].as_str().unwrap();
    for block in stream.split("\n\n").filter(|block| !block.is_empty()) {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let data = serde_json::from_str(field("data: ")).unwrap();
        match field("event: ") {
            "hello" => check::<StreamHello>(&data),
            "snapshot" => check::<StreamSnapshot>(&data),
            "cut" => check::<StreamCut>(&data),
            event => panic!("an example of {event}"),
        }
    }
}

#[test]
fn every_operation_and_parameter_has_a_method() {
    let known: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("list_sports", Request::<SportList>::PARAMETERS),
        ("list_books", Request::<Vec<Bookmaker>>::PARAMETERS),
        ("get_status", &[][..]),
        ("get_history", &[]),
        ("get_odds", Request::<Vec<OddsRecord>>::PARAMETERS),
        ("get_scores", Request::<Vec<ScoreRecord>>::PARAMETERS),
        ("list_events", Request::<Vec<Event>>::PARAMETERS),
        ("get_event", Request::<Event>::PARAMETERS),
        ("get_best", Request::<BestLines>::PARAMETERS),
        ("get_fair", Request::<FairLines>::PARAMETERS),
        ("list_arbitrages", Request::<Arbitrages>::PARAMETERS),
        ("list_ev", Request::<Values>::PARAMETERS),
        ("list_middles", Request::<Middles>::PARAMETERS),
        ("get_coverage", Request::<Coverage>::PARAMETERS),
        ("explain_event", Request::<Explanation>::PARAMETERS),
        ("get_closing", Request::<Vec<ClosingRecord>>::PARAMETERS),
        ("get_price_path", Request::<Vec<PricePath>>::PARAMETERS),
        ("get_export", ExportRequest::PARAMETERS),
        ("get_stream", StreamRequest::PARAMETERS),
    ]);
    assert_eq!(Request::<GroupedBouts>::PARAMETERS, Request::<Vec<OddsRecord>>::PARAMETERS);
    let document = document();
    let parameters = &document["components"]["parameters"];
    let mut missing: BTreeSet<&str> = known.keys().copied().collect();
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(operation) = item["get"]["operationId"].as_str() else { continue };
        if !path.starts_with("/v1/") {
            continue;
        }
        missing.remove(operation);
        let methods = known.get(operation).unwrap_or_else(|| panic!("no method for {operation}"));
        let methods: BTreeSet<&str> = methods.iter().copied().collect();
        let own = item["parameters"].as_array().into_iter().flatten();
        let own = own.map(|one| {
            let reference = one["$ref"].as_str().and_then(|text| text.rsplit('/').next());
            reference.map_or(one, |name| &parameters[name])
        });
        let own = own.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
        let is_stream = operation == "get_stream";
        let own = own.filter(|name| match is_stream {
            true => *name != "heartbeat" && (*name == "since" || !NO_METHOD.contains(name)),
            false => !NO_METHOD.contains(name),
        });
        assert_eq!(methods, own.collect(), "the parameters of {operation}");
    }
    assert!(missing.is_empty(), "methods for operations that are gone: {missing:?}");
}
