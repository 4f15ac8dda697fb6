//! One request, whichever way it came: which part of the service answers, and what every answer carries.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use accounts::KeyEntry;
use tokio::time::Instant;

use crate::app::App;
use crate::error::{ApiError, ErrorCode};
use crate::metrics::Metrics;
use crate::reply::Reply;
use crate::request::{Asked, TARGET_BYTES_MAX, Visitor};
use crate::request_id::RequestId;
use crate::{dashboard, ingest, ops, v1};

/// Which doors a listener opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doors {
    /// The API, the docs and, unless it has a listener of its own, the push door.
    Main,
    /// The push door alone.
    Ingest,
    /// `/metrics`, health and readiness.
    Operator,
}

/// Answers everything but a push.
pub(crate) async fn answer(
    app: &Arc<App>,
    doors: Doors,
    asked: &Asked<'_>,
    visitor: &mut Visitor,
) -> Reply {
    let request_id = app.next_request_id();
    let answering = route(app, doors, asked, visitor, request_id);
    let mut reply = match caught(&app.metrics, answering).await {
        Ok(reply) => reply,
        Err(error) => {
            let reply = error.into_reply(request_id);
            app.metrics.note_refusal(&reply);
            reply
        }
    };
    request_id.put(&mut reply.head);
    reply
}

/// Answers a push, whose body is still to be read.
pub(crate) async fn answer_push<B>(app: &Arc<App>, delivery: ingest::Delivery, body: B) -> Reply
where
    B: http_body_util::BodyExt<Data = bytes::Bytes> + Unpin,
{
    let request_id = app.next_request_id();
    let taken = caught(&app.metrics, ingest::take(app, delivery, body)).await;
    let mut reply = taken.unwrap_or_else(|error| {
        let reply = error.into_reply(request_id);
        app.metrics.note_refusal(&reply);
        reply
    });
    request_id.put(&mut reply.head);
    reply
}

/// Answers a form that somebody sent from a page.
pub(crate) async fn answer_form<B>(app: &Arc<App>, asked: &Asked<'_>, body: B) -> Reply
where
    B: http_body_util::BodyExt<Data = bytes::Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let request_id = app.next_request_id();
    let taken = caught(&app.metrics, dashboard::take_form(app, asked, body)).await;
    let mut reply = taken.unwrap_or_else(|error| error.into_reply(request_id));
    request_id.put(&mut reply.head);
    reply
}

/// Answers a request under `/v1` that a page makes for somebody, with a key of theirs. Everything but the wire is as
/// if they had sent it themselves.
pub(crate) async fn answer_for(app: &Arc<App>, asked: &Asked<'_>, entry: &KeyEntry) -> Reply {
    let request_id = app.next_request_id();
    let begun = Instant::now();
    let answering = async {
        let (endpoint, reply) = v1::answer_as(app, asked, entry, request_id).await;
        app.metrics.note_answer(endpoint, &reply, begun.elapsed());
        Ok(reply)
    };
    let mut reply =
        caught(&app.metrics, answering).await.unwrap_or_else(|error| error.into_reply(request_id));
    request_id.put(&mut reply.head);
    reply
}

/// Whether a form may be sent here.
pub(crate) fn takes_forms(app: &App, doors: Doors, path: &str) -> bool {
    doors == Doors::Main && dashboard::covers(app, path)
}

/// Whether the answer has no end of its own.
pub(crate) fn is_watched(app: &App, doors: Doors, path: &str) -> bool {
    doors == Doors::Main && dashboard::is_watched(path) && dashboard::covers(app, path)
}

/// Answers who wants to watch a board.
///
/// # Errors
/// The whole answer that says why not.
pub(crate) async fn answer_watcher(
    app: &Arc<App>,
    asked: &Asked<'_>,
) -> Result<(Reply, dashboard::BoardWatch), Reply> {
    let request_id = app.next_request_id();
    let mut answered = dashboard::watch(app, asked, request_id).await;
    let head = match &mut answered {
        Ok((reply, _)) | Err(reply) => &mut reply.head,
    };
    request_id.put(head);
    answered
}

