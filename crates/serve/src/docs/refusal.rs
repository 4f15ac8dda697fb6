//! Error codes on the page: what each means, what to do about it, what it looks like.

use serde_json::Value;

use crate::docs::html::{block, code_block, escape, inline, json};
use crate::docs::render::operations;
use crate::docs::shape::{at, referred};

/// Cause and fix of each code, for people.
pub(crate) const ADVICE: &str = include_str!("../../../../docs/api/errors.md");

/// A code as one status has it.
struct Refusal<'a> {
    status: &'a str,
    slug: &'a str,
    meaning: &'a str,
    example: &'a Value,
}

fn refusals<'a>(document: &'a Value, operation: &'a Value) -> impl Iterator<Item = Refusal<'a>> {
    let responses = at(operation, "/responses").as_object().into_iter().flatten();
    responses.flat_map(move |(status, response)| {
        let name = referred(response).unwrap_or_default();
        let response = at(document, &format!("/components/responses/{name}"));
        let content = at(response, "/content/application~1json");
        let examples = at(content, "/examples").as_object().into_iter().flatten();
        examples.map(move |(slug, example)| Refusal {
            status,
            slug,
            meaning: at(example, "/summary").as_str().unwrap_or_default(),
            example: at(example, "/value"),
        })
    })
}

/// Links to the codes an operation can answer with.
pub(crate) fn links(document: &Value, operation: &Value) -> String {
    let items: String = refusals(document, operation)
        .map(|refusal| {
            format!(
                "<li><a href=\"#error-{0}\"><b>{1}</b> {0}</a></li>\n",
                escape(refusal.slug),
                escape(refusal.status)
            )
        })
        .collect();
    format!("<h4>Errors</h4>\n<ul class=\"codes\">\n{items}</ul>\n")
}

/// Every code once, with an anchor of its own.
pub(crate) fn all(document: &Value) -> (Vec<(String, String)>, String) {
    let mut found: Vec<Refusal<'_>> = Vec::new();
    for refusal in
        operations(document).flat_map(|(_, _, _, operation)| refusals(document, operation))
    {
        let is_known =
            found.iter().any(|known| known.slug == refusal.slug && known.status == refusal.status);
        if !is_known {
            found.push(refusal);
        }
    }
    found.sort_by_key(|refusal| refusal.status);
    let mut slugs: Vec<&str> = Vec::new();
    for refusal in &found {
        if !slugs.contains(&refusal.slug) {
            slugs.push(refusal.slug);
        }
    }
    let html = slugs.iter().map(|slug| one(slug, &found)).collect();
    let links = slugs.iter().map(|slug| (format!("error-{slug}"), (*slug).to_owned())).collect();
    (links, html)
}

fn one(slug: &str, found: &[Refusal<'_>]) -> String {
    let mine: Vec<&Refusal<'_>> = found.iter().filter(|refusal| refusal.slug == slug).collect();
    let meanings: String = mine
        .iter()
        .map(|refusal| {
            let status = escape(refusal.status);
            format!(
                "<p><span class=\"status s{}\">{status}</span> {}</p>\n",
                status.chars().take(1).collect::<String>(),
                inline(refusal.meaning)
            )
        })
        .collect();
    let example = mine.first().map(|refusal| code_block(&json(refusal.example)));
    let slug = escape(slug);
    format!(
        "<article id=\"error-{slug}\" class=\"op\">\n<div class=\"about\">\n\
         <h3><a href=\"#error-{slug}\"><code>{slug}</code></a></h3>\n{meanings}{}</div>\n\
         <div class=\"shown\">\n{}</div>\n</article>\n",
        block(advice(&slug).unwrap_or_default()),
        example.unwrap_or_default(),
    )
}

/// What the reference says under a code's heading.
pub(crate) fn advice(slug: &str) -> Option<&'static str> {
    let mut parts = ADVICE.split("\n## ");
    parts.find_map(|part| {
        let (heading, body) = part.split_once('\n')?;
        (heading.trim_matches('`') == slug).then_some(body)
    })
}
