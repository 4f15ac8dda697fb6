//! Several nodes on one store: a key that has ended on one has ended on all, and a node that is cut off accepts no
//! key.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use accounts::{
    AccountError, Accounts, Actor, Authorities, Cluster, KeyKind, KeyRefusal, KeySecret, Limits,
    Maintenance, Need, NewKey, People, PeopleRules, RegisterError, RegisterFuture,
    RevocationRegister, Rotated, Scores, SignUp, SteadyClock,
};
use domain::Clock;
use test_servers::Postgres;
use tokio::{sync::Notify, task::JoinHandle};

use crate::{TEST_TIMEOUT, TestNode, TestStore, limits};

const NOON: &str = "2026-11-14T12:00:00Z";
const TRUST: Duration = Duration::from_secs(5);

/// A steady clock that only the test advances.
#[derive(Debug, Default)]
pub(crate) struct Hand(AtomicU64);

impl Hand {
    pub(crate) fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl SteadyClock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A register in memory that keeps the greatest announced number.
#[derive(Debug, Default)]
pub(crate) struct TestRegister {
    greatest: Mutex<Option<i64>>,
    announced: Notify,
}

/// A node's connection to the register, which can be cut.
#[derive(Debug)]
pub(crate) struct RegisterConnection {
    register: Arc<TestRegister>,
    cut: AtomicBool,
}

impl RegisterConnection {
    fn new(register: &Arc<TestRegister>) -> Arc<Self> {
        Arc::new(Self { register: Arc::clone(register), cut: AtomicBool::new(false) })
    }

    fn reach(&self) -> Result<&TestRegister, RegisterError> {
        if self.cut.load(Ordering::SeqCst) { Err("cut off".into()) } else { Ok(&self.register) }
    }
}

impl RevocationRegister for RegisterConnection {
    fn announce(&self, number: i64) -> RegisterFuture<'_, Result<i64, RegisterError>> {
        Box::pin(async move {
            let register = self.reach()?;
            let mut greatest = register.greatest.lock().unwrap();
            let known = greatest.unwrap_or(number).max(number);
            *greatest = Some(known);
            register.announced.notify_waiters();
            Ok(known)
        })
    }

    fn known(&self) -> RegisterFuture<'_, Result<Option<i64>, RegisterError>> {
        Box::pin(async move { Ok(*self.reach()?.greatest.lock().unwrap()) })
    }

    fn hint(&self) -> RegisterFuture<'_, ()> {
        Box::pin(async move {
            if let Ok(register) = self.reach() {
                register.announced.notify_waiters();
            }
        })
    }

    fn confirm(&self, _held: i64) -> RegisterFuture<'_, Result<i64, RegisterError>> {
        Box::pin(async move {
            let greatest = *self.reach()?.greatest.lock().unwrap();
            greatest.ok_or_else(|| "nothing was announced".into())
        })
    }

    fn wait_for_hint(&self) -> RegisterFuture<'_, ()> {
        Box::pin(self.register.announced.notified())
    }
}

/// Several nodes on one store, with a shared clock.
pub(crate) struct TestCluster {
    pub(crate) test: TestStore,
    pub(crate) steady: Arc<Hand>,
    register: Arc<TestRegister>,
}

/// One of the nodes; it asks its authorities only when the test says so, unless it follows.
pub(crate) struct Member {
    pub(crate) node: TestNode,
    connection: Arc<RegisterConnection>,
}

impl TestCluster {
    fn new() -> Self {
        Self::of(TestStore::at(NOON))
    }

    pub(crate) fn of(test: TestStore) -> Self {
        Self { test, steady: Arc::default(), register: Arc::default() }
    }

    fn cluster(&self, register: Arc<dyn RevocationRegister>) -> Cluster {
        Cluster { register, steady: Arc::clone(&self.steady) as Arc<dyn SteadyClock>, lease: TRUST }
    }

