//! The page, section by section, from the OpenAPI document.

use askama::Template;
use serde_json::Value;

use crate::docs::json;
use crate::docs::markdown::{self, Html};
use crate::docs::refusal::{Code, Refusal, codes, refusals};
use crate::docs::shape::{at, kind, operations, referred, rules, text, values};

/// What is written for people alone: it is no part of the OpenAPI document.
const START: &str = include_str!("../../../../docs/api/start.md");
const SANDBOX: &str = include_str!("../../../../docs/api/sandbox.md");
const MIGRATION: &str = include_str!("../../../../docs/api/migration.md");
const CHANGES: &str = include_str!("../../../../CHANGELOG.md");

/// Where the service listens unless told otherwise; what examples are sent to.
const BASE_URL: &str = "http://localhost:8080";

/// A longer list of values is folded up.
const VALUES_SHOWN_MAX: usize = 16;

#[derive(Template)]
#[template(path = "docs.html")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    licence: &'a str,
    lead: Html,
    /// Other pages, as path and title.
    others: &'a [(&'a str, &'a str)],
    sections: Vec<Section<'a>>,
}

/// A part of the page; the contents link to it and to each operation, object and code in it.
#[derive(Default)]
struct Section<'a> {
    id: String,
    title: &'a str,
    prose: Option<Html>,
    operations: Vec<Operation<'a>>,
    objects: Vec<Object<'a>>,
    codes: Vec<Code<'a>>,
    table: Option<Table<'a>>,
}

struct Operation<'a> {
    id: &'a str,
    title: &'a str,
    method: &'static str,
    path: &'a str,
    description: Html,
    /// What is sent, and its type.
    body: Option<(Html, Html)>,
    parameters: Option<Table<'a>>,
    answer: Html,
    answer_kind: Html,
    errors: Vec<Refusal<'a>>,
    examples: Vec<Example<'a>>,
}

/// A request and its answer.
struct Example<'a> {
    title: &'a str,
    request: String,
    body: &'a str,
    answer: Vec<json::Piece>,
}

struct Object<'a> {
    name: &'a str,
    description: Html,
    /// The types to choose from, where that is all there is to say.
    choice: Option<Html>,
    table: Option<Table<'a>>,
}

#[derive(Template)]
#[template(path = "docs_table.html")]
struct Table<'a> {
    head: &'static str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    name: &'a str,
    note: String,
    kind: Html,
    meaning: Html,
    values: Vec<String>,
    rules: Vec<Html>,
    /// The fields of an object that has no name of its own.
    inner: Option<Table<'a>>,
}

/// The whole page.
///
/// # Errors
/// Where the template cannot be written.
pub(crate) fn page(document: &Value, others: &[(&str, &str)]) -> askama::Result<String> {
    let info = at(document, "/info");
    let mut guide = text(info, "description").split("\n## ");
    let lead = markdown::block(guide.next().unwrap_or_default());
    let mut sections = vec![prose("getting-started", "Getting started in five minutes", START)];
    sections.extend(guide.map(|part| {
        let (title, body) = part.split_once('\n').unwrap_or((part, ""));
        prose(&title.to_lowercase().replace(' ', "-"), title, body)
    }));
    sections.push(prose("sandbox", "Sandbox", SANDBOX));
    sections.push(Section { operations: endpoints(document), ..section("endpoints", "Endpoints") });
    sections.push(Section {
        objects: objects(document, |name| !is_ingest(name)),
        ..section("objects", "Objects")
    });
    sections.push(Section { codes: codes(document), ..section("error-codes", "Error codes") });
    sections.push(Section {
        operations: ingest(document).into_iter().collect(),
        objects: objects(document, is_ingest),
        ..section("ingest", "Ingest")
    });
    sections.push(Section {
        table: Table::new("Path", open_paths(document)),
        ..section("without-a-key", "Without a key")
    });
    sections.push(prose("migration", "Migration from the prior interface", MIGRATION));
    // The title and the line under it are the file's own.
    let changes = CHANGES.split_once("\n## ").map_or(CHANGES, |(_, rest)| rest);
    let changes = format!("### {}", changes.replace("\n## ", "\n### "));
    sections.push(prose("changelog", "Changelog", &changes));
    Page {
        title: text(info, "title"),
        version: text(info, "version"),
        licence: text(at(info, "/license"), "name"),
        lead,
        others,
        sections,
    }
    .render()
}

