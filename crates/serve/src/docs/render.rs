//! The page, section by section, from the OpenAPI document.

use serde_json::{Map, Value};

use crate::docs::html::{block, code_block, escape, inline, json};
use crate::docs::refusal;
use crate::docs::shape::{at, kind, referred, rules};

/// What is written for people alone: it is no part of the OpenAPI document.
const START: &str = include_str!("../../../../docs/api/start.md");
const SANDBOX: &str = include_str!("../../../../docs/api/sandbox.md");
const MIGRATION: &str = include_str!("../../../../docs/api/migration.md");
const CHANGES: &str = include_str!("../../../../CHANGELOG.md");

/// Where the service listens unless told otherwise; what examples are sent to.
const BASE_URL: &str = "http://localhost:8080";

/// A part of the page and the links to it.
struct Section {
    id: String,
    title: String,
    /// Links to what is inside, as id and title.
    inside: Vec<(String, String)>,
    html: String,
}

/// The whole page.
pub(crate) fn page(document: &Value, others: &[(&str, &str)]) -> String {
    let (lead, mut sections) =
        guide(at(document, "/info/description").as_str().unwrap_or_default());
    sections.insert(0, prose("getting-started", "Getting started in five minutes", START));
    sections.push(prose("sandbox", "Sandbox", SANDBOX));
    sections.extend([endpoints(document), objects(document)]);
    sections.extend([refusal_section(document), push_door(document), open_paths(document)]);
    sections.push(prose("migration", "Migration from the prior interface", MIGRATION));
    // The title and the line under it are the file's own.
    let changes = CHANGES.split_once("\n## ").map_or(CHANGES, |(_, rest)| rest);
    let changes = format!("### {}", changes.replace("\n## ", "\n### "));
    sections.push(prose("changelog", "Changelog", &changes));
    let links: String = sections.iter().map(links).collect();
    let main: String = sections.iter().map(|part| part.html.as_str()).collect();
    let others: String = others
        .iter()
        .map(|(path, title)| format!("<a href=\"{path}\">{}</a>\n", escape(title)))
        .collect();
    let version = escape(at(document, "/info/version").as_str().unwrap_or_default());
    let title = escape(at(document, "/info/title").as_str().unwrap_or_default());
    let licence = escape(at(document, "/info/license/name").as_str().unwrap_or_default());
    include_str!("page.html")
        .replace("{{title}}", &title)
        .replace("{{version}}", &version)
        .replace("{{licence}}", &licence)
        .replace("{{lead}}", &lead)
        .replace("{{others}}", &others)
        .replace("{{links}}", &links)
        .replace("{{main}}", &main)
}

fn links(section: &Section) -> String {
    let link = |id: &str, title: &str| format!("<a href=\"#{id}\">{}</a>", escape(title));
    let inside: String = section
        .inside
        .iter()
        .map(|(id, title)| format!("<li>{}</li>\n", link(id, title)))
        .collect();
    let inside = if inside.is_empty() { inside } else { format!("\n<ul>\n{inside}</ul>\n") };
    format!("<li>{}{inside}</li>\n", link(&section.id, &section.title))
}

/// A section with a heading of its own.
fn section(id: &str, title: &str, inside: Vec<(String, String)>, body: &str) -> Section {
    let html = format!(
        "<section id=\"{id}\" class=\"part\">\n<h2><a href=\"#{id}\">{}</a></h2>\n{body}</section>\n",
        escape(title)
    );
    Section { id: id.to_owned(), title: title.to_owned(), inside, html }
}

/// A section of text.
fn prose(id: &str, title: &str, markdown: &str) -> Section {
    let body = format!("<div class=\"prose\">\n{}</div>\n", block(markdown));
    section(id, title, Vec::new(), &body)
}

/// The lead, and the guide's sections.
fn guide(markdown: &str) -> (String, Vec<Section>) {
    let mut parts = markdown.split("\n## ");
    let lead = block(parts.next().unwrap_or_default());
    let sections = parts.map(|part| {
        let (title, body) = part.split_once('\n').unwrap_or((part, ""));
        let id = title.to_lowercase().replace(' ', "-");
        let body = format!("<div class=\"prose\">\n{}</div>\n", block(body));
        section(&id, title, Vec::new(), &body)
    });
    (lead, sections.collect())
}

/// Every operation of the document: path, method, path item, operation.
pub(crate) fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value, &Value)> {
    let paths = at(document, "/paths").as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = ["get", "post"].into_iter();
        methods.filter_map(move |method| Some((path.as_str(), method, item, item.get(method)?)))
    })
}

fn endpoints(document: &Value) -> Section {
    let mut inside = Vec::new();
    let mut html = String::new();
    for (path, method, item, operation) in operations(document) {
        if path.starts_with("/v1/") {
            inside.push((text(operation, "operationId"), text(operation, "summary")));
            html.push_str(&endpoint(document, path, method, item, operation));
        }
    }
    section("endpoints", "Endpoints", inside, &html)
}

fn text(value: &Value, field: &str) -> String {
    at(value, &format!("/{field}")).as_str().unwrap_or_default().to_owned()
}

