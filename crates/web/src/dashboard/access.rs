//! Asking for production access.
use accounts::{AccessRecord, AccessState, PeopleError};
use askama::Template;
use http::Reply;

use crate::dashboard::moment::Moment;
use crate::dashboard::page::{self, Notice, Shell, Trouble};
use crate::dashboard::route::AccessAct;
use crate::dashboard::visit::Visit;

/// A request as the pages show it.
pub(crate) struct RequestLine {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) who: String,
    pub(crate) purpose: String,
    pub(crate) created: Moment,
    pub(crate) state: &'static str,
    pub(crate) decided: Option<Moment>,
    pub(crate) note: Option<String>,
}

impl RequestLine {
    pub(crate) fn new(record: AccessRecord, visit: &Visit<'_>) -> Self {
        Self {
            id: record.id,
            account_id: record.account_id,
            who: String::new(),
            purpose: record.purpose,
            created: Moment::new(record.created_at, visit.now),
            state: record.state.as_str(),
            decided: record.decided_at.map(|at| Moment::new(at, visit.now)),
            note: record.note,
        }
    }
}

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage {
    shell: Shell,
    since: Option<Moment>,
    pending: bool,
    requests: Vec<RequestLine>,
    purpose: String,
}

pub(crate) async fn answer(visit: &Visit<'_>, page: AccessAct) -> Result<Reply, Trouble> {
    if page != AccessAct::RequestAccess {
        return show(visit, None).await;
    }
    let purpose = visit.form.get("purpose");
    match visit.web.people.request_access(visit.session()?, purpose, &visit.origin).await {
        Ok(()) => Ok(page::redirect("/dashboard/access?done=requested")),
        Err(error @ (PeopleError::BadPurpose | PeopleError::AlreadyRequested)) => {
            show(visit, Some(Notice::bad(page::sentence(&error)))).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn show(visit: &Visit<'_>, notice: Option<Notice>) -> Result<Reply, Trouble> {
    let account = &visit.session()?.account;
    let requests = visit.web.people.access_requests(Some(&account.id)).await?;
    let status = if notice.is_some() { 400 } else { 200 };
    let page = AccessPage {
        shell: Shell::new(visit, "Production access", "access").with(notice),
        since: account.production_since.map(|at| Moment::new(at, visit.now)),
        pending: requests.iter().any(|request| request.state == AccessState::Pending),
        requests: requests.into_iter().map(|record| RequestLine::new(record, visit)).collect(),
        purpose: visit.form.get("purpose").to_owned(),
    };
    page::render(status, &page)
}
