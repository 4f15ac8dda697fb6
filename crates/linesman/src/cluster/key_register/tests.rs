use std::sync::Arc;
use std::time::{Duration, Instant};

use accounts::{
    Accounts, Actor, KeyKind, KeyRefusal, KeySecret, Need, NewKey, Registry, RevocationRegister,
};
use domain::Clock;
use store::Store;
use test_servers::{Nats, Postgres, Proxy};

use crate::clock::SystemClock;
use crate::cluster::key_register::{KeyRegister, REGISTERS, confirm_everywhere, open_cluster};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The servers' answer, with retries: the timeout of one second is too short for a busy machine.
async fn confirm(register: &KeyRegister, held: i64) -> Result<i64, String> {
    let begun = Instant::now();
    loop {
        match register.confirm(held).await.map_err(|error| error.to_string()) {
            Err(error) if !error.contains("announced") => {
                assert!(begun.elapsed() < TIMEOUT, "{error}");
            }
            answered => return answered,
        }
    }
}

async fn announce(register: &KeyRegister, number: i64) {
    let begun = Instant::now();
    while let Err(error) = register.announce(number).await {
        assert!(begun.elapsed() < TIMEOUT, "{error}");
    }
}

/// A process that asks a given register.
async fn asking(url: &str, own: usize) -> KeyRegister {
    let mut register = KeyRegister::open(url, Some(1)).await.unwrap();
    register.own = own;
    register
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greatest_number_that_was_announced_is_known_to_all() {
    let servers = Nats::start(1).unwrap();
    for register in 0..REGISTERS {
        let (one, two) = (asking(&servers.url(), register).await, asking(&servers.url(), 0).await);
        let base = i64::try_from(register).unwrap() * 100;
        if register == 0 {
            let refused = confirm(&one, 5).await.unwrap_err();
            assert!(refused.contains("nothing was ever announced"), "{refused}");
        }
        announce(&two, base + 7).await;
        assert_eq!(confirm(&one, base + 7).await, Ok(base + 7));
        assert_eq!(confirm(&one, base + 6).await, Ok(base + 7), "who has less is told so");
        // An older change that is announced late changes nothing.
        announce(&two, base + 3).await;
        assert_eq!(confirm(&one, base + 6).await, Ok(base + 7));
        assert_eq!(confirm(&one, base + 9).await, Ok(base + 9));
        // Another process that starts later finds the number.
        let three = asking(&servers.url(), register).await;
        assert_eq!(confirm(&three, 0).await, Ok(base + 9));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_and_announces_at_once_never_hears_less_than_was_announced_before() {
    let mut servers = Nats::start(3).unwrap();
    let url = servers.url();
    let said = Arc::new(std::sync::atomic::AtomicI64::new(0));
    let first = KeyRegister::open(&url, Some(3)).await.unwrap();
    announce(&first, 1).await;
    let mut askers = Vec::new();
    for _ in 0..6 {
        let (url, said) = (url.clone(), Arc::clone(&said));
        askers.push(tokio::spawn(async move {
            let register = KeyRegister::open(&url, Some(3)).await.unwrap();
            let (mut held, mut answers) = (0, 0);
            while said.load(std::sync::atomic::Ordering::SeqCst) < 40 {
                let before = said.load(std::sync::atomic::Ordering::SeqCst);
                // During an election the register does not answer.
                if let Ok(number) = register.confirm(held).await {
                    assert!(number >= before, "{number} after {before} was announced");
                    (held, answers) = (held.max(number), answers + 1);
                }
            }
            answers
        }));
    }
    for number in 2..=40 {
        if number == 20 {
            servers.kill(1).unwrap();
        }
        announce(&first, number).await;
        said.store(number, std::sync::atomic::Ordering::SeqCst);
    }
    for asker in askers {
        assert!(asker.await.unwrap() > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_answer_are_not_waited_for_beyond_a_bound() {
    let servers = Nats::start(1).unwrap();
    let proxy = Proxy::start(servers.port(0).unwrap()).await.unwrap();
    let register =
        KeyRegister::open(&format!("nats://127.0.0.1:{}", proxy.port()), Some(1)).await.unwrap();
    announce(&register, 4).await;
    proxy.stall();
    let begun = Instant::now();
    assert!(register.confirm(4).await.is_err());
    assert!(register.announce(5).await.is_err());
    assert!(begun.elapsed() < TIMEOUT, "{:?}", begun.elapsed());
    proxy.restore();
    announce(&register, 6).await;
    assert_eq!(confirm(&register, 6).await, Ok(6));
    // No server listens there, which must not prevent a start.
    let nowhere = format!("nats://127.0.0.1:{}", test_servers::free_port().unwrap());
    assert!(KeyRegister::open(&nowhere, Some(1)).await.unwrap().confirm(0).await.is_err());
}

/// A node with its own connections to the servers.
struct Node {
    accounts: Arc<Accounts>,
    to_database: Proxy,
    to_nats: Proxy,
}

/// Long enough that a machine that stalls for seconds still renews its lease.
const TRUST: Duration = Duration::from_secs(8);

impl Node {
    async fn start(database: &Postgres, nats: &Nats) -> Self {
        let to_database = Proxy::start(database.port()).await.unwrap();
        let to_nats = Proxy::start(nats.port(0).unwrap()).await.unwrap();
        let url = format!("postgres://postgres@127.0.0.1:{}/db", to_database.port());
        let store = Store::connect(&url).await.unwrap();
        let nats = format!("nats://127.0.0.1:{}", to_nats.port());
        let cluster = open_cluster(&nats, Some(1), TRUST).await.unwrap();
        let clock = Arc::new(SystemClock) as Arc<dyn Clock>;
        let (accounts, worker) = Accounts::load_node(store, clock, cluster).await.unwrap();
        let accounts = Arc::new(accounts);
        let following = Arc::clone(&accounts);
        tokio::spawn(async move { following.follow().await });
        tokio::spawn(worker.run());
        Self { accounts, to_database, to_nats }
    }

    fn lets_in(&self, key: &KeySecret) -> Result<(), KeyRefusal> {
        self.accounts.keys.authenticate(key.expose().as_bytes(), SystemClock.now()).map(drop)
    }

    /// Waits for an answer; before it, only the answers that can precede it may occur.
    async fn comes_to(&self, key: &KeySecret, wanted: Result<(), KeyRefusal>) {
        let begun = Instant::now();
        while self.lets_in(key) != wanted {
            assert!(begun.elapsed() < TIMEOUT, "{:?} for too long", self.lets_in(key));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_holds_on_every_node_whatever_it_is_cut_off_from() {
    let (database, nats) = (Postgres::start().unwrap(), Nats::start(1).unwrap());
    database.create_database("db").unwrap();
    let one = Node::start(&database, &nats).await;
    let two = Node::start(&database, &nats).await;
    let make = async || {
        let new = NewKey::of_kind(KeyKind::Production);
        one.accounts.create_key(new, &Actor::command_line()).await.unwrap().0
    };
    let mut keys = Vec::new();
    for _ in 0..4 {
        keys.push(make().await);
    }
    let other = make().await;
    two.comes_to(&other, Ok(())).await;

    // With all servers up, the change is confirmed without waiting for a lease.
    one.accounts.revoke_key(keys[0].expose(), &Actor::command_line()).await.unwrap();
    assert_eq!(two.lets_in(&keys[0]), Err(KeyRefusal::Unknown));

    // The same for a command line.
    let (key, store) = (make().await, Store::connect(&database.url("db")).await.unwrap());
    let registry = Registry::new(store.clone(), Arc::new(SystemClock));
    registry.revoke_key(key.expose(), &Actor::command_line()).await.unwrap();
    let among = open_cluster(&nats.url(), Some(1), TRUST).await.unwrap();
    confirm_everywhere(store, among, Need::Everywhere).await.unwrap();
    assert_eq!([&one, &two].map(|node| node.lets_in(&key)), [Err(KeyRefusal::Unknown); 2]);

    // Cut off from the database, two continues by the register until the register has a newer number.
    two.to_database.stall();
    let begun = Instant::now();
    while begun.elapsed() < 3 * TRUST / 2 {
        assert_eq!(two.lets_in(&other), Ok(()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(two.accounts.key_lease().unwrap().by_register > 0);
    one.accounts.revoke_key(keys[1].expose(), &Actor::command_line()).await.unwrap();
    assert_eq!(two.lets_in(&keys[1]), Err(KeyRefusal::Unconfirmed));
    two.to_database.restore();
    two.comes_to(&other, Ok(())).await;
    assert_eq!(two.lets_in(&keys[1]), Err(KeyRefusal::Unknown));

    // Cut off from NATS alone, it is not affected.
    two.to_nats.stall();
    one.accounts.revoke_key(keys[2].expose(), &Actor::command_line()).await.unwrap();
    assert_eq!(two.lets_in(&keys[2]), Err(KeyRefusal::Unknown));
    assert_eq!(two.lets_in(&other), Ok(()));

    // Cut off from both, it accepts no key by the time that the call returns.
    two.to_database.stall();
    one.accounts.revoke_key(keys[3].expose(), &Actor::command_line()).await.unwrap();
    assert_eq!(two.lets_in(&keys[3]), Err(KeyRefusal::Unconfirmed));
    two.comes_to(&other, Err(KeyRefusal::Unconfirmed)).await;
    two.to_database.restore();
    two.to_nats.restore();
    two.comes_to(&other, Ok(())).await;
    assert_eq!(two.lets_in(&keys[3]), Err(KeyRefusal::Unknown));
}
