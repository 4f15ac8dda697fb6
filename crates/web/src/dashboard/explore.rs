//! The explorer: select an endpoint, fill in its parameters, copy the request in four languages, and run it against
//! the sandbox.
//!
//! Endpoints and parameters are those of the OpenAPI document. A run goes through the same code as any request, with
//! one of the account's sandbox keys; a production key is never used.

mod field;
mod line;

use accounts::{Attempt, KeyEntry, KeyKind, KeyView};
use askama::Template;

use crate::dashboard::explore::field::Field;
use crate::dashboard::form::Form;
use crate::dashboard::key_line::KeyLine;
use crate::dashboard::page::{self, Notice, Part, Shell, parts};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::ExploreAct;
use crate::dashboard::sign;
use crate::docs::sandbox_event;
use crate::sample::Line;
use api::ErrorCode;
use api::Operation;
use http::{Reply, Request};

/// Maximum number of characters shown of a body.
const BODY_CHARS_MAX: usize = 60_000;
/// User agent of the explorer in the key's usage.
const AGENT: &[u8] = b"Linesman explorer";

struct EndpointLink {
    name: &'static str,
    title: &'static str,
    current: bool,
}

struct KeyChoice {
    id: String,
    label: String,
    selected: bool,
}

struct Outcome {
    status: u16,
    is_good: bool,
    headers: Vec<(String, String)>,
    body: String,
    shortened: bool,
    /// Error code of a refusal, linked to its documentation.
    code: Option<&'static str>,
    meaning: Vec<Part>,
}

#[derive(Template)]
#[template(path = "explore.html")]
struct ExplorePage {
    shell: Shell,
    endpoints: Vec<EndpointLink>,
    endpoint: &'static str,
    title: &'static str,
    template: &'static str,
    meaning: Vec<Part>,
    fields: Vec<Field>,
    keys: Vec<KeyChoice>,
    target: String,
    lines: Vec<Line>,
    outcome: Option<Outcome>,
}

pub(crate) async fn answer(
    page_request: &PageRequest<'_>,
    act: ExploreAct,
) -> Result<Reply, PageError> {
    let runs = act == ExploreAct::Run && page_request.form.get("act") == "run";
    let request = if act == ExploreAct::Run { &page_request.form } else { &page_request.query };
    let endpoint = Operation::by_name(request.get("endpoint")).unwrap_or(Operation::GetOdds);
    let is_shown = shown_endpoints().any(|shown| shown == endpoint);
    let Some(template) = endpoint.row().path.filter(|_| is_shown) else {
        return Err(PageError::NotFound);
    };
    let account_id = page_request.session()?.account.id.as_str();
    let keys: Vec<KeyView> = sandbox_keys(page_request, account_id).await?;
    let fields = fields(page_request, endpoint, request);
    let target = line::target(template, &fields);
    let chosen = chosen(&keys, request.get("key"));
    let mut notice = None;
    let mut outcome = None;
    let mut status = 200;
    let mut fields = fields;
    if runs {
        match run(page_request, chosen, &target).await? {
            Ok(reply) => {
                mark_wrong(&mut fields, &reply);
                outcome = Some(shown(&reply));
            }
            Err((code, text)) => (status, notice) = (code, Some(text)),
        }
    }
    let chosen = chosen.map(|view| view.record.id.as_str().to_owned());
    let page = ExplorePage {
        shell: Shell::new(page_request, "Explorer", "explore").with(notice),
        endpoints: links(endpoint),
        endpoint: endpoint.name(),
        title: endpoint.row().title,
        template,
        meaning: parts(endpoint.row().meaning),
        fields,
        keys: keys
            .iter()
            .map(|view| {
                let line = KeyLine::new(view, page_request.now);
                let selected = chosen.as_deref() == Some(line.id.as_str());
                KeyChoice {
                    label: format!("{} · {}", line.name, line.hint), id: line.id, selected
                }
            })
            .collect(),
        lines: line::all(&page_request.base(), &target),
        target,
        outcome,
    };
    page::render(status, &page)
}

async fn sandbox_keys(
    page_request: &PageRequest<'_>,
    account_id: &str,
) -> Result<Vec<KeyView>, PageError> {
    let mut keys = page_request.web.api.accounts.live_keys_of(account_id).await?;
    keys.retain(|view| view.record.kind == KeyKind::Sandbox && view.standing.is_some());
    keys.reverse();
    Ok(keys)
}

