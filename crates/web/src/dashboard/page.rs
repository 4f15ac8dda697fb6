//! Rendering: the frame of every page, error pages, and security headers.
use std::borrow::Cow;

use accounts::Maintenance;
use askama::Template;
use http::Reply;

use crate::dashboard::asset;
use crate::dashboard::page_error::{Addresses, PageError};
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::quota_note::QuotaNote;

/// Security headers: a page may load its own assets, connect to its own service, and nothing else. The referrer policy
/// is not `no-referrer`: browsers would then hide the origin of our own forms.
pub(crate) const GUARD: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

/// A part of a text: code or plain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) is_code: bool,
}

/// Splits a text at its backticks.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let part = |(n, text): (usize, &str)| Part { text: text.to_owned(), is_code: n % 2 == 1 };
    text.split('`').enumerate().map(part).collect()
}

/// Data of the frame of a page.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) title: Cow<'static, str>,
    /// Active entry of the navigation.
    pub(crate) here: &'static str,
    pub(crate) email: Option<String>,
    pub(crate) operator: bool,
    pub(crate) form_token: String,
    pub(crate) notice: Option<Notice>,
    pub(crate) maintenance: bool,
    pub(crate) alerts: Vec<QuotaNote>,
    pub(crate) public: PublicPages,
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
    pub(crate) mark: &'static str,
}

/// Public pages that are enabled.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, as in the configuration"
)]
pub(crate) struct PublicPages {
    /// True if accounts and all other pages are enabled, not only the documentation.
    pub(crate) all: bool,
    pub(crate) status: bool,
    pub(crate) board: bool,
    pub(crate) docs: bool,
}

/// A message at the top of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// CSS class: `good`, `bad` or `plain`.
    pub(crate) tone: &'static str,
    pub(crate) text: String,
}

impl Notice {
    pub(crate) fn good(text: impl Into<String>) -> Self {
        Self { tone: "good", text: text.into() }
    }

    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self { tone: "bad", text: text.into() }
    }
}

/// Messages for `?done=` after a redirect. The texts come only from this table, never from the URL.
const DONE: &[(&str, &str)] = &[
    (
        "signed-up-mail",
        "Check your email: we sent you a link to continue. It may take a minute, or be in the spam folder.",
    ),
    ("unconfirmed", "Confirm your address first: we sent you the email with the link again."),
    ("confirmed", "The address is confirmed. Sign in with the password you chose."),
    (
        "reset-mail",
        "If the address has an account, we sent an email with a link to set a new password.",
    ),
    ("signed-out", "You are signed out."),
    ("password-reset", "The password is set. Sign in with it."),
    (
        "key-made",
        "This form was sent already, so no further key was made. A key is shown only once: rotate it if you lost it.",
    ),
    (
        "key-limited",
        "The key's number of streams is changed, for streams that are opened from now on.",
    ),
    ("key-revoked", "The key is revoked. Requests with it are refused from now on."),
    ("requested", "Your request was sent to the operator."),
    ("password-changed", "The password is changed, and other sessions are signed out."),
    ("session-ended", "The session is signed out."),
    ("factor-off", "Two-factor authentication is off."),
    (
        "suspended",
        "The account is suspended: its sessions are signed out and its keys are refused.",
    ),
    ("resumed", "The account is active again, and so are its keys."),
    ("approved", "The request is approved. The developer can create production keys now."),
    ("refused", "The request is refused. The developer sees your note."),
    ("limited", "The limits are saved. They apply to the account's production keys at once."),
    ("feed-revoked", "The feed's token is revoked."),
    ("feed-paused", "The feed is paused: its pushes are refused until you resume it."),
    ("feed-resumed", "The feed may push again."),
    ("adapter-paused", "The adapter stops within a second or two."),
    ("adapter-resumed", "The adapter starts within a second or two."),
    ("adapter-read", "The adapter reads its upstream within a second or two."),
    ("merged", "They are one event from now on. Clients see it with the next snapshot."),
    ("split", "The ref is another event from now on. Clients see it with the next snapshot."),
    ("parted", "They are different events, and stay separate however alike they look."),
    ("maintenance-on", "Maintenance is on. The API answers 503 with Retry-After."),
    ("maintenance-off", "Maintenance is off. The API answers again."),
];

