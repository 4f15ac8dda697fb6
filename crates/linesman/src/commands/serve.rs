//! `linesman serve`: everything in one process on a data folder, or a node of a cluster.

pub(crate) mod banner;

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use accounts::{Accounts, LeaseWorker, Outbox, People, PeopleRules};
use anyhow::{Context, bail};
use api::ingest::PushLimits;
use api::v1::stream::StreamSettings;
use api::v4::{self, Origins, V4Settings};
use api::{Api, ApiSettings};
use domain::{Clock, World};
use engine::{WorldHandle, Worlds};
use http::{Listener, Proxies, Server, ServerSettings, Tls};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serve::{Agents, ListenerRole, ListenerService, Service};
use store::Store;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use web::{Web, WebSettings};

use crate::cli::{Role, ServeArgs};
use crate::clock::SystemClock;
use crate::cluster;
use crate::commands::serve::banner::{Banner, FirstStart};
use crate::config::{Config, OpsListen};
use crate::control::Control;
use crate::folder::Folder;
use crate::reserve::Reserve;
use crate::task::{Part, Tasks};
use crate::worlds::{WorldSetup, spawn_world};
use crate::{catalogue, mail, open, upstream};

/// Runs the service until a signal stops it.
pub(crate) fn run(config: &Config, data: &Path, args: &ServeArgs) -> anyhow::Result<()> {
    let role = args.role;
    if config.cluster.is_none() && role != Role::All {
        bail!(
            "--role ingest and --role api need a cluster: set `database.url` and `cluster.nats_url`, or omit --role"
        );
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(workers) = config.server.workers {
        builder.worker_threads(workers);
    }
    let runtime = builder.enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(serve(config, data, args))
}

/// How long pushes may take once the service is stopping; connections may take longer.
const PUSHES_TIME_MAX: Duration = Duration::from_secs(10);

async fn serve(config: &Config, data: &Path, args: &ServeArgs) -> anyhow::Result<()> {
    let role = args.role;
    let catalogue = catalogue::load(config)?;
    let adapters = config.build_adapters(&catalogue)?;
    raise_descriptors(config.server.connections_max);
    let folder = Folder::open(data)?;
    let _lock = folder.lock().await?;
    // Before the first write: the disk may be full.
    let reserve = config.cluster.is_none().then(|| Reserve::open(&folder)).transpose()?;
    let control = Arc::new(Control::open(&folder)?);
    // Before starting parts that would have to be stopped again.
    let listeners = Listeners::bind(config, role)?;
    let Opened { store, clock, accounts, worker } =
        open_accounts(config, args, &folder, &listeners).await?;
    let (tasks, mut ended) = Tasks::new();
    let leasing = tasks.apart();
    leasing.spawn("the lease worker", worker.run());

    let setup = WorldSetup { config, role, folder: &folder, catalogue: &catalogue, clock: &clock };
    let (live, live_thread, leader_tasks) = setup.run_live(&store, &tasks).await?;
    let (sandbox, sandbox_writer) = setup.open_world(World::Sandbox)?;
    let threads = [live_thread, spawn_world(|| sandbox_writer.run(), &tasks, "sandbox")?];

    let people = open_people(config, &store, &clock)?.with_mail(open_mail(config, &tasks)?);
    let first_start = match config.cluster {
        None => FirstStart::make(config, &accounts, &people).await?,
        // In a cluster, each node would print a key and invalidate the link of the previous node.
        Some(_) => FirstStart::default(),
    };
    let worlds = Worlds { live: Arc::clone(&live), sandbox: Arc::clone(&sandbox) };
    let server = Server::new(clock, server_settings(config));
    let api = Api::new(catalogue, accounts, worlds, api_settings(config), server);
    let web = Web::new(Arc::clone(&api), people, web_settings(config, role));
    let ingest_on_main = config.server.ingest_listen.is_none();
    let agents = Agents::new(config.mcp.enabled);
    let service =
        Arc::new(Service { api: Arc::clone(&api), web: Arc::clone(&web), agents, ingest_on_main });
    let worlds = [Arc::clone(&live), Arc::clone(&sandbox)];
    if let Some(reserve) = reserve {
        tasks.spawn("the disk reserve", reserve.keep(worlds));
    }
    tasks.spawn("account maintenance", maintain_accounts(Arc::clone(&web)));
    if config.cluster.is_some() {
        // A single process sees all changes of keys itself.
        let api = Arc::clone(&api);
        tasks.spawn("the follower of key changes", async move { api.accounts.follow().await });
    }
    upstream::start(adapters, &api, &store, &tasks).await?;
    let url = banner::public_url(config, listeners.main);
    tasks.spawn("the control socket", Arc::clone(&control).run(Arc::clone(&api), url));

    let stop = CancellationToken::new();
    // Before the banner: a process that reads it may send a signal.
    let signals = Signals::catch()?;
    Banner { config, role, listeners: &listeners, first_start: &first_start, data }.print_or_warn();
    let serving = listen(listeners, &service, &stop);
    let outcome = wait_for_stop(signals, &mut ended).await;

    stop.cancel();
    drain(serving, &live).await;
    upstream::stop(&tasks).await?;
    control.close();
    live.stop();
    sandbox.stop();
    for thread in threads {
        tokio::task::spawn_blocking(|| thread.join()).await?.unwrap_or_default();
    }
    if let Some(leader_tasks) = leader_tasks {
        leader_tasks.stop().await;
    }
    maintain_accounts_once(&web).await;
    let released = api.accounts.release().await;
    leasing.stop();
    store.close().await;
    released.context("unused leases could not be returned")?;
    outcome
}

/// Answers requests until `stop` is cancelled.
fn listen(listeners: Listeners, service: &Arc<Service>, stop: &CancellationToken) -> JoinSet<()> {
    let mut serving = JoinSet::new();
    for (listener, role) in listeners.sockets.into_iter().zip(listeners.roles) {
        let entrance = Arc::new(ListenerService { service: Arc::clone(service), role });
        serving.spawn(serve::run(entrance, listener, stop.clone()));
    }
    serving.spawn(web::keep_pages(Arc::clone(&service.web), stop.clone()));
    serving
}

/// Waits for connections to end, and for pushes within their limit.
async fn drain(mut serving: JoinSet<()>, live: &WorldHandle) {
    let mut served = pin!(async { while serving.join_next().await.is_some() {} });
    if tokio::time::timeout(PUSHES_TIME_MAX, served.as_mut()).await.is_err() {
        // Lines in the log are kept; feeds send the rest again.
        live.end_pushes();
        served.await;
    }
}

/// Number of descriptors besides connections: listeners, logs, the store, a file of answers for each epoch.
const OTHER_DESCRIPTORS: u64 = 100;

/// Raises the limit of descriptors as far as the system allows: each connection needs one, and the default is often
/// 1,024.
fn raise_descriptors(connections_max: usize) {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limits.maximum, maximum: limits.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(event = "service.file_limit_failed", %error, "cannot raise the limit of open files");
    }
    let needed =
        u64::try_from(connections_max).unwrap_or(u64::MAX).saturating_add(OTHER_DESCRIPTORS);
    if let Some(allowed) = getrlimit(Resource::Nofile).current.filter(|allowed| *allowed < needed) {
        tracing::warn!(
            event = "service.file_limit_low",
            allowed,
            needed,
            "the limit of open files (ulimit -n) is too low for `server.connections_max`"
        );
    }
}

