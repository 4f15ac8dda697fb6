//! A developer's keys: made, looked at, rotated, revoked.

use std::time::Duration;

use accounts::{AccountError, Deed, KeyKind, KeyView, Limits, NewKey, Rotated};
use askama::Template;
use domain::Timestamp;

use crate::app::App;
use crate::dashboard::moment::{Moment, number};
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::route::KeysAct;
use crate::dashboard::visit::Visit;
use crate::reply::Reply;

/// How long an old key may go on beside its successor; the words the form uses.
const OVERLAPS: [(&str, u64); 4] = [("none", 0), ("1h", 3600), ("24h", 86_400), ("7d", 604_800)];

/// A key as the tables show it.
#[derive(Clone, Debug)]
pub(crate) struct KeyLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) hint: String,
    pub(crate) kind: &'static str,
    pub(crate) groups: String,
    pub(crate) created: Moment,
    pub(crate) last_used: Option<Moment>,
    /// What its client last called itself: hostile text.
    pub(crate) agent: Option<String>,
    pub(crate) used: String,
    pub(crate) limit: String,
    pub(crate) used_n: u32,
    pub(crate) limit_n: u32,
    /// `live`, `ending`, `suspended` or `revoked`.
    pub(crate) state: &'static str,
    pub(crate) ends: Option<Moment>,
    /// Whose it is, where that is not clear from the page.
    pub(crate) owner: String,
}

impl KeyLine {
    pub(crate) fn new(view: &KeyView, now: Timestamp) -> Self {
        let record = &view.record;
        let used = view.today.map_or(0, |today| today.used);
        Self {
            id: record.id.as_str().to_owned(),
            name: if record.name.is_empty() { "unnamed".to_owned() } else { record.name.clone() },
            hint: record.hint.clone(),
            kind: record.kind.as_str(),
            groups: record.groups.as_ref().map_or("all".to_owned(), |groups| groups.join(", ")),
            created: Moment::new(record.created_at, now),
            last_used: view.last_used.map(|at| Moment::new(at, now)),
            agent: view.last_agent.clone(),
            used: number(used),
            limit: number(record.limits.requests_per_day),
            used_n: used,
            limit_n: record.limits.requests_per_day,
            state: state(view, now),
            ends: record.revoked_at.map(|at| Moment::new(at, now)),
            owner: String::new(),
        }
    }

    /// Whether it lets anybody in.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.state, "live" | "ending")
    }
}

fn state(view: &KeyView, now: Timestamp) -> &'static str {
    match view.record.revoked_at {
        Some(at) if at <= now => "revoked",
        _ if view.suspended => "suspended",
        Some(_) => "ending",
        None => "live",
    }
}

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<KeyLine>,
    ended: Vec<KeyLine>,
    production: bool,
    groups: Vec<String>,
    room: bool,
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
}

#[derive(Template)]
#[template(path = "key.html")]
struct KeyPage {
    shell: Shell,
    key: KeyLine,
    burst: String,
    month: Option<String>,
}

#[derive(Template)]
#[template(path = "key_revoke.html")]
pub(crate) struct RevokePage {
    pub(crate) shell: Shell,
    pub(crate) key: KeyLine,
    pub(crate) action: String,
    pub(crate) back: String,
}

pub(crate) async fn answer(visit: &Visit<'_>, page: KeysAct) -> Result<Reply, Trouble> {
    match page {
        KeysAct::CreateKey => create(visit).await,
        KeysAct::Key => key_page(visit).await,
        KeysAct::RotateKey => rotate(visit).await,
        KeysAct::RevokeKeyForm => {
            let key = own(visit).await?;
            let page = RevokePage {
                shell: Shell::new(visit, "Revoke a key", "keys"),
                action: format!("/dashboard/keys/{}/revoke", key.id),
                back: format!("/dashboard/keys/{}", key.id),
                key,
            };
            page::render(200, &page)
        }
        KeysAct::RevokeKey => {
            let key = own(visit).await?;
            revoke(visit, &key.id, &key.hint).await?;
            Ok(page::redirect("/dashboard?done=key-revoked"))
        }
        KeysAct::Keys => list(visit).await,
    }
}

/// Revokes a key and writes it down.
pub(crate) async fn revoke(visit: &Visit<'_>, id: &str, hint: &str) -> Result<(), Trouble> {
    let revoked = visit.app.accounts.revoke_key(id).await;
    note_done(visit, revoked, (Deed::KeyRevoked, id, hint)).await?;
    Ok(())
}

/// Writes down what was done, as not confirmed where other nodes have not said so.
pub(crate) async fn note_done<T>(
    visit: &Visit<'_>,
    done: Result<T, AccountError>,
    (deed, subject, detail): (Deed, &str, &str),
) -> Result<T, Trouble> {
    let said = match &done {
        Ok(_) => detail.to_owned(),
        Err(AccountError::Unconfirmed { .. }) => accounts::not_confirmed(detail),
        Err(_) => return Ok(done?),
    };
    visit.app.people.note(&visit.actor()?, deed, subject, &said).await?;
    Ok(done?)
}

async fn list(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let account = &visit.session()?.account;
    let mut lines = lines(visit, &account.id).await?;
    lines.reverse();
    let (keys, ended): (Vec<_>, Vec<_>) = lines.into_iter().partition(|key| key.state != "revoked");
    let page = KeysPage {
        shell: Shell::new(visit, "Keys", "keys"),
        room: keys.len() < keys_max(visit)?,
        keys,
        ended,
        production: may_have_production(visit),
        groups: groups(visit.app),
    };
    page::render(200, &page)
}

