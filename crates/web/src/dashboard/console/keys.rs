//! Keys of all accounts.

use std::collections::HashMap;

use ::accounts::{KeyKind, KeyView, Limits, NewKey};
use askama::Template;
use domain::Timestamp;

use crate::dashboard::key_line::KeyLine;
use crate::dashboard::keys::{self, RevokePage};
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::time_text::number;
use http::Reply;

/// Maximum number of keys on one page; more are found by searching or on the command line.
const KEYS_SHOWN_MAX: u32 = 500;
/// Maximum number of characters used of a search text.
const SEARCH_CHARS_MAX: usize = 200;

const LIMIT_FORM: &str = "A limit is a whole number, or empty for the default.";

#[derive(Template)]
#[template(path = "all_keys.html")]
struct AllKeysPage {
    shell: Shell,
    keys: Vec<KeyLine>,
    query: String,
    more: bool,
    /// Owner that the form is prefilled with.
    owner: String,
    newest: String,
}

/// A key with its owner.
pub(super) fn owned(view: &KeyView, people: &HashMap<String, String>, now: Timestamp) -> KeyLine {
    let owner = view.record.account_id.as_ref();
    let owner = owner.map(|id| people.get(id).cloned().unwrap_or_else(|| id.clone()));
    KeyLine {
        streams: view.record.streams.map_or_else(|| "default".to_owned(), number),
        owner: owner.unwrap_or_else(|| "nobody in particular".to_owned()),
        ..KeyLine::new(view, now)
    }
}

pub(super) async fn show(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let people = super::emails(page_request).await?;
    let query: String = page_request.query.get("q").trim().chars().take(SEARCH_CHARS_MAX).collect();
    // One more, to detect whether there are more.
    let mut views = page_request.web.api.accounts.find_keys(&query, KEYS_SHOWN_MAX + 1).await?;
    let shown = usize::try_from(KEYS_SHOWN_MAX).unwrap_or(usize::MAX);
    let more = views.len() > shown;
    views.truncate(shown);
    let newest = page_request.web.api.accounts.find_keys("", 1).await?;
    let page = AllKeysPage {
        shell: Shell::new(page_request, "All keys", "all-keys"),
        keys: views.iter().map(|view| owned(view, &people, page_request.now)).collect(),
        query,
        more,
        owner: people.get(page_request.query.get("for")).cloned().unwrap_or_default(),
        newest: keys::id_or_none(newest.first()).to_owned(),
    };
    page::render(200, &page)
}

/// Creates a key for an account, or without an owner.
pub(super) async fn create(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let (accounts, form) = (&page_request.web.api.accounts, &page_request.form);
    if keys::is_sent_again(page_request, accounts.find_keys("", 1).await?.first()) {
        return Ok(page::redirect("/console/keys?done=key-made"));
    }
    let typed = form.get("owner").trim();
    let people = page_request.web.people.accounts().await?;
    let owner = people.into_iter().find(|account| account.email.eq_ignore_ascii_case(typed));
    if owner.is_none() && !typed.is_empty() {
        let text = "There is no account with this email. Invite them under Accounts first.";
        return Err(PageError::Refused(text.to_owned()));
    }
    let kind =
        if form.get("kind") == "production" { KeyKind::Production } else { KeyKind::Sandbox };
    let default = match (&owner, kind) {
        (Some(account), KeyKind::Production) => account.limits(),
        (Some(_) | None, _) => Limits::DEFAULT,
    };
    let limit = |name: &str, default: u32| match form.get(name).trim() {
        "" => Ok(default),
        typed => typed.parse::<u32>().map_err(|_| PageError::Refused(LIMIT_FORM.to_owned())),
    };
    let new = NewKey {
        name: form.get("name").trim().to_owned(),
        limits: Limits {
            burst_per_minute: limit("burst_per_minute", default.burst_per_minute)?,
            requests_per_day: limit("requests_per_day", default.requests_per_day)?,
            ..default
        },
        streams: streams_typed(page_request)?,
        export_read: form.get("export_read") == "yes",
        account_id: owner.as_ref().map(|account| account.id.clone()),
        ..NewKey::of_kind(kind)
    };
    let (secret, _) = accounts.create_key(new, &page_request.actor()?).await?;
    let note =
        owner.map_or_else(String::new, |account| format!("It belongs to {}.", account.email));
    keys::shown_once(page_request, "A new key", secret.expose(), note)
}

pub(super) async fn ask_revoke(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let key = found(page_request).await?;
    let page = RevokePage {
        shell: Shell::new(page_request, "Revoke a key", "all-keys"),
        action: format!("/console/keys/{}/revoke", key.id),
        back: "/console/keys".to_owned(),
        key,
    };
    page::render(200, &page)
}

pub(super) async fn revoke(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let key = found(page_request).await?;
    keys::revoke(page_request, &key.id).await?;
    Ok(page::redirect("/console/keys?done=key-revoked"))
}

#[derive(Template)]
#[template(path = "key_streams.html")]
struct StreamsPage {
    shell: Shell,
    key: KeyLine,
    /// The key's own limit; empty for the operator's setting.
    own: String,
    default: String,
}

pub(super) async fn ask_streams(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let view = page_request
        .web
        .api
        .accounts
        .view_key(page_request.id)
        .await?
        .ok_or(PageError::NotFound)?;
    let page = StreamsPage {
        shell: Shell::new(page_request, "Streams of a key", "all-keys"),
        own: view.record.streams.map_or_else(String::new, |own| own.to_string()),
        default: number(page_request.web.api.streams_max(None)),
        key: KeyLine::new(&view, page_request.now),
    };
    page::render(200, &page)
}

pub(super) async fn set_streams(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let streams = streams_typed(page_request)?;
    page_request
        .web
        .api
        .accounts
        .limit_key_streams(page_request.id, streams, &page_request.actor()?)
        .await?;
    Ok(page::redirect("/console/keys?done=key-limited"))
}

/// A number of streams from the form; empty for the operator's setting.
fn streams_typed(page_request: &PageRequest<'_>) -> Result<Option<u32>, PageError> {
    match page_request.form.get("streams").trim() {
        "" => Ok(None),
        typed => typed.parse().map(Some).map_err(|_| PageError::Refused(LIMIT_FORM.to_owned())),
    }
}

async fn found(page_request: &PageRequest<'_>) -> Result<KeyLine, PageError> {
    let view = page_request
        .web
        .api
        .accounts
        .view_key(page_request.id)
        .await?
        .ok_or(PageError::NotFound)?;
    Ok(KeyLine::new(&view, page_request.now))
}
