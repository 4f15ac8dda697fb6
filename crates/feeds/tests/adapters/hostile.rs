//! For any input, translators return a read or drift, and quickly; prices have the digits of the input.

use std::sync::Arc;
use std::time::Duration;

use domain::price::{Format, Quote};
use domain::time::Timestamp;
use linesman_feeds::adapter::Translator;
use linesman_feeds::adapter::betfair::{Betfair, Options};
use linesman_feeds::adapter::mapped::{Mapped, Mapping};
use linesman_feeds::adapter::the_odds_api::TheOddsApi;
use linesman_feeds::push;
use proptest::prelude::*;

use super::settings;

const MAPPING: &str = r#"
[event]
each = "e"
group = "g"
ref = "id"
sport = "'tennis'"
competition = "c | default('c') | regex('(.*)')"
commence_time = ["t | epoch_s", "t", "'2026-11-14T23:38:00Z'"]
home = ["h.*.~", "'A'"]
away = "'B'"
[[market]]
each = "/e.m"
join = "^.id"
key = "moneyline"
format = "auto"
suspended = "!o[p!={x}]"
[[market.outcome]]
each = "o"
name = "@home"
price = ["p | json[0]", "p"]
[[market]]
each = "m.*[o=1]"
key = "spread"
format = "auto"
[[market.outcome]]
name = "^.~ | default('@away')"
price = "o.p | div(3) | prob"
point = "o[-1].q | abs | mul(2)"
[score]
when = "s"
status = "s"
home_score = "p"
"#;

fn mapped(format: &str) -> Mapped {
    let mapping = Mapping::compile(&format!("format = \"{format}\"\n{MAPPING}"));
    Mapped::new(Arc::new(mapping.unwrap_or_else(|faults| panic!("{faults}"))), settings("betway"))
}

fn all() -> Vec<Box<dyn Translator>> {
    let mut all: Vec<Box<dyn Translator>> = Vec::new();
    for format in ["json", "ndjson", "xml", "csv"] {
        all.push(Box::new(mapped(format)));
    }
    all.push(Box::new(TheOddsApi::new(settings("none"), Format::Decimal)));
    all.push(Box::new(Betfair::new(
        settings("betfair"),
        Options { min_size: 0, emit_every: Duration::ZERO },
    )));
    all
}

/// Checks that a push could have sent every message of a read.
fn check(translator: &mut dyn Translator, input: &[u8]) {
    let catalogue = settings("none").catalogue;
    let Ok(read) = translator.translate("odds/x", input, Timestamp::from_secs(1_800_000_000))
    else {
        return;
    };
    for message in read.messages() {
        let mut line = String::new();
        push::write_line(&message, &catalogue, &mut line);
        let again = push::parse_line(line.trim_end().as_bytes(), &catalogue, None);
        assert!(again.is_ok(), "{line} {again:?}");
    }
}

fn arb_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[0-9]{1,12}(\\.[0-9]{1,4})?",
        "\"[a-z0-9 ./+\\-]{0,12}\"",
        "\"(1|5/2|EVEN|live|final|2026-11-14)\"",
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let key =
            prop::sample::select(vec!["e", "id", "m", "o", "p", "q", "s", "h", "g", "t", "x"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((key, inner), 0..5).prop_map(|fields| {
                let fields: Vec<_> =
                    fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_read_or_drift(input in prop::collection::vec(any::<u8>(), 0..200)) {
        all().iter_mut().for_each(|translator| check(&mut **translator, &input));
    }

    #[test]
    fn any_text_of_the_formats_signs_is_a_read_or_drift(input in "[\\[\\]{}\"<>/=:,&;#!? a-e1.\\\\\n-]{0,120}") {
        all().iter_mut().for_each(|translator| check(&mut **translator, input.as_bytes()));
    }

    #[test]
    fn any_json_is_a_read_or_drift(event in arb_json(), more in arb_json()) {
        let body = format!("{{\"e\":[{event},{more},{{\"id\":1,\"m\":{event}}},{event}]}}");
        check(&mut mapped("json"), body.as_bytes());
        check(&mut mapped("ndjson"), format!("{body}\n{body}").as_bytes());
    }

    #[test]
    fn prices_are_the_digits_of_the_input(price in "[1-9][0-9]{0,3}(\\.[0-9]{1,6})?") {
        let body = format!(
            r#"[{{"id":"a","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2026-11-14T23:38:00Z","home_team":"A","away_team":"B","bookmakers":[{{"key":"pinnacle","last_update":"2026-11-14T23:38:00Z","markets":[{{"key":"h2h","outcomes":[{{"name":"A","price":{price}}}]}}]}}]}}]"#
        );
        let mut api = TheOddsApi::new(settings("none"), Format::Decimal);
        let read = api.translate("odds/x", body.as_bytes(), Timestamp::from_secs(0)).unwrap();
        let exact = Quote::parse(&price, Format::Decimal).ok();
        let ours = read.markets[0].odds.outcomes.first().map(|outcome| outcome.quote);
        prop_assert_eq!(ours, exact);
    }
}

#[test]
fn work_and_memory_are_bounded() {
    // Many values in few bytes.
    let many = format!("[{}1]", "1,".repeat(2_000_000));
    let drift =
        mapped("json").translate("u", many.as_bytes(), Timestamp::from_secs(0)).unwrap_err();
    assert!(drift.reason.contains("values"), "{drift}");
    // Compares every event with every market.
    let mapping = "format = \"json\"\n[event]\neach = \"e\"\nref = \"#\"\nsport = \"'golf'\"\nlist = false\n\
                   [[market]]\neach = \"/e[#={x}]\"\nkey = \"outright\"\nformat = \"auto\"\n\
                   [[market.outcome]]\nname = \"#\"\nprice = \"'2'\"\n";
    let mapping = Arc::new(Mapping::compile(mapping).unwrap());
    let body = format!("{{\"e\":[{}1]}}", "1,".repeat(100_000));
    let drift = Mapped::new(mapping, settings("betway"))
        .translate("u", body.as_bytes(), Timestamp::from_secs(0))
        .unwrap_err();
    assert!(drift.reason.contains("use `join`"), "{drift}");
    // A body beyond the bound is not parsed at all.
    let large = vec![b' '; (32 << 20) + 1];
    assert!(mapped("xml").translate("u", &large, Timestamp::from_secs(0)).is_err());
}
