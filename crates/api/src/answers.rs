//! Responses of one epoch: computed once for each selection and kept until the next snapshot (D14).
//!
//! They live as long as the snapshot they were computed from, so nothing is ever invalidated. A reply holds only the
//! bytes of a body: a slow client keeps no snapshot in memory.

mod answer_cache;
mod fragment_cache;
mod list;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use domain::{EventId, Format, SportId, Timestamp};
use market::BoutSelection;
use market::analysis::AnalysisSelection;
use market::coverage::{CoverageSelection, ExplainSelection};
use xxhash_rust::xxh3::xxh3_128;

use http::{Body, Encoding, FILE_BODY_BYTES_MIN, FileBody, Head};

pub(crate) use answer_cache::{Answers, Figures, HashedSelector, Missing, Ready};
pub(crate) use fragment_cache::{Fragment, FragmentCache, SportFragments};
pub(crate) use list::{CatalogueTerms, List};

use crate::v1::wire::path_selection::{ClosingSelection, PathSelection};
use crate::v4::selection::Selection;

/// A query of a snapshot, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    Sports,
    Books,
    List(List),
    Bouts(BoutSelection, Format),
    Event(SportId, EventId),
    Coverage(CoverageSelection),
    Explain(ExplainSelection),
    Analysis(Box<AnalysisSelection>, Format),
    /// Changes of a list since a position.
    Delta(Box<List>, (u64, u32)),
    /// A selection as CSV.
    Csv(Box<Selector>),
    V4(Selection),
    /// Price history of an event.
    Path(Box<PathSelection>),
    /// Closing lines.
    Closing(Box<ClosingSelection>),
}

impl Selector {
    /// True if computing the answer takes longer than a request thread may be occupied.
    pub(crate) fn is_slow(&self) -> bool {
        match self {
            Self::Analysis(..) | Self::Csv(_) => true,
            Self::List(List::Events(events)) => events.name.is_some(),
            Self::Sports
            | Self::Books
            | Self::List(List::Odds(..) | List::Scores(_))
            | Self::Bouts(..)
            | Self::Event(..)
            | Self::Coverage(_)
            | Self::Explain(_)
            | Self::Delta(..)
            | Self::Path(_)
            | Self::Closing(_)
            | Self::V4(_) => false,
        }
    }

    /// Heap memory of its list of events and its name.
    fn list_bytes(&self) -> usize {
        let events = match self {
            Self::Sports | Self::Books | Self::Event(..) | Self::Coverage(_) | Self::Explain(_) => {
                None
            }
            Self::Bouts(bouts, _) => bouts.events.as_ref(),
            Self::Analysis(analysis, _) => analysis.filter().events.as_ref(),
            Self::V4(selection) => selection.events.as_ref(),
            Self::List(list) => return list.bytes(),
            Self::Delta(list, _) => return size_of::<List>() + list.bytes(),
            Self::Csv(selector) => return size_of::<Self>() + selector.list_bytes(),
            Self::Path(_) => return size_of::<PathSelection>(),
            Self::Closing(closing) => closing.request.events.as_ref(),
        };
        events.map_or(0, |events| size_of_val(&**events))
    }
}

/// A body with its encodings, and the position of the next page.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Cursor of the next page.
    pub(crate) next: Option<Box<str>>,
    /// True if it has no price for the selection; the coverage gives the reason.
    pub(crate) empty: bool,
    /// Cost, if it depends on the content; 0 if there is no data.
    pub(crate) units: u32,
    pub(crate) content_type: &'static str,
    /// Header lines that identify its publication.
    publication: Head,
    /// Header line with the link to the next page, if it contains the whole request.
    next_line: OnceLock<Head>,
    identity: Encoded,
    zstd: OnceLock<Encoded>,
    brotli: OnceLock<Encoded>,
    gzip: OnceLock<Encoded>,
}

/// A body in one encoding, with its header lines.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) body: Body,
    pub(crate) etag: String,
    /// `etag`, `vary` and the lines of the publication; a 304 has them too.
    pub(crate) validators: Head,
    encoding: Encoding,
    file: OnceLock<Option<Arc<FileBody>>>,
}

/// Maximum length of a kept line; a longer one is written for each request.
const NEXT_LINE_BYTES_MAX: usize = 256;
/// Length of a tag with the name of its encoding and quotes.
const ETAG_BYTES: usize = 32;
/// Length of the lines that contain a tag.
const VALIDATORS_BYTES: usize = 80 + PUBLICATION_BYTES;
/// Length of the lines with a publication and a cursor.
const PUBLICATION_BYTES: usize = 80;