/// The requested key, else the one with the widest scope.
fn chosen<'k>(keys: &'k [KeyView], id: &str) -> Option<&'k KeyView> {
    let wide = |view: &&KeyView| view.record.groups.is_none();
    keys.iter()
        .find(|view| view.record.id.as_str() == id)
        .or_else(|| keys.iter().find(wide))
        .or_else(|| keys.first())
}

/// Endpoints whose responses end: streams cannot be shown on a page.
fn shown_endpoints() -> impl Iterator<Item = Operation> {
    let with_path = Operation::v1().filter(|endpoint| endpoint.row().path.is_some());
    with_path.filter(|endpoint| !endpoint.is_stream() && !endpoint.is_file())
}

fn links(current: Operation) -> Vec<EndpointLink> {
    shown_endpoints()
        .map(|endpoint| EndpointLink {
            name: endpoint.name(),
            title: endpoint.row().title,
            current: endpoint == current,
        })
        .collect()
}

/// The parameters with the submitted values, or with values that work.
fn fields(page_request: &PageRequest<'_>, endpoint: Operation, request: &Form) -> Vec<Field> {
    let untouched = request.get("touched").is_empty();
    let mut fields = field::of(endpoint, &page_request.web.api.catalogue, request);
    let sport = fields.iter().find(|field| field.name == "sport_key");
    let event = sport.and_then(|sport| sandbox_event(page_request, &sport.value));
    for field in &mut fields {
        match field.name.as_str() {
            "event_id" if field.value.is_empty() => field.value = event.clone().unwrap_or_default(),
            "limit" if field.value.is_empty() && untouched => field.value = "2".to_owned(),
            _ => {}
        }
    }
    fields
}

type Run = Result<Reply, (u16, Notice)>;

async fn run(
    page_request: &PageRequest<'_>,
    key: Option<&KeyView>,
    target: &str,
) -> Result<Run, PageError> {
    let session = page_request.session()?;
    let Some(key) = key else {
        let text = "There is no sandbox key to run it with. Create one first; it works at once.";
        return Ok(Err((400, Notice::bad(text))));
    };
    match page_request.web.people.admit_explorer(session) {
        Attempt::Done => {}
        attempt @ (Attempt::Refused | Attempt::Throttled { .. } | Attempt::Busy) => {
            return Ok(Err((sign::status(attempt), sign::notice(attempt, "That cannot be run."))));
        }
    }
    let id = key.record.id.as_str();
    let entry = page_request.web.api.accounts.own_entry(&session.account.id, id).await?;
    // Checked again here, so that no page can make the explorer use a production key.
    let is_sandbox = |entry: &std::sync::Arc<KeyEntry>| entry.grant.kind == KeyKind::Sandbox;
    let entry = entry.filter(is_sandbox).ok_or(PageError::NotFound)?;
    let mut request = Request::new("GET", target);
    request.agent = Some(AGENT);
    // Boxed: this future is as large as that of a whole request.
    Ok(Ok(Box::pin(api::v1::answer_as(&page_request.web.api, &request, &entry)).await))
}

/// Marks the field that a refusal names and adds its message.
fn mark_wrong(fields: &mut [Field], reply: &Reply) {
    let body = serde_json::from_slice::<serde_json::Value>(&reply.body.whole()).unwrap_or_default();
    let part =
        |name: &str| body.pointer(&format!("/error/{name}")).and_then(serde_json::Value::as_str);
    let (Some(param), Some(message)) = (part("param"), part("message")) else { return };
    for field in fields.iter_mut().filter(|field| field.name == param) {
        field.wrong = parts(message);
    }
}

fn shown(reply: &Reply) -> Outcome {
    let body = reply.body.whole();
    let text = String::from_utf8_lossy(&body);
    let pretty = serde_json::from_slice::<serde_json::Value>(&body)
        .map_or_else(|_| text.into_owned(), |body| format!("{body:#}"));
    let end = pretty.char_indices().nth(BODY_CHARS_MAX).map(|(end, _)| end);
    let error = reply.code.and_then(|code| ErrorCode::find(code, reply.status));
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome {
        status: reply.status,
        is_good: reply.status < 400,
        headers: reply.head.iter().map(|(name, value)| (lossy(name), lossy(value))).collect(),
        shortened: end.is_some(),
        body: end.and_then(|end| pretty.get(..end)).unwrap_or(&pretty).to_owned(),
        code: reply.code,
        meaning: error.map_or_else(Vec::new, |code| parts(code.meaning())),
    }
}
