//! `/docs`: the reference for people, rendered from the same value as `/openapi.json`.
//!
//! One page without scripts and without a request to anybody else. Rendered once for each service.

mod json;
mod markdown;
mod refusal;
mod render;
mod shape;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::context::Web;
use api::{ApiError, Asset, openapi};
use http::{Reply, Request};

const STYLE: &str = include_str!("docs/style.css");

/// The page may be styled by its own stylesheet, and nothing else.
const GUARD: [(&str, &str); 2] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "no-referrer"),
];

/// What was rendered so far.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    page: OnceLock<Asset>,
    style: OnceLock<Asset>,
}

/// The page itself.
pub fn page(web: &Web, request: &Request<'_>) -> Result<Reply, ApiError> {
    if let Some(page) = web.pages.page.get() {
        return Ok(page.reply(request));
    }
    let pages = &web.settings;
    let others: Vec<(&str, &str)> = [
        (pages.enabled && pages.board.is_some(), ("/board", "Board")),
        (pages.enabled && pages.status_page, ("/status", "Status")),
        (pages.enabled, ("/dashboard", "Dashboard")),
    ]
    .into_iter()
    .filter_map(|(there, link)| there.then_some(link))
    .collect();
    let html = render::page(&openapi::value(&web.api.catalogue), &others).map_err(|error| {
        tracing::error!(%error, "the page /docs cannot be rendered");
        ApiError::internal()
    })?;
    let page = || Asset::new("text/html; charset=utf-8", html).guarded(&GUARD);
    Ok(web.pages.page.get_or_init(page).reply(request))
}

/// Its stylesheet.
pub fn style(web: &Web, request: &Request<'_>) -> Reply {
    web.pages.style.get_or_init(|| Asset::new("text/css; charset=utf-8", STYLE)).reply(request)
}
