//! The configuration: defaults < file < environment < flags; every fault of every layer is reported.
//!
//! The only place that reads the environment. [`settings`] declares every setting; [`source`] overlays file,
//! environment and flags; [`schema`] reads the settings from that. A [`Config`] is consistent in itself;
//! [`Config::check_service`] checks that the files it names exist, and that the keys of the archive's bucket are known.

use std::{
    env,
    ffi::OsString,
    fmt, fs,
    io::{self, Read as _},
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::Duration,
};

use adapters::build::{Adapter, BuildFault, build};
use adapters::settings::AdapterSettings;
use archive::BucketOptions;

use crate::config::{
    adapter::read_adapters,
    bucket::{NO_KEYS, read_bucket},
    schema::Reader,
    settings::{
        Api, Catalogue, Dashboard, History, Market, Mcp, Sandbox, Sections, Server, Stream, V4,
    },
    source::{Fault, Kind, Node, Origin},
};

pub(crate) mod adapter;
mod bucket;
pub(crate) mod duration;
mod form;
mod print;
mod schema;
mod settings;
mod source;

pub(crate) use crate::config::{
    form::{ArchivePlace, LogFormat, Secret, is_database_url, parse_address},
    print::explain,
    settings::Log,
};

/// The file that is read when none is named and it exists.
const FILE_NAME: &str = "linesman.toml";

/// Maximum size of a configuration file, which has a few kilobytes; a larger one is some other file named by mistake.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// Minimum of the default of `connections_per_source_max`.
const CONNECTIONS_PER_SOURCE_MIN: usize = 256;

/// Settings that require another one, and why.
const PAIRS: [Pair; 8] = [
    ("server.tls_cert", "server.tls_key", ": set both, or neither"),
    ("server.tls_key", "server.tls_cert", ": set both, or neither"),
    ("mail.url", "mail.from", ""),
    ("mail.from", "mail.url", ""),
    ("mail.url", "dashboard.public_url", ""),
    ("database.url", "cluster.nats_url", SHARED),
    ("cluster.nats_url", "database.url", SHARED),
    ("cluster.replicas", "cluster.nats_url", SHARED),
];
/// The same for the archive's bucket, which not every command uses.
const BUCKET_PAIRS: [Pair; 2] = [
    ("history.s3_access_key_id", "history.s3_secret_access_key", ": set both, or neither"),
    ("history.s3_secret_access_key", "history.s3_access_key_id", ": set both, or neither"),
];
type Pair = (&'static str, &'static str, &'static str);
const SHARED: &str =
    ": nodes share a database and a change log; set both, or neither for one process on its folder";

/// A complete and valid configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) market: Market,
    pub(crate) sandbox: Sandbox,
    pub(crate) history: History,
    /// The bucket of the archive; `None`: it is in a folder, or the keys are missing ([`Self::check_bucket`]).
    pub(crate) bucket: Option<BucketOptions>,
    pub(crate) stream: Stream,
    pub(crate) api: Api,
    pub(crate) v4: V4,
    pub(crate) mcp: Mcp,
    pub(crate) dashboard: Dashboard,
    /// `None`: no email is sent.
    pub(crate) mail: Option<Mail>,
    /// `None`: one process on the stores of its data folder.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) catalogue: Catalogue,
    pub(crate) log: Log,
    /// Every `[adapters.NAME]`, enabled or not.
    pub(crate) adapters: Vec<AdapterSettings>,
    /// The settings with their sources.
    reader: Reader,
}

/// The address of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpsListen {
    /// The default: if it is in use, any free port is taken.
    Default(SocketAddr),
    /// Configured: if it is in use, the start fails.
    Chosen(SocketAddr),
}

/// The mail server and the sender of emails.
#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) url: Secret,
    pub(crate) from: String,
    /// The base of the links in emails.
    pub(crate) public_url: String,
}

/// The servers that the nodes of a cluster share.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) database_url: Secret,
    pub(crate) nats_url: Secret,
    /// `None`: three, or one if there is a single server.
    pub(crate) replicas: Option<usize>,
    /// How long a node accepts keys without asking for revocations.
    pub(crate) key_trust: Duration,
}

/// The values given on the command line.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Flags {
    pub(crate) listen: Option<SocketAddr>,
}