fn endpoint(document: &Value, path: &str, method: &str, item: &Value, operation: &Value) -> String {
    let success = at(operation, "/responses/200");
    let content = at(success, "/content/application~1json");
    let about = format!(
        "{}<p>{}</p>\n{}<h4>Answer</h4>\n<p>{} {}</p>\n{}",
        address(method, path),
        inline(&text(operation, "description")),
        parameters(document, item),
        inline(&text(success, "description")),
        answer_kind(at(content, "/schema")),
        refusal::links(document, operation),
    );
    let examples = at(content, "/examples").as_object().into_iter().flatten().enumerate();
    let shown: String = examples.map(|(i, (_, shown))| example(shown, i == 0)).collect();
    operation_html(operation, &about, &shown)
}

fn operation_html(operation: &Value, about: &str, shown: &str) -> String {
    let (id, title) = (text(operation, "operationId"), text(operation, "summary"));
    format!(
        "<article id=\"{id}\" class=\"op\">\n<div class=\"about\">\n<h3><a href=\"#{id}\">{}</a></h3>\n\
         {about}</div>\n<div class=\"shown\">\n{shown}</div>\n</article>\n",
        escape(&title)
    )
}

fn address(method: &str, path: &str) -> String {
    let path = escape(path).replace('{', "<var>{").replace('}', "}</var>").replace('/', "<wbr>/");
    let path = path.replace("<<wbr>/var>", "</var>");
    format!(
        "<p class=\"address\"><span class=\"method {method}\">{}</span> <span class=\"path\">{path}</span></p>\n",
        method.to_uppercase()
    )
}

fn answer_kind(schema: &Value) -> String {
    format!("<span class=\"kind\">{}</span>", kind(schema))
}

