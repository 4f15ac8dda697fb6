//! Cached responses: within `max-age` they need no request, after that they are revalidated by `ETag`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{CACHE_CONTROL, ETAG};

use crate::http::Response;

const RESPONSES_MAX: usize = 128;
const BYTES_MAX: usize = 32 << 20;
/// Maximum number of digits of `max-age`; nothing is cached for longer.
const MAX_AGE_DIGITS_MAX: usize = 9;

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) response: Arc<Response>,
    fresh_until: Duration,
}

impl Entry {
    /// A response to cache; `None` if its server forbids it or it could never be used.
    pub(crate) fn of(response: Arc<Response>, now: Duration) -> Option<Self> {
        let control = response.header(CACHE_CONTROL.as_str()).unwrap_or_default();
        if control.to_ascii_lowercase().contains("no-store") {
            return None;
        }
        let fresh_until = now + max_age(control);
        let entry = Self { response, fresh_until };
        (entry.etag().is_some() || entry.is_fresh(now)).then_some(entry)
    }

    /// This response after a 304: the same body, with the headers of the 304.
    pub(crate) fn renewed(&self, unchanged: &Response, now: Duration) -> Self {
        let mut response = Response::clone(&self.response);
        for (name, value) in &unchanged.headers {
            response.headers.insert(name, value.clone());
        }
        let control = unchanged.header(CACHE_CONTROL.as_str()).unwrap_or_default();
        Self { fresh_until: now + max_age(control), response: Arc::new(response) }
    }

    pub(crate) fn etag(&self) -> Option<&str> {
        self.response.header(ETAG.as_str())
    }

    pub(crate) fn is_fresh(&self, now: Duration) -> bool {
        now < self.fresh_until
    }
}

fn max_age(cache_control: &str) -> Duration {
    let digits = cache_control.split(',').find_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        name.eq_ignore_ascii_case("max-age").then_some(value)
    });
    let seconds = digits.filter(|text| text.len() <= MAX_AGE_DIGITS_MAX);
    Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// The responses of one client, by URL: a client has one key. The least recently used response is removed first.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<String, (Entry, u64)>,
    bytes: usize,
    /// Number of uses.
    uses: u64,
}

impl Cache {
    pub(crate) fn get(&self, url: &str) -> Option<Entry> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let (entry, used) = kept.entries.get_mut(url)?;
        *used = now;
        Some(entry.clone())
    }

    pub(crate) fn put(&self, url: &str, entry: Entry) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(url);
        if entry.response.body.len() > BYTES_MAX {
            return;
        }
        kept.uses += 1;
        kept.bytes += entry.response.body.len();
        let now = kept.uses;
        kept.entries.insert(url.to_owned(), (entry, now));
        while kept.entries.len() > RESPONSES_MAX || kept.bytes > BYTES_MAX {
            let oldest = kept.entries.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(url, _)| url.clone()) else { return };
            kept.remove(&oldest);
        }
    }
}

impl Kept {
    fn remove(&mut self, url: &str) {
        if let Some((entry, _)) = self.entries.remove(url) {
            self.bytes -= entry.response.body.len();
        }
    }
}