/// All faults of a configuration, in the order of the layers; never empty.
#[derive(Debug)]
pub(crate) struct Faults(Vec<Fault>);

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

impl Config {
    /// Reads all layers: `file` must exist if it is given; otherwise `linesman.toml` in the current folder is read if
    /// it exists.
    ///
    /// # Errors
    /// Anything in any layer is unknown, malformed or out of bounds, or values contradict each other.
    pub(crate) fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, Faults> {
        let path = file.unwrap_or(Path::new(FILE_NAME));
        let text = match read_file(path) {
            Err(None) if file.is_none() => Ok(String::new()),
            Err(refusal) => Err(refusal
                .unwrap_or_else(|| "no such file; --config needs the path of a file".to_owned())),
            Ok(text) => Ok(text),
        };
        let environment: Vec<_> = env::vars_os().collect();
        Self::assemble((path, text), &environment, flags)
    }

    fn assemble(
        (path, text): (&Path, Result<String, String>),
        environment: &[(OsString, OsString)],
        flags: &Flags,
    ) -> Result<Self, Faults> {
        let (mut tree, mut faults) = (Node::default(), Vec::new());
        match text {
            Ok(text) => tree.add_file(path, &text, &mut faults),
            Err(message) => {
                faults.push(Fault(Origin::File { path: path.to_owned(), line: 0 }, message));
            }
        }
        tree.add_environment(environment, &mut faults);
        if let Some(listen) = flags.listen {
            tree.add_text(&["server", "listen"], &listen.to_string(), Origin::Flag("--listen"));
        }
        let (sections, mut reader) = Reader::read::<Sections>(&tree);
        faults.append(&mut reader.faults);
        faults.extend(missing_partners(&reader, &PAIRS));
        faults.extend(sections.as_ref().and_then(|sections| stale_at_once(sections, &reader)));
        let sections = sections.map(|sections| {
            let found = read_adapters(&sections.adapters, &reader, environment, &mut faults);
            let bucket = read_bucket(&sections.history, &reader, environment, &mut faults);
            (sections, found, bucket)
        });
        faults.sort_by(|Fault(one, _), Fault(other, _)| one.cmp(other));
        match sections {
            Some((sections, adapters, bucket)) if faults.is_empty() => {
                Ok(Self { bucket, ..Self::new(sections, adapters, reader) })
            }
            _ => Err(Faults(faults)),
        }
    }

    fn new(sections: Sections, adapters: Vec<AdapterSettings>, reader: Reader) -> Self {
        let Sections {
            server,
            market,
            sandbox,
            history,
            stream,
            api,
            v4,
            mcp,
            dashboard,
            catalogue,
            log,
            ..
        } = sections;
        let Sections { mail, database, cluster, .. } = sections;
        let public_url = dashboard.public_url.clone();
        let mail = match (mail.url, mail.from, public_url) {
            (Some(url), Some(from), Some(public_url)) => Some(Mail { url, from, public_url }),
            _ => None,
        };
        let (replicas, key_trust) = (cluster.replicas, cluster.key_trust);
        let shared = database.url.zip(cluster.nats_url);
        let cluster = shared.map(|(database_url, nats_url)| Cluster {
            database_url,
            nats_url,
            replicas,
            key_trust,
        });
        Self {
            server,
            market,
            sandbox,
            history,
            bucket: None,
            stream,
            api,
            v4,
            mcp,
            dashboard,
            mail,
            cluster,
            catalogue,
            log,
            adapters,
            reader,
        }
    }

    /// Prepares the adapters: their bookmakers, mappings and addresses are checked.
    ///
    /// # Errors
    /// One fault for each key that cannot be used.
    pub(crate) fn build_adapters(
        &self,
        catalogue: &Arc<domain::Catalogue>,
    ) -> Result<Vec<Adapter>, Faults> {
        build(&self.adapters, catalogue).map_err(|faults| {
            let fault = |fault: BuildFault| {
                let BuildFault { adapter, key, why } = fault;
                let path = format!("adapters.{adapter}.{key}");
                let kind = self.reader.origin(&format!("adapters.{adapter}.kind"));
                let origin = self.reader.origin(&path).or(kind).cloned().unwrap_or_default();
                Fault(origin, format!("`{path}` {why}"))
            };
            Faults(faults.into_iter().map(fault).collect())
        })
    }

