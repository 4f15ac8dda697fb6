//! Pages for machines that run the service: health, readiness, metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use domain::World;

use crate::app::App;
use crate::error::{ApiError, ErrorCode};
use crate::reply::Reply;
use crate::request::Asked;
use crate::{docs, metrics, openapi};

/// Answers what needs no key on the public listener.
pub(crate) fn answer(app: &App, asked: &Asked<'_>) -> Result<Reply, ApiError> {
    let page: fn(&App, &Asked<'_>) -> Result<Reply, ApiError> = match asked.path {
        "/" | "/docs" if app.settings.dashboard.docs => docs::page,
        "/docs.css" if app.settings.dashboard.docs => |app, asked| Ok(docs::style(app, asked)),
        "/openapi.json" => |app, asked| Ok(openapi::reply(app, asked)),
        "/healthz" => |_, _| Ok(healthy()),
        "/readyz" => |app, _| ready(app),
        _ => {
            return Err(ApiError::new(
                ErrorCode::NotFound,
                "there is no such path; /docs lists the endpoints",
            ));
        }
    };
    if asked.method.reads() { page(app, asked) } else { Err(reads_only()) }
}

/// Answers on the operator's listener.
pub(crate) fn answer_operator(app: &Arc<App>, asked: &Asked<'_>) -> Result<Reply, ApiError> {
    match asked.path {
        "/metrics" if asked.method.reads() => {
            let page = metrics::render(app);
            Ok(Reply::new(200, "text/plain; version=0.0.4; charset=utf-8", page))
        }
        "/feeds" if asked.method.reads() => {
            let mut reply =
                Reply::new(200, "application/json", app.metrics.ledger.to_json().to_string());
            reply.head.put("cache-control", "no-store");
            Ok(reply)
        }
        "/metrics" | "/feeds" => Err(reads_only()),
        "/healthz" | "/readyz" => answer(app, asked),
        _ => Err(ApiError::new(
            ErrorCode::NotFound,
            "this listener has /metrics, /feeds, /healthz and /readyz",
        )),
    }
}

fn reads_only() -> ApiError {
    let text = "this path answers GET and HEAD only";
    let mut error = ApiError::new(ErrorCode::MethodNotAllowed, text);
    error.allow = Some("GET, HEAD");
    error
}

/// The process lives; whether it has anything to serve is another question.
pub(crate) fn healthy() -> Reply {
    text("ok\n")
}

fn ready(app: &App) -> Result<Reply, ApiError> {
    let now = app.clock.now();
    let late = World::ALL.into_iter().find_map(|world| app.world(world).lateness(now));
    if app.is_ready() {
        let mut detail = String::from("ready");
        if late.is_some() {
            detail.push_str("; no leader, serving the last snapshot");
        }
        if app.world(World::Live).is_disk_full() {
            detail.push_str("; the disk is full, and pushes are refused");
        }
        let lost = |world| app.world(world).stats.log_lost.load(Ordering::Relaxed);
        match World::ALL.into_iter().map(lost).sum::<u64>() {
            0 => {}
            1 => detail.push_str("; 1 log entry is lost to damage"),
            lost => detail.push_str(&format!("; {lost} log entries are lost to damage")),
        }
        detail.push('\n');
        return Ok(text(detail));
    }
    let text = if app.stops() {
        "the service is stopping".to_owned()
    } else if !app.accounts.can_count() {
        "requests cannot be counted: the account store cannot be written".to_owned()
    } else if app.vouches() {
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
