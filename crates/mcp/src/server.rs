//! The server of the protocol: what it says of itself, and its answer to a message.

use serde_json::{Value, json};

use crate::call;
use crate::header::Headers;
use crate::message::{
    self, Fault, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Message, Params,
    RESOURCE_NOT_FOUND, fields_of,
};
use crate::method::Method;
use crate::page::{Page, Refused};
use crate::prompt;
use crate::reader::Reader;
use crate::resource::{self, Document, Resource};
use crate::tool::Tools;
use crate::version::{self, Form, VERSIONS};

/// Largest message: tools take a few short parameters.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// What is made of a larger answer than this is made on another thread.
const QUICK_BYTES_MAX: usize = 16 << 10;
/// For how long a client may keep what is the same for every key, in ms: a new version of the service is seen soon.
const KEPT_MS: u32 = 300_000;

/// What a model should know before its first call.
const INSTRUCTIONS: &str = "\
Sports odds of many bookmakers, their events and scores, and what follows from them. Begin with names: list_sports has \
the sport keys, and list_events with `name` finds events by a participant, tournament or competition; other tools take \
the `event_id`. get_best compares prices, get_fair has prices without the bookmakers' margin, explain_event says why a \
price is missing. Prices change: state how old they are (`last_update`, `generated_at`) and present nothing as certain.";

/// The tools, resources and prompts, made once.
#[derive(Debug)]
pub struct Server {
    tools: Tools,
    /// The fields of the list of tools: by far the longest of the lists.
    tools_listed: String,
    documents: Vec<Document>,
}

/// What goes back for a message.
#[derive(Debug)]
pub struct Answer {
    /// A message; `None`: there is nothing to say.
    pub body: Option<Vec<u8>>,
    /// The status, over HTTP.
    pub status: u16,
    /// What was asked, where the server has it.
    pub method: Option<Method>,
    /// Whether it is a refusal by the protocol. A tool that fails has a result.
    pub is_refused: bool,
    pub retry_after_s: Option<u64>,
}

/// A result on its way out.
struct Done {
    fields: String,
    kept: Kept,
}

/// Whether a client may keep a result, where the version knows of that.
enum Kept {
    /// It is the same for every key.
    ForAll,
    No,
    /// Results of this kind do not say.
    Unsaid,
}

/// Why there is no result, and the status over HTTP where that is not the usual one.
struct Failed {
    fault: Fault,
    status: Option<u16>,
    retry_after_s: Option<u64>,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self { fault, status: None, retry_after_s: None }
    }
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        let (status, retry_after_s) = (Some(refused.status), refused.retry_after_s);
        Self { fault: resource::refused(refused), status, retry_after_s }
    }
}

impl Server {
    /// A server for the API that an `OpenAPI` document describes.
    pub fn new(openapi: &Value, documents: Vec<Document>) -> Self {
        let tools = Tools::of(openapi);
        let listed: Vec<&Value> = tools.operations.iter().map(|one| &one.tool).collect();
        let tools_listed = fields_of(&json!({ "tools": listed }));
        Self { tools, tools_listed, documents }
    }

    /// Answers one message. Over HTTP it comes with headers.
    pub async fn answer(
        &self,
        reader: &dyn Reader,
        headers: Option<Headers<'_>>,
        bytes: &[u8],
    ) -> Answer {
        let check = |method: &str, params: &Params| {
            headers.map_or(Ok(()), |headers| headers.check(method, params))
        };
        if bytes.len() > MESSAGE_BYTES_MAX {
            let text = format!("a message has at most {MESSAGE_BYTES_MAX} bytes");
            let fault = Err(Fault::new(INVALID_REQUEST, text));
            return Answer::refused(None, None, counted(reader, fault).await);
        }
        let (id, name, params) = match message::parse(bytes) {
            Ok(Message::Request { id, method, params }) => (id, method, params),
            Ok(Message::Notification { method, params }) => {
                let checked = counted(reader, check(&method, &params)).await;
                return Answer::refused(None, None, checked);
            }
            Ok(Message::Response) if headers.is_none() => return Answer::nothing(),
            Ok(Message::Response) => {
                let text = "this server asks nothing, so there is nothing to answer";
                let fault = Err(Fault::new(INVALID_REQUEST, text));
                return Answer::refused(None, None, counted(reader, fault).await);
            }
            Err(refused) => {
                let (id, fault) = *refused;
                return Answer::refused(id.as_ref(), None, counted(reader, Err(fault)).await);
            }
        };
        let method = Method::parse(&name);
        let form = match check(&name, &params).and_then(|()| version::form(method, &params)) {
            Ok(form) => form,
            Err(fault) => {
                return Answer::refused(Some(&id), method, counted(reader, Err(fault)).await);
            }
        };
        match self.run(reader, method, form, &params).await {
            Ok(done) => {
                let body = message::write_result(&id, &done.in_form(form));
                Answer { body: Some(body), method, ..Answer::nothing() }.with_status(200)
            }
            Err(mut failed) => {
                let code = &mut failed.fault.code;
                if form == Form::SelfContained && *code == RESOURCE_NOT_FOUND {
                    *code = INVALID_PARAMS;
                }
                let is_unknown = form == Form::SelfContained && *code == METHOD_NOT_FOUND;
                failed.status = failed.status.or(is_unknown.then_some(404));
                Answer::failed(Some(&id), method, failed)
            }
        }
    }

