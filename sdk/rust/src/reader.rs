//! GET requests through the cache.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::{ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};

use crate::cache::{Cache, Entry};
use crate::error::Result;
use crate::http::{Http, RETRIED, Request, Response, packed};

/// Never cached: it reports the present state.
pub(crate) const STATUS: &str = "/v1/status";
/// Maximum number of digits of a count.
const DIGITS_MAX: usize = 18;

/// The metadata of a response and of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    pub request_id: Option<String>,
    pub etag: Option<String>,
    /// The response came from the cache: no request was made, or the server confirmed it with 304.
    pub from_cache: bool,
    /// Of the tightest quota.
    pub requests_remaining: Option<u64>,
    pub requests_used: Option<u64>,
    /// For odds, scores and events: the position of the response, for `since`.
    pub cursor: Option<String>,
}

impl Meta {
    pub(crate) fn of(response: &Response, from_cache: bool) -> Self {
        let text = |name| response.header(name).map(str::to_owned);
        let count = |name| {
            let text = response.header(name).filter(|text| text.len() <= DIGITS_MAX)?;
            text.parse().ok()
        };
        Self {
            request_id: text("x-request-id"),
            etag: text(ETAG.as_str()),
            from_cache,
            requests_remaining: count("x-requests-remaining"),
            requests_used: count("x-requests-used"),
            cursor: text("x-cursor"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) http: Http,
    pub(crate) cache: Option<Cache>,
}

impl Reader {
    /// The response for a path with its query, from the cache if possible.
    pub(crate) async fn get(&self, target: &str) -> Result<(Arc<Response>, Meta)> {
        let cache = self.cache.as_ref().filter(|_| target != STATUS);
        let held = cache.and_then(|cache| cache.get(target));
        let now = self.http.settings.clock.now();
        if let Some(held) = held.as_ref().filter(|held| held.is_fresh(now)) {
            return Ok((Arc::clone(&held.response), Meta::of(&held.response, true)));
        }
        let response = self.ask(target, held.as_ref()).await?;
        let is_unchanged = response.status == 304;
        let entry = match held {
            Some(held) if is_unchanged => Some(held.renewed(&response, now)),
            None if is_unchanged => {
                return Err(response.unexpected("answers a request without If-None-Match"));
            }
            Some(_) | None => None,
        };
        let response = entry.as_ref().map_or(response, |entry| Arc::clone(&entry.response));
        let entry = entry.or_else(|| Entry::of(Arc::clone(&response), now));
        if let (Some(cache), Some(entry)) = (cache, entry) {
            cache.put(target, entry);
        }
        let meta = Meta::of(&response, is_unchanged);
        Ok((response, meta))
    }

    /// The response for a path with its query, bypassing the cache.
    pub(crate) async fn fetch(&self, target: &str) -> Result<(Arc<Response>, Meta)> {
        let response = self.ask(target, None).await?;
        let meta = Meta::of(&response, false);
        Ok((response, meta))
    }

    async fn ask(&self, target: &str, held: Option<&Entry>) -> Result<Arc<Response>> {
        let mut headers: HeaderMap = packed();
        let etag = held.and_then(Entry::etag).and_then(|etag| HeaderValue::from_str(etag).ok());
        headers.extend(etag.map(|etag| (IF_NONE_MATCH, etag)));
        let request = Request {
            method: &Method::GET,
            target,
            headers: &headers,
            body: &[],
            retried: &RETRIED,
        };
        self.http.exchange(request).await.map(Arc::new)
    }
}