    /// Checks that the files named in the configuration can be read, and that the keys of the archive's bucket are
    /// known. Separate from [`Self::load`], so that commands that need no certificate run even if it cannot be read.
    ///
    /// # Errors
    /// One fault for each file that cannot be opened, and for each missing key.
    pub(crate) fn check_service(&self) -> Result<(), Faults> {
        let mut faults = Vec::new();
        for setting in self.reader.settings.iter().filter(|setting| setting.kind == Kind::File) {
            let Some((origin, file)) = &setting.value else { continue };
            let file = file.reveal();
            let refusal = match fs::metadata(file) {
                Ok(found) if found.is_file() => fs::File::open(file).err().map(|e| e.to_string()),
                Ok(_) => Some("it is not a file".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = refusal {
                let message = format!("`{}`: cannot read {file}: {why}", setting.path);
                faults.push(Fault(origin.clone(), message));
            }
        }
        faults.extend(self.missing_keys());
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }

    /// Checks that the keys of the archive's bucket are known. Separate from [`Self::load`], so that commands that do
    /// not use the archive run without them: they may be only in the environment of the service.
    ///
    /// # Errors
    /// A key is missing.
    pub(crate) fn check_bucket(&self) -> Result<(), Faults> {
        let faults = self.missing_keys();
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }

    fn missing_keys(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = missing_partners(&self.reader, &BUCKET_PAIRS).collect();
        let is_bucket = matches!(self.history.store, Some(ArchivePlace::Bucket { .. }));
        if faults.is_empty() && is_bucket && self.bucket.is_none() {
            let origin = self.reader.origin("history.store").cloned().unwrap_or_default();
            faults.push(Fault(origin, NO_KEYS.to_owned()));
        }
        faults
    }

    pub(crate) fn ops_listen(&self) -> OpsListen {
        match self.reader.origin("server.ops_listen") {
            Some(Origin::Default) => OpsListen::Default(self.server.ops_listen),
            _ => OpsListen::Chosen(self.server.ops_listen),
        }
    }
}

impl Server {
    /// The PEM files of the API's certificate and its key; `None`: cleartext.
    pub(crate) fn tls(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    pub(crate) fn connections_per_source_max(&self) -> usize {
        let quarter = (self.connections_max / 4).max(CONNECTIONS_PER_SOURCE_MIN);
        self.connections_per_source_max.unwrap_or(quarter)
    }
}

/// The rules that concern more than one value.
fn missing_partners(reader: &Reader, pairs: &[Pair]) -> impl Iterator<Item = Fault> {
    pairs.iter().filter(|(_, other, _)| reader.origin(other).is_none()).filter_map(
        |(one, other, why)| {
            let message = format!("`{one}` needs `{other}`{why}");
            reader.origin(one).map(|origin| Fault(origin.clone(), message))
        },
    )
}

/// A bookmaker that is read once in each interval would be stale between two reads.
fn stale_at_once(sections: &Sections, reader: &Reader) -> Option<Fault> {
    let market = &sections.market;
    if market.stale_after >= market.refresh_interval {
        return None;
    }
    let message = "`market.stale_after` is shorter than `market.refresh_interval`: every price would be late before \
                   clients see it; make it at least as long";
    // Reported for a value that was set, rather than a default.
    let origins = ["market.stale_after", "market.refresh_interval"].map(|key| reader.origin(key));
    let set = origins.into_iter().flatten().find(|origin| **origin != Origin::Default);
    set.map(|origin| Fault(origin.clone(), message.to_owned()))
}

/// Reads a file.
///
/// # Errors
/// `None` if there is no such file, otherwise the error.
fn read_file(path: &Path) -> Result<String, Option<String>> {
    let refusal = |error: io::Error| {
        (error.kind() != io::ErrorKind::NotFound).then(|| format!("cannot be read: {error}"))
    };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(refusal)?;
    match file.take(FILE_BYTES_MAX as u64).read_to_string(&mut text).map_err(refusal)? {
        FILE_BYTES_MAX => {
            Err(Some("is larger than 1 MiB, so it is not a configuration".to_owned()))
        }
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests;