fn section<'a>(id: &str, title: &'a str) -> Section<'a> {
    Section { id: id.to_owned(), title, ..Section::default() }
}

fn prose<'a>(id: &str, title: &'a str, text: &str) -> Section<'a> {
    Section { prose: Some(markdown::block(text)), ..section(id, title) }
}

fn endpoints(document: &Value) -> Vec<Operation<'_>> {
    let endpoints = operations(document).filter(|(path, ..)| path.starts_with("/v1/"));
    endpoints
        .map(|(path, method, item, operation)| {
            let listed = at(item, "/parameters").as_array().into_iter().flatten();
            let parameters = listed.map(|parameter| {
                let name = referred(parameter).unwrap_or_default();
                at(document, "/components/parameters").get(name).unwrap_or(parameter)
            });
            let examples = at(operation, "/responses/200/content/application~1json/examples");
            let examples = examples.as_object().into_iter().flatten().map(|(_, shown)| {
                let target = text(shown, "x-request").trim_start_matches("GET ");
                Example {
                    title: text(shown, "summary"),
                    request: format!("curl -H 'X-API-Key: <API_KEY>' \\\n  '{BASE_URL}{target}'"),
                    body: "",
                    answer: json::pieces(at(shown, "/value")),
                }
            });
            Operation {
                parameters: Table::new("Name", parameters.map(parameter_row).collect()),
                examples: examples.collect(),
                ..Operation::new(document, path, method, operation)
            }
        })
        .collect()
}

/// The operation by which feeds send.
fn ingest(document: &Value) -> Option<Operation<'_>> {
    let (path, method, _, operation) =
        operations(document).find(|(_, method, _, _)| *method == "post")?;
    let body = at(operation, "/requestBody");
    let content = at(body, "/content/application~1x-ndjson");
    let parameters = at(operation, "/parameters").as_array().into_iter().flatten();
    let receipt = at(operation, "/responses/200/content/application~1json/examples/receipt/value");
    Some(Operation {
        body: Some((
            markdown::inline(text(body, "description")),
            markdown::inline(&kind(at(content, "/x-line-schema"))),
        )),
        parameters: Table::new("Name", parameters.map(parameter_row).collect()),
        examples: vec![Example {
            title: "Push, and what became of it",
            request: format!(
                "curl -H 'Authorization: Bearer <FEED_TOKEN>' \\\n  \
                 --data-binary @messages.ndjson \\\n  '{BASE_URL}{path}'"
            ),
            body: text(at(content, "/examples/messages"), "value").trim_end(),
            answer: json::pieces(receipt),
        }],
        ..Operation::new(document, path, method, operation)
    })
}

impl<'a> Operation<'a> {
    fn new(document: &'a Value, path: &'a str, method: &'static str, operation: &'a Value) -> Self {
        let success = at(operation, "/responses/200");
        Self {
            id: text(operation, "operationId"),
            title: text(operation, "summary"),
            method,
            path,
            description: markdown::block(text(operation, "description")),
            body: None,
            parameters: None,
            answer: markdown::inline(text(success, "description")),
            answer_kind: markdown::inline(&kind(at(success, "/content/application~1json/schema"))),
            errors: refusals(document, operation),
            examples: Vec::new(),
        }
    }
}

impl<'a> Table<'a> {
    fn new(head: &'static str, rows: Vec<Row<'a>>) -> Option<Self> {
        (!rows.is_empty()).then_some(Self { head, rows })
    }
}

