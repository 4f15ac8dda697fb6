//! Error codes on the page: meaning, fix and example.

use serde_json::Value;

use crate::docs::json;
use crate::docs::markdown::{self, Html};
use crate::docs::shape::{at, operations, referred, text};

/// Cause and fix of each code.
pub(crate) const ADVICE: &str = include_str!("../../../../docs/api/errors.md");

/// A code under one of its statuses.
pub(crate) struct Refusal<'a> {
    pub(crate) status: &'a str,
    pub(crate) slug: &'a str,
    pub(crate) meaning: Html,
    example: &'a Value,
}

/// A code with its statuses, its advice and an example.
pub(crate) struct Code<'a> {
    pub(crate) slug: &'a str,
    pub(crate) statuses: Vec<Refusal<'a>>,
    pub(crate) advice: Html,
    pub(crate) example: Vec<json::Piece>,
}

/// The codes with which an operation can answer.
pub(crate) fn refusals<'a>(document: &'a Value, operation: &'a Value) -> Vec<Refusal<'a>> {
    let responses = at(operation, "/responses").as_object().into_iter().flatten();
    let refusals = responses.flat_map(move |(status, response)| {
        let name = referred(response).unwrap_or_default();
        let response = at(document, &format!("/components/responses/{name}"));
        let content = at(response, "/content/application~1json");
        let examples = at(content, "/examples").as_object().into_iter().flatten();
        examples.map(move |(slug, example)| Refusal {
            status,
            slug,
            meaning: markdown::inline(text(example, "summary")),
            example: at(example, "/value"),
        })
    });
    refusals.collect()
}

/// All codes, ordered by their first status.
pub(crate) fn codes(document: &Value) -> Vec<Code<'_>> {
    let mut found: Vec<Refusal<'_>> =
        operations(document).flat_map(|(_, _, _, op)| refusals(document, op)).collect();
    found.sort_by_key(|refusal| refusal.status);
    let mut codes: Vec<Code<'_>> = Vec::new();
    for refusal in found {
        match codes.iter_mut().find(|code| code.slug == refusal.slug) {
            Some(code) if code.statuses.iter().any(|known| known.status == refusal.status) => {}
            Some(code) => code.statuses.push(refusal),
            None => codes.push(Code {
                slug: refusal.slug,
                advice: markdown::block(advice(refusal.slug).unwrap_or_default()),
                example: json::pieces(refusal.example),
                statuses: vec![refusal],
            }),
        }
    }
    codes
}

/// The advice under a code's heading.
pub(crate) fn advice(slug: &str) -> Option<&'static str> {
    let mut parts = ADVICE.split("\n## ");
    parts.find_map(|part| {
        let (heading, body) = part.split_once('\n')?;
        (heading.trim_matches('`') == slug).then_some(body)
    })
}