impl Answer {
    pub(crate) fn new(mut body: Vec<u8>, next: Option<String>) -> Self {
        // Kept bodies are counted by their length.
        body.shrink_to_fit();
        let content_hash = xxh3_128(&body);
        Self::hashed(content_hash, Body::Whole(Bytes::from(body)), next)
    }

    /// An answer whose body has a content hash already.
    ///
    /// The tag is derived from the hash, so it is the same on every node and across epochs without changes. Since the
    /// next page is only in a header, the tag also depends on whether there is one.
    pub(crate) fn hashed(content_hash: u128, body: Body, next: Option<String>) -> Self {
        let hash = content_hash ^ u128::from(next.is_some());
        let tag = BASE64URL_NOPAD.encode(&hash.to_be_bytes());
        Self {
            next: next.map(String::into_boxed_str),
            empty: false,
            units: 1,
            content_type: "application/json",
            publication: Head::default(),
            next_line: OnceLock::new(),
            identity: Encoded::new(body, &tag, Encoding::Identity, &Head::default()),
            zstd: OnceLock::new(),
            brotli: OnceLock::new(),
            gzip: OnceLock::new(),
        }
    }

    /// Adds the header lines that identify the publication and the cursor from which to read the next changes.
    #[must_use]
    pub(crate) fn of_publication(mut self, at: Timestamp, cursor: Option<&str>) -> Self {
        self.publication = Head::with_room(PUBLICATION_BYTES);
        self.publication.put_bytes("x-published-at", &at.millis_text());
        if let Some(cursor) = cursor {
            self.publication.put("x-cursor", cursor);
        }
        self.identity.validators.put_lines(&self.publication);
        self
    }

    pub(crate) fn noting_empty(mut self, empty: bool) -> Self {
        self.empty = empty;
        self
    }

    #[must_use]
    pub(crate) fn with_units(self, units: u32) -> Self {
        Self { units, ..self }
    }

    #[must_use]
    pub(crate) fn of_type(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }

    /// The line with the link to the next page, as written before for the same path and query.
    pub(crate) fn next_line(&self, path: &str, query: &str) -> Option<&Head> {
        self.next_line.get().filter(|line| leads_on(line, path, query))
    }

    /// Keeps that line for repeated requests. A line that omits parameters of the query is not kept, so that no API
    /// key is.
    pub(crate) fn keep_next_line(&self, line: Head, path: &str, query: &str) {
        if line.as_bytes().len() <= NEXT_LINE_BYTES_MAX && leads_on(&line, path, query) {
            self.next_line.get_or_init(|| line);
        }
    }

    /// The uncompressed body.
    pub(crate) fn body(&self) -> Bytes {
        self.identity.body.whole()
    }

    /// The best encoding that the client accepts, and the cell of the compressed body.
    fn cell(&self, accept_encoding: Option<&[u8]>) -> (Encoding, Option<&OnceLock<Encoded>>) {
        let encoding = Encoding::negotiate(accept_encoding, self.identity.body.len());
        let cell = match encoding {
            Encoding::Identity => None,
            Encoding::Zstd => Some(&self.zstd),
            Encoding::Brotli => Some(&self.brotli),
            Encoding::Gzip => Some(&self.gzip),
        };
        (encoding, cell)
    }

    /// True if [`encoded`](Self::encoded) does not have to compress the body.
    pub(crate) fn is_encoded(&self, accept_encoding: Option<&[u8]>) -> bool {
        self.cell(accept_encoding).1.is_none_or(|cell| cell.get().is_some())
    }

    /// The body in the best encoding that the client accepts; compressed on first use.
    pub(crate) fn encoded(&self, accept_encoding: Option<&[u8]>) -> &Encoded {
        let (encoding, Some(cell)) = self.cell(accept_encoding) else { return &self.identity };
        cell.get_or_init(|| {
            let tag = self.identity.etag.trim_matches('"');
            match encoding.encode(&self.identity.body.whole()) {
                Some(packed) => {
                    let packed = Body::Whole(Bytes::from(packed));
                    Encoded::new(packed, tag, encoding, &self.publication)
                }
                None => {
                    let plain = self.identity.body.clone();
                    Encoded::new(plain, tag, Encoding::Identity, &self.publication)
                }
            }
        })
    }

    fn body_bytes(&self) -> usize {
        self.identity.body.len()
    }
}

