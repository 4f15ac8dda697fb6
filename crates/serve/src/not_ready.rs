//! The service before it is ready: `/healthz` reports that the process is alive, every other path why it is not
//! ready.

use std::sync::Arc;

use api::v4::{self, V4Settings};
use api::{ApiError, ErrorCode};
use http::{Listener, NotReady, Reply, RequestIds, Server};

use crate::ops;

/// Answers all requests with the reason to wait until a future completes; returns its result.
pub async fn answer_until<T>(
    server: Arc<Server>,
    listeners: &[Listener],
    why: &'static str,
    until: impl Future<Output = T>,
) -> T {
    let ids = RequestIds::default();
    let refuse = move |error: ApiError, path: &str| -> Reply {
        let request_id = ids.next();
        let mut reply = if v4::covers(path) {
            v4::refuse(&V4Settings::default(), error, None)
        } else {
            error.into_reply(request_id)
        };
        request_id.put(&mut reply.head);
        reply
    };
    let answer = move |request: Result<&http::Request<'_>, _>| match request {
        Ok(request) if request.path == "/healthz" && request.method.reads() => ops::healthy(),
        Ok(request) => {
            let error = ApiError::new(ErrorCode::Unavailable, why).retry_after(1);
            refuse(error, request.path)
        }
        Err(refusal) => refuse(ApiError::from(refusal), ""),
    };
    http::answer_until(&Arc::new(NotReady { server, answer }), listeners, until).await
}
