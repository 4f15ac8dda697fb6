//! `/llms.txt` and `/llms-full.txt`: the documentation as Markdown for language models and plain-text readers (K24).
//! The first lists the pages; the second is one text with all that is needed to write a client.

use serde_json::Value;

use crate::docs::shape::{at, kind, operations, referred, rules, text, values};

pub(crate) const INDEX_PATH: &str = "/llms.txt";
pub(crate) const FULL_PATH: &str = "/llms-full.txt";
/// Maximum size of each file, whatever the catalogue: a model has to read all of it.
pub(crate) const BYTES_MAX: usize = 100_000;
/// Maximum number of values listed; longer lists are only in the OpenAPI document.
const VALUES_MAX: usize = 24;

/// A handwritten page: its title and its Markdown, with links that work on the site.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) title: &'static str,
    pub(crate) markdown: String,
}

/// A group of the navigation: its name, and the title and address of each page.
pub(crate) type Group<'a> = (&'static str, Vec<(&'a str, &'a str)>);

/// `/llms.txt`: the list of pages.
pub(crate) fn index(document: &Value, groups: &[Group<'_>]) -> String {
    let description = text(at(document, "/info"), "description");
    let lead = description.split("\n\n").next().unwrap_or_default();
    let mut out = format!(
        "# Linesman\n\n> {lead}\n\nEvery request under `/v1` has an API key in the header `X-API-Key`. A sandbox key \
         (`sk_test_`) always has data. [All of it in one text]({FULL_PATH}) is enough to write a client; \
         [openapi.json](/openapi.json) has the exact types.\n"
    );
    let meanings: Vec<(String, &str)> = operations(document)
        .map(|(_, _, _, operation)| {
            let slug = format!("reference/{}", text(operation, "operationId").replace('_', "-"));
            (slug, text(operation, "description"))
        })
        .collect();
    for (group, pages) in groups {
        let mut section = format!("\n## {group}\n\n");
        for (title, slug) in pages {
            section.push_str(&format!("- [{title}](/docs/{slug})"));
            if let Some((_, meaning)) = meanings.iter().find(|(own, _)| own == slug) {
                section.push_str(&format!(": {meaning}"));
            }
            section.push('\n');
        }
        push_within(&mut out, &section);
    }
    out
}

/// `/llms-full.txt`: the rules, the operations, the objects and the guides for client authors.
pub(crate) fn full(document: &Value, errors: &str, guides: &[Text]) -> String {
    let mut out = format!("# Linesman\n\n{}\n", text(at(document, "/info"), "description").trim());
    push_within(&mut out, &all_operations(document));
    push_within(&mut out, &all_parameters(document));
    push_within(&mut out, &demoted("Error codes", errors));
    push_within(&mut out, &all_objects(document));
    for guide in guides {
        push_within(&mut out, &demoted(guide.title, &guide.markdown));
    }
    out
}

/// Appends a section if it fits.
fn push_within(out: &mut String, section: &str) {
    if out.len() + section.len() <= BYTES_MAX {
        out.push_str(section);
    }
}

fn all_operations(document: &Value) -> String {
    let mut out = "\n## Operations\n".to_owned();
    for (path, _, item, operation) in operations(document) {
        if !path.starts_with("/v1/") {
            continue;
        }
        let (title, meaning) = (text(operation, "summary"), text(operation, "description"));
        let listed = at(item, "/parameters").as_array().into_iter().flatten();
        let names: Vec<String> =
            listed.filter_map(referred).map(|name| format!("`{name}`")).collect();
        let answer = at(operation, "/responses/200/content/application~1json/schema");
        let (answer, names) = (plain_kind(answer), names.join(", "));
        out.push_str(&format!(
            "\n### {title}\n\n`GET {path}`. {meaning} Answer: {answer}. Parameters: {names}.\n"
        ));
    }
    out
}

fn all_parameters(document: &Value) -> String {
    let mut out = "\n## Parameters of operations\n\n".to_owned();
    for (name, parameter) in
        at(document, "/components/parameters").as_object().into_iter().flatten()
    {
        out.push_str(&field(name, at(parameter, "/schema"), text(parameter, "description")));
    }
    out
}

fn all_objects(document: &Value) -> String {
    let mut out = "\n## Objects\n".to_owned();
    for (name, schema) in at(document, "/components/schemas").as_object().into_iter().flatten() {
        out.push_str(&format!("\n### {name}\n\n{}\n\n", text(schema, "description")));
        for (name, schema) in at(schema, "/properties").as_object().into_iter().flatten() {
            out.push_str(&field(name, schema, text(schema, "description")));
        }
    }
    out
}

/// A parameter or field in one line.
fn field(name: &str, schema: &Value, meaning: &str) -> String {
    let (mut facts, values) = (vec![plain_kind(schema)], values(schema));
    if !values.is_empty() && values.len() <= VALUES_MAX {
        facts.push(format!("one of {}", values.join(", ")));
    }
    facts.extend(rules(schema));
    facts.retain(|fact| !fact.is_empty());
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
    format!("- `{name}`{facts}: {meaning}\n")
}

/// The type of a schema, without links.
fn plain_kind(schema: &Value) -> String {
    let linked = kind(schema);
    let mut parts = linked.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    rest.fold(first, |text, part| text + part).replace('[', "")
}

/// A text as a section: without its title, and with its headings one level lower.
fn demoted(title: &str, markdown: &str) -> String {
    let mut out = format!("\n## {title}\n\n");
    let mut in_code = false;
    let titled = markdown.strip_prefix("# ").and_then(|text| text.split_once('\n'));
    for line in titled.map_or(markdown, |(_, rest)| rest).trim().lines() {
        in_code ^= line.starts_with("```");
        if line.starts_with('#') && !in_code {
            out.push('#');
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Resolves the links that `resolve` knows; others stay as they are.
pub(crate) fn relinked(markdown: &str, resolve: impl Fn(&str) -> Option<String>) -> String {
    let mut parts = markdown.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("](");
        let target = part.split_once(')');
        match target.and_then(|(target, rest)| Some((resolve(target)?, rest))) {
            Some((target, rest)) => out.extend([&*target, ")", rest]),
            None => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_has_its_headings_below_its_own_and_its_code_unchanged() {
        let page = "# Own title\n\n## First\n\n```sh\n# 200\n```\n\n### Second\n";
        let section = "\n## Page\n\n### First\n\n```sh\n# 200\n```\n\n#### Second\n";
        assert_eq!(demoted("Page", page), section);
    }

    #[test]
    fn links_lead_to_the_site_or_stay() {
        let resolve = |to: &str| (to == "polling.md").then(|| "/docs/polling".to_owned());
        let text = "[a](polling.md), [b](other.md) and rows[0](1).";
        assert_eq!(relinked(text, resolve), "[a](/docs/polling), [b](other.md) and rows[0](1).");
    }

    #[test]
    fn a_text_that_would_be_too_long_leaves_out_what_does_not_fit() {
        let document = json!({ "info": { "description": "Odds." } });
        let long = Text { title: "Long", markdown: "x".repeat(BYTES_MAX) };
        let short = Text { title: "Short", markdown: "Here.".to_owned() };
        let full = full(&document, "", &[long, short]);
        assert!(full.len() < 1000 && full.ends_with("\n## Short\n\nHere.\n"), "{full}");
    }
}
