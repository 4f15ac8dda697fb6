//! The server of the protocol: what it says of itself, its tools and their calls.

use std::borrow::Cow;

use linesman_client::Client;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::Value;

use crate::call;
use crate::tool::Tools;

/// What a model should know before its first call.
const INSTRUCTIONS: &str = "\
Sports odds of many bookmakers, their events and scores, and what follows from them. Begin with names: list_sports has \
the sport keys, and list_events with `name` finds events by a participant, tournament or competition; other tools take \
the `event_id`. get_best compares prices, get_fair has prices without the bookmakers' margin, explain_event says why a \
price is missing. Prices change: state how old they are (`last_update`, `generated_at`) and present nothing as certain.";

/// A client with another version is told these.
const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client did not begin as the protocol says")]
    Begin(#[source] Box<rmcp::service::ServerInitializeError>),
    #[error("the server failed")]
    Run(#[source] tokio::task::JoinError),
}

/// Serves the tools over stdin and stdout until the client ends them. The document is that of the API.
///
/// # Errors
/// The client does not speak the protocol.
pub async fn serve(client: Client, document: &Value) -> Result<(), ServeError> {
    let server = Server { tools: Tools::of(document), client };
    let transport = (tokio::io::stdin(), tokio::io::stdout());
    let running =
        server.serve(transport).await.map_err(|error| ServeError::Begin(Box::new(error)))?;
    running.waiting().await.map(drop).map_err(ServeError::Run)
}

/// The server, for one key.
struct Server {
    tools: Tools,
    client: Client,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("linesman", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.operations.iter().map(|operation| operation.tool.clone());
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.find(name).map(|operation| operation.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(operation) = self.tools.find(&request.name) else {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        };
        let result = match call::request(operation, &request.arguments.unwrap_or_default()) {
            Ok(request) => call::result(request.send(&self.client).await),
            Err(refused) => *refused,
        };
        Ok(result.into())
    }
}
