//! The store on a real PostgreSQL server, through network failures and restarts.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use crate::test_database::audit_entry;
use sqlx::{Connection as _, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use store::{Store, StoreError};
use tempfile::TempDir;
use test_servers::{Postgres, Proxy};

use crate::{
    conformance::{self, for_each_case},
    test_database::{TestDatabase, ask, key},
};

/// All cases on one server, each on its own database: a server takes a second to start.
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_holds_on_sqlite_holds_on_postgres() {
    let server = Postgres::start().unwrap();
    let mut failed: Vec<&str> = Vec::new();
    macro_rules! run {
        ($($case:ident)*) => {$(
            let database = TestDatabase::Postgres(server.create_database(stringify!($case)).unwrap());
            if tokio::spawn(conformance::$case(database)).await.is_err() {
                failed.push(stringify!($case));
            }
        )*};
    }
    for_each_case!(run);
    assert_eq!(failed, Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_nodes_may_connect_to_a_new_database_at_once() {
    let server = Postgres::start().unwrap();
    let url = server.create_database("new").unwrap();
    let nodes: Vec<_> = (0..8)
        .map(|n| {
            let url = url.clone();
            tokio::spawn(async move {
                let store = Store::connect(&url).await.unwrap();
                store.insert_key(&key(n), None, &audit_entry(1, None)).await.unwrap();
                store.close().await;
            })
        })
        .collect();
    for node in nodes {
        node.await.unwrap();
    }
    let store = Store::connect(&url).await.unwrap();
    assert_eq!(store.keys().await.unwrap().len(), 8);
    has_the_tables_of_sqlite(&url).await;
    takes_a_newer_version_that_it_can_live_with(&url).await;
    refuses_a_newer_version(&server, &url).await;
    refuses_other_encodings(&server).await;
}

/// Finds a migration that was added to one of them only.
async fn has_the_tables_of_sqlite(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let there: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns \
         WHERE table_schema = 'public'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("accounts.db");
    Store::open(&path).await.unwrap().close().await;
    let options = SqliteConnectOptions::new().filename(&path);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let here: Vec<(String, String)> = sqlx::query_as(
        "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let (there, here) = (BTreeSet::from_iter(there), BTreeSet::from_iter(here));
    let ours = |set: &BTreeSet<(String, String)>| {
        set.iter().filter(|(table, _)| table != "_sqlx_migrations").cloned().collect::<Vec<_>>()
    };
    assert_eq!(ours(&there), ours(&here));
}

/// A newer program has migrated the database and recorded the oldest version that can still use it.
async fn takes_a_newer_version_that_it_can_live_with(url: &str) {
    let database = TestDatabase::Postgres(String::from(url));
    database
        .run(
            "ALTER TABLE api_key ADD COLUMN of_a_newer_program TEXT; \
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9998, 'compatible', true, '\\x00', 0); \
         INSERT INTO schema_floor (version, oldest_known) \
         SELECT 9998, MAX(version) FROM _sqlx_migrations WHERE version < 9998",
        )
        .await
        .unwrap();
    let store = Store::connect(url).await.unwrap();
    store.insert_key(&key(20), None, &audit_entry(1, None)).await.unwrap();
    store.close().await;
    database.run("UPDATE schema_floor SET oldest_known = 9998").await.unwrap();
    let refused = Store::connect(url).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
    database.run("UPDATE schema_floor SET oldest_known = 1").await.unwrap();
    Store::connect(url).await.unwrap().close().await;
}

async fn refuses_a_newer_version(server: &Postgres, url: &str) {
    let database = TestDatabase::Postgres(String::from(url));
    database.run(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'later', true, '\\x00', 0)",
    )
    .await
    .unwrap();
    assert!(matches!(Store::connect(url).await, Err(StoreError::Corrupt(_))));
    let nowhere = server.url("nowhere");
    assert!(matches!(Store::connect(&nowhere).await, Err(StoreError::Unavailable(_))));
}

async fn refuses_other_encodings(server: &Postgres) {
    let database = TestDatabase::Postgres(server.url("postgres"));
    database.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
        .await
        .unwrap();
    let refused = Store::connect(&server.url("latin")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}

#[tokio::test]
async fn an_address_that_is_none_is_told_without_its_password() {
    for url in ["", "sqlite://x", "mysql://u:hushhush@h/d", "postgres://u:hushhush@h:port/d"] {
        let refused = Store::connect(url).await.unwrap_err();
        assert!(matches!(refused, StoreError::Address), "{url}: {refused:?}");
        assert!(!format!("{refused} {refused:?}").contains("hushhush"));
    }
    // No server listens on this port.
    let port = test_servers::free_port().unwrap();
    let url = format!("postgres://u:hushhush@127.0.0.1:{port}/d");
    let refused = Store::connect(&url).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    assert!(!format!("{refused} {refused:?}").contains("hushhush"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_restarted_or_crashes_is_used_again_without_opening_the_store_anew() {
    let mut server = Postgres::start().unwrap();
    let store = Store::connect(&server.create_database("db").unwrap()).await.unwrap();
    let mut granted = 0;
    for crash in [false, true] {
        // Warm connections, so that both their end and their absence are covered.
        for _ in 0..4 {
            granted = store.lease(&[ask(1000)]).await.unwrap()[0].granted;
        }
        if crash {
            server.crash().unwrap();
        } else {
            server.stop().unwrap();
        }
        let begun = Instant::now();
        let failed = store.lease(&[ask(1000)]).await.unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
        assert!(matches!(store.keys().await, Err(StoreError::Unavailable(_))));
        assert!(begun.elapsed() < Duration::from_secs(40), "told in time");
        server.start_again().unwrap();
        let lease = store.lease(&[ask(1000)]).await.unwrap()[0];
        assert_eq!(lease.granted, granted + lease.given, "what was leased stays leased");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_swallows_everything_is_noticed_in_time_and_its_connections_let_go() {
    let server = Postgres::start().unwrap();
    server.create_database("db").unwrap();
    let proxy = Proxy::start(server.port()).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/db", proxy.port());
    let store = Store::connect(&url).await.unwrap();
    store.insert_key(&key(1), None, &audit_entry(1, None)).await.unwrap();
    proxy.stall();
    let begun = Instant::now();
    let failed = store.revoke_key("key_1", 5, &audit_entry(1, None)).await.unwrap_err();
    assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    proxy.restore();
    // Connections from before may be in any state; new ones work at once.
    assert_eq!(
        store.revoke_key("key_1", 6, &audit_entry(1, None)).await.unwrap().unwrap().revoked_ms,
        Some(6)
    );
    proxy.cut();
    assert!(matches!(store.keys().await, Err(StoreError::Unavailable(_))));
    proxy.restore();
    assert_eq!(store.keys().await.unwrap().len(), 1);
}

/// A lock held by another program, or by a node that was stopped in the middle of a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_not_given_up_costs_five_seconds_and_no_connection() {
    let server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    let store = Store::connect(&url).await.unwrap();
    store.lease(&[ask(1000)]).await.unwrap();
    let mut other = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE usage").execute(&mut other).await.unwrap();
    let begun = Instant::now();
    let failed = store.lease(&[ask(1000)]).await.unwrap_err();
    assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
    // Reported by the server, whose connection remains usable, and not by a client's timeout.
    assert!(format!("{failed:?}").contains("statement timeout"), "{failed:?}");
    let waited = begun.elapsed();
    assert!((4..30).contains(&waited.as_secs()), "{waited:?}");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    store.lease(&[ask(1000)]).await.unwrap();
}