impl Shell {
    pub(crate) fn new(
        page_request: &PageRequest<'_>,
        title: &'static str,
        here: &'static str,
    ) -> Self {
        let done = page_request.query.get("done");
        let notice = DONE.iter().find(|(code, _)| *code == done);
        let session =
            page_request.session.as_ref().filter(|session| session.stage == accounts::Stage::Full);
        Self {
            title: title.into(),
            here,
            email: session.map(|session| session.account.email.clone()),
            operator: session.is_some() && page_request.is_operator(),
            form_token: page_request.token.form_token(),
            notice: notice.map(|(_, text)| Notice::good(*text)),
            maintenance: page_request.web.api.accounts.maintenance() != Maintenance::Off,
            alerts: page_request.alerts.clone(),
            public: PublicPages {
                all: page_request.web.settings.enabled,
                status: page_request.web.settings.enabled && page_request.web.settings.status_page,
                board: page_request.web.settings.enabled
                    && page_request.web.settings.board.is_some(),
                docs: page_request.web.settings.docs,
            },
            style: asset::style_path(),
            script: asset::script_path(),
            mark: asset::mark_path(),
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, notice: Option<Notice>) -> Self {
        self.notice = notice.or(self.notice);
        self
    }
}

/// Renders a page.
pub(crate) fn render(status: u16, page: &impl Template) -> Result<Reply, PageError> {
    Ok(guarded(Reply::new(status, "text/html; charset=utf-8", page.render()?)))
}

/// Adds the security headers and forbids caching.
pub(crate) fn guarded(mut reply: Reply) -> Reply {
    for (name, value) in GUARD {
        reply.head.put(name, value);
    }
    reply.head.put("cache-control", "no-store");
    reply
}

/// Redirects the browser to one of our pages.
pub(crate) fn redirect(to: &str) -> Reply {
    let mut reply = guarded(Reply::new(303, "text/plain; charset=utf-8", ""));
    reply.head.put("location", to);
    reply
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    shell: Shell,
    heading: &'static str,
    text: String,
}

/// The error page.
pub(crate) fn error(page_request: &PageRequest<'_>, error: PageError) -> Reply {
    let header = header(&error);
    let (status, heading, text) = message(error);
    let page = ErrorPage { shell: Shell::new(page_request, heading, ""), heading, text };
    with_header(render(status, &page).unwrap_or_else(error_reply), header)
}

/// The error as plain text, if the error page cannot be rendered.
pub(crate) fn error_reply(error: PageError) -> Reply {
    let header = header(&error);
    let (status, heading, text) = message(error);
    let text = format!("{heading}\n{text}\n");
    with_header(guarded(Reply::new(status, "text/plain; charset=utf-8", text)), header)
}

/// The header that clients need for this error.
fn header(error: &PageError) -> Option<(&'static str, String)> {
    match error {
        PageError::WrongMethod { allow } => Some(("allow", (*allow).to_owned())),
        PageError::Busy => Some(("retry-after", "1".to_owned())),
        PageError::TooOften { retry_after_s, .. } => {
            Some(("retry-after", retry_after_s.to_string()))
        }
        PageError::NotFound
        | PageError::Forbidden
        | PageError::Foreign(_)
        | PageError::Expired
        | PageError::Refused(_)
        | PageError::Failed(_) => None,
    }
}

fn with_header(mut reply: Reply, header: Option<(&'static str, String)>) -> Reply {
    if let Some((name, value)) = header {
        reply.head.put(name, &value);
    }
    reply
}

fn message(error: PageError) -> (u16, &'static str, String) {
    let (status, heading, text) = match error {
        PageError::NotFound => (404, "Page not found", "Page not found, or you don't have access."),
        PageError::WrongMethod { .. } => {
            (405, "Method not allowed", "This address accepts only the form of its own page.")
        }
        PageError::Forbidden => (403, "For operators", "Your account may not see this page."),
        PageError::Busy => (503, "Busy", "The server is busy. Try again shortly."),
        PageError::Foreign(None) => (
            403,
            "Form refused: sent by another site",
            "The browser says that this form was sent by a page of another site. Nothing was done.",
        ),
        PageError::Foreign(Some(Addresses { browser, service })) => {
            let text = format!(
                "This form came from another address: the browser says {browser}, the service believes to be at \
                 {service}. Nothing was done. Operator: set dashboard.public_url to the address in the browser, and \
                 behind a proxy server.trusted_proxies to the proxy's address."
            );
            return (403, "Form refused: wrong address", text);
        }
        PageError::Expired => (
            403,
            "This form has expired",
            "It was made for another session, so nothing was done. Go back, reload the page and try again.",
        ),
        PageError::Refused(text) => return (400, "That cannot be done", text),
        PageError::TooOften { text, .. } => return (429, "Too often", text),
        PageError::Failed(error) => {
            tracing::error!(
                event = "page.failed",
                error = &*error as &dyn std::error::Error,
                "a page could not be made"
            );
            (
                500,
                "That went wrong",
                "The service failed to answer. Its log says why; try again shortly.",
            )
        }
    };
    (status, heading, text.to_owned())
}
