//! Everybody's keys.

use askama::Template;

use crate::dashboard::keys::{self, KeyLine, RevokePage};
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::visit::Visit;
use crate::reply::Reply;

/// Keys on one page; more are found by searching or on the command line.
const KEYS_SHOWN_MAX: usize = 500;
/// Letters of a search that are looked for.
const SEARCH_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "all_keys.html")]
struct AllKeysPage {
    shell: Shell,
    keys: Vec<KeyLine>,
    query: String,
    more: bool,
}

pub(super) async fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let people = super::emails(visit).await?;
    let query: String = visit.query.get("q").trim().chars().take(SEARCH_CHARS_MAX).collect();
    let wanted = query.to_lowercase();
    let views = visit.app.accounts.view_keys().await?;
    let lines = views.iter().rev().map(|view| {
        let owner = view.record.account_id.as_ref();
        let owner = owner.map(|id| people.get(id).cloned().unwrap_or_else(|| id.clone()));
        KeyLine {
            owner: owner.unwrap_or_else(|| "command line".to_owned()),
            ..KeyLine::new(view, visit.now)
        }
    });
    let found = lines.filter(|key| {
        let texts = [&key.owner, &key.name, &key.hint, &key.id, &key.groups];
        let has = |text: &&String| text.to_lowercase().contains(&wanted);
        wanted.is_empty() || [key.kind, key.state].contains(&&*wanted) || texts.iter().any(has)
    });
    let mut keys: Vec<KeyLine> = found.take(KEYS_SHOWN_MAX + 1).collect();
    let more = keys.len() > KEYS_SHOWN_MAX;
    keys.truncate(KEYS_SHOWN_MAX);
    let shell = Shell::new(visit, "All keys", "all-keys");
    page::render(200, &AllKeysPage { shell, keys, query, more })
}

pub(super) async fn ask_revoke(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let key = found(visit).await?;
    let page = RevokePage {
        shell: Shell::new(visit, "Revoke a key", "all-keys"),
        action: format!("/console/keys/{}/revoke", key.id),
        back: "/console/keys".to_owned(),
        key,
    };
    page::render(200, &page)
}

pub(super) async fn revoke(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let key = found(visit).await?;
    keys::revoke(visit, &key.id, &key.hint).await?;
    Ok(page::redirect("/console/keys?done=key-revoked"))
}

async fn found(visit: &Visit<'_>) -> Result<KeyLine, Trouble> {
    let views = visit.app.accounts.view_keys().await?;
    let view = views.iter().find(|view| view.record.id.as_str() == visit.id);
    Ok(KeyLine::new(view.ok_or(Trouble::NotFound)?, visit.now))
}