/// The signals that end the service.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn catch() -> anyhow::Result<Self> {
        let caught = |kind| signal(kind).context("cannot handle signals");
        Ok(Self {
            terminate: caught(SignalKind::terminate())?,
            interrupt: caught(SignalKind::interrupt())?,
        })
    }
}

/// Waits for a signal, or for a part of the service to end unexpectedly.
async fn wait_for_stop(
    Signals { mut terminate, mut interrupt }: Signals,
    ended: &mut mpsc::Receiver<Part>,
) -> anyhow::Result<()> {
    let reason = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        part = ended.recv() => {
            let part = part.unwrap_or("a part of the service");
            tracing::error!(event = "service.part_ended", part, "a part of the service ended; the service stops");
            bail!("{part} ended unexpectedly; see the log");
        }
    };
    tracing::info!(
        event = "service.stopping",
        reason,
        "stopping; open requests are finished first"
    );
    // A second signal stops at once.
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {},
            _ = interrupt.recv() => {},
        }
        tracing::warn!(event = "service.aborted", "second signal; stopping at once");
        std::process::abort();
    });
    Ok(())
}

/// The store, the clock and the accounts of the data folder, or of the cluster.
struct Opened {
    store: Store,
    clock: Arc<dyn Clock>,
    accounts: Accounts,
    worker: LeaseWorker,
}

