//! The store against real files, opened the way the server and the command line open them.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "an integration target is nothing but tests and what they share"
)]

use std::path::Path;

use sqlx::{Connection, SqliteConnection, migrate::Migrator, sqlite::SqliteConnectOptions};
use store::{
    AccountRow, Allowance, AuditEntry, Digest, FeedRow, KeyEnd, KeyKind, KeyRow, LeaseAsk,
    LinkPurpose, LinkRow, Role, Store, StoreError, Unspent, Window, WindowStarts,
};
use tempfile::TempDir;

fn key(n: u8) -> KeyRow {
    KeyRow {
        id: format!("key_{n}"),
        name: String::from("test"),
        kind: KeyKind::Production,
        digest: Digest::from_bytes([n; 32]),
        hint: String::from("sk_live_ab…"),
        groups: Some(vec![String::from("combat"), String::from("golf")]),
        permissions: vec![String::from("odds:read")],
        burst_per_minute: 60,
        requests_per_day: 10_000,
        requests_per_month: None,
        meter_id: String::from("key_1"),
        created_ms: i64::from(n),
        revoked_ms: None,
        expires_ms: None,
        rotated_from: None,
        account_id: None,
        last_used_ms: None,
        last_agent: None,
        suspended_ms: None,
    }
}

fn ask(limit: u32) -> LeaseAsk {
    LeaseAsk {
        meter_id: "m".into(),
        window: Window::Day,
        start_ms: 86_400_000,
        limit,
        divisor: 4,
        slice_max: 100,
    }
}

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
                store.insert_key(&key(n)).await.unwrap();
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
    store.insert_key(&key(1)).await.unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
    }
}

#[tokio::test]
async fn a_key_comes_back_as_it_was_kept() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let kept = KeyRow { requests_per_month: Some(u32::MAX), ..key(1) };
    store.insert_key(&kept).await.unwrap();
    assert_eq!(store.key("key_1").await.unwrap().as_ref(), Some(&kept));
    assert_eq!(store.key_by_digest(&kept.digest).await.unwrap().as_ref(), Some(&kept));
    assert_eq!(store.key("key_2").await.unwrap(), None);
    assert!(matches!(store.insert_key(&kept).await, Err(StoreError::Conflict(_))));
    assert!(!format!("{kept:?}").contains("1, 1, 1"), "the digest is not printed");
}

#[tokio::test]
async fn the_first_revocation_stands() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.insert_key(&key(1)).await.unwrap();
    assert_eq!(store.revoke_key("key_1", 50).await.unwrap().unwrap().revoked_ms, Some(50));
    assert_eq!(store.revoke_key("key_1", 90).await.unwrap().unwrap().revoked_ms, Some(50));
    assert_eq!(store.revoke_key("key_2", 90).await.unwrap(), None);
}

#[tokio::test]
async fn a_key_is_rotated_once() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.insert_key(&key(1)).await.unwrap();
    let successor = |n| KeyRow { rotated_from: Some(String::from("key_1")), ..key(n) };
    let end = KeyEnd::At { expires_ms: 70 };
    assert!(store.rotate_key(end, &successor(2)).await.unwrap());
    assert!(!store.rotate_key(end, &successor(3)).await.unwrap());
    let keys = store.keys().await.unwrap();
    assert_eq!(
        keys.iter().map(|k| (k.revoked_ms, k.expires_ms)).collect::<Vec<_>>(),
        [(None, Some(70)), (None, None)]
    );
}

#[tokio::test]
async fn no_key_of_a_suspended_account_comes_into_force() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let account = AccountRow {
        id: "acc_1".to_owned(),
        email: "ann@example.com".to_owned(),
        name: String::new(),
        role: Role::Developer,
        password: None,
        created_ms: 1,
        suspended_ms: None,
        production_ms: None,
        confirmed_ms: None,
        totp: None,
        allowance: Allowance::default(),
    };
    assert!(store.insert_account(&account).await.unwrap());
    let own = |n| KeyRow { account_id: Some("acc_1".to_owned()), ..key(n) };
    store.insert_key(&own(1)).await.unwrap();
    store.suspend_account("acc_1", Some(50)).await.unwrap();
    // Both were under way when the account was suspended.
    store.insert_key(&own(2)).await.unwrap();
    let successor = KeyRow { rotated_from: Some(String::from("key_1")), ..own(3) };
    assert!(!store.rotate_key(KeyEnd::AtOnce { now_ms: 60 }, &successor).await.unwrap());
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.iter().map(|k| k.suspended_ms).collect::<Vec<_>>(), [Some(50), Some(50)]);
}