/// True if a line continues from a path and a query and contains all of them.
fn leads_on(line: &Head, path: &str, query: &str) -> bool {
    let mut rest = line.as_bytes();
    [b"link: <", path.as_bytes(), b"?", query.as_bytes(), b"&cursor="].into_iter().all(|part| {
        let stripped = rest.strip_prefix(part);
        rest = stripped.unwrap_or_default();
        stripped.is_some()
    })
}

impl Encoded {
    fn new(body: Body, tag: &str, encoding: Encoding, publication: &Head) -> Self {
        let mut etag = String::with_capacity(ETAG_BYTES);
        etag.extend(["\"", tag]);
        if encoding != Encoding::Identity {
            etag.extend(["-", encoding.token()]);
        }
        etag.push('"');
        let mut validators = Head::with_room(VALIDATORS_BYTES);
        validators.put_bytes("etag", etag.as_bytes());
        validators.put_bytes("vary", b"X-API-Key, Accept-Encoding");
        validators.put_lines(publication);
        Self { body, etag, validators, encoding, file: OnceLock::new() }
    }

    /// Appends the header that names the encoding, if there is one.
    pub(crate) fn put_encoding(&self, head: &mut Head) {
        if self.encoding != Encoding::Identity {
            head.put_bytes("content-encoding", self.encoding.token().as_bytes());
        }
    }

    /// The body as a file that the kernel can send by itself, if that is worth it; written on first use.
    pub(crate) fn file(&self, answers: &Answers) -> Option<Arc<FileBody>> {
        if self.body.len() < FILE_BODY_BYTES_MIN {
            return None;
        }
        self.file.get_or_init(|| answers.body_file()?.put(self.body.pieces())).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_tell_encodings_and_further_pages_apart() {
        let body = vec![b'x'; 1000];
        let whole = Answer::new(body.clone(), None);
        let tags: Vec<&str> = [None, Some("gzip"), Some("br"), Some("zstd")]
            .map(|accept| whole.encoded(accept.map(str::as_bytes)).etag.as_str())
            .into();
        let mut distinct = tags.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), tags.len(), "{tags:?}");
        assert_eq!(Answer::new(body, None).encoded(None).etag, whole.encoded(None).etag);
    }

    /// Tags are a persisted format: an answer as of a past time has the tag it had at that time. The expected values
    /// come from another implementation of XXH3 (python-xxhash).
    #[test]
    fn tags_are_what_they_always_were() {
        let tag = |body: &[u8], next: Option<&str>, accept: Option<&str>| {
            let answer = Answer::new(body.to_vec(), next.map(str::to_owned));
            answer.encoded(accept.map(str::as_bytes)).etag.clone()
        };
        let body = vec![b'x'; 1000];
        assert_eq!(tag(b"[]", None, None), "\"OTR_9AK2xT2DEVQRDjCsag\"");
        assert_eq!(tag(&body, None, None), "\"UKGvWl8tzwHApId7liy6gg\"");
        assert_eq!(tag(&body, Some("further"), None), "\"UKGvWl8tzwHApId7liy6gw\"");
        assert_eq!(tag(&body, None, Some("gzip")), "\"UKGvWl8tzwHApId7liy6gg-gzip\"");
        assert_eq!(tag(&body, None, Some("br")), "\"UKGvWl8tzwHApId7liy6gg-br\"");
        assert_eq!(tag(&body, None, Some("zstd")), "\"UKGvWl8tzwHApId7liy6gg-zstd\"");
    }

    #[test]
    fn the_line_to_the_next_page_is_kept_for_the_same_request_alone() {
        let line = |target: &str| {
            let mut line = Head::default();
            line.put("link", format!("<{target}cursor=c>; rel=\"next\""));
            line
        };
        let kept = Answer::new(b"[]".to_vec(), Some("c".to_owned()));
        // Without a query, or if parameters are omitted, the line does not contain the whole request.
        kept.keep_next_line(line("/a?"), "/a", "");
        kept.keep_next_line(line("/a?b=1&"), "/a", "b=1&api_key=k");
        let long = format!("b={}", "1".repeat(NEXT_LINE_BYTES_MAX));
        kept.keep_next_line(line(&format!("/a?{long}&")), "/a", &long);
        assert!(kept.next_line.get().is_none());
        kept.keep_next_line(line("/a?b=1&c=2&"), "/a", "b=1&c=2");
        assert!(kept.next_line("/a", "b=1&c=2").is_some());
        for (path, query) in
            [("/a", "b=1"), ("/a", "b=1&c=2&cursor=c"), ("/a", "c=2&b=1"), ("/a?b=1&c=2", "")]
        {
            assert!(kept.next_line(path, query).is_none(), "{path} {query}");
        }
    }
}