    pub(crate) async fn member(&self) -> Member {
        let connection = RegisterConnection::new(&self.register);
        let clock = Arc::clone(&self.test.clock) as Arc<dyn Clock>;
        let store = self.test.store().await;
        let register = Arc::clone(&connection) as Arc<dyn RevocationRegister>;
        let (accounts, worker) =
            Accounts::load_node(store.clone(), clock, self.cluster(register)).await.unwrap();
        let node =
            TestNode { accounts: Arc::new(accounts), worker: tokio::spawn(worker.run()), store };
        Member { node, connection }
    }

    /// A key that one node knows; creating it does not wait for the others.
    pub(crate) async fn key(&self, known_to: &Member) -> KeySecret {
        let key = self.test.issue(limits(9, 9, None)).await;
        known_to.node.renew_from_store().await.unwrap();
        let number = known_to.node.key_lease().unwrap().number;
        RegisterConnection::new(&self.register).announce(number).await.unwrap();
        key
    }

    /// The authorities of a command line.
    async fn authorities(&self) -> Authorities {
        Authorities {
            store: self.test.store().await,
            register: RegisterConnection::new(&self.register) as Arc<dyn RevocationRegister>,
            steady: Arc::clone(&self.steady) as Arc<dyn SteadyClock>,
            lease: TRUST,
        }
    }

    /// Advances the clock until a task is done.
    async fn pass_until<T>(&self, task: JoinHandle<T>) -> T {
        while !task.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.steady.advance(100);
        }
        task.await.unwrap()
    }
}

impl Member {
    fn lets_in(&self, key: &KeySecret) -> Result<(), KeyRefusal> {
        let now = self.node.clock_now();
        self.node.keys.authenticate(key.expose().as_bytes(), now).map(drop)
    }

    fn revoke(&self, key: &KeySecret) -> JoinHandle<Result<(), AccountError>> {
        let (accounts, text) = (Arc::clone(&self.node.accounts), key.expose().to_owned());
        tokio::spawn(
            async move { accounts.revoke_key(&text, &Actor::command_line()).await.map(drop) },
        )
    }

    fn follows(&self) -> JoinHandle<()> {
        let accounts = Arc::clone(&self.node.accounts);
        tokio::spawn(async move { accounts.follow().await })
    }
}

