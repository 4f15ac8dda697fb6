//! A test database of either kind, and the rows that tests put into it.

use sqlx::{Connection as _, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use store::{
    AccessRow, AccessState, AccountRow, Allowance, AuditEntry, Digest, FeedRow, KeyKind, KeyRow,
    LeaseRequest, LinkPurpose, LinkRow, Role, SessionRow, Stage, Store, Window,
};
use tempfile::TempDir;

/// One empty database.
pub(crate) enum TestDatabase {
    Sqlite(TempDir),
    Postgres(String),
}

impl TestDatabase {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    pub(crate) async fn open(&self) -> Store {
        match self {
            Self::Sqlite(dir) => Store::open(dir.path().join("accounts.db")).await.unwrap(),
            Self::Postgres(url) => Store::connect(url).await.unwrap(),
        }
    }

    /// Runs a statement outside the store.
    pub(crate) async fn run(&self, statement: &'static str) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(dir) => {
                let options = SqliteConnectOptions::new().filename(dir.path().join("accounts.db"));
                let mut connection = SqliteConnection::connect_with(&options).await?;
                sqlx::raw_sql(statement).execute(&mut connection).await.map(drop)
            }
            Self::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                sqlx::raw_sql(statement).execute(&mut connection).await.map(drop)
            }
        }
    }
}

pub(crate) fn digest(n: u8) -> Digest {
    Digest::from_bytes([n; 32])
}

pub(crate) fn key(n: u8) -> KeyRow {
    KeyRow {
        id: format!("key_{n}"),
        name: String::from("test"),
        kind: KeyKind::Production,
        digest: digest(n),
        hint: String::from("sk_live_ab…"),
        groups: Some(vec![String::from("combat"), String::from("golf")]),
        permissions: vec![String::from("odds:read")],
        burst_per_minute: 60,
        requests_per_day: 10_000,
        requests_per_month: None,
        streams: None,
        meter_id: String::from("key_1"),
        created_ms: i64::from(n),
        revoked_ms: None,
        expires_ms: None,
        rotated_from: None,
        account_id: None,
        account_quota: None,
        last_used_ms: None,
        last_agent: None,
        suspended_ms: None,
    }
}

pub(crate) fn feed(name: &str, n: u8) -> FeedRow {
    FeedRow {
        name: String::from(name),
        digest: digest(n),
        bookmaker: None,
        scores: false,
        created_ms: i64::from(n),
        revoked_ms: None,
        paused_ms: None,
    }
}

pub(crate) fn ask(limit: u32) -> LeaseRequest {
    LeaseRequest {
        meter_id: "m".into(),
        window: Window::Day,
        start_ms: 86_400_000,
        limit,
        divisor: 4,
        lease_max: 100,
        least: 1,
    }
}

pub(crate) fn account(id: &str) -> AccountRow {
    AccountRow {
        id: String::from(id),
        email: format!("{id}@example.com"),
        name: String::from("Zoë Ångström"),
        role: Role::Developer,
        password: Some(String::from("$argon2id$…")),
        created_ms: 5,
        suspended_ms: None,
        production_ms: None,
        confirmed_ms: None,
        totp: None,
        allowance: Allowance::default(),
    }
}

pub(crate) fn session(n: u8, account_id: &str) -> SessionRow {
    SessionRow {
        digest: digest(n),
        id: format!("ses_{n}"),
        account_id: String::from(account_id),
        stage: Stage::Full,
        created_ms: 10,
        seen_ms: i64::from(n),
        address: String::from("192.0.2.1"),
        agent: String::from("curl"),
    }
}

pub(crate) fn link(n: u8, purpose: LinkPurpose, account_id: Option<&str>) -> LinkRow {
    LinkRow {
        digest: digest(n),
        purpose,
        account_id: account_id.map(String::from),
        email: None,
        created_ms: 1,
        expires_ms: 100,
        used_ms: None,
    }
}

pub(crate) fn access(id: &str, account_id: &str) -> AccessRow {
    AccessRow {
        id: String::from(id),
        account_id: String::from(account_id),
        purpose: String::from("a price comparison"),
        created_ms: 20,
        state: AccessState::Pending,
        decided_ms: None,
        decided_by: None,
        note: None,
    }
}

pub(crate) fn audit_entry(at_ms: i64, account_id: Option<&str>) -> AuditEntry {
    AuditEntry {
        at_ms,
        account_id: account_id.map(String::from),
        who: String::from("command line"),
        action: String::from("key.created"),
        subject: String::from("key_1"),
        detail: String::new(),
        address: String::new(),
    }
}
