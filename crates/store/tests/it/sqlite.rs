//! The store on real files, opened the way the server and the command line open them.

use std::path::Path;

use crate::test_database::audit_entry;
use sqlx::{Connection as _, SqliteConnection, migrate::Migrator, sqlite::SqliteConnectOptions};
use store::{Digest, KeyKind, LinkPurpose, LinkRow, Store, StoreError};
use tempfile::TempDir;

use crate::{
    conformance::{self, for_each_case},
    test_database::{TestDatabase, ask, key},
};

macro_rules! tests {
    ($($case:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $case() {
            conformance::$case(TestDatabase::sqlite()).await;
        }
    )*};
}
for_each_case!(tests);

async fn open(dir: &TempDir) -> Store {
    Store::open(dir.path().join("accounts.db")).await.unwrap()
}

async fn old_file(path: &Path, versions: usize) -> SqliteConnection {
    let migrations = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite"));
    let mut old = Migrator::new(migrations).await.unwrap();
    old.migrations.to_mut().truncate(versions);
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    old.run(&mut connection).await.unwrap();
    connection
}

#[tokio::test]
async fn a_file_of_the_first_version_is_brought_up_to_date() {
    let dir = TempDir::new().unwrap();
    let mut old = old_file(&dir.path().join("accounts.db"), 1).await;
    sqlx::query(
        "INSERT INTO api_key VALUES ('key_1', 'n', 'sandbox', $1, 'h', NULL, 'odds:read', \
         1, 2, 3, 'key_1', 4, NULL, NULL, NULL)",
    )
    .bind([7_u8; 32].as_slice())
    .execute(&mut old)
    .await
    .unwrap();
    old.close().await.unwrap();

    let store = open(&dir).await;
    let kept = store.key("key_1").await.unwrap().unwrap();
    assert_eq!(
        (kept.kind, kept.groups, kept.requests_per_month),
        (KeyKind::Sandbox, None, Some(3))
    );
    assert_eq!(store.lease(&[ask(8)]).await.unwrap()[0].given, 2);
}

#[tokio::test]
async fn a_file_from_a_newer_version_is_refused_as_such() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.close().await;
    let path = dir.path().join("accounts.db");
    let mut newer =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'later', 1, x'00', 0)",
    )
    .execute(&mut newer)
    .await
    .unwrap();
    newer.close().await.unwrap();
    assert!(matches!(Store::open(&path).await, Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn what_is_no_database_is_corrupt_and_not_overwritten() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("accounts.db");
    std::fs::write(
        &path,
        "these are not the bytes of a database, and longer than its header".repeat(4),
    )
    .unwrap();
    assert!(matches!(Store::open(&path).await, Err(StoreError::Corrupt(_))));
    assert!(std::fs::read(&path).unwrap().starts_with(b"these are not"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_open_a_new_file_at_once() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("accounts.db");
    let openers: Vec<_> = (0..8)
        .map(|n| {
            let path = path.clone();
            tokio::spawn(async move {
                let store = Store::open(path).await.unwrap();
                store.insert_key(&key(n), None, &audit_entry(1, None)).await.unwrap();
            })
        })
        .collect();
    for opener in openers {
        opener.await.unwrap();
    }
    assert_eq!(open(&dir).await.keys().await.unwrap().len(), 8);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.insert_key(&key(1), None, &audit_entry(1, None)).await.unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
}

#[tokio::test]
async fn a_file_from_before_there_were_people_opens_and_its_keys_are_nobodys() {
    let dir = TempDir::new().unwrap();
    let mut old = old_file(&dir.path().join("accounts.db"), 2).await;
    sqlx::query(
        "INSERT INTO api_key (id, name, kind, digest, hint, permissions, burst_per_minute, \
         requests_per_day, meter_id, created_ms) VALUES ('key_1', '', 'sandbox', $1, '', \
         'odds:read', 60, 10000, 'key_1', 5)",
    )
    .bind([7_u8; 32].as_slice())
    .execute(&mut old)
    .await
    .unwrap();
    old.close().await.unwrap();
    let store = open(&dir).await;
    let key = store.key("key_1").await.unwrap().unwrap();
    assert_eq!((key.account_id, key.last_used_ms, key.suspended_ms), (None, None, None));
}

#[tokio::test]
async fn a_file_from_before_there_was_mail_keeps_its_links_and_asks_nobody_to_confirm() {
    let dir = TempDir::new().unwrap();
    let mut old = old_file(&dir.path().join("accounts.db"), 3).await;
    for statement in [
        "INSERT INTO account (id, email, name, role, password, created_ms) \
         VALUES ('acc_1', 'ann@example.com', 'Ann', 'developer', 'x', 5)",
        "INSERT INTO link (digest, purpose, account_id, created_ms, expires_ms) \
         VALUES (x'0707070707070707070707070707070707070707070707070707070707070707', \
         'password_reset', 'acc_1', 5, 900)",
    ] {
        sqlx::query(statement).execute(&mut old).await.unwrap();
    }
    old.close().await.unwrap();
    let store = open(&dir).await;
    assert_eq!(store.account("acc_1").await.unwrap().unwrap().confirmed_ms, Some(5));
    let link = store.link(&Digest::from_bytes([7; 32])).await.unwrap().unwrap();
    assert_eq!(
        (link.purpose, link.account_id.as_deref()),
        (LinkPurpose::PasswordReset, Some("acc_1"))
    );
    let confirmation = LinkRow {
        digest: Digest::from_bytes([8; 32]),
        purpose: LinkPurpose::Confirmation,
        ..link.clone()
    };
    store.insert_link(&confirmation, None).await.unwrap();
    assert_eq!(store.link(&confirmation.digest).await.unwrap(), Some(confirmation));
    let entry = audit_entry(1, None);
    let used =
        store.set_password_by_link((&link.digest, 10), "acc_1", "new", &entry).await.unwrap();
    assert!(used, "another purpose's link stays good");
}
