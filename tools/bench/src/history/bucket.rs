//! An archive in a bucket with slow answers.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use test_servers::S3;
use tokio::runtime::Runtime;

use super::folder::copy;

/// Delay of the bucket's answers.
pub(super) const LATENCY: Duration = Duration::from_millis(20);
const PREFIX: &str = "archive";

/// A server with a copy of an archive; stopped when dropped.
pub(super) struct Bucket {
    server: S3,
    _runtime: Runtime,
}

impl Bucket {
    pub(super) fn with(archive: &Path) -> Result<Self> {
        let runtime = Runtime::new()?;
        let server = runtime.block_on(S3::start())?;
        // The server stores objects as files.
        copy(archive, &server.folder().join(PREFIX))?;
        server.delay_answers(LATENCY);
        Ok(Self { server, _runtime: runtime })
    }

    /// The settings for a service that uses it.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LINESMAN_HISTORY__STORE", format!("s3://{}/{PREFIX}", S3::BUCKET)),
            ("LINESMAN_HISTORY__S3_ENDPOINT", format!("http://127.0.0.1:{}", self.server.port())),
            ("LINESMAN_HISTORY__S3_ALLOW_HTTP", "true".to_owned()),
            ("LINESMAN_HISTORY__S3_REGION", "us-east-1".to_owned()),
            ("LINESMAN_HISTORY__S3_ACCESS_KEY_ID", S3::ACCESS_KEY_ID.to_owned()),
            ("LINESMAN_HISTORY__S3_SECRET_ACCESS_KEY", S3::SECRET_ACCESS_KEY.to_owned()),
        ]
    }

    /// Number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.server.requests()
    }
}