/// Opens the store and reads the accounts. A node of a cluster answers "not ready" until it reaches the database.
async fn open_accounts(
    config: &Config,
    args: &ServeArgs,
    folder: &Folder,
    listeners: &Listeners,
) -> anyhow::Result<Opened> {
    let Some(cluster) = &config.cluster else {
        let store = match args.new_accounts {
            true => open::open_or_make_store(config, folder).await?,
            false => open::open_store(config, folder).await?,
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (accounts, worker) = Accounts::load(store.clone(), Arc::clone(&clock)).await?;
        return Ok(Opened { store, clock, accounts, worker });
    };
    tracing::info!(event = "service.listening", listen = %listeners.main, operator = %listeners.operator, "listening; ready once the database is read");
    let why = "this node waits for the database";
    let server = Server::new(Arc::new(SystemClock), server_settings(config));
    let joining = cluster::join(cluster);
    let joined = Box::pin(serve::answer_until(server, &listeners.sockets, why, joining)).await?;
    let (store, clock, (accounts, worker)) = joined;
    tokio::spawn(Arc::clone(&clock).keep(store.clone()));
    Ok(Opened { store, clock, accounts, worker })
}

fn api_settings(config: &Config) -> ApiSettings {
    ApiSettings {
        query_key_enabled: config.api.query_key_enabled,
        query_key_sunset: http::http_date(config.api.query_key_sunset),
        pushes: PushLimits {
            bytes_max: config.server.push_memory_max_mib << 20,
            feed_bytes_max: config.server.push_memory_per_feed_max_mib << 20,
        },
        v4: V4Settings {
            enabled: config.v4.enabled,
            credits: config.v4.credits,
            allow_origins: Origins(config.v4.allow_origins.clone()),
            docs_url: config.dashboard.public_url.clone().unwrap_or_default() + v4::DOCS_PATH,
        },
        stream: StreamSettings {
            enabled: config.stream.enabled,
            live: config.stream.live,
            per_key_max: config.stream.per_key_max,
            connections_max: config
                .stream
                .connections_max
                .unwrap_or((config.server.connections_max * 3 / 4).max(1)),
            replays_max: config.stream.replays_max,
            memory_max: config.stream.memory_mb << 20,
        },
    }
}

fn server_settings(config: &Config) -> ServerSettings {
    ServerSettings {
        connections_max: config.server.connections_max,
        connections_per_source_max: config.server.connections_per_source_max(),
        drain: config.server.drain,
        shed_after: config.server.shed_after,
        proxies: Proxies {
            trusted: config.server.trusted_proxies.clone().unwrap_or_default(),
            header: config.server.proxy_header,
        },
    }
}

fn web_settings(config: &Config, role: Role) -> WebSettings {
    let dashboard = &config.dashboard;
    WebSettings {
        enabled: dashboard.enabled && role != Role::Ingest,
        public_url: dashboard.public_url.clone(),
        status_page: dashboard.status_page,
        board: dashboard.board,
        board_watchers_max: dashboard.board_watchers_max,
        board_watchers_per_source_max: dashboard.board_watchers_per_source_max,
        docs: dashboard.docs,
    }
}

/// Starts sending emails if a mail server is configured.
fn open_mail(config: &Config, tasks: &Tasks) -> anyhow::Result<Option<Outbox>> {
    let Some(mail) = config.mail.as_ref().filter(|_| config.dashboard.enabled) else {
        return Ok(None);
    };
    let (outbox, email_queue) = accounts::outbox(&mail.public_url);
    tasks.spawn("the email sender", mail::deliver(mail, email_queue)?);
    Ok(Some(outbox))
}

fn open_people(config: &Config, store: &Store, clock: &Arc<dyn Clock>) -> anyhow::Result<People> {
    let dashboard = &config.dashboard;
    let rules = PeopleRules {
        sign_up: dashboard.sign_up,
        session_idle: dashboard.session_idle,
        session_max: dashboard.session_max,
    };
    Ok(People::new(store.clone(), Arc::clone(clock), rules)?)
}

/// How often key uses and usage are stored, quotas checked and ended sessions deleted.
const MAINTAIN_EVERY: Duration = Duration::from_secs(60);

async fn maintain_accounts(web: Arc<Web>) {
    let mut every = tokio::time::interval(MAINTAIN_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        maintain_accounts_once(&web).await;
    }
}

/// Failed steps are retried a minute later.
async fn maintain_accounts_once(web: &Web) {
    if let Err(error) = web.api.accounts.record_key_uses().await {
        tracing::warn!(
            event = "keys.uses_not_stored",
            error = &error as &dyn std::error::Error,
            "last uses of keys not stored; retrying"
        );
    }
    if let Err(error) = web.api.write_usage().await {
        tracing::warn!(
            event = "usage.not_stored",
            error = &error as &dyn std::error::Error,
            "usage not stored; retrying"
        );
    }
    web.send_quota_alerts().await;
    if let Err(error) = web.people.prune().await {
        tracing::warn!(
            event = "sessions.prune_failed",
            error = &error as &dyn std::error::Error,
            "ended sessions not deleted; retrying"
        );
    }
}

struct Listeners {
    main: SocketAddr,
    ingest: Option<SocketAddr>,
    operator: SocketAddr,
    sockets: Vec<Listener>,
    /// The purpose of each listener.
    roles: Vec<ListenerRole>,
}

impl Listeners {
    fn bind(config: &Config, role: Role) -> anyhow::Result<Self> {
        let server = &config.server;
        let tls = match server.tls() {
            Some((cert, key)) => Some(load_tls(cert, key)?),
            None => None,
        };
        let main = bind(server.listen, "server.listen")?;
        let operator = match config.ops_listen() {
            OpsListen::Chosen(address) => bind(address, "server.ops_listen")?,
            OpsListen::Default(address) => match listen_on(address) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    bind((Ipv4Addr::LOCALHOST, 0).into(), "server.ops_listen")?
                }
                bound => bound
                    .with_context(|| format!("server.ops_listen: cannot listen on {address}"))?,
            },
        };
        let mut listeners = Self {
            main: main.local_addr()?,
            ingest: None,
            operator: operator.local_addr()?,
            sockets: Vec::new(),
            roles: Vec::new(),
        };
        listeners.add(main, main_role(role), tls.clone());
        listeners.add(operator, ListenerRole::Operator, None);
        if let Some(address) = server.ingest_listen {
            let listener = bind(address, "server.ingest_listen")?;
            listeners.ingest = Some(listener.local_addr()?);
            listeners.add(listener, ListenerRole::Ingest, tls);
        }
        Ok(listeners)
    }

    fn add(&mut self, socket: TcpListener, role: ListenerRole, tls: Option<Tls>) {
        self.sockets.push(Listener { socket, tls, measures_load: role == ListenerRole::Main });
        self.roles.push(role);
    }
}

/// An ingest node serves no API.
fn main_role(role: Role) -> ListenerRole {
    match role {
        Role::All | Role::Api => ListenerRole::Main,
        Role::Ingest => ListenerRole::Ingest,
    }
}

/// Maximum number of connections that wait to be accepted, limited by the system (`net.core.somaxconn`).
///
/// After a restart all clients reconnect at once; connections beyond the limit would be accepted seconds later.
const BACKLOG: u32 = 65_535;

fn bind(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    listen_on(address).with_context(|| {
        format!(
            "{key}: cannot listen on {address}; another program may use it (choose another with --listen)"
        )
    })
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn load_tls(cert: &Path, key: &Path) -> anyhow::Result<Tls> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .with_context(|| format!("server.tls_cert {} is not a PEM certificate", cert.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("server.tls_key {} is not a PEM private key", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("server.tls_cert and server.tls_key do not match")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Tls(TlsAcceptor::from(Arc::new(config))))
}