async fn create(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let account = &visit.session()?.account;
    let kind = match visit.form.get("kind") {
        "production" if may_have_production(visit) => KeyKind::Production,
        "production" => {
            let text = "This account has no production access yet; ask for it first.";
            return Err(Trouble::Refused(text.to_owned()));
        }
        _ => KeyKind::Sandbox,
    };
    check_room(visit).await?;
    let known = groups(visit.app);
    let chosen: Vec<String> = visit
        .form
        .all("group")
        .filter(|group| known.iter().any(|own| own == group))
        .map(String::from)
        .collect();
    let new = NewKey {
        name: visit.form.get("name").trim().to_owned(),
        groups: (!chosen.is_empty()).then_some(chosen),
        account_id: Some(account.id.clone()),
        limits: match kind {
            KeyKind::Production => account.limits(),
            KeyKind::Sandbox => Limits::DEFAULT,
        },
        ..NewKey::of_kind(kind)
    };
    let (secret, record) = visit.app.accounts.create_key(new).await?;
    let detail = format!("{} {}", kind.as_str(), record.hint);
    visit.app.people.note(&visit.actor()?, Deed::KeyCreated, record.id.as_str(), &detail).await?;
    shown_once(visit, "Your new key", secret.expose(), String::new())
}

async fn key_page(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let account = &visit.session()?.account;
    let keys = visit.app.accounts.keys_of(&account.id).await?;
    let view =
        keys.iter().find(|view| view.record.id.as_str() == visit.id).ok_or(Trouble::NotFound)?;
    let page = KeyPage {
        shell: Shell::new(visit, "Key", "keys"),
        key: KeyLine::new(view, visit.now),
        burst: number(view.record.limits.burst_per_minute),
        month: view.record.limits.requests_per_month.map(number),
    };
    page::render(200, &page)
}

async fn rotate(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let key = own(visit).await?;
    let wanted = visit.form.get("overlap");
    let overlap = OVERLAPS.iter().find(|(word, _)| *word == wanted).ok_or_else(|| {
        Trouble::Refused(
            "Choose how long the old key goes on: not at all, 1 h, 24 h or 7 days.".to_owned(),
        )
    })?;
    let lasts = (overlap.1 > 0).then(|| Duration::from_secs(overlap.1));
    if lasts.is_some() {
        // Both are in force for a while.
        check_room(visit).await?;
    }
    let Rotated { secret, record, unconfirmed } =
        visit.app.accounts.rotate_key(&key.id, lasts).await?;
    let mut detail = format!("overlap {}; new key {}", overlap.0, record.id);
    if unconfirmed.is_some() {
        detail = accounts::not_confirmed(&detail);
    }
    visit.app.people.note(&visit.actor()?, Deed::KeyRotated, &key.id, &detail).await?;
    let note = match (lasts, unconfirmed) {
        (None, Some(unconfirmed)) => format!(
            "The old key {} may go on for a while. {} Revoke it to try again.",
            key.hint,
            page::sentence(&unconfirmed)
        ),
        (Some(lasts), _) => {
            let end = Moment::new(visit.now.plus(lasts), visit.now).text;
            format!("The old key {} goes on until {end}.", key.hint)
        }
        (None, None) => format!("The old key {} has ended.", key.hint),
    };
    shown_once(visit, "The key's successor", secret.expose(), note)
}

fn shown_once(
    visit: &Visit<'_>,
    heading: &'static str,
    secret: &str,
    note: String,
) -> Result<Reply, Trouble> {
    let sport = visit.app.catalogue.sports().next().map(|(_, sport)| sport.key.to_string());
    let page = NewKeyPage {
        shell: Shell::new(visit, heading, "keys"),
        heading,
        secret: secret.to_owned(),
        base: visit.base(),
        sport: sport.unwrap_or_default(),
        note,
    };
    page::render(200, &page)
}

/// The key of the route, if it is the visitor's own. Somebody else's is as good as none.
async fn own(visit: &Visit<'_>) -> Result<KeyLine, Trouble> {
    let lines = lines(visit, &visit.session()?.account.id).await?;
    lines.into_iter().find(|key| key.id == visit.id).ok_or(Trouble::NotFound)
}

async fn lines(visit: &Visit<'_>, account_id: &str) -> Result<Vec<KeyLine>, Trouble> {
    let keys = visit.app.accounts.keys_of(account_id).await?;
    Ok(keys.iter().map(|view| KeyLine::new(view, visit.now)).collect())
}

/// Refuses one key more than the account may have in force.
async fn check_room(visit: &Visit<'_>) -> Result<(), Trouble> {
    let account = &visit.session()?.account;
    let live = lines(visit, &account.id).await?.iter().filter(|key| key.state != "revoked").count();
    let most = keys_max(visit)?;
    if live >= most {
        return Err(Trouble::Refused(format!(
            "This account has at most {most} keys in force. Revoke one that is not needed any more."
        )));
    }
    Ok(())
}

/// Keys that the visitor may have in force at the same time.
fn keys_max(visit: &Visit<'_>) -> Result<usize, Trouble> {
    Ok(usize::try_from(visit.session()?.account.keys_max()).unwrap_or(usize::MAX))
}

fn may_have_production(visit: &Visit<'_>) -> bool {
    let approved = |session: &accounts::Session| session.account.production_since.is_some();
    visit.is_operator() || visit.session.as_ref().is_some_and(approved)
}

fn groups(app: &App) -> Vec<String> {
    let mut groups: Vec<String> =
        app.catalogue.sports().map(|(_, sport)| sport.group.to_string()).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}
