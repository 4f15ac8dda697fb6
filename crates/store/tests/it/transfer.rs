//! Transferring all rows of a file to a PostgreSQL database.

use store::{
    CountRow, KeyRow, LinkPurpose, Outcome, Store, StoreError, Totp, Transferred, Window, transfer,
};
use tempfile::TempDir;
use test_servers::Postgres;

use crate::test_database::{
    TestDatabase, access, account, ask, audit_entry, digest, feed, key, link, session,
};

/// At least one row in every table.
async fn fill(store: &Store) {
    for n in 1..=3 {
        let from = (n > 1).then(|| format!("key_{}", n - 1));
        // The clock was set back: a successor looks older than its predecessor.
        let created_ms = -i64::from(n);
        store
            .insert_key(
                &KeyRow { rotated_from: from, created_ms, ..key(n) },
                None,
                &audit_entry(1, None),
            )
            .await
            .unwrap();
    }
    store.insert_feed(&feed("pinnacle", 9), &audit_entry(1, None)).await.unwrap();
    store.set_setting("maintenance", Some("600")).await.unwrap();
    store.insert_account(&account("ann"), &audit_entry(1, None)).await.unwrap();
    let totp = Totp { secret: vec![1, 0, 2], confirmed_ms: None, step: None };
    store.set_totp("ann", Some(&totp), &[digest(7)], None).await.unwrap();
    store.insert_session(&session(1, "ann"), None, 5, None).await.unwrap();
    store.insert_link(&link(1, LinkPurpose::PasswordReset, Some("ann")), None).await.unwrap();
    store.insert_access(&access("req_1", "ann"), &audit_entry(1, None)).await.unwrap();
    store.lease(&[ask(100)]).await.unwrap();
    let count = CountRow {
        key_id: String::from("key_1"),
        start_ms: 3_600_000,
        endpoint: String::from("odds"),
        outcome: Outcome::Ok,
        requests: 3,
    };
    store.add_counts(&[count]).await.unwrap();
    store.record_alerts("key_1", Window::Day, 0, &[80]).await.unwrap();
    // More rows than one statement copies.
    for at_ms in 0..1100 {
        store.append_audit(&[audit_entry(at_ms, None)]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_or_nothing_and_only_in_an_empty_database() {
    let server = Postgres::start().unwrap();
    let url = server.create_database("new").unwrap();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("accounts.db");
    let old = Store::open(&path).await.unwrap();
    fill(&old).await;

    let mut told = Vec::new();
    let settings = [("of_the_new_place", "yes")];
    let moved = transfer(&path, &url, &settings, &mut |far| told.push(far)).await.unwrap();
    assert_eq!(told.last(), Some(&moved));
    assert!(told.len() > 5 && told.is_sorted_by_key(|far| far.rows), "{told:?}");
    assert_eq!(moved, Transferred { rows: moved.of, of: 1121 });

    let new = Store::connect(&url).await.unwrap();
    assert_eq!(new.keys().await.unwrap(), old.keys().await.unwrap());
    assert_eq!(new.feeds().await.unwrap(), old.feeds().await.unwrap());
    assert_eq!(new.accounts(9).await.unwrap(), old.accounts(9).await.unwrap());
    assert_eq!(new.sessions_of("ann").await.unwrap(), old.sessions_of("ann").await.unwrap());
    assert_eq!(new.link(&digest(1)).await.unwrap(), old.link(&digest(1)).await.unwrap());
    assert_eq!(new.count_recovery_codes("ann").await.unwrap(), 1);
    assert_eq!(
        new.access_requests(None, 9).await.unwrap(),
        old.access_requests(None, 9).await.unwrap()
    );
    assert_eq!(new.setting("maintenance").await.unwrap().as_deref(), Some("600"));
    assert_eq!(new.setting("of_the_new_place").await.unwrap().as_deref(), Some("yes"));
    assert_eq!(old.setting("of_the_new_place").await.unwrap(), None);
    let all = old.audit(None, None, 5000).await.unwrap();
    assert_eq!(new.audit(None, None, 5000).await.unwrap(), all);
    // The numbering continues.
    new.append_audit(&[audit_entry(9, None)]).await.unwrap();
    assert_eq!(new.audit(None, None, 1).await.unwrap()[0].seq, all[0].seq + 1);
    assert_eq!(new.lease(&[ask(100)]).await.unwrap(), old.lease(&[ask(100)]).await.unwrap());

    let again = transfer(&path, &url, &[], &mut |_| {}).await.unwrap_err();
    assert!(matches!(again, StoreError::NotEmpty { .. }), "{again:?}");
    assert_eq!(new.keys().await.unwrap().len(), 3);
    nothing_arrives_where_one_row_does_not(&server, &path).await;
}

async fn nothing_arrives_where_one_row_does_not(server: &Postgres, path: &std::path::Path) {
    let url = server.create_database("narrow").unwrap();
    let new = Store::connect(&url).await.unwrap();
    let database = TestDatabase::Postgres(url.clone());
    database.run("ALTER TABLE usage ADD CHECK (granted < 5)").await.unwrap();
    assert!(transfer(path, &url, &[], &mut |_| {}).await.is_err());
    assert_eq!(new.keys().await.unwrap(), []);
    assert_eq!(new.accounts(9).await.unwrap(), []);
}