/// Whether a push may be delivered here.
pub(crate) fn takes_pushes(app: &App, doors: Doors, path: &str) -> bool {
    path == ingest::PATH
        && match doors {
            Doors::Main => app.settings.ingest_on_main,
            Doors::Ingest => true,
            Doors::Operator => false,
        }
}

/// A refusal of something that is not even a request.
pub(crate) fn refuse(app: &App, code: ErrorCode, message: &'static str) -> Reply {
    let request_id = app.next_request_id();
    let mut reply = ApiError::new(code, message).into_reply(request_id);
    app.metrics.note_refusal(&reply);
    request_id.put(&mut reply.head);
    reply
}

/// Refuses a path and query that are too long. Under `/v1` that comes after the key (D3).
pub(crate) fn check_target(asked: &Asked<'_>) -> Result<(), ApiError> {
    if asked.path.len() + asked.query.len() > TARGET_BYTES_MAX {
        let text = "the path and query are longer than 8 KiB";
        return Err(ApiError::new(ErrorCode::TargetTooLong, text));
    }
    Ok(())
}

async fn route(
    app: &Arc<App>,
    doors: Doors,
    asked: &Asked<'_>,
    visitor: &mut Visitor,
    request_id: RequestId,
) -> Result<Reply, ApiError> {
    if doors == Doors::Main && (asked.path == "/v1" || asked.path.starts_with("/v1/")) {
        let (endpoint, reply) = v1::answer(app, asked, visitor, request_id).await;
        app.metrics.note_answer(endpoint, &reply, visitor.begun.elapsed());
        return Ok(reply);
    }
    check_target(asked)?;
    if takes_pushes(app, doors, asked.path) {
        let mut error = ApiError::new(ErrorCode::MethodNotAllowed, "ingest takes POST only");
        error.allow = Some("POST");
        return Err(error);
    }
    match doors {
        Doors::Main if dashboard::covers(app, asked.path) => {
            // Boxed, or every connection would be as large as a page in the making.
            Ok(Box::pin(visitor.peer.serve(dashboard::answer(app, asked))).await)
        }
        Doors::Main => ops::answer(app, asked),
        Doors::Operator => ops::answer_operator(app, asked),
        Doors::Ingest => match asked.path {
            "/healthz" | "/readyz" => ops::answer(app, asked),
            _ => Err(ApiError::new(ErrorCode::NotFound, "this listener serves ingest only")),
        },
    }
}

/// Turns a panic into a 500: a bug in one request is that request's trouble alone.
async fn caught<F>(metrics: &Metrics, answering: F) -> Result<Reply, ApiError>
where
    F: Future<Output = Result<Reply, ApiError>>,
{
    let mut answering = pin!(answering);
    std::future::poll_fn(|context| {
        let polled = AssertUnwindSafe(|| answering.as_mut().poll(context));
        match std::panic::catch_unwind(polled) {
            Ok(poll) => poll,
            Err(panic) => {
                metrics.panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!(panic = words(&*panic), "a request panicked");
                Poll::Ready(Err(ApiError::internal()))
            }
        }
    })
    .await
}

fn words(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(words), _) => words,
        (None, Some(words)) => words,
        (None, None) => "without words",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn panics() -> Result<Reply, ApiError> {
        tokio::task::yield_now().await;
        panic!("a bug")
    }

    #[tokio::test]
    async fn a_panic_is_that_requests_trouble_alone_and_is_counted() {
        let metrics = Metrics::default();
        let reply = caught(&metrics, panics()).await.unwrap_err().into_reply("req_1");
        assert_eq!((reply.status, reply.code), (500, Some(ErrorCode::Internal)));
        let body: serde_json::Value = serde_json::from_slice(&reply.body.whole()).unwrap();
        assert_eq!(body["error"]["code"], "internal");
        assert_eq!(body["error"]["request_id"], "req_1");
        assert!(!body.to_string().contains("a bug"), "what panicked is not the client's to know");
        assert_eq!(metrics.panics.load(Ordering::Relaxed), 1);
        let fine = caught(&metrics, async { Ok(Reply::new(200, "text/plain", "ok")) }).await;
        assert_eq!(fine.unwrap().status, 200);
    }
}
