//! Resources: documents that explain the API, and events.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::call::Call;
use crate::message::{Fault, REFUSED, RESOURCE_NOT_FOUND};
use crate::page::{Page, Refused};
use crate::reader::Reader;

const EVENT: &str = "linesman://events/";
/// Ids are shorter.
const EVENT_ID_CHARS_MAX: usize = 64;

/// A text that does not change while the server runs.
#[derive(Debug)]
pub struct Document {
    /// What follows `linesman://`.
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub mime_type: &'static str,
    pub text: Cow<'static, str>,
}

impl Document {
    fn uri(&self) -> String {
        format!("linesman://{}", self.name)
    }
}

/// The result of `resources/list`.
pub(crate) fn list(documents: &[Document]) -> Value {
    let resources = documents.iter().map(|document| {
        json!({
            "uri": document.uri(),
            "name": document.name,
            "title": document.title,
            "description": document.description,
            "mimeType": document.mime_type,
            "size": document.text.len(),
        })
    });
    json!({ "resources": resources.collect::<Vec<_>>() })
}

/// The result of `resources/templates/list`.
pub(crate) fn templates() -> Value {
    json!({ "resourceTemplates": [{
        "uriTemplate": format!("{EVENT}{{event_id}}"),
        "name": "event",
        "title": "An event",
        "description": "An event as `GET /v1/sports/{sport_key}/events/{event_id}` gives it, whatever its sport.",
        "mimeType": "application/json",
    }] })
}

/// What a URI names.
#[derive(Debug)]
pub(crate) enum Resource<'a> {
    Document(&'a Document),
    /// The event's id.
    Event(&'a str),
}

/// Finds a resource by its URI.
///
/// # Errors
/// There is none.
pub(crate) fn find<'a>(documents: &'a [Document], uri: &'a str) -> Result<Resource<'a>, Fault> {
    if let Some(document) = documents.iter().find(|document| document.uri() == uri) {
        return Ok(Resource::Document(document));
    }
    let is_id = |id: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        !id.is_empty() && id.len() <= EVENT_ID_CHARS_MAX && id.bytes().all(is_plain)
    };
    let id = uri.strip_prefix(EVENT).filter(is_id);
    id.map(Resource::Event).ok_or_else(not_found)
}

fn not_found() -> Fault {
    let text = "there is no such resource; resources/list and resources/templates/list name them";
    Fault::new(RESOURCE_NOT_FOUND, text)
}

/// The result of `resources/read` for a document.
pub(crate) fn read_document(document: &Document) -> Value {
    contents(&document.uri(), document.mime_type, &document.text)
}

/// The result of `resources/read` for an event: it is looked for in the sports that the key covers.
///
/// # Errors
/// There is no such event, or the API refuses.
pub(crate) async fn read_event(reader: &dyn Reader, id: &str) -> Result<Value, Fault> {
    let sports = reader.get(&Call::of_path(&["sports"])).await.map_err(refused)?;
    let sports: Value = serde_json::from_slice(&sports.body).unwrap_or_default();
    let sports = sports.get("sports").and_then(Value::as_array).into_iter().flatten();
    for key in sports.filter_map(|sport| sport.get("key")?.as_str()) {
        match reader.get(&Call::of_path(&["sports", key, "events", id])).await {
            Ok(Page { body, .. }) => {
                let uri = format!("{EVENT}{id}");
                return Ok(contents(&uri, "application/json", &String::from_utf8_lossy(&body)));
            }
            // Of another sport, or of one that the key does not cover.
            Err(refused) if matches!(refused.status, 403 | 404) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Err(Fault::new(RESOURCE_NOT_FOUND, "there is no such event in the sports that the key covers"))
}

fn contents(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "contents": [{ "uri": uri, "mimeType": mime_type, "text": text }] })
}

/// A refusal of the API as one of the protocol.
pub(crate) fn refused(refused: Refused) -> Fault {
    let error = refused.into_error();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("refused").to_owned();
    Fault { code: REFUSED, message, data: Some(json!({ "error": error })) }
}