impl<'a> Row<'a> {
    fn new(name: &'a str, note: String, description: &str, schema: &'a Value) -> Self {
        Self {
            name,
            note,
            kind: markdown::inline(&kind(schema)),
            meaning: markdown::inline(description),
            values: values(schema),
            rules: rules(schema).iter().map(|rule| markdown::inline(rule)).collect(),
            inner: None,
        }
    }
}

fn parameter_row(parameter: &Value) -> Row<'_> {
    let mut note = text(parameter, "in").to_owned();
    for flag in ["required", "deprecated"] {
        if parameter.get(flag) == Some(&Value::Bool(true)) {
            note.push_str(", ");
            note.push_str(flag);
        }
    }
    Row::new(
        text(parameter, "name"),
        note,
        text(parameter, "description"),
        at(parameter, "/schema"),
    )
}

fn objects(document: &Value, is_shown: impl Fn(&str) -> bool) -> Vec<Object<'_>> {
    let schemas = at(document, "/components/schemas").as_object().into_iter().flatten();
    let shown = schemas.filter(|(name, _)| is_shown(name));
    shown
        .map(|(name, schema)| {
            let is_choice = schema.get("oneOf").is_some() && schema.get("properties").is_none();
            Object {
                name,
                description: markdown::block(text(schema, "description")),
                choice: is_choice.then(|| markdown::inline(&kind(schema))),
                table: if is_choice { None } else { fields(schema).or_else(|| forms(schema)) },
            }
        })
        .collect()
}

fn is_ingest(name: &str) -> bool {
    ["Feed", "Push", "Rejected"].iter().any(|prefix| name.starts_with(prefix))
}

fn fields(schema: &Value) -> Option<Table<'_>> {
    let properties = at(schema, "/properties").as_object()?;
    let required = at(schema, "/required").as_array();
    // Only what is sent to us may have fields of its own.
    let absent =
        if at(schema, "/additionalProperties") == true { "optional" } else { "not always there" };
    let rows = properties.iter().map(|(name, field)| {
        let is_required =
            required.is_some_and(|names| names.iter().any(|known| known == name.as_str()));
        let note = if is_required { "" } else { absent };
        let inner = if at(field, "/type") == "array" { at(field, "/items") } else { field };
        Row {
            inner: fields(inner),
            ..Row::new(name, note.to_owned(), text(field, "description"), field)
        }
    });
    Table::new("Field", rows.collect())
}

/// What is not an object: its form, or the forms it may take.
fn forms(schema: &Value) -> Option<Table<'_>> {
    let any = at(schema, "/anyOf").as_array();
    let forms: Vec<&Value> = any.map_or_else(|| vec![schema], |forms| forms.iter().collect());
    let rows = forms.iter().map(|form| {
        let title = at(form, "/title").as_str().unwrap_or("value");
        // What is said of the only form is said above the table.
        let about = if any.is_some() { text(form, "description") } else { "" };
        let mut row = Row::new(title, String::new(), about, form);
        let samples = at(form, "/examples").as_array().into_iter().flatten();
        let samples: Vec<String> = samples.map(|sample| format!("`{sample}`")).collect();
        if !samples.is_empty() {
            row.rules.push(markdown::inline(&samples.join(" ")));
        }
        row
    });
    Table::new("Form", rows.collect())
}

/// What needs no key.
fn open_paths(document: &Value) -> Vec<Row<'_>> {
    let open = operations(document)
        .filter(|(path, method, _, _)| *method == "get" && !path.starts_with("/v1/"));
    open.map(|(path, _, _, operation)| {
        let content = at(operation, "/responses/200/content").as_object();
        let media = content.and_then(|content| content.keys().next());
        let media = media.and_then(|media| media.split(';').next()).unwrap_or_default();
        let row = Row::new(path, String::new(), text(operation, "description"), &Value::Null);
        Row { kind: markdown::inline(media), ..row }
    })
    .collect()
}
