//! Resources: documents that explain the API, and events.

use std::borrow::Cow;

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use crate::call::Call;
use crate::message::REFUSED;
use crate::page::{Page, Refused};
use crate::reader::Reader;

const EVENT: &str = "linesman://events/";
/// Maximum length of an event id; real ids are shorter.
const EVENT_ID_CHARS_MAX: usize = 64;

/// A text that does not change while the server runs.
#[derive(Debug)]
pub struct Document {
    /// The part after `linesman://`.
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
pub(crate) fn list(documents: &[Document]) -> Vec<Resource> {
    let resource = |document: &Document| {
        Resource::new(document.uri(), document.name)
            .with_title(document.title)
            .with_description(document.description)
            .with_mime_type(document.mime_type)
            .with_size(u64::try_from(document.text.len()).unwrap_or(u64::MAX))
    };
    documents.iter().map(resource).collect()
}

/// The result of `resources/templates/list`.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let text =
        "An event as `GET /v1/sports/{sport_key}/events/{event_id}` gives it, whatever its sport.";
    let event = ResourceTemplate::new(format!("{EVENT}{{event_id}}"), "event")
        .with_title("An event")
        .with_description(text)
        .with_mime_type("application/json");
    vec![event]
}

/// The resource that a URI names.
#[derive(Debug)]
pub(crate) enum Named<'a> {
    Document(&'a Document),
    /// The event's id.
    Event(&'a str),
}

/// Finds a resource by its URI.
///
/// # Errors
/// There is no such resource.
pub(crate) fn find<'a>(documents: &'a [Document], uri: &'a str) -> Result<Named<'a>, ErrorData> {
    if let Some(document) = documents.iter().find(|document| document.uri() == uri) {
        return Ok(Named::Document(document));
    }
    let is_id = |id: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        !id.is_empty() && id.len() <= EVENT_ID_CHARS_MAX && id.bytes().all(is_plain)
    };
    let id = uri.strip_prefix(EVENT).filter(is_id);
    id.map(Named::Event).ok_or_else(not_found)
}

pub(crate) fn not_found() -> ErrorData {
    let text = "there is no such resource; resources/list and resources/templates/list name them";
    ErrorData::resource_not_found(text, None)
}

/// The result of `resources/read` for a document.
pub(crate) fn read_document(document: &Document) -> ReadResourceResult {
    contents(&document.uri(), document.mime_type, &document.text)
}

/// The result of `resources/read` for an event, which is searched for in the sports that the key covers.
///
/// # Errors
/// There is no such event, or the API refuses.
pub(crate) async fn read_event(
    reader: &dyn Reader,
    id: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let sports = reader.get(&Call::of_path(&["sports"])).await.map_err(refused)?;
    let sports: Value = serde_json::from_slice(&sports.body).unwrap_or_default();
    let sports = sports.get("sports").and_then(Value::as_array).into_iter().flatten();
    for key in sports.filter_map(|sport| sport.get("key")?.as_str()) {
        match reader.get(&Call::of_path(&["sports", key, "events", id])).await {
            Ok(Page { body, .. }) => {
                let uri = format!("{EVENT}{id}");
                return Ok(contents(&uri, "application/json", &String::from_utf8_lossy(&body)));
            }
            // The event is of another sport, or the key does not cover this one.
            Err(refused) if matches!(refused.status, 403 | 404) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    let text = "there is no such event in the sports that the key covers";
    Err(ErrorData::resource_not_found(text, None))
}

fn contents(uri: &str, mime_type: &str, text: &str) -> ReadResourceResult {
    ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime_type)])
}

/// A refusal of the API as one of the protocol.
pub(crate) fn refused(refused: Refused) -> ErrorData {
    let error = refused.into_error();
    let message = error.get("message").and_then(Value::as_str).unwrap_or("refused").to_owned();
    ErrorData::new(REFUSED, message, Some(json!({ "error": error })))
}
