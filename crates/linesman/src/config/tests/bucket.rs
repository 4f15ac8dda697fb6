//! The bucket of the archive.

use super::{assemble, faults};

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];

#[test]
fn a_bucket_has_its_keys_from_settings_or_the_environment_and_shows_neither() {
    let file = "[history]\nstore = \"s3://odds/a\"\ns3_region = \"eu-central-1\"";
    let own = [
        ("LINESMAN_HISTORY__S3_ACCESS_KEY_ID", "AKIAOWN"),
        ("LINESMAN_HISTORY__S3_SECRET_ACCESS_KEY", "own/secret"),
    ];
    let shared = [
        ("AWS_ACCESS_KEY_ID", "AKIASHARED"),
        ("AWS_SECRET_ACCESS_KEY", "shared/secret"),
        ("AWS_SESSION_TOKEN", "token"),
        ("AWS_REGION", "us-west-2"),
    ];
    let both: Vec<_> = own.into_iter().chain(shared).collect();
    let config = assemble(file, &both).unwrap();
    let bucket = config.bucket.as_ref().unwrap();
    assert_eq!((&*bucket.bucket, &*bucket.prefix), ("odds", "a"));
    assert_eq!(bucket.endpoint, "https://s3.eu-central-1.amazonaws.com");
    assert_eq!(bucket.credentials.access_key_id, "AKIAOWN");
    assert_eq!(bucket.credentials.session_token, None);
    let shown = format!("{}{config:?}", config.to_toml());
    assert!(!shown.contains("AKIAOWN") && !shown.contains("own/secret"), "{shown}");
    let config = assemble("[history]\nstore = \"s3://odds\"", &shared).unwrap();
    let bucket = config.bucket.as_ref().unwrap();
    assert_eq!(bucket.region, "us-west-2");
    assert_eq!(bucket.credentials.secret_access_key, "shared/secret");
    assert_eq!(bucket.credentials.session_token.as_deref(), Some("token"));
    let shown = format!("{}{config:?}", config.to_toml());
    assert!(!shown.contains("AKIASHARED") && !shown.contains("shared/secret"), "{shown}");
    // Without a bucket they are not read.
    assert_eq!(assemble("", &shared).unwrap().bucket, None);
}

#[test]
fn a_bucket_without_keys_is_refused_where_it_is_used() {
    let file = "[history]\nstore = \"s3://odds\"";
    let config = assemble(file, &[]).unwrap();
    assert_eq!(config.bucket, None);
    for checked in [config.check_service(), config.check_bucket()] {
        let refusal = checked.unwrap_err().to_string();
        assert!(refusal.contains("line 2") && refusal.contains("s3_access_key_id"), "{refusal}");
    }
    // One of them, also if the environment has other ones.
    let half = format!("{file}\ns3_access_key_id = \"x\"");
    for environment in [&KEYS[..0], &KEYS] {
        let refusal = assemble(&half, environment).unwrap().check_bucket().unwrap_err().to_string();
        let expected = "`history.s3_access_key_id` needs `history.s3_secret_access_key`";
        assert!(refusal.contains(expected) && !refusal.contains('\n'), "{refusal}");
    }
    let whole = assemble(&half, &[("LINESMAN_HISTORY__S3_SECRET_ACCESS_KEY", "y")]).unwrap();
    assert!(whole.bucket.is_some() && whole.check_service().is_ok());
    assert!(assemble("", &[]).unwrap().check_bucket().is_ok());
}

#[test]
fn a_bucket_in_cleartext_is_refused() {
    let file = "[history]\nstore = \"s3://odds\"";
    let clear = format!("{file}\ns3_endpoint = \"http://10.0.0.1:9000\"");
    let refusal = faults(&clear, &KEYS).join("\n");
    assert!(refusal.contains("line 3") && refusal.contains("s3_allow_http"), "{refusal}");
    let allowed = assemble(&format!("{clear}\ns3_allow_http = true"), &KEYS).unwrap();
    assert_eq!(allowed.bucket.unwrap().endpoint, "http://10.0.0.1:9000");
    let bad = faults("[history]\ns3_secret_access_key = \"two words\"", &[]).join("\n");
    assert!(!bad.contains("two words"), "{bad}");
}
