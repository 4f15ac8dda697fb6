//! The transport over standard input and output: one message per line.

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::handler::Handler;
use crate::reader::Reader;
use crate::server::{MESSAGE_BYTES_MAX, Server};

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client did not begin as the protocol requires")]
    Begin(#[source] Box<ServerInitializeError>),
    #[error("the server failed")]
    Run(#[source] tokio::task::JoinError),
}

/// Answers messages until the input ends and the last is answered.
///
/// # Errors
/// The client does not begin as the protocol requires.
pub async fn serve(
    server: Arc<Server>,
    reader: Arc<dyn Reader>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let transport =
        AsyncRwTransport::new_server(input, output).with_max_line_length(MESSAGE_BYTES_MAX);
    match Handler::new(server, reader).serve(transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(ServeError::Run),
        // The input ended before the initialization.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError::Begin(Box::new(error))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Call;
    use crate::page::{Page, Refused};
    use crate::reader::Answering;

    /// Never answers a request.
    struct Silent;

    impl Reader for Silent {
        fn get<'a>(&'a self, _call: &'a Call) -> Answering<'a, Result<Page, Refused>> {
            Box::pin(std::future::pending())
        }

        fn count(&self) -> Answering<'_, Result<(), Refused>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn messages_are_answered_beside_each_other_until_the_input_ends() {
        let openapi = serde_json::from_str(include_str!("../../../openapi.json")).unwrap();
        let server = Arc::new(Server::new(&openapi, Vec::new()));
        let line = |id: u32, method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
        };
        let begin = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let cancel = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": 1 },
        });
        let lines = [
            line(0, "initialize", begin),
            line(1, "tools/call", json!({ "name": "get_status" })),
            String::new(),
            line(2, "ping", json!({})),
            "x".repeat(MESSAGE_BYTES_MAX + 10),
            "no JSON".to_owned(),
            cancel.to_string(),
            line(3, "nothing", json!({})),
            line(4, "tools/call", json!({ "name": "get_status", "arguments": [] })),
        ];
        let (mut client, ours) = tokio::io::duplex(1 << 20);
        tokio::io::AsyncWriteExt::write_all(
            &mut client,
            format!("{}\n", lines.join("\n")).as_bytes(),
        )
        .await
        .unwrap();
        tokio::io::AsyncWriteExt::shutdown(&mut client).await.unwrap();
        let (input, output) = tokio::io::split(ours);
        // Ends only because the first request is cancelled.
        serve(server, Arc::new(Silent), input, output).await.unwrap();
        let mut answers = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut client, &mut answers).await.unwrap();
        let mut received: Vec<String> = answers
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|answer| format!("{} {}", answer["id"], answer["error"]["code"]))
            .collect();
        received.sort();
        assert_eq!(received, ["0 null", "2 null", "3 -32601", "4 -32602"]);
    }
}
