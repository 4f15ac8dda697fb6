//! A body built once and served to all clients: a page, a stylesheet, the OpenAPI document.

use crate::answers::Answer;
use http::{Head, Reply, Request};

/// Time a browser may cache a page without revalidation, in seconds: short enough to show a new version soon, long
/// enough that following links costs no request.
const KEPT_S: u32 = 300;

/// A body with its encodings, its media type and its security headers.
#[derive(Debug)]
pub struct Asset {
    answer: Answer,
    content_type: &'static str,
    guard: &'static [(&'static str, &'static str)],
    kept: Kept,
}

/// How long a browser may cache the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Awhile,
    /// The address changes with the content, so it never has to be revalidated.
    ForGood,
    /// May be cached, but is revalidated for each request.
    Checked,
    /// Private to one user: never cached.
    Never,
}

impl Asset {
    pub fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            answer: Answer::new(body.into(), None),
            content_type,
            guard: &[],
            kept: Kept::Awhile,
        }
    }

    /// Adds security headers.
    #[must_use]
    pub fn guarded(mut self, guard: &'static [(&'static str, &'static str)]) -> Self {
        self.guard = guard;
        self
    }

    /// For content whose address is derived from it.
    #[must_use]
    pub fn immutable(mut self) -> Self {
        self.kept = Kept::ForGood;
        self
    }

    /// For content that any cache may store and must revalidate.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.kept = Kept::Checked;
        self
    }

    /// For content of one user.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.kept = Kept::Never;
        self
    }

    /// Compresses the body in advance, in the encoding that the client prefers.
    pub fn pack(&self, accept_encoding: Option<&[u8]>) {
        self.answer.encoded(accept_encoding);
    }

    pub fn reply(&self, request: &Request<'_>) -> Reply {
        let encoded = self.answer.encoded(request.accept_encoding.as_deref());
        let mut head = Head::default();
        head.put("etag", &encoded.etag);
        match self.kept {
            Kept::Awhile => head.put("cache-control", format!("public, max-age={KEPT_S}")),
            Kept::ForGood => head.put("cache-control", "public, max-age=31536000, immutable"),
            Kept::Checked => head.put("cache-control", "no-cache"),
            Kept::Never => head.put("cache-control", "no-store"),
        }
        head.put("vary", "Accept-Encoding");
        head.put("x-content-type-options", "nosniff");
        let rest = self.guard.iter().filter(|(name, _)| *name != "x-content-type-options");
        for (name, value) in rest {
            head.put(name, value);
        }
        if request.holds(&encoded.etag) {
            return Reply::empty(304, head);
        }
        head.put("content-type", self.content_type);
        encoded.put_encoding(&mut head);
        Reply { body: encoded.body.clone(), ..Reply::empty(200, head) }
    }
}
