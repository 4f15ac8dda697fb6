//! Pages for people: signing in, the developers' dashboard, the operators' console, the board, the status page.
//!
//! Server-rendered, without inline script or style and without a request to anybody else. What there is, is in
//! one table ([`route`]): a path, a method and who may. Every form is checked three ways: the browser says that
//! it comes from here, it carries its session's form token, and its session may. Nothing a person typed is
//! put into a page but through the templates, which escape it.

mod access;
pub(crate) mod asset;
pub(crate) mod board;
mod cells;
mod chart;
mod confirm;
pub(crate) mod console;
mod explore;
pub(crate) mod form;
pub(crate) mod key_line;
mod keys;
pub(crate) mod page;
pub(crate) mod page_error;
pub(crate) mod page_request;
mod qr;
mod quota_note;
mod route;
mod security;
mod sign;
pub(crate) mod status;
mod time_text;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use accounts::Stage;
use http_body_util::{BodyExt, Limited};

use crate::context::Web;
use crate::dashboard::form::Form;
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::{Page, Route};
use api::{ApiError, ErrorCode};
use http::{Answering, Method, Peer, Reply, Request, RequestBody, RequestId, SlotLimits};

pub use crate::dashboard::board::keep_pages;
pub use crate::dashboard::console::operation_words;
pub use crate::dashboard::route::{RouteView, Who, routes};

/// Largest form. The longest field is 2000 characters.
const FORM_BYTES_MAX: usize = 32 << 10;
/// Forms that may be read and worked on at the same time, and those from one source: people send one at a time, and
/// each may hold 32 KiB for as long as it takes to arrive.
const FORMS_MAX: usize = 512;
const FORMS_PER_SOURCE_MAX: usize = 32;
/// How long a form may take to arrive.
const FORM_TIME_MAX: Duration = Duration::from_secs(10);

/// Whether a path is one of the pages.
pub fn covers(web: &Web, path: &str) -> bool {
    // The documentation is styled by the pages' assets, and may be there without them.
    let is_open = web.settings.enabled || (web.settings.docs && asset::find(path).is_some());
    is_open && route::is_ours(path)
}

/// Whether a path may be watched: its answer has no end of its own.
pub fn is_stream(path: &str) -> bool {
    path.starts_with("/board/") && path.ends_with("/stream")
}

/// Begins to watch a board: the answer goes on as a stream.
pub async fn watch(web: &Arc<Web>, request: &Request<'_>, request_id: RequestId) -> Reply {
    if web.settings.board.is_none() {
        return page::error_reply(PageError::NotFound);
    }
    match board::watch(web, request).await {
        Ok(watch) => {
            let mut reply = page::guarded(Reply::new(200, "text/event-stream", ""));
            // nginx would hold events back.
            reply.head.put("x-accel-buffering", "no");
            reply.stream = Some(watch);
            reply
        }
        Err(board::NotWatched::PageError(error)) => page::error_reply(error),
        Err(board::NotWatched::NoSlot) => {
            let text = "too many browsers watch boards at the moment, in all or from where you are; \
                        try again shortly";
            ApiError::unavailable(text).into_reply(request_id)
        }
    }
}

/// Answers a request without a body.
pub fn answer<'a>(web: &'a Arc<Web>, request: &'a Request<'a>) -> Answering<'a, Reply> {
    Box::pin(respond(web, request, Form::default()))
}

/// Reads a form and answers it.
///
/// # Errors
/// It could not be read.
pub async fn take_form(
    web: &Arc<Web>,
    request: &Request<'_>,
    body: impl RequestBody,
) -> Result<Reply, ApiError> {
    let source = web.api.server.settings.proxies.client(Peer::current().address, &request.page);
    let max = SlotLimits { all: FORMS_MAX, source: FORMS_PER_SOURCE_MAX };
    let Some(_place) = web.forms.take(source, max) else {
        let text = "too many forms are being sent at the moment, in all or from where you are; try again shortly";
        return Err(ApiError::unavailable(text));
    };
    let read = tokio::time::timeout(FORM_TIME_MAX, Limited::new(body, FORM_BYTES_MAX).collect());
    let Ok(Ok(body)) = read.await else {
        let text = "the form is larger than 32 KiB, or did not arrive within 10 s";
        return Err(ApiError::new(ErrorCode::BodyTooLarge, text));
    };
    let Some(form) = Form::parse(&body.to_bytes()) else {
        let text = "this is not a form: application/x-www-form-urlencoded in UTF-8";
        return Err(ApiError::new(ErrorCode::InvalidBody, text));
    };
    let answering: Answering<'_, Reply> = Box::pin(respond(web, request, form));
    Ok(answering.await)
}

async fn respond(web: &Arc<Web>, request: &Request<'_>, form: Form) -> Reply {
    if let Some(asset) = asset::find(request.path) {
        if !request.method.reads() {
            return page::error_reply(PageError::WrongMethod { allow: route::READS });
        }
        return asset.reply(request);
    }
    let found = route::find(request.method, request.path);
    let mut page_request = match PageRequest::begin(web, request, form).await {
        Ok(page_request) => page_request,
        Err(error) => return page::error_reply(error),
    };
    let outcome = match found {
        Ok((route, id)) => {
            page_request.id = id;
            page_request.look_at_quotas().await;
            attend(&page_request, route).await
        }
        Err(error) => Err(error),
    };
    let reply = outcome.unwrap_or_else(|error| page::error(&page_request, error));
    page_request.finish(reply)
}

/// Lets a visitor through to what they asked for, if they may.
async fn attend(page_request: &PageRequest<'_>, route: &Route) -> Result<Reply, PageError> {
    let changes = route.method == Method::Post;
    if changes {
        page_request.check_origin()?;
    }
    let stage = page_request.session.as_ref().map(|session| session.stage);
    let is_operator = page_request.is_operator();
    match (route.who, stage) {
        (Who::Anyone, _)
        | (Who::HalfSignedIn, Some(Stage::Password))
        | (Who::Developer, Some(Stage::Full)) => {}
        (Who::Operator, Some(Stage::Full)) if is_operator => {}
        (Who::Operator, Some(Stage::Full)) => return Err(PageError::Forbidden),
        (Who::HalfSignedIn, Some(Stage::Full)) => return Ok(page::redirect("/dashboard")),
        (Who::Developer | Who::Operator, Some(Stage::Password)) => {
            return Ok(page::redirect("/signin/code"));
        }
        (Who::HalfSignedIn | Who::Developer | Who::Operator, None) => {
            return Ok(page::redirect(&sign::sign_in_path(page_request, changes)));
        }
    }
    // Only then: a form of a session that has ended leads to the sign-in, not to a riddle.
    if changes && !page_request.token.is_form_token(page_request.form.get("form_token")) {
        return Err(PageError::Expired);
    }
    // Pages are larger than what else a connection waits for.
    Box::pin(act(page_request, route.page)).await
}

async fn act(page_request: &PageRequest<'_>, page: Page) -> Result<Reply, PageError> {
    match page {
        Page::Status(page) => status::answer(page_request, page),
        Page::Board(page) => board::answer(page_request, page).await,
        Page::Sign(page) => sign::answer(page_request, page).await,
        Page::Keys(page) => keys::answer(page_request, page).await,
        Page::Access(page) => access::answer(page_request, page).await,
        Page::Usage => usage::answer(page_request).await,
        Page::Explore(page) => explore::answer(page_request, page).await,
        Page::Security(page) => security::answer(page_request, page).await,
        Page::Console(page) => console::answer(page_request, page).await,
    }
}
