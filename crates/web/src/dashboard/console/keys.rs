//! Everybody's keys.

use askama::Template;

use crate::dashboard::keys::{self, KeyLine, RevokePage};
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::visit::Visit;
use http::Reply;

/// Keys on one page; more are found by searching or on the command line.
const KEYS_SHOWN_MAX: u32 = 500;
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
    // One more, which says whether there are more.
    let mut views = visit.web.api.accounts.find_keys(&query, KEYS_SHOWN_MAX + 1).await?;
    let shown = usize::try_from(KEYS_SHOWN_MAX).unwrap_or(usize::MAX);
    let more = views.len() > shown;
    views.truncate(shown);
    let lines = views.iter().map(|view| {
        let owner = view.record.account_id.as_ref();
        let owner = owner.map(|id| people.get(id).cloned().unwrap_or_else(|| id.clone()));
        KeyLine {
            owner: owner.unwrap_or_else(|| "command line".to_owned()),
            ..KeyLine::new(view, visit.now)
        }
    });
    let keys: Vec<KeyLine> = lines.collect();
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
    keys::revoke(visit, &key.id).await?;
    Ok(page::redirect("/console/keys?done=key-revoked"))
}

async fn found(visit: &Visit<'_>) -> Result<KeyLine, Trouble> {
    let view = visit.web.api.accounts.view_key(visit.id).await?.ok_or(Trouble::NotFound)?;
    Ok(KeyLine::new(&view, visit.now))
}
