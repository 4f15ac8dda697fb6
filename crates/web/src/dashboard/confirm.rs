//! Asking before something is done that others notice or that cannot be undone. The form that asks for it leads to a
//! page that says what will happen; the same form, sent from there, does it.
use askama::Template;
use http::Reply;

use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;

/// What is asked.
pub(crate) struct Question {
    /// Which entry of the navigation it belongs to.
    pub(crate) here: &'static str,
    pub(crate) heading: String,
    /// What will happen, a sentence each.
    pub(crate) points: Vec<String>,
    /// Fields of the form that are sent again.
    pub(crate) fields: &'static [&'static str],
    pub(crate) button: &'static str,
    /// Where to without doing it.
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

/// Whether the form comes from the page that asked.
pub(crate) fn is_confirmed(page_request: &PageRequest<'_>) -> bool {
    page_request.form.get("confirmed") == "yes"
}

/// The page that asks.
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
