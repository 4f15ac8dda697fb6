//! The handler that the official crate calls for a request: server information, tools, resources and prompts.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;

use crate::call;
use crate::message::REFUSED;
use crate::method::Method;
use crate::page::{Page, Refused};
use crate::prompt;
use crate::reader::Reader;
use crate::resource::{self, Named};
use crate::server::Server;
use crate::version::{SELF_CONTAINED, VERSIONS};

/// Larger answers are processed on another thread.
const QUICK_BYTES_MAX: usize = 16 << 10;
/// Cache lifetime in ms: a new version of the service is noticed soon.
const KEPT_MS: u64 = 300_000;

/// Text for a model before its first call.
const INSTRUCTIONS: &str = "\
Sports odds of many bookmakers, their events and scores, and what follows from them. Begin with names: list_sports has \
the sport keys, and list_events with `name` finds events by a participant, tournament or competition; other tools take \
the `event_id`. get_best compares prices, get_fair has prices without the bookmakers' margin, explain_event says why a \
price is missing. Prices change: state how old they are (`last_update`, `generated_at`) and present nothing as certain.";

/// The API's refusal to count a message: its status and the time to wait, for the answer over HTTP.
pub(crate) type Refusal = (u16, Option<u64>);

/// Answers the requests of one key.
pub(crate) struct Handler {
    pub(crate) server: Arc<Server>,
    pub(crate) reader: Arc<dyn Reader>,
    pub(crate) refusal: Arc<OnceLock<Refusal>>,
}

impl Handler {
    pub(crate) fn new(server: Arc<Server>, reader: Arc<dyn Reader>) -> Self {
        Self { server, reader, refusal: Arc::default() }
    }

    /// Counts a message that is answered without a request to the API.
    ///
    /// # Errors
    /// The API refuses it.
    pub(crate) async fn count(&self) -> Result<(), ErrorData> {
        self.reader.count().await.map_err(|refused| {
            self.refusal.get_or_init(|| (refused.status, refused.retry_after_s));
            resource::refused(refused)
        })
    }

    async fn call(&self, request: CallToolRequestParams) -> Result<CallToolResult, ErrorData> {
        let Some(operation) = self.server.tools.find(&request.name) else {
            self.count().await?;
            let text = "there is no such tool; tools/list names them";
            return Err(ErrorData::invalid_params(text, None));
        };
        match call::request(operation, &request.arguments.unwrap_or_default()) {
            Ok(request) => Ok(shape(self.reader.get(&request).await).await),
            Err(error) => {
                self.count().await?;
                Ok(call::failed(&error))
            }
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        let about = Implementation::new("linesman", env!("CARGO_PKG_VERSION"));
        // The version for a client that asks for one that the server does not have.
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(about.with_title("Linesman"))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let about = DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info());
        Ok(about.with_ttl_ms(KEPT_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.server.tools.operations.iter().map(|operation| operation.tool.clone());
        let mut result = ListToolsResult::with_all_items(tools.collect());
        (result.ttl_ms, result.cache_scope) = kept(&context);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.tools.find(name).map(|operation| operation.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        until_cancelled(&context, self.call(request)).await.map(CallToolResponse::from)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut result =
            ListResourcesResult::with_all_items(resource::list(&self.server.documents));
        (result.ttl_ms, result.cache_scope) = kept(&context);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = ListResourceTemplatesResult::with_all_items(resource::templates());
        (result.ttl_ms, result.cache_scope) = kept(&context);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let named = resource::find(&self.server.documents, &request.uri);
        if let Ok(Named::Event(id)) = named {
            let reading = resource::read_event(&*self.reader, id);
            return until_cancelled(&context, reading).await.map(ReadResourceResponse::from);
        }
        self.count().await?;
        let Named::Document(document) = named? else { return Err(resource::not_found()) };
        let mut result = resource::read_document(document);
        (result.ttl_ms, result.cache_scope) = kept(&context);
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut result = ListPromptsResult::with_all_items(prompt::list());
        (result.ttl_ms, result.cache_scope) = kept(&context);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompt::get(&request.name, request.arguments.as_ref()).map(GetPromptResponse::from)
    }

    /// There are no completions, and the capabilities do not name them.
    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    /// An unknown method, or a known one with invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if Method::parse(&request.method).is_some() {
            let text = format!("`params` are not valid for {}", request.method);
            return Err(ErrorData::invalid_params(text, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "there is no such method", None))
    }
}

/// Cache lifetime and scope of answers that are the same for every key, if the client's version supports them.
fn kept(context: &RequestContext<RoleServer>) -> (Option<u64>, Option<CacheScope>) {
    match context.protocol_version() {
        Some(version) if version == SELF_CONTAINED => (Some(KEPT_MS), Some(CacheScope::Public)),
        _ => (None, None),
    }
}

/// Stops a long operation as soon as the client cancels it.
async fn until_cancelled<T>(
    context: &RequestContext<RoleServer>,
    reading: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    tokio::select! {
        result = reading => result,
        () = context.ct.cancelled() => Err(ErrorData::new(REFUSED, "cancelled", None)),
    }
}

/// The result for an answer of the API.
async fn shape(answer: Result<Page, Refused>) -> CallToolResult {
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
