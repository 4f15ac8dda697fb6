//! The operators' console: people and what they ask for, everybody's keys, feeds, the audit log, maintenance.

mod feeds;

use std::collections::HashMap;

use accounts::{AccessDecision, AccountRecord, Actor, Deed, Email, Maintenance, Role};
use askama::Template;
use domain::World;

use crate::dashboard::access::RequestLine;
use crate::dashboard::keys::{self, KeyLine, RevokePage};
use crate::dashboard::moment::Moment;
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::route::ConsoleAct;
use crate::dashboard::visit::Visit;
use crate::reply::Reply;

/// Keys on one page; more are found by their owner or on the command line.
const KEYS_SHOWN_MAX: usize = 500;
/// What `Retry-After` can be set to, in minutes: up to a day.
const RETRY_AFTER_MIN_MAX: u32 = 1440;

#[derive(Template)]
#[template(path = "console.html")]
struct ConsolePage {
    shell: Shell,
    accounts: usize,
    pending: i64,
    keys_live: usize,
    feeds_live: usize,
    sources: usize,
    sources_stale: usize,
    events: usize,
    maintenance_s: Option<u32>,
}

struct AccountLine {
    id: String,
    email: String,
    name: String,
    role: &'static str,
    created: Moment,
    production: Option<Moment>,
    suspended: Option<Moment>,
    second_factor: bool,
    is_self: bool,
}

#[derive(Template)]
#[template(path = "accounts.html")]
struct AccountsPage {
    shell: Shell,
    accounts: Vec<AccountLine>,
}

#[derive(Template)]
#[template(path = "link_issued.html")]
struct LinkIssuedPage {
    shell: Shell,
    heading: &'static str,
    text: String,
    url: String,
}

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage {
    shell: Shell,
    pending: Vec<RequestLine>,
    decided: Vec<RequestLine>,
}

#[derive(Template)]
#[template(path = "all_keys.html")]
struct AllKeysPage {
    shell: Shell,
    keys: Vec<KeyLine>,
    more: bool,
}

struct AuditLine {
    at: Moment,
    who: String,
    action: String,
    subject: String,
    detail: String,
    address: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    lines: Vec<AuditLine>,
    older: Option<i64>,
}

pub(crate) async fn answer(visit: &Visit<'_>, page: ConsoleAct) -> Result<Reply, Trouble> {
    match page {
        ConsoleAct::Accounts => accounts_page(visit).await,
        ConsoleAct::Invite => invite(visit).await,
        ConsoleAct::SuspendAccount | ConsoleAct::ResumeAccount => suspend(visit, page).await,
        ConsoleAct::ResetAccount => reset(visit).await,
        ConsoleAct::Requests => requests_page(visit).await,
        ConsoleAct::ApproveRequest => decide(visit, AccessDecision::Approve).await,
        ConsoleAct::RefuseRequest => decide(visit, AccessDecision::Refuse).await,
        ConsoleAct::AllKeys => all_keys(visit).await,
        ConsoleAct::RevokeAnyKeyForm | ConsoleAct::RevokeAnyKey => revoke_key(visit, page).await,
        ConsoleAct::Feeds => feeds::show(visit, None).await,
        ConsoleAct::CreateFeed => feeds::create(visit).await,
        ConsoleAct::RevokeFeed => feeds::revoke(visit).await,
        ConsoleAct::Audit => audit_page(visit).await,
        ConsoleAct::Maintenance => maintenance(visit).await,
        ConsoleAct::Console => overview(visit).await,
    }
}

