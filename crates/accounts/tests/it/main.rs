//! Accounts against a real store file: nodes are loaded, crash, shut down and are loaded again.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "an integration target is nothing but tests and what they share"
)]

mod cluster;
mod hostile;
mod key;
mod key_lease;
mod model;
mod people;
mod quota;
mod stream_slots;
mod usage;

use std::{ops::Deref, path::Path, sync::Arc, time::Duration};

use accounts::{Accounts, Actor, KeyEntry, KeyKind, KeySecret, Limits, NewKey, Registry};
use domain::{Clock, ManualClock, Timestamp};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use store::{AccountRow, Allowance, AuditEntry, Role, Store};
use tempfile::TempDir;
use tokio::task::JoinHandle;

const SECOND: Duration = Duration::from_secs(1);
/// Maximum time that any awaited condition may take before a test fails.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// A data folder, or a database in its place, and a clock.
struct TestStore {
    dir: TempDir,
    clock: Arc<ManualClock>,
    postgres: Option<String>,
}

impl TestStore {
    fn at(now: &str) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::parse(now).unwrap()));
        Self { dir: TempDir::new().unwrap(), clock, postgres: None }
    }

    fn on(postgres: String, now: &str) -> Self {
        Self { postgres: Some(postgres), ..Self::at(now) }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn database(&self) -> impl AsRef<Path> + use<> {
        self.dir.path().join("accounts.db")
    }

    async fn store(&self) -> Store {
        match &self.postgres {
            Some(url) => Store::connect(url).await.unwrap(),
            None => Store::open(self.database()).await.unwrap(),
        }
    }

    /// A command-line process: the same file, its own connections.
    async fn command_line(&self) -> Registry {
        Registry::new(self.store().await, Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// A server process.
    async fn node(&self) -> TestNode {
        self.node_with(&self.clock).await
    }

    /// A server process with a clock of its own.
    async fn node_with(&self, clock: &Arc<ManualClock>) -> TestNode {
        let clock = Arc::clone(clock) as Arc<dyn Clock>;
        let store = self.store().await;
        let (accounts, worker) = Accounts::load(store.clone(), clock).await.unwrap();
        TestNode { accounts: Arc::new(accounts), worker: tokio::spawn(worker.run()), store }
    }

    /// Changes the file in a way that only a fault would.
    async fn sql(&self, statement: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.database());
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query(statement).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// A developer's account with these limits.
    async fn account(&self, id: &str, limits: Limits) {
        let (store, audit) = (self.store().await, note());
        let row = AccountRow {
            id: id.to_owned(),
            email: format!("{id}@example.com"),
            name: "Ann".to_owned(),
            role: Role::Developer,
            password: None,
            created_ms: 0,
            suspended_ms: None,
            production_ms: Some(0),
            confirmed_ms: None,
            totp: None,
            allowance: Allowance::default(),
        };
        assert!(store.insert_account(&row, &audit).await.unwrap());
        store.close().await;
        self.allow(id, limits).await;
    }

    /// Gives an account other limits, as an operator does.
    async fn allow(&self, id: &str, limits: Limits) {
        let store = self.store().await;
        let allowance = Allowance {
            keys_max: None,
            burst_per_minute: Some(limits.burst_per_minute),
            requests_per_day: Some(limits.requests_per_day),
            requests_per_month: limits.requests_per_month,
        };
        let own = (limits.burst_per_minute, limits.requests_per_day);
        store.allow_account(id, &allowance, own, &note()).await.unwrap();
        store.close().await;
    }

    async fn issue(&self, limits: Limits) -> KeySecret {
        let new = NewKey { limits, ..NewKey::of_kind(KeyKind::Production) };
        self.command_line().await.create_key(new, &Actor::command_line()).await.unwrap().0
    }
}

struct TestNode {
    accounts: Arc<Accounts>,
    worker: JoinHandle<()>,
    store: Store,
}

impl TestNode {
    fn entry(&self, key: &KeySecret, now: Timestamp) -> Arc<KeyEntry> {
        self.accounts.keys.authenticate(key.expose().as_bytes(), now).unwrap()
    }

    /// As `kill -9`: unspent leases are lost.
    async fn crash(self) {
        self.worker.abort();
        // The task must have ended before the next node starts; being aborted is the expected error.
        assert!(self.worker.await.is_err_and(|error| error.is_cancelled()));
        self.store.close().await;
    }

    async fn shut_down(self) {
        self.accounts.release().await.unwrap();
        self.worker.await.unwrap();
        self.store.close().await;
    }
}

impl Deref for TestNode {
    type Target = Accounts;

    fn deref(&self) -> &Accounts {
        &self.accounts
    }
}

/// The audit entry of changes that tests make directly in the store.
fn note() -> AuditEntry {
    AuditEntry {
        at_ms: 0,
        account_id: None,
        who: "test".to_owned(),
        action: "test".to_owned(),
        subject: String::new(),
        detail: String::new(),
        address: String::new(),
    }
}

const fn limits(burst: u32, day: u32, month: Option<u32>) -> Limits {
    Limits { burst_per_minute: burst, requests_per_day: day, requests_per_month: month }
}