impl TestNode {
    fn clock_now(&self) -> domain::Timestamp {
        domain::Timestamp::parse(NOON).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_on_one_node_has_ended_on_all_when_the_call_returns() {
    let cluster = TestCluster::new();
    everything_ends_everywhere(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_on_one_node_has_ended_on_all_on_postgres_too() {
    let server = Postgres::start().unwrap();
    let url = server.create_database("db").unwrap();
    everything_ends_everywhere(&TestCluster::of(TestStore::on(url, NOON))).await;
}

async fn everything_ends_everywhere(cluster: &TestCluster) {
    let (one, two, three) =
        (cluster.member().await, cluster.member().await, cluster.member().await);
    let following = [one.follows(), two.follows(), three.follows()];
    let all = [&one, &two, &three];
    let each = |key: &KeySecret| all.map(|member| member.lets_in(key));

    let make = async |by: &Member| {
        by.node
            .create_key(NewKey::of_kind(KeyKind::Production), &Actor::command_line())
            .await
            .unwrap()
            .0
    };
    let key = make(&one).await;
    assert_eq!(each(&key), [Ok(()); 3], "a new key is good everywhere");
    two.node.revoke_key(key.expose(), &Actor::command_line()).await.unwrap();
    assert_eq!(each(&key), [Err(KeyRefusal::Unknown); 3]);

    let old = make(&three).await;
    let Rotated { secret, unconfirmed, .. } =
        one.node.rotate_key(old.expose(), None, &Actor::command_line()).await.unwrap();
    assert!(unconfirmed.is_none());
    assert_eq!((each(&old), each(&secret)), ([Err(KeyRefusal::Unknown); 3], [Ok(()); 3]));

    let (token, _) = one
        .node
        .create_feed("acme", None, Scores::OfUnbound, &Actor::command_line())
        .await
        .unwrap();
    let feeds = || all.map(|m| m.node.feeds.authenticate(token.expose().as_bytes()).map(drop));
    assert_eq!(feeds(), [Ok(()); 3]);
    two.node.pause_feed("acme", true, &Actor::command_line()).await.unwrap();
    assert!(three.node.feeds.list()[0].paused_at.is_some());
    three.node.revoke_feed("acme", &Actor::command_line()).await.unwrap();
    assert_eq!(feeds(), [Err(KeyRefusal::Unknown); 3]);

    let closed = Maintenance::On { retry_after_s: 9 };
    one.node.set_maintenance(closed, &Actor::command_line()).await.unwrap();
    assert_eq!(all.map(|member| member.node.maintenance()), [closed; 3]);
    a_suspended_account_is_shut_out_everywhere(cluster, &all).await;
    for task in following {
        task.abort();
    }
}

async fn a_suspended_account_is_shut_out_everywhere(cluster: &TestCluster, all: &[&Member; 3]) {
    let rules = PeopleRules { sign_up: SignUp::Open, session_idle: TRUST, session_max: TRUST };
    let clock = Arc::clone(&cluster.test.clock) as Arc<dyn Clock>;
    let people = People::new(cluster.test.store().await, clock, rules).unwrap();
    cluster.test.account("acc_1", Limits::DEFAULT).await;
    let account_id = Some("acc_1".to_owned());
    let new = NewKey { account_id, ..NewKey::of_kind(KeyKind::Production) };
    let (key, _) = all[0].node.create_key(new, &Actor::command_line()).await.unwrap();
    people.suspend("acc_1", &Actor::command_line()).await.unwrap();
    all[1].node.reload().await.unwrap();
    assert_eq!(all.map(|member| member.lets_in(&key)), [Err(KeyRefusal::Unknown); 3]);
    people.resume("acc_1", &Actor::command_line()).await.unwrap();
    all[1].node.reload().await.unwrap();
    assert_eq!(all.map(|member| member.lets_in(&key)), [Ok(()); 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_out_of_touch_stops_in_time_and_only_then_is_it_done() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let (key, other) = (cluster.key(&one).await, cluster.key(&one).await);
    two.node.renew_from_store().await.unwrap();
    assert_eq!(two.lets_in(&key), Ok(()));

    // Two hears the announcement and asks nothing after that.
    let revoked = one.revoke(&key);
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(!revoked.is_finished(), "two may let the key in, so it is not done");
        assert_eq!(two.lets_in(&key), Ok(()));
        cluster.steady.advance(490);
    }
    cluster.pass_until(revoked).await.unwrap();
    for key in [&key, &other] {
        assert_eq!(two.lets_in(key), Err(KeyRefusal::Unconfirmed));
    }
    assert_eq!(two.node.key_lease().unwrap().left_ms, 0);
    one.node.renew_from_store().await.unwrap();
    assert_eq!((one.lets_in(&key), one.lets_in(&other)), (Err(KeyRefusal::Unknown), Ok(())));

    // The register alone cannot say what changed; the store can.
    two.node.renew_from_register().await.unwrap();
    assert_eq!(two.lets_in(&other), Err(KeyRefusal::Unconfirmed));
    two.node.renew_from_store().await.unwrap();
    assert_eq!((two.lets_in(&key), two.lets_in(&other)), (Err(KeyRefusal::Unknown), Ok(())));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_every_node_follows_by_itself_is_not_announced() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let key = cluster.key(&one).await;
    let announced = || *cluster.register.greatest.lock().unwrap();
    let before = announced();
    let following = two.follows();
    // No time passes: if the database failed now, no node would have heard of more than it has.
    tokio::time::timeout(TEST_TIMEOUT, one.revoke(&key)).await.unwrap().unwrap().unwrap();
    assert_eq!(two.lets_in(&key), Err(KeyRefusal::Unknown));
    assert_eq!(announced(), before);
    following.abort();
    let late = cluster.key(&one).await;
    cluster.pass_until(one.revoke(&late)).await.unwrap();
    assert!(announced() > before, "a late node is notified");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_silent_for_minutes_is_waited_for_once_more_and_again_when_it_is_back() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let mut keys = Vec::new();
    for _ in 0..5 {
        keys.push(cluster.key(&one).await);
    }
    two.node.renew_from_store().await.unwrap();

    // Two asks nothing from here on, as if its machine were gone.
    for key in &keys[..2] {
        let before = cluster.steady.now_ms();
        cluster.pass_until(one.revoke(key)).await.unwrap();
        assert!(cluster.steady.now_ms() - before >= 5500, "it may only be cut off");
        assert_eq!(two.lets_in(&keys[4]), Err(KeyRefusal::Unconfirmed));
        cluster.test.sql("UPDATE node SET seen_ms = seen_ms - 600000").await;
    }

    // From then on no time passes at all, even if nothing can be announced.
    for (key, cut) in [(&keys[2], false), (&keys[3], true)] {
        one.connection.cut.store(cut, Ordering::SeqCst);
        tokio::time::timeout(TEST_TIMEOUT, one.revoke(key)).await.unwrap().unwrap().unwrap();
    }
    one.connection.cut.store(false, Ordering::SeqCst);
    two.node.renew_from_register().await.unwrap();
    for key in &keys {
        assert_eq!(
            two.lets_in(key),
            Err(KeyRefusal::Unconfirmed),
            "the register knows more than it"
        );
    }

    // It was only cut off. After it accepts keys again, changes wait for it again.
    two.node.renew_from_store().await.unwrap();
    assert_eq!(two.lets_in(&keys[4]), Ok(()));
    let revoked = one.revoke(&keys[4]);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!revoked.is_finished());
    while !revoked.is_finished() {
        two.node.renew_from_store().await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    revoked.await.unwrap().unwrap();
    assert_eq!(two.lets_in(&keys[4]), Err(KeyRefusal::Unknown));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_say_what_it_has_read_goes_by_it_for_as_long_as_leases_last() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let (key, other) = (cluster.key(&one).await, cluster.key(&one).await);
    two.node.renew_from_store().await.unwrap();
    // The database fails just after two has read the next change.
    let mute = "CREATE TRIGGER mute BEFORE UPDATE ON node WHEN NEW.confirmed > OLD.confirmed BEGIN SELECT RAISE(ABORT, 'mute'); END";
    cluster.test.sql(mute).await;
    cluster.pass_until(one.revoke(&key)).await.unwrap();
    assert!(two.node.renew_from_store().await.is_err());
    let mut lasted_ms = 0;
    while two.lets_in(&other) == Ok(()) {
        assert_eq!(two.lets_in(&key), Err(KeyRefusal::Unknown));
        cluster.steady.advance(1000);
        lasted_ms += 1000;
        two.node.renew_from_register().await.unwrap();
    }
    assert!((60_000..120_000).contains(&lasted_ms), "{lasted_ms}");
    assert_eq!(two.lets_in(&other), Err(KeyRefusal::Unconfirmed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_connection_is_known_by_is_refused_as_well_by_who_is_out_of_touch() {
    let cluster = TestCluster::new();
    let one = cluster.member().await;
    let key = cluster.key(&one).await;
    let mut known = accounts::ConnectionKey::default();
    let now = cluster.test.now();
    let mut come =
        || one.node.keys.authenticate_again(key.expose().as_bytes(), now, &mut known).map(drop);
    assert_eq!((come(), come()), (Ok(()), Ok(())));
    cluster.steady.advance(5000);
    assert_eq!(come(), Err(KeyRefusal::Unconfirmed));
    // A malformed key is refused without a lease.
    assert!(matches!(one.node.keys.authenticate(b"sk_test_x", now), Err(KeyRefusal::Unknown)));
}

#[tokio::test(flavor = "multi_thread")]
async fn either_witness_is_enough_to_go_on_and_without_both_nobody_is_let_in() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let key = cluster.key(&one).await;
    for member in [&one, &two] {
        member.node.renew_from_store().await.unwrap();
        // The database is gone for good.
        member.node.store.close().await;
    }
    for _ in 0..10 {
        cluster.steady.advance(3000);
        for member in [&one, &two] {
            assert!(member.node.renew_from_store().await.is_err());
            member.node.renew_from_register().await.unwrap();
            assert_eq!(member.lets_in(&key), Ok(()));
        }
    }
    two.connection.cut.store(true, Ordering::SeqCst);
    cluster.steady.advance(4999);
    assert!(two.node.renew_from_register().await.is_err());
    assert_eq!(two.lets_in(&key), Ok(()));
    cluster.steady.advance(1);
    assert_eq!(two.lets_in(&key), Err(KeyRefusal::Unconfirmed));
    let figures = one.node.key_lease().unwrap();
    assert_eq!((figures.by_register, figures.by_store > 0), (10, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_announced_is_not_called_done_until_every_node_says_so() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let key = cluster.key(&one).await;
    two.node.renew_from_store().await.unwrap();
    one.connection.cut.store(true, Ordering::SeqCst);
    let refused = cluster.pass_until(one.revoke(&key)).await.unwrap_err();
    assert!(matches!(refused, AccountError::Unconfirmed { .. }), "{refused:?}");
    let text = refused.to_string();
    assert!(text.starts_with("the change is stored, but 1 node did not confirm it"), "{text}");
    one.node.renew_from_store().await.unwrap();
    assert_eq!(one.lets_in(&key), Err(KeyRefusal::Unknown));
    // This is correct: two reaches the register, which has not heard of the change.
    two.node.renew_from_register().await.unwrap();
    assert_eq!(two.lets_in(&key), Ok(()));
    assert_eq!(one.node.key_lease().unwrap().unconfirmed, 1);

    // A key rotated now is still returned.
    let other = cluster.key(&two).await;
    let accounts = Arc::clone(&one.node.accounts);
    let text = other.expose().to_owned();
    let rotated =
        tokio::spawn(async move { accounts.rotate_key(&text, None, &Actor::command_line()).await });
    let rotated = cluster.pass_until(rotated).await.unwrap();
    assert!(matches!(rotated.unconfirmed, Some(AccountError::Unconfirmed { .. })));
    one.node.renew_from_store().await.unwrap();
    assert_eq!(one.lets_in(&rotated.secret), Ok(()));

    // Once two follows, repeating the revocation confirms it, with or without the register.
    two.node.renew_from_store().await.unwrap();
    let again = one.revoke(&key);
    while !again.is_finished() {
        two.node.renew_from_store().await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    again.await.unwrap().unwrap();
    assert_eq!(two.lets_in(&key), Err(KeyRefusal::Unknown));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_is_not_waited_for_and_lets_nobody_in() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let key = cluster.key(&one).await;
    two.node.renew_from_store().await.unwrap();
    two.node.release().await.unwrap();
    assert_eq!(two.lets_in(&key), Err(KeyRefusal::Unconfirmed));
    two.node.renew_from_store().await.unwrap();
    two.node.renew_from_register().await.unwrap();
    assert_eq!(two.lets_in(&key), Err(KeyRefusal::Unconfirmed), "it does not come back");
    // No time passes at all.
    tokio::time::timeout(TEST_TIMEOUT, one.revoke(&key)).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_line_waits_for_the_nodes_as_they_do_for_each_other() {
    let cluster = TestCluster::new();
    let one = cluster.member().await;
    let key = cluster.key(&one).await;
    let registry = cluster.test.command_line().await;
    registry.revoke_key(key.expose(), &Actor::command_line()).await.unwrap();
    let authorities = cluster.authorities().await;
    let confirming = tokio::spawn(async move { authorities.confirm(Need::Everywhere).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!confirming.is_finished());
    assert_eq!(one.lets_in(&key), Ok(()));
    let following = one.follows();
    tokio::time::timeout(TEST_TIMEOUT, confirming).await.unwrap().unwrap().unwrap();
    assert_eq!(one.lets_in(&key), Err(KeyRefusal::Unknown));
    following.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_set_back_does_not_stop_the_nodes() {
    let cluster = TestCluster::new();
    let one = cluster.member().await;
    let key = cluster.key(&one).await;
    // As after a restore: the register knows a greater number than the database.
    *cluster.register.greatest.lock().unwrap() = Some(50);
    cluster.steady.advance(5000);
    one.node.renew_from_register().await.unwrap();
    assert_eq!(one.lets_in(&key), Err(KeyRefusal::Unconfirmed));
    one.node.renew_from_store().await.unwrap();
    assert_eq!((one.lets_in(&key), one.node.key_lease().unwrap().number), (Ok(()), 51));
    cluster.steady.advance(4000);
    one.node.renew_from_register().await.unwrap();
    cluster.steady.advance(4000);
    assert_eq!(one.lets_in(&key), Ok(()));
}

/// After a restore numbers are reused, and nodes have confirmed them before it.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_a_database_from_before_a_restore_confirm_nothing() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let (key, ended) = (cluster.key(&one).await, cluster.key(&one).await);
    for _ in 0..5 {
        cluster.key(&two).await;
    }
    one.node.renew_from_store().await.unwrap();
    cluster.test.sql("UPDATE key_change SET number = 1").await;
    // A command line that does not know of the restore.
    cluster
        .test
        .command_line()
        .await
        .revoke_key(ended.expose(), &Actor::command_line())
        .await
        .unwrap();
    let authorities = cluster.authorities().await;
    let announced = || *cluster.register.greatest.lock().unwrap();
    let before = announced();
    let confirming = tokio::spawn(async move { authorities.confirm(Need::Everywhere).await });
    // It is the first to notice: a node would have corrected the numbers already.
    while announced() == before && !confirming.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let begun_ms = cluster.steady.now_ms();
    while !confirming.is_finished() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cluster.steady.advance(100);
        for member in [&one, &two] {
            member.node.renew_from_store().await.unwrap();
        }
    }
    confirming.await.unwrap().unwrap();
    assert!(cluster.steady.now_ms() - begun_ms >= 5500, "it may not list everybody");
    for member in [&one, &two] {
        assert_eq!(member.lets_in(&ended), Err(KeyRefusal::Unknown));
        assert_eq!(member.lets_in(&key), Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_were_changed_hold_on_every_node() {
    let cluster = TestCluster::new();
    let (one, two) = (cluster.member().await, cluster.member().await);
    let key = cluster.key(&one).await;
    two.node.renew_from_store().await.unwrap();
    cluster.test.sql("UPDATE api_key SET burst_per_minute = 2, change_number = 99").await;
    cluster.test.sql("UPDATE key_change SET number = 99").await;
    two.node.renew_from_store().await.unwrap();
    let now = cluster.test.now();
    let entry = two.node.keys.authenticate(key.expose().as_bytes(), now).unwrap();
    let expected = limits(2, 9, None);
    assert_eq!((entry.grant.limits, two.node.key_lease().unwrap().number), (expected, 99));
}

#[tokio::test]
async fn a_process_that_is_alone_needs_nobodys_word() {
    let test = TestStore::at(NOON);
    let key = test.issue(limits(9, 9, None)).await;
    let node = test.node().await;
    assert_eq!(node.key_lease(), None);
    node.follow().await;
    node.renew_from_store().await.unwrap();
    node.renew_from_register().await.unwrap();
    test.clock.advance(crate::DAY);
    assert!(node.keys.authenticate(key.expose().as_bytes(), test.now()).is_ok());
}
