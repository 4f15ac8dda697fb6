use std::sync::Arc;

use domain::Catalogue;
use domain::time::Timestamp;

use super::*;
use crate::adapter::{Settings, translate_bodies};

/// The messages that a mapping produces from an input.
fn messages(mapping: &str, input: &str) -> String {
    let mapping = Mapping::compile(mapping).unwrap_or_else(|faults| panic!("{faults}"));
    let mut settings = Settings::new(Arc::new(Catalogue::load(None).unwrap()));
    settings.bookmaker = settings.catalogue.bookmaker_id("betway");
    let catalogue = Arc::clone(&settings.catalogue);
    let mut translator = Mapped::new(Arc::new(mapping), settings);
    let mut out = String::new();
    let bodies = [("u", input.as_bytes())];
    let at = Timestamp::from_secs(1_800_000_000);
    translate_bodies(&mut translator, bodies.into_iter(), at, &catalogue, &mut out).unwrap();
    out
}

fn faults(mapping: &str) -> Vec<String> {
    Mapping::compile(mapping).err().map(|faults| faults.0).unwrap_or_default()
}

/// The result of `value`: the title of the only event of a mapping.
fn value_of(value: &str, input: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    let mapping = format!(
        "format = \"json\"\n[event]\nref = \"'r'\"\nsport = \"'golf'\"\ncompetition = \"'c'\"\n\
         commence_time = \"'2026-11-14T23:38:00Z'\"\ntitle = [\"{value}\", \"'nothing'\"]\n"
    );
    let out = messages(&mapping, input);
    let message: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    message["title"].as_str().unwrap().to_owned()
}

#[test]
fn paths_find_what_they_name() {
    let input = r#"{"a": {"b": [{"id": 1, "n": "x", "t": ["p", "q"]}, {"id": 2, "n": "y  z", "t": []}]},
        "want": 2, "rows": [["u", "v"], ["w"]], "map": {"k1": {"v": 7}, "k2": {"v": 8}}, "x": {"e\"s": "c\u00e9", "a.b": 3}}"#;
    for (path, expected) in [
        ("a.b.n", "x"),
        ("/a.b.n", "x"),
        ("a.b[1].n", "y z"),
        ("a.b[-1].n", "y z"),
        ("a.b[-3].n", "nothing"),
        ("a.b[id=2].n", "y z"),
        ("a.b[id!=1].n", "y z"),
        ("a.b[id={want}].n", "y z"),
        ("a.b[t=q].n", "x"),
        ("a.b[t!=q].n", "y z"),
        ("a.b[id=2][0].n", "y z"),
        ("a.b.t[1]", "q"),
        ("rows[0][1]", "v"),
        ("rows[1][0]", "w"),
        ("map.*[v=8].~", "k2"),
        ("map.*.v", "7"),
        ("map.k1.^.k2.v", "8"),
        ("a.b.id.^.n", "x"),
        ("a.b.id.^.~", "b"),
        ("x.'e\"s'", "cé"),
        ("x.'a.b'", "3"),
        ("x.*[#=3].~", "a.b"),
        ("none.such", "nothing"),
        ("want.#", "2"),
    ] {
        assert_eq!(value_of(path, input), expected, "{path}");
    }
}

#[test]
fn values_are_filtered_exactly() {
    let input = r#"{"odds": 1930, "line": -4500, "p": 0.55, "bid": "0.45", "s": " A  Bc ", "j": "[\"F\", {\"x\": 5}]",
        "when": 1771, "ms": 1700000000250, "d": "30/03/21 21:00", "none": null, "empty": "", "num": "5", "den": "2"}"#;
    for (value, expected) in [
        ("odds | div(1000)", "1.93"),
        ("line | div(1000) | abs", "4.5"),
        ("line | mul(2)", "-9000"),
        ("p | prob", "9/11"),
        ("bid | complement | prob", "9/11"),
        ("s | lower", "a bc"),
        ("s | regex('B(.)')", "c"),
        ("s | regex('B(.)', 0)", "Bc"),
        ("s | regex('zz')", "nothing"),
        ("s | replace('^(.) (.*)$', '$2, $1')", "Bc, A"),
        ("j | json[0]", "F"),
        ("j | json[1].x", "5"),
        ("j | json.[1].x", "5"),
        ("when | epoch_s", "1970-01-01T00:29:31Z"),
        ("ms | epoch_ms", "2023-11-14T22:13:20.250Z"),
        ("d | time('%d/%m/%y %H:%M')", "2021-03-30T21:00:00Z"),
        ("d | time('%d/%m/%y %H:%M','Europe/London')", "2021-03-30T20:00:00Z"),
        ("none | default('x')", "x"),
        ("empty | default('it''s')", "it's"),
        ("{num}/{den}", "5/2"),
        ("{num}/{none}", "nothing"),
        ("{num | mul(2)} of {den}", "10 of 2"),
        ("'text'", "text"),
    ] {
        assert_eq!(value_of(value, input), expected, "{value}");
    }
}

