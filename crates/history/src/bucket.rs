//! An archive in a bucket: any store that speaks S3 and refuses to create an object that exists already.
//!
//! Four requests are used: GET (also of a range), PUT (also with `If-None-Match`), LIST and DELETE. They run on a
//! thread of their own, so that callers that block need no runtime. Each is bounded in time and size; what may be done
//! again is tried three times. A bucket that does not answer is left alone for some seconds, in which calls fail at
//! once.

mod client;
mod listing;
mod sign;
mod worker;

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sha2::{Digest, Sha256};

pub use sign::Credentials;

use crate::durable::{count, hex, nonce};
use crate::error::ArchiveError;
use crate::object::Object;
use client::{Answer, Ask, Client, Payload};
use listing::Page;

/// What an answer that is no file may have.
const ANSWER_MAX: u64 = 8 << 20;
/// Pages of a list, of a thousand objects each.
const PAGES_MAX: usize = 10_000;
/// Tries of a conditional write that met another one.
const CONFLICTS_MAX: usize = 5;

/// Where a bucket is, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOptions {
    pub bucket: String,
    /// What the names of all objects begin with; no slash at its ends.
    pub prefix: String,
    /// Scheme and host, such as `https://s3.eu-central-1.amazonaws.com`.
    pub endpoint: String,
    pub region: String,
    pub credentials: Credentials,
    /// A folder for large files on their way into the bucket.
    pub spool: PathBuf,
}

impl BucketOptions {
    /// Bucket and prefix of an address such as `s3://odds/archive`; `None`: it is no such address.
    pub fn parse_address(text: &str) -> Option<(String, String)> {
        let rest = text.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let of_bucket =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let of_prefix = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\');
        let named = (3..=63).contains(&bucket.len()) && bucket.bytes().all(of_bucket);
        let whole = |part: &str| !matches!(part, "" | "." | "..");
        let nested = prefix.is_empty() || prefix.split('/').all(whole);
        let short = prefix.len() <= 512 && prefix.bytes().all(of_prefix);
        (named && whole(bucket) && nested && short).then(|| (bucket.to_owned(), prefix.to_owned()))
    }

    pub(crate) fn join(&self, name: &str) -> Self {
        let prefix = match &*self.prefix {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        };
        Self { prefix, ..self.clone() }
    }
}

impl fmt::Display for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

/// The files of an archive in a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: BucketOptions,
    client: Result<Client, String>,
    /// When objects were last listed to be deleted.
    cleaned: Mutex<Option<Instant>>,
}

impl Bucket {
    pub(crate) fn new(options: BucketOptions) -> Self {
        let client = Client::new(&options);
        Self(Arc::new(Inner { options, client, cleaned: Mutex::default() }))
    }

    pub(crate) fn options(&self) -> &BucketOptions {
        &self.0.options
    }

    /// Makes sure that an object is created only once.
    pub(crate) fn prepare(&self, folder: &str) -> Result<(), ArchiveError> {
        let probe = format!("{folder}/probe-{}.tmp", nonce());
        let not_exclusive = || ArchiveError::BucketNotExclusive(self.0.options.to_string());
        let payload = || Payload::from(Bytes::from_static(b"probe"));
        let put = || Ask::put_new(self.key(&probe), payload());
        let mut first = self.send(put())?;
        if matches!(first.status, 400..=499) && !is_taken(first.status) {
            // Is it the condition that it does not take?
            let plain = self.send(Ask::put(self.key(&probe), payload()))?;
            if plain.status != 200 {
                return Err(self.refused(&probe, &first));
            }
            self.remove(&probe)?;
            first = self.send(put())?;
        }
        match first.status {
            200 => {}
            // It was created by a try whose answer was lost.
            status if is_taken(status) => {}
            // It does not know the condition, and says so.
            400..=499 | 501 => return Err(not_exclusive()),
            _ => return Err(self.refused(&probe, &first)),
        }
        let second = self.send(put());
        self.remove(&probe)?;
        match second?.status {
            status if is_taken(status) => Ok(()),
            _ => Err(not_exclusive()),
        }
    }

    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> Result<Bytes, ArchiveError> {
        let answer = self.send(Ask::get(self.key(name), bytes_max))?;
        match answer.status {
            200 => Ok(answer.body),
            _ => Err(self.refused(name, &answer)),
        }
    }

