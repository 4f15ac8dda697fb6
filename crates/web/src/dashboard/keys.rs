//! A developer's keys: create, list, rotate, revoke.
use std::time::Duration;

use accounts::{KeyKind, KeyView, Limits, NewKey, Rotated};
use askama::Template;
use http::Reply;

use crate::context::Web;
use crate::dashboard::key_line::KeyLine;
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::{self, PageError};
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::KeysAct;
use crate::dashboard::time_text::{TimeText, number};

/// Times for which an old key remains valid after a rotation, by form value.
const OVERLAPS: [(&str, u64); 4] = [("none", 0), ("1h", 3600), ("24h", 86_400), ("7d", 604_800)];

/// Form value for the newest key if there is none.
const NO_KEY: &str = "none";

/// Maximum number of ended keys per page.
const ENDED_SHOWN_MAX: u32 = 50;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<KeyLine>,
    ended: Vec<KeyLine>,
    /// Offset of the next page of ended keys.
    older: Option<u32>,
    /// True if this is not the first page.
    is_older: bool,
    production: bool,
    groups: Vec<String>,
    room: bool,
    /// Id of the newest key when the form was rendered, so that a form submitted twice creates one key.
    newest: String,
}

#[derive(Template)]
#[template(path = "key_new.html")]
struct NewKeyPage {
    shell: Shell,
    heading: &'static str,
    secret: String,
    base: String,
    sport: String,
    note: String,
    /// Created by an operator for another account.
    for_other: bool,
}

#[derive(Template)]
#[template(path = "key.html")]
struct KeyPage {
    shell: Shell,
    key: KeyLine,
    burst: String,
    month: Option<String>,
    streams: String,
}

#[derive(Template)]
#[template(path = "key_revoke.html")]
pub(crate) struct RevokePage {
    pub(crate) shell: Shell,
    pub(crate) key: KeyLine,
    pub(crate) action: String,
    pub(crate) back: String,
}

pub(crate) async fn answer(
    page_request: &PageRequest<'_>,
    page: KeysAct,
) -> Result<Reply, PageError> {
    match page {
        KeysAct::CreateKey => create(page_request).await,
        KeysAct::Key => key_page(page_request).await,
        KeysAct::RotateKey => rotate(page_request).await,
        KeysAct::RevokeKeyForm => {
            let key = own(page_request).await?;
            let page = RevokePage {
                shell: Shell::new(page_request, "Revoke a key", "keys"),
                action: format!("/dashboard/keys/{}/revoke", key.id),
                back: format!("/dashboard/keys/{}", key.id),
                key,
            };
            page::render(200, &page)
        }
        KeysAct::RevokeKey => {
            let key = own(page_request).await?;
            revoke(page_request, &key.id).await?;
            Ok(page::redirect("/dashboard?done=key-revoked"))
        }
        KeysAct::Keys => list(page_request).await,
    }
}

/// Revokes a key.
pub(crate) async fn revoke(page_request: &PageRequest<'_>, id: &str) -> Result<(), PageError> {
    page_request.web.api.accounts.revoke_key(id, &page_request.actor()?).await?;
    Ok(())
}

async fn list(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let account = &page_request.session()?.account;
    let accounts = &page_request.web.api.accounts;
    let line = |view: &KeyView| KeyLine::new(view, page_request.now);
    let keys: Vec<_> = accounts.live_keys_of(&account.id).await?.iter().rev().map(line).collect();
    let from = page_request.query.get("ended").parse().unwrap_or(0);
    // One more, to detect a further page.
    let part = (from, ENDED_SHOWN_MAX + 1);
    let mut ended: Vec<_> =
        accounts.ended_keys_of(&account.id, part).await?.iter().map(line).collect();
    let shown = usize::try_from(ENDED_SHOWN_MAX).unwrap_or(usize::MAX);
    let older = (ended.len() > shown).then(|| from.saturating_add(ENDED_SHOWN_MAX));
    ended.truncate(shown);
    let page = KeysPage {
        shell: Shell::new(page_request, "Keys", "keys"),
        newest: keys.first().map_or_else(|| NO_KEY.to_owned(), |key| key.id.clone()),
        room: keys.len() < usize::try_from(account.keys_max()).unwrap_or(usize::MAX),
        keys,
        ended,
        older,
        is_older: from > 0,
        production: may_have_production(page_request),
        groups: groups(page_request.web),
    };
    page::render(200, &page)
}