fn parameters(document: &Value, item: &Value) -> String {
    let listed = at(item, "/parameters").as_array().into_iter().flatten();
    let rows: String = listed
        .map(|parameter| {
            let name = referred(parameter).unwrap_or_default();
            let found = at(document, "/components/parameters").get(name);
            parameter_row(found.unwrap_or(parameter))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table("Parameters", ["Name", "Type", "Meaning"], &rows)
}

fn parameter_row(parameter: &Value) -> String {
    let mut notes = vec![text(parameter, "in")];
    notes.extend((at(parameter, "/required") == true).then(|| "required".to_owned()));
    notes.extend((at(parameter, "/deprecated") == true).then(|| "deprecated".to_owned()));
    let schema = at(parameter, "/schema");
    row(
        &text(parameter, "name"),
        &notes.join(", "),
        &kind(schema),
        &format!("{}{}", inline(&text(parameter, "description")), rules(schema)),
    )
}

fn row(name: &str, note: &str, kind: &str, meaning: &str) -> String {
    let note =
        if note.is_empty() { String::new() } else { format!("<small>{}</small>", escape(note)) };
    format!(
        "<tr><th scope=\"row\"><code>{}</code>{note}</th><td class=\"kind\">{kind}</td><td>{meaning}</td></tr>\n",
        escape(name)
    )
}

fn table(title: &str, heads: [&str; 3], rows: &str) -> String {
    let heads: String =
        heads.iter().map(|head| format!("<th scope=\"col\">{}</th>", escape(head))).collect();
    let title = if title.is_empty() { String::new() } else { format!("<h4>{title}</h4>\n") };
    format!("{title}<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// A request and its answer, the first of several unfolded.
fn example(example: &Value, first: bool) -> String {
    let open = if first { " open" } else { "" };
    let request = text(example, "x-request");
    let target = request.trim_start_matches("GET ");
    let curl = format!("curl -H 'X-API-Key: <API_KEY>' \\\n  '{BASE_URL}{target}'");
    format!(
        "<details class=\"example\"{open}>\n<summary>{}</summary>\n{}{}</details>\n",
        escape(&text(example, "summary")),
        code_block(&escape(&curl)),
        code_block(&json(at(example, "/value"))),
    )
}

fn objects(document: &Value) -> Section {
    let mut inside = Vec::new();
    let mut html = String::new();
    for (name, schema) in schemas(document).filter(|(name, _)| !is_of_door(name)) {
        inside.push((format!("object-{name}"), name.clone()));
        html.push_str(&object(name, schema));
    }
    section("objects", "Objects", inside, &html)
}

fn schemas(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    at(document, "/components/schemas").as_object().into_iter().flatten()
}

fn is_of_door(name: &str) -> bool {
    ["Feed", "Push", "Rejected"].iter().any(|prefix| name.starts_with(prefix))
}

fn object(name: &str, schema: &Value) -> String {
    let body = match at(schema, "/properties").as_object() {
        Some(fields) => fields_table(schema, fields),
        None => scalar(schema),
    };
    let name = escape(name);
    format!(
        "<article id=\"object-{name}\" class=\"object\">\n<h3><a href=\"#object-{name}\">{name}</a></h3>\n\
         <p>{}</p>\n{body}</article>\n",
        inline(&text(schema, "description"))
    )
}

fn fields_table(schema: &Value, fields: &Map<String, Value>) -> String {
    let required = at(schema, "/required").as_array();
    // Only what is sent to us may have fields of its own.
    let absent =
        if at(schema, "/additionalProperties") == true { "optional" } else { "not always there" };
    let rows: String = fields
        .iter()
        .map(|(name, field)| {
            let always = required
                .is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)));
            let note = if always { "" } else { absent };
            let mut row = row(
                name,
                note,
                &kind(field),
                &format!("{}{}", inline(&text(field, "description")), rules(field)),
            );
            // An object inside has no name of its own, so its fields follow here.
            let inner = if at(field, "/type") == "array" { at(field, "/items") } else { field };
            if let Some(fields) = at(inner, "/properties").as_object() {
                let inner = fields_table(inner, fields);
                row.push_str(&format!("<tr class=\"inner\"><td colspan=\"3\">{inner}</td></tr>\n"));
            }
            row
        })
        .collect();
    table("", ["Field", "Type", "Meaning"], &rows)
}

/// What is not an object: its form, or the forms it may take.
fn scalar(schema: &Value) -> String {
    let forms = at(schema, "/anyOf").as_array();
    let forms: Vec<&Value> = forms.map_or_else(|| vec![schema], |forms| forms.iter().collect());
    let rows: String = forms
        .iter()
        .map(|form| {
            let samples = at(form, "/examples").as_array().into_iter().flatten();
            let samples: Vec<String> = samples
                .map(|sample| format!("<code>{}</code>", escape(&sample.to_string())))
                .collect();
            let title = at(form, "/title").as_str().unwrap_or("value");
            let about =
                if forms.len() > 1 { inline(&text(form, "description")) } else { String::new() };
            let meaning = format!("{about}{} {}", rules(form), samples.join(" "));
            row(title, "", &kind(form), &meaning)
        })
        .collect();
    let is_choice = schema.get("oneOf").is_some();
    if is_choice {
        return format!("<p class=\"kind\">{}</p>\n", kind(schema));
    }
    table("", ["Form", "Type", "Meaning"], &rows)
}

fn refusal_section(document: &Value) -> Section {
    let (inside, html) = refusal::all(document);
    section("error-codes", "Error codes", inside, &html)
}

fn push_door(document: &Value) -> Section {
    let door = operations(document).find(|(_, method, _, _)| *method == "post");
    let Some((path, method, _, operation)) = door else {
        return section("push-door", "The push door", Vec::new(), "");
    };
    let body = at(operation, "/requestBody");
    let content_in = at(body, "/content/application~1x-ndjson");
    let sent = at(content_in, "/examples/messages/value");
    let content = at(operation, "/responses/200/content/application~1json");
    let parameters = at(operation, "/parameters").as_array().into_iter().flatten();
    let rows: String = parameters.map(parameter_row).collect();
    let about = format!(
        "{}<p>{}</p>\n<p>{} <span class=\"kind\">{}</span></p>\n{}<h4>Answer</h4>\n<p>{} {}</p>\n{}",
        address(method, path),
        inline(&text(operation, "description")),
        inline(&text(body, "description")),
        kind(at(content_in, "/x-line-schema")),
        table("Parameters", ["Name", "Type", "Meaning"], &rows),
        inline(&text(at(operation, "/responses/200"), "description")),
        answer_kind(at(content, "/schema")),
        refusal::links(document, operation),
    );
    let curl = format!(
        "curl -H 'Authorization: Bearer <FEED_TOKEN>' \\\n  --data-binary @messages.ndjson \\\n  \
         '{BASE_URL}{path}'"
    );
    let shown = format!(
        "<details class=\"example\" open>\n<summary>Push, and what became of it</summary>\n{}{}{}</details>\n",
        code_block(&escape(&curl)),
        code_block(&escape(sent.as_str().unwrap_or_default().trim_end())),
        code_block(&json(at(content, "/examples/receipt/value"))),
    );
    let mut html = operation_html(operation, &about, &shown);
    let mut inside = vec![(text(operation, "operationId"), text(operation, "summary"))];
    for (name, schema) in schemas(document).filter(|(name, _)| is_of_door(name)) {
        inside.push((format!("object-{name}"), name.clone()));
        html.push_str(&object(name, schema));
    }
    section("push-door", "The push door", inside, &html)
}

/// What needs no key.
fn open_paths(document: &Value) -> Section {
    let rows: String = operations(document)
        .filter(|(path, method, _, _)| *method == "get" && !path.starts_with("/v1/"))
        .map(|(path, _, _, operation)| {
            let content = at(operation, "/responses/200/content").as_object();
            let kind = content.and_then(|content| content.keys().next()).cloned();
            let kind = kind.unwrap_or_default();
            let kind = kind.split(';').next().unwrap_or_default();
            row(path, "", &escape(kind), &inline(&text(operation, "description")))
        })
        .collect();
    let body = table("", ["Path", "Type", "Meaning"], &rows);
    section("without-a-key", "Without a key", Vec::new(), &body)
}