    /// Reads a part of an object that has `length` bytes.
    pub(crate) fn read_range(
        &self,
        name: &str,
        range: Range<u64>,
        length: u64,
    ) -> Result<Bytes, ArchiveError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let wanted = range.end - range.start;
        let answer = self.send(Ask::get_range(self.key(name), range.clone()))?;
        let whole = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        match answer.status {
            206 if answer.range.as_deref() == Some(&*whole)
                && count(answer.body.len()) == wanted =>
            {
                Ok(answer.body)
            }
            // Some answer the whole for all of it.
            200 if range == (0..length) && count(answer.body.len()) == length => Ok(answer.body),
            200 | 206 | 416 => {
                let (path, reason) = (name.to_owned(), "it has another length");
                Err(ArchiveError::Damaged { path, reason })
            }
            _ => Err(self.refused(name, &answer)),
        }
    }

    /// Creates an object, unless it exists, and says whether it did.
    pub(crate) fn create_new(&self, name: &str, bytes: &[u8]) -> Result<bool, ArchiveError> {
        let bytes = Bytes::copy_from_slice(bytes);
        let mut tries = 0;
        loop {
            let put = Ask::put_new(self.key(name), Payload::from(bytes.clone()));
            let answer = self.send(put)?;
            tries += 1;
            match answer.status {
                200 => return Ok(true),
                412 => {
                    // It may have been made by a try whose answer was lost.
                    return Ok(self.read(name, count(bytes.len()).max(ANSWER_MAX))? == bytes);
                }
                // Another one is being made at the moment: who wins is known when it is tried again.
                409 if tries < CONFLICTS_MAX => {}
                _ => return Err(self.refused(name, &answer)),
            }
        }
    }

    pub(crate) fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.put(name, Payload::from(Bytes::copy_from_slice(bytes)))
    }

    /// Writes an object from what was collected in memory or in a file.
    pub(crate) fn put_spooled(
        &self,
        name: &str,
        spooled: Spooled,
        (bytes, sha256): (u64, &str),
    ) -> Result<(), ArchiveError> {
        let payload = match spooled {
            Spooled::Memory(held) => Payload::Memory(held.into(), sha256.to_owned()),
            Spooled::File(file) => Payload::File(Arc::new(file), bytes, sha256.to_owned()),
        };
        self.put(name, payload)
    }

    fn put(&self, name: &str, payload: Payload) -> Result<(), ArchiveError> {
        let answer = self.send(Ask::put(self.key(name), payload))?;
        match answer.status {
            200 => Ok(()),
            _ => Err(self.refused(name, &answer)),
        }
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        let answer = self.send(Ask::delete(self.key(name)))?;
        match answer.status {
            200 | 204 | 404 => Ok(()),
            _ => Err(self.refused(name, &answer)),
        }
    }

    /// All objects whose names begin so, without the prefix of the archive.
    pub(crate) fn list(&self, begin: &str) -> Result<Vec<Object>, ArchiveError> {
        let root = self.key("");
        let prefix = format!("{root}{begin}");
        let (mut objects, mut next) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let answer = self.send(Ask::list(&prefix, next.as_deref(), ANSWER_MAX))?;
            if answer.status != 200 {
                return Err(self.refused(begin, &answer));
            }
            let page = std::str::from_utf8(&answer.body).ok().and_then(Page::parse);
            let page = page.ok_or_else(|| self.failed("its list of objects cannot be read"))?;
            objects.extend(page.objects.into_iter().filter_map(|object| {
                let name = object.key.strip_prefix(&root)?.to_owned();
                Some(Object { name, modified_ms: object.modified.as_millis() })
            }));
            next = page.next;
            if next.is_none() {
                return Ok(objects);
            }
        }
        Err(self.failed("it lists too many objects"))
    }

    /// Whether objects are to be listed again to delete some, which costs money: not more often than this.
    pub(crate) fn is_clean_due(&self, every: Duration) -> bool {
        let mut cleaned = self.0.cleaned.lock().unwrap_or_else(PoisonError::into_inner);
        let due = cleaned.is_none_or(|cleaned| cleaned.elapsed() >= every);
        if due {
            *cleaned = Some(Instant::now());
        }
        due
    }

    fn key(&self, name: &str) -> String {
        match &*self.0.options.prefix {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        }
    }

    fn send(&self, ask: Ask) -> Result<Answer, ArchiveError> {
        let client = self.0.client.as_ref().map_err(|why| self.failed(why))?;
        client.send(ask).map_err(|why| self.failed(&why))
    }

    fn refused(&self, name: &str, answer: &Answer) -> ArchiveError {
        let code = std::str::from_utf8(&answer.body).ok().and_then(listing::refusal);
        if answer.status == 404 && code.as_deref() == Some("NoSuchKey") {
            return ArchiveError::Absent { path: name.to_owned() };
        }
        let code = code.map(|code| format!(" {code}")).unwrap_or_default();
        self.failed(&format!("it answers {}{code} for `{name}`", answer.status))
    }

    fn failed(&self, reason: &str) -> ArchiveError {
        ArchiveError::Bucket { bucket: self.0.options.to_string(), reason: reason.to_owned() }
    }
}

/// Whether an object was not created because it exists, or is being created.
const fn is_taken(status: u16) -> bool {
    matches!(status, 409 | 412)
}

/// What was collected for an object.
#[derive(Debug)]
pub(crate) enum Spooled {
    Memory(Vec<u8>),
    File(File),
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        let sha256 = hex(&Sha256::digest(&bytes));
        Self::Memory(bytes, sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_a_prefix() {
        let parsed = |text| BucketOptions::parse_address(text);
        let is = |bucket: &str, prefix: &str| Some((bucket.to_owned(), prefix.to_owned()));
        assert_eq!(parsed("s3://odds"), is("odds", ""));
        assert_eq!(parsed("s3://odds/"), is("odds", ""));
        assert_eq!(parsed("s3://odds.example/live/a=b/"), is("odds.example", "live/a=b"));
        for bad in [
            "odds",
            "s3:/odds",
            "s3://",
            "s3://od",
            "s3://..../..",
            "s3://odds/a//b",
            "s3://odds/../x",
            "s3://odds/a?b",
            "s3://ödds",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
