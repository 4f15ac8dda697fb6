//! The audit log: actor, action, time and address.

use ::accounts::{AuditAction, AuditFilter, AuditRecord};
use askama::Template;
use domain::Timestamp;

use crate::dashboard::form;
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::time_text::TimeText;
use http::Reply;

/// Maximum number of characters used of a search text.
const SEARCH_CHARS_MAX: usize = 200;

/// A line of the log as the pages show it.
pub(super) struct AuditLine {
    pub(super) at: TimeText,
    pub(super) who: String,
    pub(super) action: String,
    pub(super) subject: String,
    pub(super) detail: String,
    pub(super) address: String,
}

impl AuditLine {
    pub(super) fn new(row: AuditRecord, now: Timestamp) -> Self {
        Self {
            at: TimeText::new(row.at, now),
            who: row.who,
            action: row.action,
            subject: row.subject,
            detail: row.detail,
            address: row.address,
        }
    }
}

struct ActionChoice {
    name: &'static str,
    chosen: bool,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    lines: Vec<AuditLine>,
    query: String,
    actions: Vec<ActionChoice>,
    /// Link to the next older lines.
    older: Option<String>,
    /// True if these are not the newest.
    is_older: bool,
}

pub(super) async fn show(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let query: String = page_request.query.get("q").trim().chars().take(SEARCH_CHARS_MAX).collect();
    // Only known actions are searched for.
    let request = page_request.query.get("action");
    let action =
        AuditAction::ALL.into_iter().map(AuditAction::as_str).find(|name| *name == request);
    let filter = AuditFilter {
        account_id: None,
        action,
        text: (!query.is_empty()).then_some(query.as_str()),
        before: page_request.query.get("before").parse().ok(),
    };
    let rows = page_request.web.people.find_audit(&filter).await?;
    let full = rows.len() >= ::accounts::AUDIT_ROWS_MAX;
    let older = rows.last().filter(|_| full).map(|row| {
        let before = row.seq.to_string();
        let fields = [("q", query.as_str()), ("action", action.unwrap_or("")), ("before", &before)];
        format!("/console/audit{}", form::query(&fields))
    });
    let page = AuditPage {
        shell: Shell::new(page_request, "Audit log", "audit"),
        older,
        is_older: filter.before.is_some(),
        lines: rows.into_iter().map(|row| AuditLine::new(row, page_request.now)).collect(),
        actions: AuditAction::ALL
            .into_iter()
            .map(AuditAction::as_str)
            .map(|name| ActionChoice { name, chosen: Some(name) == action })
            .collect(),
        query,
    };
    page::render(200, &page)
}
