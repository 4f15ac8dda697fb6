//! Web pages: sign-in, the developers' dashboard, the operators' console, the board, the status page.
//!
//! Rendered on the server, without inline scripts or styles and without requests to other hosts. One table ([`route`])
//! lists every page with its path, its method and its required role. Every form is checked three ways: the browser
//! reports the same origin, the form carries its session's form token, and the session's role permits it. User input
//! reaches a page only through the templates, which escape it.

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

/// Maximum size of a form. The longest field has 2000 characters.
const FORM_BYTES_MAX: usize = 32 << 10;
/// Maximum number of forms received and handled at the same time, in total and per source. A person sends one at a
/// time; each may hold 32 KiB until it has arrived.
const FORMS_MAX: usize = 512;
const FORMS_PER_SOURCE_MAX: usize = 32;
/// Maximum time for a form to arrive.
const FORM_TIME_MAX: Duration = Duration::from_secs(10);

/// True if a path belongs to the web pages.
pub fn covers(web: &Web, path: &str) -> bool {
    // The documentation uses these assets and may be enabled without the other pages.
    let is_open = web.settings.enabled || (web.settings.docs && asset::find(path).is_some());
    is_open && route::is_ours(path)
}

/// True if the response to this path is a stream without an end.
pub fn is_stream(path: &str) -> bool {
    path.starts_with("/board/") && path.ends_with("/stream")
}

/// Starts watching a board; the response is a stream.
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
            let text = "too many browsers are watching boards now, in total or from your address; \
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
/// The form could not be read.
pub async fn take_form(
    web: &Arc<Web>,
    request: &Request<'_>,
    body: impl RequestBody,
) -> Result<Reply, ApiError> {
    let source = web.api.server.settings.proxies.client(Peer::current().address, &request.page);
    let max = SlotLimits { all: FORMS_MAX, source: FORMS_PER_SOURCE_MAX };
    let Some(_place) = web.forms.take(source, max) else {
        let text =
            "too many forms are being sent now, in total or from your address; try again shortly";
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

/// Runs the requested page if the visitor's role permits it.
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
    // Checked after the sign-in redirect, so that a form of an expired session leads to the sign-in page and not to an
    // error.
    if changes && !page_request.token.is_form_token(page_request.form.get("form_token")) {
        return Err(PageError::Expired);
    }
    // Boxed: these futures are larger than the others a connection awaits.
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