#[test]
fn conditions_hold_or_do_not() {
    let input =
        r#"{"yes": true, "no": false, "zero": 0, "s": "OPEN", "o": {"a": 1}, "l": [], "n": null}"#;
    for (condition, expected) in [
        ("yes", true),
        ("no", false),
        ("zero", false),
        ("n", false),
        ("missing", false),
        ("!missing", true),
        ("!no", true),
        ("o", true),
        ("l", false),
        ("s = OPEN", true),
        ("s = 'OPEN'", true),
        ("s != OPEN", false),
        ("s =~ '^O'", true),
        ("s !~ '^O'", false),
        ("s in 'SHUT','OPEN'", true),
        ("s in SHUT, CLOSED", false),
        ("s = {s}", true),
        ("s | lower = open", true),
    ] {
        let condition = condition.replace('\\', "\\\\");
        let mapping = format!(
            "format = \"json\"\n[event]\nwhen = \"{condition}\"\nref = \"'r'\"\nsport = \"'golf'\"\n\
             competition = \"'c'\"\ncommence_time = \"'2026-11-14T23:38:00Z'\"\ntitle = \"'t'\"\n"
        );
        assert_eq!(messages(&mapping, input).lines().count() > 0, expected, "{condition}");
    }
}

#[test]
fn every_fault_of_a_mapping_is_reported_with_the_nearest_name() {
    let found = faults(
        "format = \"jsn\"\nzoned = \"UTC\"\nzone = \"Europe/Lundon\"\n[event]\nreff = \"id\"\n\
         sport = \"s | lowr\"\ncompetition = \"c | map(leages)\"\nhome = \"a[b\"\naway = \"x | regex('(')\"\n\
         commence_time = \"t | time('%i')\"\nwhen = \"a = \"\n[tables.leagues]\na = \"b\"\n[[market]]\n\
         key = \"k\"\n",
    );
    for expected in [
        "format: `jsn` is not json, ndjson, xml or csv; did you mean `json`?",
        "the mapping has no key `zoned`; did you mean `zone`?",
        "zone: `Europe/Lundon` is not a time zone",
        "[event] has no key `reff`; did you mean `ref`?",
        "event: `ref` is missing",
        "there is no filter `lowr`; did you mean `lower`?",
        "there is no table [tables.leages]; did you mean `leagues`?",
        "`[` without `]`",
        "not a regular expression",
        "event.commence_time: ",
        "there is no [[market.outcome]]",
        "market[0]: `format` is missing",
    ] {
        assert!(found.iter().any(|fault| fault.contains(expected)), "{expected}: {found:#?}");
    }
}

const XML: &str = r#"<?xml version="1.0"?><!-- made by hand -->
<Events xmlns:n="urn:x"><Event id="e1" started="false" start_at="2026/11/22T03:00:00Z UTC">
<n:Names><Name lang="en">Ann  O&apos;Hara - Bea &#66;ond</Name></n:Names>
<Keywords><Keyword type="team">Ann</Keyword><Keyword type="league">Cup <![CDATA[&]]> Plate</Keyword></Keywords>
<Markets><Market cname="fight-winner"><Outcomes>
<Outcome num="8" den="15"><Name>Ann O'Hara</Name></Outcome>
<Outcome num="6" den="4"><Name>Bea Bond</Name></Outcome>
</Outcomes></Market><Market cname="other"/></Markets></Event>
<Event id="e2" started="true"/></Events>"#;

