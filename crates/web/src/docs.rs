//! `/docs`: guides and the API reference; the reference is rendered from the same value as `/openapi.json`.
//!
//! The pages are built once per service; a request fills in the reader's address, the name of their sandbox key, and
//! current events and days of the sandbox, so that every example works.

mod code;
mod json;
pub(crate) mod llms;
mod markdown;
mod reference;
mod refusal;
mod shape;
pub(crate) mod site;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use accounts::{KeyKind, SignUp, Stage};
use api::openapi;
use askama::Template;
use askama::filters::Safe;
use domain::{Timestamp, World};
use http::{Answering, Reply, Request};

use crate::context::Web;
use crate::dashboard::asset;
use crate::dashboard::form::Form;
use crate::dashboard::key_line::KeyLine;
use crate::dashboard::page::{self, GUARD, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::docs::reference::BASE_URL;
use crate::docs::site::{Page, Site};

/// Address of the search index.
const INDEX: &str = "/docs/index.json";
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage<'a> {
    shell: Shell,
    style: &'static str,
    script: &'static str,
    index: &'static str,
    groups: Vec<(&'static str, Vec<&'a Page>)>,
    /// `None` on the list of all pages.
    page: Option<&'a Page>,
    lead: Safe<&'a str>,
    body: Safe<String>,
    key: KeyNote,
    /// Page where the reader can create a key.
    key_page: Option<&'static str>,
    before: Option<&'a Page>,
    after: Option<&'a Page>,
}

/// What the page says about the key used in examples.
enum KeyNote {
    /// No example on the page needs a key.
    None,
    /// Not signed in; whether a sign-in page exists.
    Stranger { can_sign_in: bool },
    /// Signed in, without a sandbox key.
    Missing,
    /// Name and visible part of the reader's newest sandbox key. Its secret is not known here.
    Own { name: String, hint: String },
}

/// Answers a request for a path under `/docs`.
pub fn answer<'a>(web: &'a Arc<Web>, request: &'a Request<'a>) -> Answering<'a, Reply> {
    Box::pin(show_page(web, request))
}

async fn show_page(web: &Arc<Web>, request: &Request<'_>) -> Reply {
    let page_request = match PageRequest::begin(web, request, Form::default()).await {
        Ok(page_request) => page_request,
        Err(error) => return page::error_reply(error),
    };
    match show(&page_request).await {
        Ok(reply) => page_request.finish(reply),
        Err(error) => page_request.finish(page::error(&page_request, error)),
    }
}

async fn show(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let site = site(page_request.web)?;
    let path = page_request.request.path;
    let whole = match path {
        INDEX => Some(&site.index),
        llms::INDEX_PATH => Some(&site.llms),
        llms::FULL_PATH => Some(&site.llms_full),
        _ => None,
    };
    if let Some(whole) = whole {
        return Ok(whole.reply(page_request.request));
    }
    let slug = path.trim_start_matches("/docs").trim_matches('/');
    let page = match slug {
        "" => None,
        slug => Some(site.find(slug).ok_or(PageError::NotFound)?),
    };
    let at = page.and_then(|page| site.pages.iter().position(|other| std::ptr::eq(other, page)));
    let before = at.and_then(|at| site.pages.get(at.checked_sub(1)?));
    let after = site.pages.get(at.map_or(0, |at| at + 1));
    let mut shell = Shell::new(page_request, "Documentation", "docs");
    if let Some(page) = page {
        shell.title = format!("{} · Documentation", page.title).into();
    }
    let html = DocsPage {
        shell,
        style: asset::docs_style_path(),
        script: asset::docs_script_path(),
        index: INDEX,
        groups: site.groups(),
        page,
        lead: Safe(&site.lead),
        body: Safe(page.map_or_else(String::new, |page| filled(page_request, &page.body))),
        key: match page {
            Some(page) if page.needs_key() => key_note(page_request).await?,
            _ => KeyNote::None,
        },
        key_page: key_page(page_request),
        before,
        after,
    }
    .render()?;
    let mut reply = Reply::new(200, "text/html; charset=utf-8", html);
    for (name, value) in GUARD {
        reply.head.put(name, value);
    }
    // The page names the reader's key, so it must not be cached.
    reply.head.put("cache-control", "private, no-cache");
    Ok(reply)
}

/// The pages of this service, built at the first request.
fn site(web: &Web) -> Result<&Site, PageError> {
    if let Some(site) = web.site.get() {
        return Ok(site);
    }
    let site = Site::new(&openapi::value(&web.api.catalogue))?;
    Ok(web.site.get_or_init(|| site))
}

/// Fills in the reader's address, and current events and days.
fn filled(page_request: &PageRequest<'_>, body: &str) -> String {
    let mut body = body.replace(BASE_URL, &code::escape(&page_request.base()));
    for (token, day) in [("{today}", page_request.now), ("{tomorrow}", page_request.now.plus(DAY))]
    {
        body = body.replace(token, &day_text(day));
    }
    for (_, sport) in page_request.web.api.catalogue.sports() {
        let token = format!("{{event:{}}}", sport.key);
        if body.contains(&token) {
            let event = sandbox_event(page_request, &sport.key);
            body = body.replace(&token, event.as_deref().unwrap_or("EVENT_ID"));
        }
    }
    body
}

fn day_text(at: Timestamp) -> String {
    let text = at.seconds_text();
    String::from_utf8_lossy(text.get(..10).unwrap_or_default()).into_owned()
}

/// A sandbox event that is available now and for some time.
pub(crate) fn sandbox_event(page_request: &PageRequest<'_>, sport: &str) -> Option<String> {
    let sport = page_request.web.api.catalogue.sport_id(sport)?;
    let published = page_request.web.api.world(World::Sandbox).published();
    published.snapshot.sport(sport).upcoming_event().map(|event| event.id.to_string())
}

fn key_page(page_request: &PageRequest<'_>) -> Option<&'static str> {
    let is_open = page_request.web.people.rules().sign_up == SignUp::Open;
    match &page_request.session {
        _ if !page_request.web.settings.enabled => None,
        Some(_) => Some("/dashboard"),
        None => is_open.then_some("/signup"),
    }
}

async fn key_note(page_request: &PageRequest<'_>) -> Result<KeyNote, PageError> {
    let session = page_request.session.as_ref().filter(|session| session.stage == Stage::Full);
    let Some(session) = session else {
        return Ok(KeyNote::Stranger { can_sign_in: page_request.web.settings.enabled });
    };
    let keys = page_request.web.api.accounts.live_keys_of(&session.account.id).await?;
    let own = keys
        .iter()
        .rev()
        .find(|view| view.record.kind == KeyKind::Sandbox && view.standing.is_some());
    Ok(own.map_or(KeyNote::Missing, |view| {
        let line = KeyLine::new(view, page_request.now);
        KeyNote::Own { name: line.name, hint: line.hint }
    }))
}

impl DocsPage<'_> {
    /// True if the navigation entry is the current page.
    fn is(page: &Option<&Page>, entry: &Page) -> bool {
        page.is_some_and(|page| std::ptr::eq(page, entry))
    }
}
