//! Panics while a request is handled: a bug in one request must not affect others.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use http::Reply;

use crate::error::ApiError;
use crate::metrics::Metrics;

/// Turns a panic into a 500. The future is pinned here because it is too large to be moved.
pub async fn catch_panics<F>(
    metrics: &Metrics,
    mut answering: Pin<&mut F>,
) -> Result<Reply, ApiError>
where
    F: Future<Output = Result<Reply, ApiError>>,
{
    std::future::poll_fn(|context| {
        let polled = AssertUnwindSafe(|| answering.as_mut().poll(context));
        match std::panic::catch_unwind(polled) {
            Ok(poll) => poll,
            Err(panic) => {
                metrics.panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    event = "request.panicked",
                    panic = message(&*panic),
                    "a request panicked"
                );
                Poll::Ready(Err(ApiError::internal()))
            }
        }
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(words), _) => words,
        (None, Some(words)) => words,
        (None, None) => "without words",
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    async fn panics() -> Result<Reply, ApiError> {
        tokio::task::yield_now().await;
        panic!("a bug")
    }

    #[tokio::test]
    async fn a_panic_fails_that_request_alone_and_is_counted() {
        let metrics = Metrics::default();
        let reply = catch_panics(&metrics, pin!(panics())).await.unwrap_err().into_reply("req_1");
        assert_eq!((reply.status, reply.code), (500, Some("internal")));
        let body: serde_json::Value = serde_json::from_slice(&reply.body.whole()).unwrap();
        assert_eq!(body["error"]["code"], "internal");
        assert_eq!(body["error"]["request_id"], "req_1");
        assert!(!body.to_string().contains("a bug"), "what panicked is not the client's to know");
        assert_eq!(metrics.panics.load(Ordering::Relaxed), 1);
        let fine =
            catch_panics(&metrics, pin!(async { Ok(Reply::new(200, "text/plain", "ok")) })).await;
        assert_eq!(fine.unwrap().status, 200);
    }
}
