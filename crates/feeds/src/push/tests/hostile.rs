//! Names that look like other names.

use domain::message::RejectCode;

use super::parse;

/// One of each kind: controls, zero-width, bidirectional, joiners, separators, fillers, variation selectors, tags,
/// private use, noncharacters.
const INVISIBLE: [char; 34] = [
    '\u{0}',
    '\u{7f}',
    '\u{85}',
    '\u{ad}',
    '\u{34f}',
    '\u{61c}',
    '\u{115f}',
    '\u{17b4}',
    '\u{180e}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202e}',
    '\u{2060}',
    '\u{2066}',
    '\u{2069}',
    '\u{2800}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{fff9}',
    '\u{1d173}',
    '\u{e0001}',
    '\u{e0041}',
    '\u{e0100}',
    '\u{e000}',
    '\u{fdd0}',
    '\u{10fffe}',
];

/// Lines with a text in one field, once unescaped and once escaped.
fn lines(field: &str, text: &str) -> [String; 2] {
    let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let event = r#"{"type":"event","ref":"REF","sport":"mma","competition":"COMP","commence_time":"2026-11-22T03:00:00Z","home":"HOME","away":"Oren"}"#;
    let golf = r#"{"type":"event","ref":"REF","sport":"golf","competition":"COMP","commence_time":"2026-11-22T03:00:00Z","title":"TITLE"}"#;
    let odds = r#"{"type":"odds","ref":"REF","bookmaker":"fanduel","market":"matchup","group":"GROUP","format":"american","outcomes":[{"name":"NAME","price":140}]}"#;
    let score = r#"{"type":"score","ref":"REF","status":"live","winner":"WINNER","leaders":[{"name":"LEADER","rounds":[70]}]}"#;
    let line = match field {
        "TITLE" => golf,
        "GROUP" | "NAME" => odds,
        "WINNER" | "LEADER" => score,
        _ => event,
    };
    [text, &escaped].map(|text| line.replace(field, text))
}

const FIELDS: [&str; 8] = ["REF", "COMP", "HOME", "TITLE", "GROUP", "NAME", "WINNER", "LEADER"];

#[test]
fn characters_that_are_not_seen_are_refused_in_every_text() {
    for field in FIELDS {
        for sign in INVISIBLE {
            let [as_is, escaped] = lines(field, &format!("Tomas{sign}Veldt"));
            let refused = parse(&escaped).unwrap_err();
            assert_eq!(refused.code, RejectCode::InvalidMessage, "{field} {sign:?}");
            assert!(!refused.message.contains(sign), "{field} {sign:?}");
            assert!(parse(&as_is).is_err(), "{field} {sign:?}");
        }
        let [_, combining] = lines(field, "\u{301}Tomas");
        assert_eq!(parse(&combining).unwrap_err().code, RejectCode::InvalidMessage, "{field}");
    }
}

#[test]
fn letters_of_every_script_are_taken() {
    let names = [
        "Jiří Procházka",
        "Novak Đoković",
        "Хабиб Нурмагомедов",
        "山田太郎",
        "محمد صلاح",
        "Zoe\u{308} O’Brien",
        "김시우",
    ];
    for field in FIELDS {
        for name in names {
            for line in lines(field, name) {
                assert!(parse(&line).is_ok(), "{line}");
            }
        }
    }
}
