//! Declares every setting: its key, form, bounds, default and meaning. `config.default.toml` is generated from it.
//! Rules for several settings together are in [`crate::config`].

use std::collections::BTreeMap;

use accounts::SignUp;
use api::v4::Credits;
use domain::World;
use http::ProxyHeader;

use crate::config::{
    adapter::AdapterSection,
    duration::LONGEST_MS,
    form::{
        Address, ArchivePath, BucketKey, BucketRegion, Count, DatabaseUrl, Date, File, IpNetwork,
        List, LogFilter, LogFormat, MailUrl, NatsUrl, OneOf, Origin, PublicUrl, Sender, Span,
        Switch,
    },
    schema::settings,
};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const YEAR: u64 = 365 * 24 * HOUR;

settings! {
    /// All sections, in the order in which they are printed.
    Sections {
        server: Server;
        market: Market;
        sandbox: Sandbox;
        history: History;
        stream: Stream;
        api: Api;
        v4: V4;
        mcp: Mcp;
        dashboard: Dashboard;
        mail: MailSection;
        database: DatabaseSection;
        cluster: ClusterSection;
        catalogue: Catalogue;
        log: Log;
        adapters: BTreeMap<String, AdapterSection>;
    }

    /// Listeners and their limits.
    Server {
        /// The address of the API.
        listen: Address = "127.0.0.1:8080";
        /// A separate listener for ingest, so that it need not face the internet. Unset: ingest is on `listen`.
        ingest_listen: Option<Address>, such as "127.0.0.1:8081";
        /// The address of /metrics; keep it off the internet. If the default address is in use, a free port is picked
        /// and printed. An address that you set yourself must be free.
        ops_listen: Address = "127.0.0.1:9464";
        /// The certificate chain (PEM). Set it together with `tls_key` for TLS; without both, the API is cleartext.
        tls_cert: Option<File>, such as "tls/fullchain.pem";
        /// The private key of the certificate (PEM).
        tls_key: Option<File>, such as "tls/privkey.pem";
        /// Maximum number of open connections, over all listeners. Further ones are answered 503 and closed; the
        /// metrics listener is not limited. Each connection needs a file descriptor: the start raises the process's
        /// limit as far as the system allows, and warns if that is too little.
        connections_max: Count<usize, 1, 1_000_000> = 10000;
        /// Maximum number of connections from one address (in IPv6, from one network of 64 bits), so that no client
        /// takes them all. Proxies named in `trusted_proxies` stand for many clients and are not counted. Unset: a
        /// quarter of `connections_max`, or 256 if that is more.
        connections_per_source_max: Option<Count<usize, 1, 1_000_000>>, such as 2500;
        /// How long a stopping service still accepts connections: `/readyz` reports the stop, and every response is
        /// the last on its connection. Make it longer than the interval at which your load balancer asks `/readyz`. A
        /// complete stop takes at most 25s.
        drain: Span<0, 15_000> = "1s";
        /// While requests wait longer than this, responses that are neither ready nor already requested since the
        /// last refresh are refused with 503 until the queue is shorter; others, status and health are still
        /// answered.
        shed_after: Span<10, MINUTE> = "250ms";
        /// Maximum memory for pushes that are being received, over all feeds, in MiB. A quarter is reserved for feeds
        /// that need little. Pushes beyond it are answered 503 with Retry-After.
        push_memory_max_mib: Count<usize, 16, 1_000_000> = 128;
        /// Maximum memory for the pushes of one feed, in MiB; it should be less than `push_memory_max_mib`.
        push_memory_per_feed_max_mib: Count<usize, 16, 1_000_000> = 32;
        /// Worker threads. Unset: one per processor.
        workers: Option<Count<usize, 1, 1024>>, such as 4;
        /// Proxies in front of `listen`. Only their forwarding headers are believed, so that throttles, limits per
        /// source and the audit log see the client instead of the proxy. In the environment, separate them with
        /// commas. Unset: no forwarding header is believed.
        trusted_proxies: Option<List<IpNetwork>>, such as "127.0.0.1,10.0.0.0/8";
        /// The header to which these proxies append the client's address; "forwarded" is RFC 7239. The other header
        /// may come from the client, and is ignored.
        proxy_header: OneOf<ProxyHeader> = "x-forwarded-for";
    }

    /// Epochs and lifetimes.
    Market {
        // Below 100 ms an epoch would be over before its snapshot is published.
        /// How often clients see new data, aligned to the wall clock.
        refresh_interval: Span<100, HOUR> = "30s";
        /// A bookmaker's feed for one sport is stale when it has had no good read for this long.
        stale_after: Span<100, LONGEST_MS> = "90s";
        /// How long a final event and its score, and an event that no feed lists any more, are kept.
        final_retention: Span<0, LONGEST_MS> = "72h";
        /// An event that never became final is removed this long after its start and the last message about it; a feed
        /// without prices, this long after its last good read.
        forget_after: Span<1000, LONGEST_MS> = "168h";
        /// Entries of the change log are kept at least this long; older ones are deleted once a checkpoint covers them.
        log_retention: Span<1000, LONGEST_MS> = "168h";
        /// Maximum number of records. Each event, each feed's listing of it and each market of a bookmaker counts as
        /// one record per 2 KiB of memory, rounded up: an ordinary one counts as one, an event with five hundred
        /// players with long names as about two hundred. A removed record counts until it is deleted. Beyond the limit,
        /// new listings and markets are refused (`too_large`); existing ones can still be corrected, scored, suspended
        /// and removed. The default is for 2 GiB of memory (docs/operations/sizing.md).
        records_max: Count<u64, 1, 1_000_000_000> = 500000;
        /// Maximum number of these records of one feed, so that no feed takes them all.
        records_per_feed_max: Count<u64, 1, 1_000_000_000> = 200000;
    }

    /// The simulated market.
    Sandbox {
        /// The simulated market that sandbox keys see. Live keys never see any of it.
        enabled: Switch = true;
        /// The same seed gives the same simulated market.
        seed: Count<u64, 0, { u64::MAX }> = 20261114;
    }

    /// Publications of the past.
    History {
        /// Answer requests with `as_of` from publications of the past. If it is off, cursors of streams and deltas
        /// stay valid for as long as the log has their entries (`market.log_retention`).
        enabled: Switch = true;
        /// How long publications can be requested, and files of the archive are kept.
        retention: Span<1000, LONGEST_MS> = "400d";
        /// The folder or bucket of the archive, the copy of the live world's log in Parquet files (docs/history.md).
        /// Unset: the folder `archive` in the data folder. In a cluster it must be a bucket, or a folder that all nodes
        /// share; unset, history is off there.
        store: Option<ArchivePath>, such as "s3://odds/archive";
        /// The address of the bucket, if it is not at AWS. Unset: `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` of the
        /// environment.
        s3_endpoint: Option<PublicUrl>, such as "https://s3.example.com";
        /// The region of the bucket. Unset: `AWS_REGION` or `AWS_DEFAULT_REGION` of the environment, or else us-east-1.
        s3_region: Option<BucketRegion>, such as "eu-central-1";
        /// The access key of the bucket. Unset: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`
        /// of the environment.
        s3_access_key_id: Option<BucketKey>, such as "AKIAIOSFODNN7EXAMPLE";
        /// The secret that belongs to the access key, best given in the environment.
        s3_secret_access_key: Option<BucketKey>, such as "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        /// Allow the archive to be sent in cleartext, to a server on a network that nobody else can read.
        s3_allow_http: Switch = false;
        /// How often publications are added to the archive.
        part_interval: Span<1000, { 24 * HOUR }> = "15m";
        /// Maximum memory for rebuilt publications and the answers computed from them, in MiB.
        memory_mb: Count<usize, 16, 1_000_000> = 512;
    }

    /// Streams of changes.
    Stream {
        /// Serve /v1/stream, where clients follow changes without polling.
        enabled: Switch = true;
        /// Allow clients to follow changes before they are published (`mode=live`). Off: answered 403.
        live: Switch = true;
        /// Maximum time that a change waits for others before they are sent to those clients together. Large markets
        /// are sent less often, so that this takes at most a tenth of the writer's time.
        live_tick: Span<1, 1000> = "20ms";
        /// Maximum number of open streams of one key, over all nodes. Further ones are answered 429.
        per_key_max: Count<usize, 1, 1_000_000> = 5;
        /// Maximum number of open streams on a node; each holds a connection. Further ones are answered 503. Unset:
        /// three quarters of `server.connections_max`.
        connections_max: Option<Count<usize, 1, 1_000_000>>, such as 7500;
        /// Maximum number of streams on each node that send every publication of the past (`replay=all`), or that
        /// continue from a position in the archive; at most one per key, over all nodes. Further ones wait for ten
        /// seconds and are then answered 503.
        replays_max: Count<usize, 1, 1000> = 4;
        /// Maximum memory for the events of streams that are shared or not yet read by clients, in MiB.
        memory_mb: Count<usize, 1, 1_000_000> = 64;
    }

    /// How keys are accepted.
    Api {
        /// Accept the key as `?api_key=` too, while clients move to the X-API-Key header.
        query_key_enabled: Switch = true;
        /// The day on which `?api_key=` ends, as announced to clients in the `Sunset` header.
        query_key_sunset: Date = "2027-12-31";
    }

    /// The prior interface under /v4.
    V4 {
        /// Serve /v4, where programs written for The Odds API v4 work unchanged.
        enabled: Switch = true;
        /// The number of requests of the quota that a response counts as: "prior" as The Odds API counts credits, by
        /// markets and regions; "flat" one for every response that is not free.
        credits: OneOf<Credits> = "prior";
        /// Origins whose pages may call /v4 from browsers, such as `https://app.example.com`; `*` for all. A key in a
        /// page can be read by everybody who opens it.
        allow_origins: List<Origin> = "";
    }

    /// The API for agents at /mcp.
    Mcp {
        /// Serve /mcp, where agents call the API as tools (Model Context Protocol, Streamable HTTP). A request must
        /// name this service in `Host`: an address, `localhost`, or the name in `dashboard.public_url`.
        enabled: Switch = true;
    }

    /// The web pages.
    Dashboard {
        /// The web pages: the developers' dashboard, the operators' console, the board, the status page.
        enabled: Switch = true;
        /// The address at which browsers reach the service, when that is not where it listens, for example behind a
        /// proxy that ends TLS. With https, cookies are sent over TLS only.
        public_url: Option<PublicUrl>, such as "https://odds.example.com";
        /// Who may create an account: "open" for everybody, "invitation" for people with an operator's link, "closed"
        /// for nobody.
        sign_up: OneOf<SignUp> = "open";
        /// Time without use after which a session ends.
        session_idle: Span<MINUTE, YEAR> = "24h";
        /// Time after sign-in at which a session ends, used or not.
        session_max: Span<MINUTE, YEAR> = "30d";
        /// The public status page at /status, with /status.json and /status.atom.
        status_page: Switch = true;
        /// The public board at /board, an odds screen that renews itself: of the "sandbox", of the "live" market, or
        /// "off".
        board: OneOf<Option<World>> = "sandbox";
        /// Maximum number of browsers that watch boards at the same time; each holds a connection. Further ones get
        /// the page and try again later.
        board_watchers_max: Count<usize, 1, 1_000_000> = 1000;
        /// Maximum number of such browsers from one address (in IPv6, from one network of 64 bits), so that no source
        /// takes all. Behind a proxy, set `server.trusted_proxies` too, or all clients are one source.
        board_watchers_per_source_max: Count<usize, 1, 1_000_000> = 100;
        /// The public API reference at /docs. The OpenAPI document stays at /openapi.json.
        docs: Switch = true;
    }

    /// The mail server, as written; [`crate::config::Mail`] is derived from it.
    MailSection {
        /// The mail server: with it, new accounts confirm their address, forgotten passwords are reset and people are
        /// warned of low quotas by email. Unset: no email is sent, and operators hand out links. Needs `from` and
        /// `dashboard.public_url`. `smtps://` is TLS from the start; `smtp://…?tls=required` begins in cleartext and
        /// switches to TLS or gives up; `smtp://` alone is cleartext, for a server on the same machine. User and
        /// password go before the host, percent-encoded.
        url: Option<MailUrl>, such as "smtps://user:password@mail.example.com";
        /// The sender of emails.
        from: Option<Sender>, such as "Linesman <odds@example.com>";
    }

    /// The shared database, as written; [`crate::config::Cluster`] is derived from it.
    DatabaseSection {
        /// The PostgreSQL database that many nodes share: keys, feeds, people, usage, and the current leader. Unset:
        /// SQLite in the data folder. Set it together with `cluster.nats_url`, or neither. The password is best given
        /// in the environment.
        url: Option<DatabaseUrl>, such as "postgres://linesman@localhost/linesman";
    }

    /// The shared log, as written; [`crate::config::Cluster`] is derived from it.
    ClusterSection {
        /// The NATS servers (JetStream) that hold the change log of the live market for all nodes, separated by commas.
        /// Unset: the log is in the data folder. Set it together with `database.url`, or neither; `linesman migrate`
        /// moves a data folder there.
        nats_url: Option<NatsUrl>, such as "nats://localhost:4222";
        // JetStream accepts at most five.
        /// Number of these servers that store a change before it is acknowledged, for a log that is created. Unset:
        /// three, or one if there is a single server. With three, one may fail at any time.
        replicas: Option<Count<usize, 1, 5>>, such as 3;
        // A node asks every second; with less than two seconds, one late answer would refuse all clients.
        /// How long a node accepts keys from memory after it last asked PostgreSQL or NATS for revocations. A node that
        /// reaches neither refuses all keys after that; a revocation waits this long for a node that does not answer.
        key_trust: Span<2000, HOUR> = "5s";
    }

    /// The operator's additions to the catalogue.
    Catalogue {
        /// A TOML file with `[[bookmaker]]` and `[[sport]]` entries that add to or override the embedded catalogue.
        file: Option<File>, such as "catalogue.toml";
    }

    /// Contents and format of logs.
    Log {
        /// What is logged: a level, or a list with levels for single modules.
        filter: LogFilter = "info";
        /// "human" for reading, "json" for machines, "auto": human on a terminal and json otherwise.
        format: OneOf<LogFormat> = "auto";
    }
}
