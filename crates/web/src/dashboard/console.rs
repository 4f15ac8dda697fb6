//! The operators' console: overview, people and what they ask for, keys, feeds, events, the audit log, maintenance.

mod accounts;
mod audit;
mod feeds;
mod keys;
mod market;
mod overview;
mod traffic;

use std::collections::HashMap;

use ::accounts::{AccessDecision, Maintenance};
use askama::Template;

use crate::dashboard::access::RequestLine;
use crate::dashboard::confirm::{self, Question};
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::route::ConsoleAct;
use crate::dashboard::visit::Visit;
use http::Reply;
pub use market::written as operation_words;
pub(crate) use traffic::Traffic;

/// What `Retry-After` can be set to, in minutes: up to a day.
const RETRY_AFTER_MIN_MAX: u32 = 1440;

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage {
    shell: Shell,
    pending: Vec<RequestLine>,
    decided: Vec<RequestLine>,
}

pub(crate) async fn answer(visit: &Visit<'_>, page: ConsoleAct) -> Result<Reply, Trouble> {
    match page {
        ConsoleAct::People(page) => accounts::answer(visit, page).await,
        ConsoleAct::Requests => requests_page(visit).await,
        ConsoleAct::ApproveRequest => decide(visit, AccessDecision::Approve).await,
        ConsoleAct::RefuseRequest => decide(visit, AccessDecision::Refuse).await,
        ConsoleAct::AllKeys => keys::show(visit).await,
        ConsoleAct::CreateAnyKey => keys::create(visit).await,
        ConsoleAct::RevokeAnyKeyForm => keys::ask_revoke(visit).await,
        ConsoleAct::RevokeAnyKey => keys::revoke(visit).await,
        ConsoleAct::StreamsOfKeyForm => keys::ask_streams(visit).await,
        ConsoleAct::StreamsOfKey => keys::set_streams(visit).await,
        ConsoleAct::Feeds => feeds::show(visit, None).await,
        ConsoleAct::Feed => feeds::one(visit).await,
        ConsoleAct::CreateFeed => feeds::create(visit).await,
        ConsoleAct::RevokeFeed => feeds::revoke(visit).await,
        ConsoleAct::PauseFeed => feeds::pause(visit, true).await,
        ConsoleAct::ResumeFeed => feeds::pause(visit, false).await,
        ConsoleAct::ReadAdapter => feeds::read_adapter(visit).await,
        ConsoleAct::Market(page) => market::answer(visit, page).await,
        ConsoleAct::Audit => audit::show(visit).await,
        ConsoleAct::Maintenance => maintenance(visit).await,
        ConsoleAct::Console => overview::show(visit).await,
    }
}

async fn requests_page(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let people = emails(visit).await?;
    let requests = visit.web.people.access_requests(None).await?;
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
    visit.web.people.decide_access(visit.id, decision, note, &visit.actor()?).await?;
    Ok(page::redirect(match decision {
        AccessDecision::Approve => "/console/requests?done=approved",
        AccessDecision::Refuse => "/console/requests?done=refused",
    }))
}

async fn maintenance(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let accounts = &visit.web.api.accounts;
    if visit.form.get("state") != "on" {
        accounts.set_maintenance(Maintenance::Off, &visit.actor()?).await?;
        return Ok(page::redirect("/console?done=maintenance-off"));
    }
    let minutes: u32 = visit.form.get("minutes").parse().unwrap_or(0);
    if !(1..=RETRY_AFTER_MIN_MAX).contains(&minutes) {
        let text = "Say in how many minutes clients should try again: 1 to 1440.";
        return Err(Trouble::Refused(text.to_owned()));
    }
    if !confirm::is_confirmed(visit) {
        let keys = visit.web.api.accounts.keys.len();
        let question = Question {
            here: "console",
            heading: "Close the API for maintenance?".to_owned(),
            points: vec![
                format!(
                    "Every request to the API but /v1/status, with any of the {keys} active keys, is answered \
                     503 and asked to try again in {minutes} min."
                ),
                "It stays closed until an operator opens it here or with linesman maintenance off."
                    .to_owned(),
                "Feeds can still push; the board, the status page and this console stay open."
                    .to_owned(),
            ],
            fields: &["state", "minutes"],
            button: "Close the API",
            back: "/console".to_owned(),
        };
        return confirm::ask(visit, question);
    }
    let closed = Maintenance::On { retry_after_s: minutes * 60 };
    accounts.set_maintenance(closed, &visit.actor()?).await?;
    Ok(page::redirect("/console?done=maintenance-on"))
}

/// Addresses by account.
async fn emails(visit: &Visit<'_>) -> Result<HashMap<String, String>, Trouble> {
    let accounts = visit.web.people.accounts().await?;
    Ok(accounts.into_iter().map(|account| (account.id, account.email)).collect())
}