#[tokio::test]
async fn a_feed_name_is_free_again_once_its_token_is_revoked() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let feed = |n| FeedRow {
        name: String::from("pinnacle"),
        digest: Digest::from_bytes([n; 32]),
        bookmaker: None,
        created_ms: i64::from(n),
        revoked_ms: None,
        paused_ms: None,
    };
    assert!(store.insert_feed(&feed(1)).await.unwrap());
    assert!(!store.insert_feed(&feed(2)).await.unwrap());
    assert_eq!(store.feeds().await.unwrap(), [feed(1)]);
    let paused = store.pause_feed("pinnacle", Some(5)).await.unwrap().unwrap();
    assert_eq!(paused.paused_ms, Some(5));
    let again = store.pause_feed("pinnacle", Some(6)).await.unwrap().unwrap();
    assert_eq!(again.paused_ms, Some(5), "a paused feed keeps its first instant");
    assert_eq!(store.pause_feed("nobody", Some(6)).await.unwrap(), None);
    assert_eq!(store.revoke_feed("pinnacle", 9).await.unwrap().unwrap().revoked_ms, Some(9));
    assert_eq!(store.pause_feed("pinnacle", None).await.unwrap(), None, "it has no live token");
    assert!(store.insert_feed(&feed(3)).await.unwrap());
    assert_eq!(store.feeds().await.unwrap(), [feed(3)]);
}

#[tokio::test]
async fn slices_shrink_to_one_and_end_at_the_limit() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let mut slices = Vec::new();
    loop {
        let lease = store.lease(&[ask(20)]).await.unwrap()[0];
        assert_eq!(lease.granted, slices.iter().sum::<u32>() + lease.given);
        if lease.given == 0 {
            break;
        }
        slices.push(lease.given);
    }
    assert_eq!(slices.iter().sum::<u32>(), 20);
    assert_eq!((slices[0], slices[slices.len() - 1]), (5, 1));
}

#[tokio::test]
async fn what_is_released_can_be_leased_again() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let given = store.lease(&[ask(4), ask(4)]).await.unwrap();
    assert_eq!(given.iter().map(|l| l.granted).collect::<Vec<_>>(), [1, 2]);
    let back = Unspent { meter_id: "m".into(), window: Window::Day, start_ms: 86_400_000, left: 2 };
    store.release(&[back]).await.unwrap();
    let starts = WindowStarts { minute_ms: 0, day_ms: 86_400_000, month_ms: 0 };
    assert_eq!(store.usage(starts, Some("m")).await.unwrap()[0].granted, 0);
    assert_eq!(store.usage(starts, Some("other")).await.unwrap(), []);
}

#[tokio::test]
async fn old_windows_are_pruned_by_their_kind() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let asks =
        [Window::Minute, Window::Day, Window::Month].map(|window| LeaseAsk { window, ..ask(4) });
    store.lease(&asks).await.unwrap();
    assert_eq!(store.prune_usage(i64::MAX, 0).await.unwrap(), 1);
    assert_eq!(store.prune_usage(i64::MAX, i64::MAX).await.unwrap(), 2);
}

#[tokio::test]
async fn a_setting_outlives_a_restart() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.set_setting("maintenance", Some("600")).await.unwrap();
    store.close().await;
    let store = open(&dir).await;
    assert_eq!(store.setting("maintenance").await.unwrap().as_deref(), Some("600"));
    store.set_setting("maintenance", None).await.unwrap();
    assert_eq!(store.setting("maintenance").await.unwrap(), None);
}

#[tokio::test]
async fn the_audit_log_cannot_be_rewritten_or_shortened() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let entry = AuditEntry {
        at_ms: 1,
        account_id: None,
        who: String::from("command line"),
        action: String::from("key.created"),
        subject: String::from("key_1"),
        detail: String::new(),
        address: String::new(),
    };
    store.append_audit(&entry).await.unwrap();
    let options = SqliteConnectOptions::new().filename(dir.path().join("accounts.db"));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    for statement in ["UPDATE audit SET who = 'nobody'", "DELETE FROM audit"] {
        let refused = sqlx::query(statement).execute(&mut connection).await.unwrap_err();
        assert!(refused.to_string().contains("append-only"), "{refused}");
    }
    let kept = store.audit(None, None, 10).await.unwrap();
    assert_eq!(kept.into_iter().map(|row| row.entry).collect::<Vec<_>>(), [entry]);
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
    store.insert_link(&confirmation).await.unwrap();
    assert_eq!(store.link(&confirmation.digest).await.unwrap(), Some(confirmation));
    assert!(store.use_link(&link.digest, 10).await.unwrap(), "another purpose's link stays good");
}
