//! Requests for production access.
use accounts::{AccessRecord, AccessState, PeopleError};
use askama::Template;
use http::Reply;

use crate::dashboard::page::{self, Notice, Shell};
use crate::dashboard::page_error::{self, PageError};
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::AccessAct;
use crate::dashboard::time_text::TimeText;

/// An access request as the pages show it.
pub(crate) struct RequestLine {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) who: String,
    pub(crate) purpose: String,
    pub(crate) created: TimeText,
    pub(crate) state: &'static str,
    pub(crate) decided: Option<TimeText>,
    pub(crate) note: Option<String>,
}

impl RequestLine {
    pub(crate) fn new(record: AccessRecord, page_request: &PageRequest<'_>) -> Self {
        Self {
            id: record.id,
            account_id: record.account_id,
            who: String::new(),
            purpose: record.purpose,
            created: TimeText::new(record.created_at, page_request.now),
            state: record.state.as_str(),
            decided: record.decided_at.map(|at| TimeText::new(at, page_request.now)),
            note: record.note,
        }
    }
}

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage {
    shell: Shell,
    since: Option<TimeText>,
    pending: bool,
    requests: Vec<RequestLine>,
    purpose: String,
}

pub(crate) async fn answer(
    page_request: &PageRequest<'_>,
    page: AccessAct,
) -> Result<Reply, PageError> {
    if page != AccessAct::RequestAccess {
        return show(page_request, None).await;
    }
    let purpose = page_request.form.get("purpose");
    match page_request
        .web
        .people
        .request_access(page_request.session()?, purpose, &page_request.origin)
        .await
    {
        Ok(()) => Ok(page::redirect("/dashboard/access?done=requested")),
        Err(error @ (PeopleError::BadPurpose | PeopleError::AlreadyRequested)) => {
            show(page_request, Some(Notice::bad(page_error::sentence(&error)))).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn show(page_request: &PageRequest<'_>, notice: Option<Notice>) -> Result<Reply, PageError> {
    let account = &page_request.session()?.account;
    let requests = page_request.web.people.access_requests(Some(&account.id)).await?;
    let status = if notice.is_some() { 400 } else { 200 };
    let page = AccessPage {
        shell: Shell::new(page_request, "Production access", "access").with(notice),
        since: account.production_since.map(|at| TimeText::new(at, page_request.now)),
        pending: requests.iter().any(|request| request.state == AccessState::Pending),
        requests: requests
            .into_iter()
            .map(|record| RequestLine::new(record, page_request))
            .collect(),
        purpose: page_request.form.get("purpose").to_owned(),
    };
    page::render(status, &page)
}
