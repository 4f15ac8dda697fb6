//! The transport over HTTP: a message, its headers and its answer.

use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, JsonRpcRequest,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::service::serve_directly;
use rmcp::transport::OneshotTransport;

use crate::handler::Handler;
use crate::header::Headers;
use crate::message::{self, Message};
use crate::method::Method;
use crate::reader::Reader;
use crate::server::{MESSAGE_BYTES_MAX, Server};
use crate::version::{self, Form};

/// The response to a message.
#[derive(Debug)]
pub struct Answer {
    /// A message; `None`: the response is empty.
    pub body: Option<Vec<u8>>,
    /// The HTTP status.
    pub status: u16,
    /// The requested method, if the server has it.
    pub method: Option<Method>,
    /// Whether the protocol refused it. A failing tool has a result.
    pub is_refused: bool,
    pub retry_after_s: Option<u64>,
}

impl Server {
    /// Answers one message over HTTP.
    pub async fn answer(
        self: &Arc<Self>,
        reader: Arc<dyn Reader>,
        headers: Headers<'_>,
        bytes: &[u8],
    ) -> Answer {
        let handler = Handler::new(Arc::clone(self), reader);
        if bytes.len() > MESSAGE_BYTES_MAX {
            let text = format!("a message has at most {MESSAGE_BYTES_MAX} bytes");
            return refused(&handler, None, None, ErrorData::invalid_request(text, None)).await;
        }
        let (id, name, params) = match message::parse(bytes) {
            Ok(Message::Request { id, method, params }) => (id, method, params),
            Ok(Message::Notification { method, params }) => {
                return match headers.check(&method, &params) {
                    Ok(()) => match handler.count().await {
                        Ok(()) => Answer::nothing(),
                        Err(error) => Answer::failed(&handler, None, None, error, 400),
                    },
                    Err(error) => refused(&handler, None, None, error).await,
                };
            }
            Ok(Message::Response) => {
                let text = "this server asks nothing, so there is nothing to answer";
                return refused(&handler, None, None, ErrorData::invalid_request(text, None)).await;
            }
            Err(wrong) => return refused(&handler, wrong.0, None, wrong.1).await,
        };
        let method = Method::parse(&name);
        let checked = headers.check(&name, &params).and_then(|()| version::form(method, &params));
        let checked = checked
            .and_then(|form| message::typed(id.clone(), name, params).map(|typed| (form, typed)));
        let (form, request) = match checked {
            Ok(checked) => checked,
            Err(error) => return refused(&handler, Some(id), method, error).await,
        };
        // These two send a request to the API, which counts it, or count themselves otherwise.
        let is_read = matches!(
            request.request,
            ClientRequest::CallToolRequest(_) | ClientRequest::ReadResourceRequest(_)
        );
        if !is_read && let Err(error) = handler.count().await {
            return Answer::failed(&handler, Some(id), method, error, 200);
        }
        run(handler, request, method, form).await
    }
}

/// Answers a request with an instance of the official service that lives for this request only.
async fn run(
    handler: Handler,
    request: JsonRpcRequest<ClientRequest>,
    method: Option<Method>,
    form: Form,
) -> Answer {
    let refusal = Arc::clone(&handler.refusal);
    let id = request.id.clone();
    let (transport, mut answers) = OneshotTransport::new(ClientJsonRpcMessage::Request(request));
    // When the caller drops this future, the service is dropped too, which ends the request.
    let _running = serve_directly(handler, transport, None);
    let answer = loop {
        match answers.recv().await {
            Some(answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))) => {
                break answer;
            }
            // These tools send nothing else.
            Some(_) => {}
            None => {
                let error = ErrorData::internal_error("the service is stopping", None);
                break ServerJsonRpcMessage::error(error, Some(id));
            }
        }
    };
    let (status, retry_after_s) = match (&answer, refusal.get()) {
        (JsonRpcMessage::Error(_), Some(refusal)) => *refusal,
        (JsonRpcMessage::Error(error), None)
            if form == Form::SelfContained && error.error.code == ErrorCode::METHOD_NOT_FOUND =>
        {
            (404, None)
        }
        _ => (200, None),
    };
    let is_refused = matches!(answer, JsonRpcMessage::Error(_));
    Answer { body: Some(message::write(&answer)), status, method, is_refused, retry_after_s }
}

/// Counts an invalid message, and refuses it.
async fn refused(
    handler: &Handler,
    id: Option<RequestId>,
    method: Option<Method>,
    error: ErrorData,
) -> Answer {
    let error = handler.count().await.err().unwrap_or(error);
    Answer::failed(handler, id, method, error, 400)
}

impl Answer {
    fn nothing() -> Self {
        Self { body: None, status: 202, method: None, is_refused: false, retry_after_s: None }
    }

    /// An error, with the API's status if the API refused.
    fn failed(
        handler: &Handler,
        id: Option<RequestId>,
        method: Option<Method>,
        error: ErrorData,
        status: u16,
    ) -> Self {
        let (status, retry_after_s) = handler.refusal.get().copied().unwrap_or((status, None));
        let body = Some(message::write_error(id, error));
        Self { body, status, method, is_refused: true, retry_after_s }
    }
}

#[cfg(test)]
mod tests;