async fn create(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let account = &page_request.session()?.account;
    let keys = page_request.web.api.accounts.live_keys_of(&account.id).await?;
    if is_sent_again(page_request, keys.last()) {
        return Ok(page::redirect("/dashboard?done=key-made"));
    }
    let kind = match page_request.form.get("kind") {
        "production" if may_have_production(page_request) => KeyKind::Production,
        "production" => {
            let text = "This account has no production access yet; ask for it first.";
            return Err(PageError::Refused(text.to_owned()));
        }
        _ => KeyKind::Sandbox,
    };
    let known = groups(page_request.web);
    let chosen: Vec<String> = page_request
        .form
        .all("group")
        .filter(|group| known.iter().any(|own| own == group))
        .map(String::from)
        .collect();
    let new = NewKey {
        name: page_request.form.get("name").trim().to_owned(),
        groups: (!chosen.is_empty()).then_some(chosen),
        account_id: Some(account.id.clone()),
        limits: match kind {
            KeyKind::Production => account.limits(),
            KeyKind::Sandbox => Limits::DEFAULT,
        },
        ..NewKey::of_kind(kind)
    };
    let (secret, _) = page_request.web.api.accounts.create_key(new, &page_request.actor()?).await?;
    shown_once(page_request, "Your new key", secret.expose(), String::new())
}

/// True if a key was created since the form was rendered, so that the form is being submitted twice.
pub(crate) fn is_sent_again(page_request: &PageRequest<'_>, newest: Option<&KeyView>) -> bool {
    let known = page_request.form.get("newest");
    !known.is_empty() && known != id_or_none(newest)
}

/// Form value for a key, or for no key.
pub(crate) fn id_or_none(key: Option<&KeyView>) -> &str {
    key.map_or(NO_KEY, |key| key.record.id.as_str())
}

async fn key_page(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let view = own_view(page_request).await?;
    let streams = page_request.web.api.streams_max(view.record.streams);
    let page = KeyPage {
        shell: Shell::new(page_request, "Key", "keys"),
        key: KeyLine::new(&view, page_request.now),
        burst: number(view.record.limits.burst_per_minute),
        month: view.record.limits.requests_per_month.map(number),
        streams: number(streams),
    };
    page::render(200, &page)
}

async fn rotate(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let key = own(page_request).await?;
    let wanted = page_request.form.get("overlap");
    let overlap = OVERLAPS.iter().find(|(word, _)| *word == wanted).ok_or_else(|| {
        PageError::Refused(
            "Choose how long the old key keeps working: not at all, 1 h, 24 h or 7 days."
                .to_owned(),
        )
    })?;
    let lasts = (overlap.1 > 0).then(|| Duration::from_secs(overlap.1));
    let Rotated { secret, unconfirmed, .. } =
        page_request.web.api.accounts.rotate_key(&key.id, lasts, &page_request.actor()?).await?;
    let note = match (lasts, unconfirmed) {
        (None, Some(unconfirmed)) => format!(
            "The old key {} may keep working for a while. {} Revoke it to try again.",
            key.hint,
            page_error::sentence(&unconfirmed)
        ),
        (Some(lasts), _) => {
            let end = TimeText::new(page_request.now.plus(lasts), page_request.now).text;
            format!("The old key {} works until {end}.", key.hint)
        }
        (None, None) => format!("The old key {} has ended.", key.hint),
    };
    shown_once(page_request, "The key's successor", secret.expose(), note)
}

pub(crate) fn shown_once(
    page_request: &PageRequest<'_>,
    heading: &'static str,
    secret: &str,
    note: String,
) -> Result<Reply, PageError> {
    let sport =
        page_request.web.api.catalogue.sports().next().map(|(_, sport)| sport.key.to_string());
    let page = NewKeyPage {
        shell: Shell::new(page_request, heading, "keys"),
        heading,
        secret: secret.to_owned(),
        base: page_request.base(),
        sport: sport.unwrap_or_default(),
        note,
        for_other: page_request.request.path.starts_with("/console"),
    };
    page::render(200, &page)
}

/// The key of the route if it belongs to the visitor; otherwise not found.
async fn own(page_request: &PageRequest<'_>) -> Result<KeyLine, PageError> {
    Ok(KeyLine::new(&own_view(page_request).await?, page_request.now))
}

async fn own_view(page_request: &PageRequest<'_>) -> Result<KeyView, PageError> {
    let account = &page_request.session()?.account;
    let view = page_request.web.api.accounts.view_key(page_request.id).await?;
    let is_own = |view: &KeyView| view.record.account_id.as_ref() == Some(&account.id);
    view.filter(is_own).ok_or(PageError::NotFound)
}

fn may_have_production(page_request: &PageRequest<'_>) -> bool {
    let approved = |session: &accounts::Session| session.account.production_since.is_some();
    page_request.is_operator() || page_request.session.as_ref().is_some_and(approved)
}

fn groups(web: &Web) -> Vec<String> {
    let mut groups: Vec<String> =
        web.api.catalogue.sports().map(|(_, sport)| sport.group.to_string()).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}