async fn overview(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let app = visit.app;
    let feeds = app.accounts.list_feeds().await?;
    let live = app.world(World::Live);
    let (vitals, stale_after) = (live.vitals(), live.stale_after());
    let page = ConsolePage {
        shell: Shell::new(visit, "Console", "console"),
        accounts: app.people.accounts().await?.len(),
        pending: app.people.pending_requests().await?,
        keys_live: app.accounts.keys.len(),
        feeds_live: feeds.iter().filter(|feed| feed.revoked_at.is_none()).count(),
        sources: vitals.sources.len(),
        sources_stale: vitals
            .sources
            .iter()
            .filter(|(_, _, source)| source.is_stale(visit.now, stale_after))
            .count(),
        events: live.records().0,
        maintenance_s: match app.accounts.maintenance() {
            Maintenance::Off => None,
            Maintenance::On { retry_after_s } => Some(retry_after_s),
        },
    };
    page::render(200, &page)
}

async fn accounts_page(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let own = &visit.session()?.account.id;
    let line = |account: AccountRecord| AccountLine {
        is_self: account.id == *own,
        id: account.id,
        email: account.email,
        name: account.name,
        role: account.role.as_str(),
        created: Moment::new(account.created_at, visit.now),
        production: account.production_since.map(|at| Moment::new(at, visit.now)),
        suspended: account.suspended_at.map(|at| Moment::new(at, visit.now)),
        second_factor: account.second_factor,
    };
    let accounts = visit.app.people.accounts().await?.into_iter().map(line).collect();
    page::render(200, &AccountsPage { shell: Shell::new(visit, "Accounts", "accounts"), accounts })
}

async fn invite(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let typed = visit.form.get("email").trim();
    let email = match Email::parse(typed) {
        Some(email) => Some(email),
        None if typed.is_empty() => None,
        None => {
            let text = "This is not a mail address such as ann@example.com.";
            return Err(Trouble::Refused(text.to_owned()));
        }
    };
    let token = visit.app.people.invite(email.as_ref(), &visit.actor()?).await?;
    let whom = email.map_or("whoever has it".to_owned(), |email| email.to_string());
    link_issued(
        visit,
        "An invitation",
        format!("Send this link to {whom}. It makes one account and works once, within 7 days."),
        &token.expose(),
    )
}

async fn reset(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let account = visit.app.people.account(visit.id).await?;
    let token = visit.app.people.reset_link(visit.id, &visit.actor()?).await?;
    let text = format!(
        "Send this link to {}. With it they set a new password; it works once, within a day.",
        account.email
    );
    link_issued(visit, "A link to set a password", text, &token.expose())
}

fn link_issued(
    visit: &Visit<'_>,
    heading: &'static str,
    text: String,
    token: &str,
) -> Result<Reply, Trouble> {
    let page = LinkIssuedPage {
        shell: Shell::new(visit, heading, "accounts"),
        heading,
        text,
        url: format!("{}/link/{token}", visit.base()),
    };
    page::render(200, &page)
}

async fn suspend(visit: &Visit<'_>, page: ConsoleAct) -> Result<Reply, Trouble> {
    let (people, actor) = (&visit.app.people, visit.actor()?);
    let to = if page == ConsoleAct::SuspendAccount {
        if visit.session()?.account.id == visit.id {
            let text = "You cannot suspend yourself; another operator can.";
            return Err(Trouble::Refused(text.to_owned()));
        }
        people.suspend(visit.id, &actor).await?;
        "/console/accounts?done=suspended"
    } else {
        people.resume(visit.id, &actor).await?;
        "/console/accounts?done=resumed"
    };
    // The keys in memory follow the store before anybody is told that it is done.
    visit.app.accounts.reload().await?;
    Ok(page::redirect(to))
}

async fn requests_page(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let people = emails(visit).await?;
    let requests = visit.app.people.access_requests(None).await?;
    let lines = requests.into_iter().map(|record| {
        let mut line = RequestLine::new(record, visit);
        line.who = people.get(&line.account_id).cloned().unwrap_or_else(|| line.account_id.clone());
        line
    });
    let (pending, decided) = lines.partition(|line| line.state == "pending");
    let shell = Shell::new(visit, "Access requests", "requests");
    page::render(200, &RequestsPage { shell, pending, decided })
}

