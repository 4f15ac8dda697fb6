//! The configuration: embedded defaults < file < environment < flags, checked whole, every fault told.
//!
//! The only place that reads the environment. `config.default.toml` is the reference of all keys and is
//! itself the lowest layer. Nothing here opens a socket or a store; a [`Config`] that exists is sound in
//! itself, and [`Config::check_files`] looks whether the files it names are there.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fmt, fs,
    io::{self, Read as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use accounts::SignUp;
use domain::Timestamp;
use serve::{Network, ProxyHeader};

use crate::config::{
    key::{KEYS, Value},
    layer::Setting,
};

pub(crate) mod duration;
mod key;
mod layer;
mod print;

pub(crate) use crate::config::{
    key::{Board, LogFormat, parse_address},
    layer::{Fault, Origin},
};

/// The reference of all keys, and the lowest layer.
const DEFAULTS: &str = include_str!("../config.default.toml");

/// The file that is read when none is named and it exists.
const FILE_NAME: &str = "linesman.toml";

/// A configuration file is a few kilobytes; more is some other file named by mistake.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A whole and sound configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) market: Market,
    pub(crate) sandbox: Sandbox,
    pub(crate) api: Api,
    pub(crate) dashboard: Dashboard,
    /// `None`: no mail is sent.
    pub(crate) mail: Option<Mail>,
    /// `None`: one process on the stores of its data folder.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) catalogue: Catalogue,
    pub(crate) log: Log,
    /// What the sections were made of, one per key that has a value.
    settings: Vec<Setting>,
}

/// Listeners and their bounds.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    /// `None`: the ingest door is on `listen`.
    pub(crate) ingest_listen: Option<SocketAddr>,
    pub(crate) ops_listen: OpsListen,
    /// `None`: cleartext.
    pub(crate) tls: Option<Tls>,
    pub(crate) connections_max: usize,
    pub(crate) connections_per_source_max: usize,
    /// How long connections are still taken once the service stops.
    pub(crate) drain: Duration,
    /// How late the service may be before it refuses what is not ready.
    pub(crate) shed_after: Duration,
    /// Memory that pushes under way may take, over all feeds and of one.
    pub(crate) push_memory_max_mib: usize,
    pub(crate) push_memory_per_feed_max_mib: usize,
    /// `None`: one per processor.
    pub(crate) workers: Option<usize>,
    /// Who is believed when they say from whom they have a request.
    pub(crate) trusted_proxies: Vec<Network>,
    pub(crate) proxy_header: ProxyHeader,
}

/// What one source may have of connections where nothing else is said and there are few.
const CONNECTIONS_PER_SOURCE_MIN: usize = 256;

/// Where metrics are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpsListen {
    /// Nobody asked for this address: when it is taken, any free port will do.
    Default(SocketAddr),
    /// The operator asked for this address: when it is taken, the start fails.
    Chosen(SocketAddr),
}

/// The PEM files of the API's certificate.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Epochs and lifetimes.
#[derive(Debug)]
pub(crate) struct Market {
    pub(crate) refresh_interval: Duration,
    pub(crate) stale_after: Duration,
    pub(crate) final_retention: Duration,
    pub(crate) forget_after: Duration,
    pub(crate) log_retention: Duration,
    pub(crate) records_max: u64,
    pub(crate) records_per_feed_max: u64,
}

/// The simulated market.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) enabled: bool,
    pub(crate) seed: u64,
}

/// What the API accepts.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) query_key_enabled: bool,
    /// The first instant of the day, UTC.
    pub(crate) query_key_sunset: Timestamp,
}

/// The pages for people.
#[derive(Debug)]
pub(crate) struct Dashboard {
    pub(crate) enabled: bool,
    /// `None`: where it listens, or as the browser calls it.
    pub(crate) public_url: Option<String>,
    pub(crate) sign_up: SignUp,
    pub(crate) session_idle: Duration,
    pub(crate) session_max: Duration,
    pub(crate) status_page: bool,
    pub(crate) board: Board,
    pub(crate) board_watchers_max: usize,
    pub(crate) board_watchers_per_source_max: usize,
    pub(crate) docs: bool,
}

/// The mail server, and who letters are from. `Debug` does not show the address, which may hold a password.
pub(crate) struct Mail {
    pub(crate) url: String,
    pub(crate) from: String,
    /// Where people reach the service: what links in letters begin with.
    pub(crate) public_url: String,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("from", &self.from).finish_non_exhaustive()
    }
}

