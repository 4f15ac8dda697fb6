//! The bucket that `history.store` names: its settings and, for those that are not set, the variables that other
//! programs for such buckets read.

use std::ffi::OsString;

use archive::{BucketOptions, Credentials};

use crate::config::{form::ArchivePlace, schema::Reader, settings::History, source::Fault};

/// The default region.
const REGION: &str = "us-east-1";

/// The fault of a bucket without keys.
pub(super) const NO_KEYS: &str = "`history.store` names a bucket, which needs `history.s3_access_key_id` and `history.s3_secret_access_key`, or \
     AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment; if the service has them there, run this command with the same";

/// Determines how the bucket is accessed; `None`: there is none, its keys are missing, or its address is refused. Only
/// the last is reported in `faults`.
pub(super) fn read_bucket(
    history: &History,
    reader: &Reader,
    environment: &[(OsString, OsString)],
    faults: &mut Vec<Fault>,
) -> Option<BucketOptions> {
    let Some(ArchivePlace::Bucket { bucket, prefix }) = &history.store else { return None };
    let of = |key: &str| reader.origin(key).cloned().unwrap_or_default();
    let variable = |names: &[&str]| names.iter().find_map(|name| value_of(environment, name));
    let region = history.s3_region.clone();
    let region = region.or_else(|| variable(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
    let region = region.unwrap_or_else(|| REGION.to_owned());
    let named = history.s3_endpoint.clone();
    let endpoint = named.or_else(|| variable(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]));
    let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    let allowed =
        history.s3_allow_http || variable(&["AWS_ALLOW_HTTP"]).is_some_and(|value| value == "true");
    let is_fit = endpoint.starts_with("https://") || (allowed && endpoint.starts_with("http://"));
    if !is_fit {
        let origin = match history.s3_endpoint {
            Some(_) => of("history.s3_endpoint"),
            None => of("history.store"),
        };
        let why = "the archive would be sent in cleartext: name an https address in `history.s3_endpoint`, or set \
                   `history.s3_allow_http`";
        faults.push(Fault(origin, why.to_owned()));
        return None;
    }
    let secret =
        |held: &Option<super::form::Secret>| held.as_ref().map(|held| held.reveal().to_owned());
    let own = secret(&history.s3_access_key_id).zip(secret(&history.s3_secret_access_key));
    let credentials = match own {
        Some((access_key_id, secret_access_key)) => {
            Some(Credentials { access_key_id, secret_access_key, session_token: None })
        }
        None => credentials_of(environment),
    };
    let (bucket, prefix) = (bucket.clone(), prefix.clone());
    Some(BucketOptions { bucket, prefix, endpoint, region, credentials: credentials? })
}

fn credentials_of(environment: &[(OsString, OsString)]) -> Option<Credentials> {
    Some(Credentials {
        access_key_id: value_of(environment, "AWS_ACCESS_KEY_ID")?,
        secret_access_key: value_of(environment, "AWS_SECRET_ACCESS_KEY")?,
        session_token: value_of(environment, "AWS_SESSION_TOKEN"),
    })
}

fn value_of(environment: &[(OsString, OsString)], name: &str) -> Option<String> {
    let (_, value) = environment.iter().find(|(own, _)| own == name)?;
    value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
}
