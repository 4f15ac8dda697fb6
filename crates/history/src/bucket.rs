//! An archive in a bucket: any store that supports S3 and refuses to create an existing object.
//!
//! `object_store` builds, signs and repeats the requests; this module adds the rest. Requests run on a separate thread,
//! so that blocking callers need no runtime. Each is bounded in time and size, and tried three times at most. A bucket
//! that does not answer gets no requests for some seconds, in which calls fail at once.

mod transport;
mod upload;
mod worker;

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, Extensions, GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _,
    PutMode, RetryConfig,
};

pub(crate) use upload::Upload;

use crate::durable::{count, nonce};
use crate::error::ArchiveError;
use crate::object::Object;
use transport::{Again, BytesMax, Failure, Transport};
use worker::Worker;

/// Maximum retries of a request, and the pauses before them. The last retry starts within this time.
const RETRIES_MAX: usize = 2;
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_millis(400);
const RETRY_TIME: Duration = Duration::from_secs(60);
/// Maximum number of pages of a list, of a thousand objects each.
const PAGES_MAX: usize = 10_000;
/// Maximum number of objects in a list.
const OBJECTS_MAX: usize = PAGES_MAX * 1000;
/// Maximum number of attempts of a conditional write that conflicts with another one.
const CONFLICTS_MAX: usize = 5;
/// Time without requests to a bucket that does not answer.
const LEFT_ALONE: Duration = Duration::from_secs(3);

/// Location and credentials of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOptions {
    pub bucket: String,
    /// Prefix of the names of all objects, without slashes at its ends.
    pub prefix: String,
    /// Scheme and host, such as `https://s3.eu-central-1.amazonaws.com`.
    pub endpoint: String,
    pub region: String,
    pub credentials: Credentials,
}

/// Credentials of requests. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// For temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

impl BucketOptions {
    /// Bucket and prefix of an address such as `s3://odds/archive`; `None` if it is not such an address.
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
    /// The end of the time without requests, and the reason for it.
    down: Mutex<Option<(Instant, String)>>,
    /// Time at which objects were last listed for deletion.
    cleaned: Mutex<Option<Instant>>,
    /// Failed uploads that are still to be deleted, because the bucket did not answer.
    left: Mutex<Vec<upload::Left>>,
}

struct Client {
    store: AmazonS3,
    worker: Worker,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    fn new(options: &BucketOptions) -> Result<Self, String> {
        let transport = Transport::new().map_err(|failure| failure.to_string())?;
        let backoff =
            BackoffConfig { init_backoff: PAUSE, max_backoff: PAUSE_MAX, ..Default::default() };
        let (max_retries, retry_timeout) = (RETRIES_MAX, RETRY_TIME);
        let mut builder = AmazonS3Builder::new()
            .with_http_connector(transport)
            .with_retry(RetryConfig { backoff, max_retries, retry_timeout })
            .with_endpoint(&options.endpoint)
            .with_region(&options.region)
            .with_bucket_name(&options.bucket)
            // Some stores do not support deleting many objects at once.
            .with_disable_bulk_delete(true)
            .with_access_key_id(&options.credentials.access_key_id)
            .with_secret_access_key(&options.credentials.secret_access_key);
        if let Some(token) = &options.credentials.session_token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { store, worker: Worker::start()? })
    }
}