/// What many nodes share. `Debug` does not show the addresses, which may hold passwords.
pub(crate) struct Cluster {
    pub(crate) database_url: String,
    pub(crate) nats_url: String,
    /// `None`: three, or one where there is a single server.
    pub(crate) replicas: Option<usize>,
    /// For how long a node lets keys in without having asked anybody.
    pub(crate) key_trust: Duration,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("replicas", &self.replicas).finish_non_exhaustive()
    }
}

/// The operator's additions to the catalogue.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) file: Option<PathBuf>,
}

/// What is logged and how.
#[derive(Debug)]
pub(crate) struct Log {
    /// Directives as `tracing_subscriber::EnvFilter` takes them: `level` and `module=level`.
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
}

/// The values that the command line gave.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Flags {
    pub(crate) listen: Option<SocketAddr>,
}

/// All that is wrong with a configuration, in the order of the layers; never empty.
#[derive(Debug)]
pub(crate) struct Faults(Vec<Fault>);

impl Config {
    /// Reads all layers: `file` must exist when it is named, otherwise `linesman.toml` in the current
    /// folder is read if it exists.
    ///
    /// # Errors
    /// Anything in any layer is unknown, malformed or out of bounds, or the values do not fit together.
    pub(crate) fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, Faults> {
        let mut faults = Vec::new();
        let path = file.unwrap_or(Path::new(FILE_NAME));
        let text = match read_file(path) {
            Ok(text) => Some(text),
            Err(ReadRefusal::Missing) if file.is_none() => None,
            Err(refusal) => {
                let origin = Origin::File { path: path.to_owned(), line: 0 };
                faults.push(Fault::at(&origin, refusal.message()));
                None
            }
        };
        // All variables, not single ones by name: a misspelt name must be found too.
        let layers = Layers {
            file: text.as_deref().map(|text| (path, text)),
            environment: env::vars_os().collect(),
            flags: *flags,
        };
        layers.assemble(faults)
    }