#[test]
fn xml_is_read_by_local_names_attributes_and_text() {
    let mapping = r#"
format = "xml"
[event]
each = "Event"
when = ["@started = false"]
ref = "@id"
sport = "'mma'"
competition = "Keywords.Keyword[@type=league]"
commence_time = "@start_at | time('%Y/%m/%dT%H:%M:%SZ UTC')"
home = "Names.Name | regex('^(.*?) - ')"
away = "Names.Name | regex(' - (.*)$')"
[[market]]
each = "Markets.Market[@cname=fight-winner]"
key = "moneyline"
format = "fractional"
[[market.outcome]]
each = "Outcomes.Outcome"
name = "Name"
price = "{@num}/{@den}"
"#;
    let out = messages(mapping, XML);
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            r#"{"type":"event","ref":"e1","sport":"mma","competition":"Cup & Plate","commence_time":"2026-11-22T03:00:00Z","home":"Ann O'Hara","away":"Bea Bond"}"#,
            r#"{"type":"odds","ref":"e1","bookmaker":"betway","market":"moneyline","format":"fractional","outcomes":[{"name":"Ann O'Hara","price":"8/15"},{"name":"Bea Bond","price":"3/2"}]}"#,
        ]
    );
}

#[test]
fn csv_rows_with_an_equal_value_are_one_event() {
    let mapping = r#"
format = "csv"
zone = "America/New_York"
[event]
group = "game"
ref = "game"
sport = "'american_football'"
competition = "'NFL'"
commence_time = "kickoff"
home = "[side=home].team"
away = "[side=away].team"
[[market]]
key = "spread"
format = "auto"
[[market.outcome]]
each = "*"
name = "team"
price = "odds"
point = "line"
"#;
    let input = "game;side;team;line;odds;kickoff\r\n1;home;\"Alpha \"\"A\"\"\";-3½;EVEN;2026-11-22 13:00\r\n\
                 2;home;Gamma;1;-110;2026-11-22 16:25\r\n1;away;Beta;+3½;-120;2026-11-22 13:00\r\n\r\n\
                 2;away;Delta;-1;1.91;2026-11-22 16:25";
    let out = messages(mapping, input);
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            r#"{"type":"event","ref":"1","sport":"american_football","competition":"NFL","commence_time":"2026-11-22T18:00:00Z","home":"Alpha \"A\"","away":"Beta"}"#,
            r#"{"type":"event","ref":"2","sport":"american_football","competition":"NFL","commence_time":"2026-11-22T21:25:00Z","home":"Gamma","away":"Delta"}"#,
            r#"{"type":"odds","ref":"1","bookmaker":"betway","market":"spread","format":"american","outcomes":[{"name":"Alpha \"A\"","price":100,"point":-3.5},{"name":"Beta","price":-120,"point":3.5}]}"#,
            r#"{"type":"odds","ref":"2","bookmaker":"betway","market":"spread","format":"fractional","outcomes":[{"name":"Gamma","price":"10/11","point":1},{"name":"Delta","price":"91/100","point":-1}]}"#,
        ]
    );
}

#[test]
fn a_price_is_read_as_bookmakers_write_it() {
    use domain::price::Format;
    for (text, format, expected) in [
        ("EVEN", Some(Format::American), Some("100")),
        ("Evens", Some(Format::Fractional), Some("\"1/1\"")),
        ("EVS", None, Some("100")),
        ("ev", Some(Format::Decimal), Some("2")),
        ("+150", None, Some("150")),
        ("\u{2212}110", None, Some("-110")),
        ("5/2", None, Some("\"5/2\"")),
        ("1.91", None, Some("1.91")),
        ("12", None, Some("12")),
        ("150", None, Some("150")),
        ("1e1", None, Some("10")),
        ("0", None, None),
        ("0.00", Some(Format::Decimal), None),
        ("1.000", Some(Format::Decimal), None),
        ("10.0", Some(Format::Decimal), Some("10")),
        ("100", Some(Format::Decimal), Some("100")),
    ] {
        let quote = run::read_price(text, format).unwrap();
        let json = quote.map(|quote| quote.to_json(quote.format));
        assert_eq!(json.as_deref(), expected, "{text}");
    }
    for bad in ["SUSP", "-", "1..5", "-1.5"] {
        assert!(run::read_price(bad, Some(Format::Decimal)).is_err(), "{bad}");
    }
}

