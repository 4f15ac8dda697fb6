//! Something made once and served to anybody: a page, a stylesheet, the OpenAPI document.

use crate::answers::Answer;
use http::{Head, Reply, Request};

/// How long a browser may keep a page without asking whether it has changed, in seconds. A new version of
/// the service is seen soon, and a reader's clicks cost nothing.
const KEPT_S: u32 = 300;

/// A body with its encodings, its type and the headers that guard it.
#[derive(Debug)]
pub struct Asset {
    answer: Answer,
    content_type: &'static str,
    guard: &'static [(&'static str, &'static str)],
    kept: Kept,
}

/// For how long a browser may keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Awhile,
    /// Its address changes with its content, so that it never has to be asked for again.
    ForGood,
    /// It may be kept, and is asked for each time.
    Checked,
    /// It is somebody's own.
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

    /// Adds headers that tell a browser what the page may not do.
    #[must_use]
    pub fn guarded(mut self, guard: &'static [(&'static str, &'static str)]) -> Self {
        self.guard = guard;
        self
    }

    /// For what is served under an address that names its content.
    #[must_use]
    pub fn immutable(mut self) -> Self {
        self.kept = Kept::ForGood;
        self
    }

    /// For what anybody may keep, and asks for again each time.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.kept = Kept::Checked;
        self
    }

    /// For what is somebody's own.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.kept = Kept::Never;
        self
    }

    /// Packs the body ahead, the way that this client likes it.
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
