//! The last request of a connection. Polling clients repeat the same request, and the meaning of a target does not
//! change while the service runs, so it is parsed once.

use std::fmt;

use http::Request;

/// The last valid target of a connection, and its parsed form. It may contain a key and is never shown.
pub(crate) struct LastRequest<P>(Option<Box<Remembered<P>>>);

struct Remembered<P> {
    /// Path and query, with the question mark between.
    target: String,
    parsed: P,
}

impl<P> Default for LastRequest<P> {
    fn default() -> Self {
        Self(None)
    }
}

/// Maximum length of a kept target; a longer one is not worth its memory on every connection.
const TARGET_BYTES_MAX: usize = 256;

impl<P: Clone> LastRequest<P> {
    /// The parsed form, if the target is the same as last time.
    pub(crate) fn recall(&self, request: &Request<'_>) -> Option<&P> {
        self.parsed().filter(|_| self.is_again(request))
    }

    /// True if the target is the same as last time.
    pub(crate) fn is_again(&self, request: &Request<'_>) -> bool {
        // The path has no question mark, so the comparison is unambiguous.
        self.0.as_deref().is_some_and(|Remembered { target, .. }| {
            target.len() == request.path.len() + 1 + request.query.len()
                && target.starts_with(request.path)
                && target.ends_with(request.query)
        })
    }

    /// The parsed form of the last target.
    pub(crate) fn parsed(&self) -> Option<&P> {
        self.0.as_deref().map(|remembered| &remembered.parsed)
    }

    /// Keeps the parsed form of a target.
    pub(crate) fn learn(&mut self, request: &Request<'_>, parsed: &P) {
        if request.path.len() + request.query.len() > TARGET_BYTES_MAX {
            return;
        }
        let parsed = parsed.clone();
        let empty = || Box::new(Remembered { target: String::new(), parsed: parsed.clone() });
        let known = self.0.get_or_insert_with(empty);
        known.target.clear();
        for part in [request.path, "?", request.query] {
            known.target.push_str(part);
        }
        known.parsed = parsed;
    }
}

impl<P> fmt::Debug for LastRequest<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastRequest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_same_target_is_recalled() {
        let ask = |target| Request::new("GET", target);
        let parsed = "parsed";
        let mut last_request = LastRequest::default();
        assert!(last_request.recall(&ask("/v1/books")).is_none());
        last_request.learn(&ask("/v1/books?a=1"), &parsed);
        assert!(last_request.recall(&ask("/v1/books?a=1")).is_some());
        for other in ["/v1/books", "/v1/books?a=2", "/v1/books?a=11", "/v1/book?sa=1", "/v1/books?"]
        {
            assert!(last_request.recall(&ask(other)).is_none(), "{other}");
        }
        last_request.learn(&ask("/v1/books"), &parsed);
        assert!(last_request.recall(&ask("/v1/books?a=1")).is_none());
        assert!(last_request.recall(&ask("/v1/books")).is_some());
        let long = format!("/v1/books?a={}", "1".repeat(TARGET_BYTES_MAX));
        last_request.learn(&ask(&long), &parsed);
        assert!(last_request.recall(&ask(&long)).is_none());
    }
}
