//! Confirmation of actions that affect others or cannot be undone. The first form leads to a page that explains the
//! effect; the same form, submitted from that page, performs the action.
use askama::Template;
use http::Reply;

use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;

/// The action to confirm.
pub(crate) struct Question {
    /// Active entry of the navigation.
    pub(crate) here: &'static str,
    pub(crate) heading: String,
    /// Effects of the action, one sentence each.
    pub(crate) points: Vec<String>,
    /// Form fields to submit again.
    pub(crate) fields: &'static [&'static str],
    pub(crate) button: &'static str,
    /// Target of the cancel link.
    pub(crate) back: String,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    shell: Shell,
    heading: String,
    points: Vec<String>,
    action: String,
    fields: Vec<(&'static str, String)>,
    button: &'static str,
    back: String,
}

/// True if the form was submitted from the confirmation page.
pub(crate) fn is_confirmed(page_request: &PageRequest<'_>) -> bool {
    page_request.form.get("confirmed") == "yes"
}

/// Renders the confirmation page.
pub(crate) fn ask(page_request: &PageRequest<'_>, question: Question) -> Result<Reply, PageError> {
    let Question { here, heading, points, fields, button, back } = question;
    let sent_again = |name: &&'static str| (*name, page_request.form.get(name).to_owned());
    let page = ConfirmPage {
        shell: Shell::new(page_request, "Please confirm", here),
        heading,
        points,
        action: page_request.request.path.to_owned(),
        fields: fields.iter().map(sent_again).collect(),
        button,
        back,
    };
    page::render(200, &page)
}