    async fn run(
        &self,
        reader: &dyn Reader,
        method: Option<Method>,
        form: Form,
        params: &Params,
    ) -> Result<Done, Failed> {
        if method == Some(Method::CallTool) {
            return self.call(reader, params).await;
        }
        let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
        let resource = match method {
            Some(Method::ReadResource) => Some(resource::find(&self.documents, uri)),
            _ => None,
        };
        if let Some(Ok(Resource::Event(id))) = resource {
            let event = resource::read_event(reader, id).await?;
            return Ok(Done { fields: fields_of(&event), kept: Kept::No });
        }
        reader.count().await?;
        let result = match (method, resource) {
            (_, Some(found)) => match found? {
                Resource::Document(document) => (resource::read_document(document), Kept::ForAll),
                Resource::Event(_) => return Err(no_such_method().into()),
            },
            (Some(Method::Initialize), None) => (initialized(params), Kept::Unsaid),
            (Some(Method::Discover), None) => (discovered(), Kept::ForAll),
            (Some(Method::Ping), None) if form == Form::WithInitialize => (json!({}), Kept::Unsaid),
            (Some(Method::ListTools), None) => {
                return Ok(Done { fields: self.tools_listed.clone(), kept: Kept::ForAll });
            }
            (Some(Method::ListResources), None) => (resource::list(&self.documents), Kept::ForAll),
            (Some(Method::ListResourceTemplates), None) => (resource::templates(), Kept::ForAll),
            (Some(Method::ListPrompts), None) => (prompt::list(), Kept::ForAll),
            (Some(Method::GetPrompt), None) => (prompt::get(params)?, Kept::Unsaid),
            (Some(Method::Ping | Method::CallTool | Method::ReadResource) | None, None) => {
                return Err(no_such_method().into());
            }
        };
        Ok(Done { fields: fields_of(&result.0), kept: result.1 })
    }

    async fn call(&self, reader: &dyn Reader, params: &Params) -> Result<Done, Failed> {
        let name = params.get("name").and_then(Value::as_str);
        let operation = name.and_then(|name| self.tools.find(name));
        let none = Params::new();
        let arguments = match params.get("arguments") {
            None => Some(&none),
            Some(arguments) => arguments.as_object(),
        };
        let (Some(operation), Some(arguments)) = (operation, arguments) else {
            reader.count().await?;
            let text = match operation {
                None => "there is no such tool; tools/list names them",
                Some(_) => "`arguments` must be an object",
            };
            return Err(Fault::new(INVALID_PARAMS, text).into());
        };
        let result = match call::request(operation, arguments) {
            Ok(request) => shape(reader.get(&request).await).await,
            Err(error) => {
                reader.count().await?;
                call::failed(&error)
            }
        };
        Ok(Done { fields: fields_of(&result), kept: Kept::Unsaid })
    }
}

/// The result for an answer of the API.
async fn shape(answer: Result<Page, Refused>) -> Value {
    if answer.as_ref().map_or(0, |page| page.body.len()) <= QUICK_BYTES_MAX {
        return call::result(answer);
    }
    let shaping = tokio::task::spawn_blocking(|| call::result(answer));
    match shaping.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => call::failed(
                &json!({ "code": "unavailable", "message": "the service is stopping" }),
            ),
        },
    }
}

/// Counts a message that is not answered with a result.
async fn counted(reader: &dyn Reader, checked: Result<(), Fault>) -> Result<(), Failed> {
    reader.count().await?;
    Ok(checked?)
}

fn no_such_method() -> Fault {
    Fault::new(METHOD_NOT_FOUND, "there is no such method")
}

fn initialized(params: &Params) -> Value {
    json!({
        "protocolVersion": version::agreed(params),
        "capabilities": capabilities(),
        "serverInfo": about(),
        "instructions": INSTRUCTIONS,
    })
}

fn discovered() -> Value {
    json!({
        "supportedVersions": VERSIONS,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
        "_meta": { "io.modelcontextprotocol/serverInfo": about() },
    })
}

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {} })
}

fn about() -> Value {
    json!({ "name": "linesman", "title": "Linesman", "version": env!("CARGO_PKG_VERSION") })
}

impl Done {
    /// The fields of the result, with what a version adds.
    fn in_form(self, form: Form) -> String {
        let mut fields = self.fields;
        if form == Form::SelfContained {
            fields.push_str(if fields.is_empty() { "" } else { "," });
            fields.push_str("\"resultType\":\"complete\"");
            match self.kept {
                Kept::ForAll => {
                    fields.push_str(&format!(",\"ttlMs\":{KEPT_MS},\"cacheScope\":\"public\""));
                }
                Kept::No => fields.push_str(",\"ttlMs\":0,\"cacheScope\":\"private\""),
                Kept::Unsaid => {}
            }
        }
        fields
    }
}

impl Answer {
    fn nothing() -> Self {
        Self { body: None, status: 202, method: None, is_refused: false, retry_after_s: None }
    }

    fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// A message that was not even looked at.
    fn refused(id: Option<&Value>, method: Option<Method>, checked: Result<(), Failed>) -> Self {
        match checked {
            Ok(()) => Self::nothing(),
            Err(failed) => {
                let status = failed.status.or(Some(400));
                Self::failed(id, method, Failed { status, ..failed })
            }
        }
    }

    fn failed(id: Option<&Value>, method: Option<Method>, failed: Failed) -> Self {
        Self {
            body: Some(message::write_fault(id, failed.fault)),
            status: failed.status.unwrap_or(200),
            method,
            is_refused: true,
            retry_after_s: failed.retry_after_s,
        }
    }
}

#[cfg(test)]
mod tests;