impl Bucket {
    pub(crate) fn new(options: BucketOptions) -> Self {
        let client = Client::new(&options);
        let (down, cleaned, left) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { options, client, down, cleaned, left }))
    }

    /// Ensures that an object can be created only once.
    pub(crate) fn prepare(&self, folder: &str) -> Result<(), ArchiveError> {
        let probe = format!("{folder}/probe-{}.tmp", nonce());
        let not_exclusive = || ArchiveError::BucketNotExclusive(self.0.options.to_string());
        let put = |mode| self.put(&probe, Bytes::from_static(b"probe"), mode);
        let first = match put(PutMode::Create) {
            Err(error) if matches!(refusal(&error), Some(400..=499)) => {
                // Finds out whether the store rejects the condition or every request.
                if put(PutMode::Overwrite).is_err() {
                    return Err(self.failed(&probe, &error));
                }
                self.remove(&probe)?;
                put(PutMode::Create)
            }
            first => first,
        };
        match first {
            // An attempt whose answer was lost may have created it.
            Ok(()) | Err(Error::AlreadyExists { .. }) => {}
            // It reports that it does not support the condition.
            Err(error) if matches!(refusal(&error), Some(400..=499 | 501)) => {
                return Err(not_exclusive());
            }
            Err(error) => return Err(self.failed(&probe, &error)),
        }
        let second = put(PutMode::Create);
        self.remove(&probe)?;
        match second {
            Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) if refusal(&error).is_none() => Err(self.failed(&probe, &error)),
            Ok(()) | Err(_) => Err(not_exclusive()),
        }
    }

    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> Result<Bytes, ArchiveError> {
        let (_, bytes) = self.get(name, None, bytes_max)?;
        Ok(bytes)
    }

    /// Reads a range of an object that has `length` bytes.
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
        match self.get(name, Some(GetRange::Bounded(range)), wanted)? {
            (held, bytes) if held == length && count(bytes.len()) == wanted => Ok(bytes),
            _ => Err(other_length(name)),
        }
    }

    /// Length of an object, and its requested bytes.
    fn get(
        &self,
        name: &str,
        range: Option<GetRange>,
        bytes_max: u64,
    ) -> Result<(u64, Bytes), ArchiveError> {
        let mut extensions = Extensions::new();
        extensions.insert(BytesMax(bytes_max));
        let options = GetOptions { range, extensions, ..GetOptions::default() };
        let got = self.ask(name, |store, path| async move {
            let answer = store.get_opts(&path, options).await?;
            Ok((answer.meta.size, answer.bytes().await?))
        });
        got.map_err(|error| match refusal(&error) {
            // It ends before the requested range.
            Some(416) => other_length(name),
            _ => self.failed(name, &error),
        })
    }

    /// Creates an object, unless it exists, and returns whether it did.
    pub(crate) fn create_new(&self, name: &str, bytes: &[u8]) -> Result<bool, ArchiveError> {
        let bytes = Bytes::copy_from_slice(bytes);
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.put(name, bytes.clone(), PutMode::Create) {
                Ok(()) => return Ok(true),
                Err(error) => error,
            };
            if !matches!(error, Error::AlreadyExists { .. }) {
                return Err(self.failed(name, &error));
            }
            match self.read(name, count(bytes.len())) {
                // Another one is being created at the moment: the next attempt shows which one won.
                Err(ArchiveError::Absent { .. }) if tries < CONFLICTS_MAX => {}
                Err(ArchiveError::Absent { .. }) => return Err(self.failed(name, &error)),
                // An attempt whose answer was lost may have created it.
                read => return Ok(read? == bytes),
            }
        }
    }

    pub(crate) fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let put = self.put(name, Bytes::copy_from_slice(bytes), PutMode::Overwrite);
        put.map_err(|error| self.failed(name, &error))
    }

    fn put(&self, name: &str, bytes: Bytes, mode: PutMode) -> Result<(), Error> {
        self.ask(name, |store, path| async move {
            store.put_opts(&path, bytes.into(), mode.into()).await.map(drop)
        })
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        match self.ask(name, |store, path| async move { store.delete(&path).await }) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    /// All objects whose names start with `begin`, without the prefix of the archive.
    pub(crate) fn list(&self, begin: &str) -> Result<Vec<Object>, ArchiveError> {
        let root = self.key("");
        let (mut objects, mut page_token): (Vec<Object>, Option<String>) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let prefix = format!("{root}{begin}");
            let token = page_token.clone();
            let options = PaginatedListOptions { page_token: token, ..Default::default() };
            let page = self.ask(begin, |store, _| async move {
                store.list_paginated(Some(&prefix), options).await
            });
            let page = page.map_err(|error| self.failed(begin, &error))?;
            objects.extend(page.result.objects.into_iter().filter_map(|object| {
                let name = object.location.as_ref().strip_prefix(&root)?.to_owned();
                Some(Object { name, modified_ms: object.last_modified.timestamp_millis() })
            }));
            match page.page_token {
                None => return Ok(objects),
                // It would list the same again and again.
                next if next == page_token || objects.len() > OBJECTS_MAX => break,
                next => page_token = next,
            }
        }
        Err(self.unusable("it lists too many objects".to_owned()))
    }

    /// True if objects are to be listed again to delete some. Listing costs money, so it runs at most once per `every`.
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

    /// Sends a request about an object, and waits for the answer. If it succeeds, a failed upload is deleted that could
    /// not be deleted before.
    fn ask<T, F>(&self, name: &str, ask: impl FnOnce(AmazonS3, Path) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let answer = self.send(name, ask);
        if answer.is_ok() {
            self.abort_left();
        }
        answer
    }

    /// Sends a request, unless the bucket does not answer at the moment.
    fn send<T, F>(&self, name: &str, ask: impl FnOnce(AmazonS3, Path) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        if let Some((until, why)) = &*self.down()
            && Instant::now() < *until
        {
            return Err(unanswered(why));
        }
        let answer = self.call(name, ask)?;
        let failure = answer.as_ref().err().and_then(|error| Failure::behind(error));
        *self.down() = match failure {
            Some(failure @ Failure::Unanswered { .. }) => {
                Some((Instant::now() + LEFT_ALONE, failure.to_string()))
            }
            Some(Failure::Refused { .. }) | None => None,
        };
        answer
    }

    fn call<T, F>(
        &self,
        name: &str,
        ask: impl FnOnce(AmazonS3, Path) -> F,
    ) -> Result<Result<T, Error>, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let client = self.0.client.as_ref().map_err(|why| unanswered(why))?;
        let asked = ask(client.store.clone(), Path::parse(self.key(name))?);
        client.worker.call(asked).map_err(|why| unanswered(&why))
    }

    fn down(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.0.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, name: &str, error: &Error) -> ArchiveError {
        if matches!(error, Error::NotFound { .. }) {
            return ArchiveError::Absent { path: name.to_owned() };
        }
        self.unusable(match Failure::behind(error) {
            Some(refused @ Failure::Refused { .. }) => format!("{refused} for `{name}`"),
            Some(unanswered) => unanswered.to_string(),
            None => error.to_string(),
        })
    }

    fn unusable(&self, reason: String) -> ArchiveError {
        ArchiveError::Bucket { bucket: self.0.options.to_string(), reason }
    }
}

fn unanswered(why: &str) -> Error {
    Error::Generic { store: "S3", source: Box::new(Failure::unanswered(why, Again::Later)) }
}

/// Status of a refusal.
fn refusal(error: &Error) -> Option<u16> {
    match Failure::behind(error)? {
        Failure::Refused { status, .. } => Some(*status),
        Failure::Unanswered { .. } => None,
    }
}

fn other_length(name: &str) -> ArchiveError {
    ArchiveError::Damaged { path: name.to_owned(), reason: "it has another length" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_credential_is_printed() {
        let credentials = Credentials {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI".to_owned(),
            session_token: Some("a-token".to_owned()),
        };
        let endpoint = "https://127.0.0.1:1".to_owned();
        let (bucket, prefix, region) = ("odds".to_owned(), String::new(), "eu".to_owned());
        let options = BucketOptions { bucket, prefix, endpoint, region, credentials };
        let printed = format!("{:?}", Bucket::new(options));
        let mut secrets = ["AKIA", "wJalr", "a-token"].into_iter();
        assert!(printed.contains("odds") && !secrets.any(|secret| printed.contains(secret)));
    }

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
