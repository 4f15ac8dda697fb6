//! The operators' console: overview, people and what they ask for, keys, feeds, events, the audit log, maintenance.

mod accounts;
mod audit;
mod feeds;
mod keys;
mod market;
mod overview;
pub(crate) mod traffic;

use std::collections::HashMap;

use ::accounts::{AccessDecision, Maintenance};
use askama::Template;

use crate::dashboard::access::RequestLine;
use crate::dashboard::confirm::{self, Question};
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::ConsoleAct;
use http::Reply;
pub use market::written as operation_words;

/// Maximum value of `Retry-After` that can be set, in minutes: one day.
const RETRY_AFTER_MIN_MAX: u32 = 1440;

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage {
    shell: Shell,
    pending: Vec<RequestLine>,
    decided: Vec<RequestLine>,
}

pub(crate) async fn answer(
    page_request: &PageRequest<'_>,
    page: ConsoleAct,
) -> Result<Reply, PageError> {
    match page {
        ConsoleAct::People(page) => accounts::answer(page_request, page).await,
        ConsoleAct::Requests => requests_page(page_request).await,
        ConsoleAct::ApproveRequest => decide(page_request, AccessDecision::Approve).await,
        ConsoleAct::RefuseRequest => decide(page_request, AccessDecision::Refuse).await,
        ConsoleAct::AllKeys => keys::show(page_request).await,
        ConsoleAct::CreateAnyKey => keys::create(page_request).await,
        ConsoleAct::RevokeAnyKeyForm => keys::ask_revoke(page_request).await,
        ConsoleAct::RevokeAnyKey => keys::revoke(page_request).await,
        ConsoleAct::StreamsOfKeyForm => keys::ask_streams(page_request).await,
        ConsoleAct::StreamsOfKey => keys::set_streams(page_request).await,
        ConsoleAct::Feeds => feeds::show(page_request, None).await,
        ConsoleAct::Feed => feeds::one(page_request).await,
        ConsoleAct::CreateFeed => feeds::create(page_request).await,
        ConsoleAct::RevokeFeed => feeds::revoke(page_request).await,
        ConsoleAct::PauseFeed => feeds::pause(page_request, true).await,
        ConsoleAct::ResumeFeed => feeds::pause(page_request, false).await,
        ConsoleAct::ReadAdapter => feeds::read_adapter(page_request).await,
        ConsoleAct::Market(page) => market::answer(page_request, page).await,
        ConsoleAct::Audit => audit::show(page_request).await,
        ConsoleAct::Maintenance => maintenance(page_request).await,
        ConsoleAct::Console => overview::show(page_request).await,
    }
}

async fn requests_page(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let people = emails(page_request).await?;
    let requests = page_request.web.people.access_requests(None).await?;
    let lines = requests.into_iter().map(|record| {
        let mut line = RequestLine::new(record, page_request);
        line.who = people.get(&line.account_id).cloned().unwrap_or_else(|| line.account_id.clone());
        line
    });
    let (pending, decided) = lines.partition(|line| line.state == "pending");
    let shell = Shell::new(page_request, "Access requests", "requests");
    page::render(200, &RequestsPage { shell, pending, decided })
}

async fn decide(
    page_request: &PageRequest<'_>,
    decision: AccessDecision,
) -> Result<Reply, PageError> {
    let note = page_request.form.get("note");
    page_request
        .web
        .people
        .decide_access(page_request.id, decision, note, &page_request.actor()?)
        .await?;
    Ok(page::redirect(match decision {
        AccessDecision::Approve => "/console/requests?done=approved",
        AccessDecision::Refuse => "/console/requests?done=refused",
    }))
}

async fn maintenance(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let accounts = &page_request.web.api.accounts;
    if page_request.form.get("state") != "on" {
        accounts.set_maintenance(Maintenance::Off, &page_request.actor()?).await?;
        return Ok(page::redirect("/console?done=maintenance-off"));
    }
    let minutes: u32 = page_request.form.get("minutes").parse().unwrap_or(0);
    if !(1..=RETRY_AFTER_MIN_MAX).contains(&minutes) {
        let text = "Say in how many minutes clients should try again: 1 to 1440.";
        return Err(PageError::Refused(text.to_owned()));
    }
    if !confirm::is_confirmed(page_request) {
        let keys = page_request.web.api.accounts.keys.len();
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
        return confirm::ask(page_request, question);
    }
    let closed = Maintenance::On { retry_after_s: minutes * 60 };
    accounts.set_maintenance(closed, &page_request.actor()?).await?;
    Ok(page::redirect("/console?done=maintenance-on"))
}

/// Addresses by account.
async fn emails(page_request: &PageRequest<'_>) -> Result<HashMap<String, String>, PageError> {
    let accounts = page_request.web.people.accounts().await?;
    Ok(accounts.into_iter().map(|account| (account.id, account.email)).collect())
}
