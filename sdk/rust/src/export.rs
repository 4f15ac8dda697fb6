//! Files of the archive, read in pieces: they may be larger than memory.

use std::fmt::{self, Display};
use std::sync::Arc;

use reqwest::Method;
use reqwest::header::{HeaderMap, LINK};

use crate::error::Result;
use crate::http::{RETRIED, Request, Response};
use crate::macros::parameters;
use crate::query::add;
use crate::reader::{Meta, Reader};

/// A file that is requested when it is opened.
#[must_use = "nothing is requested before it is opened"]
pub struct ExportRequest {
    reader: Arc<Reader>,
    path: String,
    query: String,
}

impl fmt::Debug for ExportRequest {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "ExportRequest({}{}{})", self.reader.http.url, self.path, self.query)
    }
}

impl ExportRequest {
    pub(crate) fn new(reader: &Arc<Reader>, path: String) -> Self {
        Self { reader: Arc::clone(reader), path, query: String::new() }
    }

    parameters! { lineage }

    /// Any parameter, by its name in the API.
    pub fn param(mut self, name: &str, value: impl Display) -> Self {
        add(&mut self.query, name, &value);
        self
    }

    /// Requests the file.
    ///
    /// # Errors
    /// There is no file for that day, the key may not read it, or no response arrives.
    pub async fn open(self) -> Result<Export> {
        let target = format!("{}{}", self.path, self.query);
        let headers = HeaderMap::new();
        let request = Request {
            method: &Method::GET,
            target: &target,
            headers: &headers,
            body: &[],
            retried: &RETRIED,
        };
        let body = self.reader.http.open(request).await?;
        let (status, headers) = (body.status().as_u16(), body.headers().clone());
        let head = Response { status, headers, body: Vec::new() };
        Ok(Export { reader: self.reader, meta: Meta::of(&head, false), head, body })
    }
}

/// A file that is being downloaded.
pub struct Export {
    reader: Arc<Reader>,
    meta: Meta,
    head: Response,
    body: reqwest::Response,
}

impl fmt::Debug for Export {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.debug_struct("Export").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl Export {
    /// The response's headers about itself and the key.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Its length in bytes.
    pub fn length(&self) -> Option<u64> {
        self.body.content_length()
    }

    /// The `lineage` of the day's next file; `None` for the last.
    pub fn next_lineage(&self) -> Option<u32> {
        let link = self.head.header(LINK.as_str())?;
        let (_, rest) = link.split_once("lineage=")?;
        let (number, _) = rest.split_once('>').filter(|(_, rest)| rest.contains("next"))?;
        number.parse().ok()
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The connection is lost before the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let timeout = self.reader.http.settings.timeout;
        self.reader.http.next_chunk(&mut self.body, timeout).await
    }
}