    /// Looks whether the files that the configuration names can be read. Apart from [`Self::load`], so
    /// that a verb which needs no certificate also runs where the certificate is out of reach.
    ///
    /// # Errors
    /// One fault for each file that can not be opened.
    pub(crate) fn check_files(&self) -> Result<(), Faults> {
        let mut faults = Vec::new();
        for setting in &self.settings {
            let Value::Path(path) = &setting.value else {
                continue;
            };
            let refusal = match fs::metadata(path) {
                Ok(found) if found.is_file() => fs::File::open(path).err().map(|e| e.to_string()),
                Ok(_) => Some("it is not a file".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = refusal {
                let message =
                    format!("`{}`: cannot read {}: {why}", setting.key.path(), path.display());
                faults.push(Fault::at(&setting.origin, message));
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }

    /// Where the value of a key such as `server.listen` came from; `None` when it is not set.
    #[cfg(test)]
    pub(crate) fn origin(&self, path: &str) -> Option<&Origin> {
        self.settings.iter().find(|setting| setting.key.path() == path).map(|found| &found.origin)
    }
}

#[cfg(test)]
impl OpsListen {
    pub(crate) fn address(self) -> SocketAddr {
        match self {
            Self::Default(address) | Self::Chosen(address) => address,
        }
    }
}

#[cfg(test)]
impl Faults {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }
}

impl fmt::Display for Faults {
    /// One line for each fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.0.iter().enumerate() {
            let gap = if n == 0 { "" } else { "\n" };
            write!(f, "{gap}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// The layers above the defaults, read but not understood.
#[derive(Debug, Default)]
struct Layers<'a> {
    file: Option<(&'a Path, &'a str)>,
    environment: Vec<(OsString, OsString)>,
    flags: Flags,
}

impl Layers<'_> {
    /// Adds its own faults to those found on the way here.
    fn assemble(self, mut faults: Vec<Fault>) -> Result<Config, Faults> {
        let mut given = Vec::new();
        layer::read_toml(DEFAULTS, |_| Origin::Default, &mut given, &mut faults);
        if let Some((path, text)) = self.file {
            let origin = |line| Origin::File { path: path.to_owned(), line };
            layer::read_toml(text, origin, &mut given, &mut faults);
        }
        layer::read_environment(self.environment, &mut given, &mut faults);
        if let Some(listen) = self.flags.listen {
            let (origin, text) = (Origin::Flag("--listen"), listen.to_string());
            for key in KEYS.iter().filter(|key| key.path() == "server.listen") {
                layer::take(key, text.clone(), origin.clone(), &mut given, &mut faults);
            }
        }
        let mut settings = BTreeMap::new();
        for setting in given {
            settings.insert(setting.key.path(), setting);
        }
        let effective = Effective(settings);
        effective.check_together(&mut faults);
        if !faults.is_empty() {
            return Err(Faults(faults));
        }
        effective.into_config().map_err(|fault| Faults(vec![fault]))
    }
}

/// The value that won for each key.
struct Effective(BTreeMap<String, Setting>);

impl Effective {
    /// The rules that look at more than one value, or at whether one is set at all.
    fn check_together(&self, faults: &mut Vec<Fault>) {
        for (one, other) in
            [("server.tls_cert", "server.tls_key"), ("server.tls_key", "server.tls_cert")]
        {
            if let (Some(set), None) = (self.0.get(one), self.0.get(other)) {
                let message = format!("`{one}` needs `{other}` beside it: set both, or neither");
                faults.push(Fault::at(&set.origin, message));
            }
        }
        for (one, other) in [
            ("mail.url", "mail.from"),
            ("mail.from", "mail.url"),
            ("mail.url", "dashboard.public_url"),
        ] {
            if let (Some(set), None) = (self.0.get(one), self.0.get(other)) {
                let message = format!("`{one}` needs `{other}` beside it");
                faults.push(Fault::at(&set.origin, message));
            }
        }
        if let Some(set) = self.0.get("mail.url")
            && crate::mail::transport(&set.text).is_err()
        {
            // Not repeated: it may hold a password.
            let message = "`mail.url` is not an address such as smtps://user:password@mail.example.com or \
                           smtp://localhost:25";
            faults.push(Fault::at(&set.origin, message.to_owned()));
        }
        self.check_cluster(faults);
    }

    /// A cluster has a database and a log on servers, or is none. Addresses are not repeated: they may hold passwords.
    fn check_cluster(&self, faults: &mut Vec<Fault>) {
        for (one, other) in [
            ("database.url", "cluster.nats_url"),
            ("cluster.nats_url", "database.url"),
            ("cluster.replicas", "cluster.nats_url"),
        ] {
            if let (Some(set), None) = (self.0.get(one), self.0.get(other)) {
                let message = format!(
                    "`{one}` needs `{other}` beside it: many nodes share a database and a change log; set both, or neither for one process on \
                     its data folder"
                );
                faults.push(Fault::at(&set.origin, message));
            }
        }
        let is_nats = |url: &str| change_log::check_addresses(url).is_ok();
        for (path, is_right, example) in [
            (
                "database.url",
                is_database_url as fn(&str) -> bool,
                "postgres://linesman@db.example.com/linesman",
            ),
            (
                "cluster.nats_url",
                is_nats,
                "nats://one.example.com:4222,nats://two.example.com:4222",
            ),
        ] {
            if let Some(set) = self.0.get(path).filter(|set| !is_right(&set.text)) {
                let message = format!("`{path}` is not an address such as {example}");
                faults.push(Fault::at(&set.origin, message));
            }
        }
    }

    fn into_config(self) -> Result<Config, Fault> {
        let ops_listen: SocketAddr = self.required("server.ops_listen")?;
        let ops_is_default =
            self.0.get("server.ops_listen").is_some_and(|set| set.origin == Origin::Default);
        let cert: Option<PathBuf> = self.optional("server.tls_cert")?;
        let key: Option<PathBuf> = self.optional("server.tls_key")?;
        let connections_max: usize = self.required("server.connections_max")?;
        let per_source = self.optional("server.connections_per_source_max")?;
        Ok(Config {
            server: Server {
                listen: self.required("server.listen")?,
                ingest_listen: self.optional("server.ingest_listen")?,
                ops_listen: if ops_is_default {
                    OpsListen::Default(ops_listen)
                } else {
                    OpsListen::Chosen(ops_listen)
                },
                tls: cert.zip(key).map(|(cert, key)| Tls { cert, key }),
                connections_max,
                connections_per_source_max: per_source
                    .unwrap_or_else(|| (connections_max / 4).max(CONNECTIONS_PER_SOURCE_MIN)),
                drain: self.required("server.drain")?,
                shed_after: self.required("server.shed_after")?,
                push_memory_max_mib: self.required("server.push_memory_max_mib")?,
                push_memory_per_feed_max_mib: self
                    .required("server.push_memory_per_feed_max_mib")?,
                workers: self.optional("server.workers")?,
                trusted_proxies: self.optional("server.trusted_proxies")?.unwrap_or_default(),
                proxy_header: self.required("server.proxy_header")?,
            },
            market: Market {
                refresh_interval: self.required("market.refresh_interval")?,
                stale_after: self.required("market.stale_after")?,
                final_retention: self.required("market.final_retention")?,
                forget_after: self.required("market.forget_after")?,
                log_retention: self.required("market.log_retention")?,
                records_max: self.required("market.records_max")?,
                records_per_feed_max: self.required("market.records_per_feed_max")?,
            },
            sandbox: Sandbox {
                enabled: self.required("sandbox.enabled")?,
                seed: self.required("sandbox.seed")?,
            },
            api: Api {
                query_key_enabled: self.required("api.query_key_enabled")?,
                query_key_sunset: self.required("api.query_key_sunset")?,
            },
            dashboard: Dashboard {
                enabled: self.required("dashboard.enabled")?,
                public_url: self.optional("dashboard.public_url")?,
                sign_up: self.required("dashboard.sign_up")?,
                session_idle: self.required("dashboard.session_idle")?,
                session_max: self.required("dashboard.session_max")?,
                status_page: self.required("dashboard.status_page")?,
                board: self.required("dashboard.board")?,
                board_watchers_max: self.required("dashboard.board_watchers_max")?,
                board_watchers_per_source_max: self
                    .required("dashboard.board_watchers_per_source_max")?,
                docs: self.required("dashboard.docs")?,
            },
            mail: self.mail()?,
            cluster: self.cluster()?,
            catalogue: Catalogue { file: self.optional("catalogue.file")? },
            log: Log { filter: self.required("log.filter")?, format: self.required("log.format")? },
            settings: self.0.into_values().collect(),
        })
    }

    fn mail(&self) -> Result<Option<Mail>, Fault> {
        let (url, from) = (self.optional("mail.url")?, self.optional("mail.from")?);
        let public_url = self.optional("dashboard.public_url")?;
        Ok(match (url, from, public_url) {
            (Some(url), Some(from), Some(public_url)) => Some(Mail { url, from, public_url }),
            _ => None,
        })
    }

    fn cluster(&self) -> Result<Option<Cluster>, Fault> {
        let (database_url, nats_url) =
            (self.optional("database.url")?, self.optional("cluster.nats_url")?);
        let replicas = self.optional("cluster.replicas")?;
        let key_trust = self.required("cluster.key_trust")?;
        Ok(match (database_url, nats_url) {
            (Some(database_url), Some(nats_url)) => {
                Some(Cluster { database_url, nats_url, replicas, key_trust })
            }
            _ => None,
        })
    }

    /// The value of a key that the defaults set.
    fn required<T: FromValue>(&self, path: &str) -> Result<T, Fault> {
        self.optional(path)?.ok_or_else(|| broken(path))
    }

    fn optional<T: FromValue>(&self, path: &str) -> Result<Option<T>, Fault> {
        let Some(setting) = self.0.get(path) else {
            return Ok(None);
        };
        T::from_value(&setting.value).map(Some).ok_or_else(|| broken(path))
    }
}

/// Whether an address may be that of a database.
pub(crate) fn is_database_url(url: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Only a build whose embedded defaults and table of keys disagree gets here.
fn broken(path: &str) -> Fault {
    Fault::at(&Origin::Default, format!("`{path}` has no usable default in this build"))
}

/// The typed form of a value that has been read as its key's kind.
trait FromValue: Sized {
    /// `None` when the value is of another kind.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty: $pattern:pat => $typed:expr,)*) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                if let $pattern = value { $typed } else { None }
            }
        }
    )*};
}

