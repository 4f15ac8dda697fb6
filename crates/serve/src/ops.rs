//! Endpoints without a key: health, readiness, metrics, the reference.

use std::sync::atomic::Ordering;

use api::{ApiError, ErrorCode, openapi};
use bytes::Bytes;
use domain::World;
use http::{Reply, Request};

use crate::metrics;
use crate::route::Target;
use crate::service::Service;

pub(crate) fn answer(
    service: &Service,
    request: &Request<'_>,
    target: Target,
) -> Result<Reply, ApiError> {
    if !request.method.reads() {
        let text = "this path answers GET and HEAD only";
        let mut error = ApiError::new(ErrorCode::MethodNotAllowed, text);
        error.allow = Some("GET, HEAD");
        return Err(error);
    }
    match target {
        Target::OpenApi => Ok(openapi::reply(&service.api, request)),
        Target::OpenApiV4 => Ok(openapi::v4::reply(&service.api, request)),
        Target::Health => Ok(healthy()),
        Target::Ready => ready(service),
        Target::Metrics => {
            let page = metrics::render(service);
            Ok(Reply::new(200, "text/plain; version=0.0.4; charset=utf-8", page))
        }
        Target::Feeds => {
            let mut feeds = service.api.feed_stats.to_json();
            let adapters = service.api.adapters.get().map(|adapters| adapters.to_json());
            if let Some(object) = feeds.as_object_mut() {
                object.insert("adapters".to_owned(), adapters.unwrap_or_default().into());
            }
            let mut reply = Reply::new(200, "application/json", feeds.to_string());
            reply.head.put("cache-control", "no-store");
            Ok(reply)
        }
        Target::V1 | Target::V4 | Target::Push | Target::Agents | Target::Page | Target::Docs => {
            Err(ApiError::internal())
        }
    }
}

/// Reports that the process is alive; readiness is separate.
pub(crate) fn healthy() -> Reply {
    text("ok\n")
}

fn ready(service: &Service) -> Result<Reply, ApiError> {
    let api = &service.api;
    let now = api.clock.now();
    let late = World::ALL.into_iter().find_map(|world| api.world(world).lateness(now));
    if service.is_ready() {
        let mut detail = String::from("ready");
        if late.is_some() {
            detail.push_str("; no leader, serving the last snapshot");
        }
        if api.world(World::Live).is_disk_full() {
            detail.push_str("; the disk is full, and pushes are refused");
        }
        let lost = |world| api.world(world).stats.log_lost.load(Ordering::Relaxed);
        match World::ALL.into_iter().map(lost).sum::<u64>() {
            0 => {}
            1 => detail.push_str("; 1 log entry is lost to damage"),
            lost => detail.push_str(&format!("; {lost} log entries are lost to damage")),
        }
        detail.push('\n');
        return Ok(text(detail));
    }
    let text = if api.server.is_stopping() {
        "the service is stopping".to_owned()
    } else if !api.accounts.can_count() {
        "requests cannot be counted: the account store cannot be written".to_owned()
    } else if service.has_key_authority() {
        late.unwrap_or_else(|| "no current snapshot is being served".to_owned())
    } else {
        "key authority lost: this node reaches neither the database nor NATS".to_owned()
    };
    Err(ApiError::new(ErrorCode::Unavailable, text).retry_after(1))
}

fn text(body: impl Into<Bytes>) -> Reply {
    let mut reply = Reply::new(200, "text/plain; charset=utf-8", body);
    reply.head.put("cache-control", "no-store");
    reply
}