async fn decide(visit: &Visit<'_>, decision: AccessDecision) -> Result<Reply, Trouble> {
    let note = visit.form.get("note");
    visit.app.people.decide_access(visit.id, decision, note, &visit.actor()?).await?;
    Ok(page::redirect(match decision {
        AccessDecision::Approve => "/console/requests?done=approved",
        AccessDecision::Refuse => "/console/requests?done=refused",
    }))
}

async fn all_keys(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let people = emails(visit).await?;
    let mut views = visit.app.accounts.view_keys().await?;
    views.reverse();
    let more = views.len() > KEYS_SHOWN_MAX;
    let keys = views.iter().take(KEYS_SHOWN_MAX).map(|view| {
        let owner = view.record.account_id.as_ref();
        let owner = owner.map(|id| people.get(id).cloned().unwrap_or_else(|| id.clone()));
        KeyLine {
            owner: owner.unwrap_or_else(|| "command line".to_owned()),
            ..KeyLine::new(view, visit.now)
        }
    });
    let (shell, keys) = (Shell::new(visit, "All keys", "all-keys"), keys.collect());
    page::render(200, &AllKeysPage { shell, keys, more })
}

async fn revoke_key(visit: &Visit<'_>, page: ConsoleAct) -> Result<Reply, Trouble> {
    let views = visit.app.accounts.view_keys().await?;
    let view = views.iter().find(|view| view.record.id.as_str() == visit.id);
    let key = KeyLine::new(view.ok_or(Trouble::NotFound)?, visit.now);
    if page == ConsoleAct::RevokeAnyKey {
        keys::revoke(visit, &key.id, &key.hint).await?;
        return Ok(page::redirect("/console/keys?done=key-revoked"));
    }
    let page = RevokePage {
        shell: Shell::new(visit, "Revoke a key", "all-keys"),
        action: format!("/console/keys/{}/revoke", key.id),
        back: "/console/keys".to_owned(),
        key,
    };
    page::render(200, &page)
}

async fn audit_page(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let before = visit.query.get("before").parse().ok();
    let rows = visit.app.people.audit(None, before).await?;
    let page = AuditPage {
        shell: Shell::new(visit, "Audit log", "audit"),
        older: rows.last().map(|row| row.seq).filter(|seq| *seq > 1),
        lines: rows
            .into_iter()
            .map(|row| AuditLine {
                at: Moment::new(row.at, visit.now),
                who: row.who,
                action: row.action,
                subject: row.subject,
                detail: row.detail,
                address: row.address,
            })
            .collect(),
    };
    page::render(200, &page)
}

async fn maintenance(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let (accounts, actor) = (&visit.app.accounts, visit.actor()?);
    if visit.form.get("state") != "on" {
        accounts.set_maintenance(Maintenance::Off).await?;
        note(visit, &actor, Deed::MaintenanceOff, "").await?;
        return Ok(page::redirect("/console?done=maintenance-off"));
    }
    let minutes: u32 = visit.form.get("minutes").parse().unwrap_or(0);
    if !(1..=RETRY_AFTER_MIN_MAX).contains(&minutes) {
        let text = "Say in how many minutes clients should try again: 1 to 1440.";
        return Err(Trouble::Refused(text.to_owned()));
    }
    accounts.set_maintenance(Maintenance::On { retry_after_s: minutes * 60 }).await?;
    note(visit, &actor, Deed::MaintenanceOn, &format!("try again in {minutes} min")).await?;
    Ok(page::redirect("/console?done=maintenance-on"))
}

async fn note(visit: &Visit<'_>, actor: &Actor, deed: Deed, detail: &str) -> Result<(), Trouble> {
    Ok(visit.app.people.note(actor, deed, "service", detail).await?)
}

/// Addresses by account.
async fn emails(visit: &Visit<'_>) -> Result<HashMap<String, String>, Trouble> {
    let accounts = visit.app.people.accounts().await?;
    Ok(accounts.into_iter().map(|account| (account.id, account.email)).collect())
}

impl AccountLine {
    fn is_operator(&self) -> bool {
        self.role == Role::Operator.as_str()
    }
}