from_value! {
    SocketAddr: Value::Address(address) => Some(*address),
    PathBuf: Value::Path(path) => Some(path.clone()),
    u64: Value::Count(count) => Some(*count),
    usize: Value::Count(count) => usize::try_from(*count).ok(),
    Duration: Value::Duration(duration) => Some(*duration),
    bool: Value::Switch(on) => Some(*on),
    Timestamp: Value::Date(date) => Some(*date),
    LogFormat: Value::Format(format) => Some(*format),
    SignUp: Value::SignUp(sign_up) => Some(*sign_up),
    Board: Value::Board(board) => Some(*board),
    Vec<Network>: Value::Networks(networks) => Some(networks.clone()),
    ProxyHeader: Value::ProxyHeader(header) => Some(*header),
    String: Value::Text(text) => Some(text.clone()),
}

enum ReadRefusal {
    Missing,
    Other(String),
}

impl ReadRefusal {
    fn message(self) -> String {
        match self {
            Self::Missing => "there is no such file; give --config the path of one".to_owned(),
            Self::Other(message) => message,
        }
    }
}

fn read_file(path: &Path) -> Result<String, ReadRefusal> {
    let refusal = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            ReadRefusal::Missing
        } else {
            ReadRefusal::Other(format!("cannot be read: {error}"))
        }
    };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(refusal)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(refusal)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(ReadRefusal::Other(
            "is larger than 1 MiB, so it is no configuration".to_owned(),
        ));
    }
    String::from_utf8(bytes).map_err(|_| ReadRefusal::Other("is not UTF-8 text".to_owned()))
}

#[cfg(test)]
mod tests;