#[test]
fn broken_input_is_drift_with_its_place() {
    let mapping = "format = \"FORMAT\"\n[event]\nref = \"a\"\nsport = \"'golf'\"\nlist = false\n";
    let translate = |format: &str, input: &[u8]| {
        let mapping = Mapping::compile(&mapping.replace("FORMAT", format)).unwrap();
        let settings = Settings::new(Arc::new(Catalogue::load(None).unwrap()));
        Mapped::new(Arc::new(mapping), settings).translate("u", input, Timestamp::from_secs(0))
    };
    for (format, input, place) in [
        ("json", &b"{\"a\":\n [1, }"[..], "line 2, column 6"),
        ("json", b"", "line 1, column 1"),
        ("json", b"{} {}", "line 1, column 4"),
        ("json", b"\"\\ud800\"", "line 1, column 1"),
        ("json", b"\xff", "byte 0"),
        ("json", &b"[".repeat(100), "line 1, column 65"),
        ("ndjson", b"{}\n{]", "line 2, column 2"),
        ("xml", b"<a><b></a>", "line 1, column 11"),
        ("xml", b"<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", "line 1, column 1"),
        ("xml", b"<a>&x;</a>", "line 1, column 4"),
        ("xml", b"text", "line 1, column 1"),
        ("xml", b"<a/><b/>", "line 1, column 5"),
        ("csv", b"", "line 1"),
        ("csv", b"a\n\"x", "line 2, column 1"),
    ] {
        let drift = translate(format, input).unwrap_err();
        assert_eq!(drift.path, place, "{format} {drift}");
    }
    // The bound: a fifth of the items, and at least five.
    let rows = |bad: usize, good: usize| {
        let rows = std::iter::repeat_n("{}\n", bad).chain(std::iter::repeat_n("{\"a\":1}\n", good));
        translate("ndjson", rows.collect::<String>().as_bytes())
    };
    assert_eq!(rows(4, 0).unwrap().failed, 4);
    assert_eq!(rows(5, 20).unwrap().failed, 5);
    let drift = rows(6, 20).unwrap_err();
    assert_eq!(drift.path, "event[0].ref");
    assert!(drift.reason.starts_with("6 of 26 items could not be read"), "{drift}");
}

#[test]
fn recipes_compile_and_name_their_variables() {
    for recipe in RECIPES {
        let given = recipe.vars().into_keys().map(|name| (name, "mma".to_owned())).collect();
        let mapping =
            recipe.compile(&given).unwrap_or_else(|faults| panic!("{}: {faults}", recipe.name));
        assert!(mapping.urls().iter().all(|url| url.starts_with("https://") && !url.contains('$')));
        let missing = recipe.compile(&[("sprot".to_owned(), "mma".to_owned())].into()).unwrap_err();
        assert!(missing.0.len() > 1, "{missing}");
    }
    assert!(Recipe::find("kamby").unwrap_err().to_string().contains("did you mean `kambi`?"));
}

#[test]
fn western_encodings_are_those_that_documents_declare() {
    let text = |encoding: &str| {
        let mut bytes = format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?>").into_bytes();
        let head = bytes.len();
        bytes.extend(b"\x80 \x8a \x9f \xa4 \xbe \xe9");
        decode(&bytes, InputFormat::Xml).unwrap().get(head..).unwrap().to_owned()
    };
    assert_eq!(text("ISO-8859-1"), "€ Š Ÿ ¤ ¾ é");
    assert_eq!(text("windows-1252"), "€ Š Ÿ ¤ ¾ é");
    assert_eq!(text("ISO-8859-15"), "€ Š Ÿ € Ÿ é");
    assert!(decode(b"<a>\xe9</a>", InputFormat::Xml).is_err());
}
