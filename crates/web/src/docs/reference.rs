//! The reference from the OpenAPI document: a page per operation, the objects and the error codes.

use askama::Template;
use askama::filters::Safe;
use serde_json::Value;

use crate::docs::code;
use crate::docs::json;
use crate::docs::markdown::{self, Html};
use crate::docs::refusal::{Code, Refusal, codes, refusals};
use crate::docs::shape::{at, is_ingest, kind, operations, referred, rules, text, values};
use crate::sample::Sample;

/// Base address in examples until they are rendered: the default listen address.
pub(crate) const BASE_URL: &str = "http://localhost:8080";

/// Maximum number of values shown unfolded.
const VALUES_SHOWN_MAX: usize = 16;

/// Contents of a page of the reference.
#[derive(Default, Template)]
#[template(path = "docs_reference.html")]
pub(crate) struct Reference<'a> {
    operations: Vec<Operation<'a>>,
    objects: Vec<Object<'a>>,
    codes: Vec<Code<'a>>,
    table: Option<Table<'a>>,
}

/// A page of the reference: the end of its address, its title and its contents.
pub(crate) type Entry<'a> = (String, String, Reference<'a>);

/// All pages except the error codes.
pub(crate) fn entries(document: &Value) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = endpoints(document)
        .into_iter()
        .map(|operation| {
            let slug = format!("reference/{}", operation.id.replace('_', "-"));
            let title = operation.title.to_owned();
            (slug, title, Reference { operations: vec![operation], ..Reference::default() })
        })
        .collect();
    let all = objects(document, |name| !is_ingest(name));
    let ingest = Reference {
        operations: ingest(document).into_iter().collect(),
        objects: objects(document, is_ingest),
        ..Reference::default()
    };
    let open = Table::new("Path", open_paths(document));
    entries.extend([
        (
            "reference/objects".to_owned(),
            "Objects".to_owned(),
            Reference { objects: all, ..Reference::default() },
        ),
        ("reference/ingest".to_owned(), "Push messages".to_owned(), ingest),
        (
            "reference/without-a-key".to_owned(),
            "Without a key".to_owned(),
            Reference { table: open, ..Reference::default() },
        ),
    ]);
    entries
}

/// The page of the error codes.
pub(crate) fn error_codes(document: &Value) -> Reference<'_> {
    Reference { codes: codes(document), ..Reference::default() }
}

struct Operation<'a> {
    id: &'a str,
    title: &'a str,
    method: &'static str,
    path: &'a str,
    description: Html,
    /// The request body and its type.
    body: Option<(Html, Html)>,
    parameters: Option<Table<'a>>,
    answer: Html,
    answer_kind: Html,
    errors: Vec<Refusal<'a>>,
    examples: Vec<Example<'a>>,
}

/// An example request with its response.
struct Example<'a> {
    title: &'a str,
    request: Html,
    answer: Vec<json::Piece>,
}

struct Object<'a> {
    name: &'a str,
    description: Html,
    /// The alternatives, if the schema is only a choice of types.
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
    /// Fields of an unnamed inner object.
    inner: Option<Table<'a>>,
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
                    request: Safe(code::sample(&Sample::get(format!(
                        "{BASE_URL}{}",
                        current(target)
                    )))),
                    answer: json::pieces(at(shown, "/value")),
                }
            });
            Operation {
                parameters: Table::new("Name", parameters.map(parameter_row).collect()),
                examples: examples.chain(streamed(operation)).collect(),
                ..Operation::new(document, path, method, operation)
            }
        })
        .collect()
}

/// A response without an end. Shown only with curl: the guide covers clients.
fn streamed(operation: &Value) -> Option<Example<'_>> {
    let examples = at(operation, "/responses/200/content/text~1event-stream/examples");
    let (_, shown) = examples.as_object()?.iter().next()?;
    let target = text(shown, "x-request").trim_start_matches("GET ");
    let curl = format!("curl -N -H \"X-API-Key: $LINESMAN_KEY\" '{BASE_URL}{target}'");
    Some(Example {
        title: text(shown, "summary"),
        request: Safe(code::block(&curl)),
        answer: vec![("s", text(shown, "value").trim_end().to_owned())],
    })
}

/// The operation for pushes.
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
            title: "Push, and its result",
            request: Safe(code::sample(&Sample {
                url: format!("{BASE_URL}{path}"),
                headers: vec![("Authorization".to_owned(), "Bearer $FEED_TOKEN".to_owned())],
                body: text(at(content, "/examples/messages"), "value").trim_end().to_owned(),
            })),
            answer: json::pieces(receipt),
        }],
        ..Operation::new(document, path, method, operation)
    })
}

/// Updates an example request of the document: its events and days are outdated. Placeholders in braces are filled in
/// when the page is rendered.
fn current(target: &str) -> String {
    let mut target = target.to_owned();
    for (name, token) in [("commence_from=", "{today}"), ("commence_to=", "{tomorrow}")] {
        let value = target.split_once(name).and_then(|(_, rest)| rest.get(..10));
        target = value.map_or_else(|| target.clone(), |day| target.replace(day, token));
    }
    let sport = target.split('/').nth(3).unwrap_or_default().to_owned();
    match target.split_once("/events/") {
        Some((before, id)) => {
            let rest = id.find(['/', '?']).and_then(|end| id.get(end..)).unwrap_or_default();
            format!("{before}/events/{{event:{sport}}}{rest}")
        }
        None => target,
    }
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

fn fields(schema: &Value) -> Option<Table<'_>> {
    let properties = at(schema, "/properties").as_object()?;
    let required = at(schema, "/required").as_array();
    // Only objects of requests may have additional fields.
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

/// The forms of a value that is not an object.
fn forms(schema: &Value) -> Option<Table<'_>> {
    let any = at(schema, "/anyOf").as_array();
    let forms: Vec<&Value> = any.map_or_else(|| vec![schema], |forms| forms.iter().collect());
    let rows = forms.iter().map(|form| {
        let title = at(form, "/title").as_str().unwrap_or("value");
        // The description of a single form is above the table.
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

/// Paths that need no key.
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
