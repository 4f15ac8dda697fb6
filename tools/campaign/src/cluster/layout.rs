//! The layout of a cluster on one machine: its folder, its ports, and the settings of each process.
//!
//! A process is started in its own folder, where it writes its pid and its output. So a later run finds the running
//! processes, even after a crash of this program.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use test_servers::NatsProgram;

use super::{
    nginx,
    unit::{ALL, APIS, NATS, Unit},
};

/// Name of the database.
const DATABASE: &str = "linesman";
/// Maximum time of a verb that waits for a paused server.
const VERB_SECONDS_MAX: &str = "60";
/// Writes its pid and becomes the program.
const LAUNCH: &str = "echo $$ > pid; exec \"$@\"";

/// Ports by which one process reaches another; without an entry, the other's own port.
pub(crate) type Links = BTreeMap<(Unit, Unit), u16>;

/// Options that differ between a cluster for development and one for fault tests.
#[derive(Clone, Debug)]
pub(crate) struct ClusterOptions {
    pub(crate) lifetime: Lifetime,
    /// Lines of configuration for every node; they continue the `[server]` section.
    pub(crate) settings: String,
    /// Environment of every node.
    pub(crate) environment: Vec<(String, String)>,
    /// False if servers are cut off from each other: they must not announce other routes.
    pub(crate) advertises: bool,
    /// True if PostgreSQL waits for the disk.
    pub(crate) syncs: bool,
}

/// Lifetime of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// No longer than the thread that started them.
    WithThread,
    UntilStopped,
}

#[derive(Clone, Debug)]
pub(crate) struct ClusterLayout {
    pub(crate) folder: PathBuf,
    /// The program for verbs, and for nodes that are not among `programs`.
    program: PathBuf,
    /// Nodes that run another build.
    pub(crate) programs: BTreeMap<Unit, PathBuf>,
    pub(crate) links: Links,
    pub(crate) options: ClusterOptions,
    ports: BTreeMap<Unit, Ports>,
    /// Found once, so that all servers are the same even if another version is installed meanwhile.
    nats: OnceLock<NatsProgram>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ports {
    /// The port of its service.
    main: u16,
    /// The port of a NATS server for the other servers, or of our node's metrics.
    side: u16,
    /// The port of a NATS server's health report.
    health: u16,
}

impl ClusterLayout {
    /// A layout in a folder: with the ports that were chosen there before, or with free ones.
    pub(crate) fn at(folder: &Path, program: &Path, options: ClusterOptions) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let file = folder.join("ports.json");
        let ports = if file.is_file() {
            read_ports(&fs::read_to_string(&file)?).with_context(|| {
                format!("{} is damaged; `cargo xtask cluster down` takes it away", file.display())
            })?
        } else {
            let ports = choose_ports()?;
            fs::write(&file, serde_json::to_string(&ports)?)?;
            ports
        };
        Ok(Self {
            folder: folder.to_owned(),
            program: program.to_owned(),
            programs: BTreeMap::new(),
            links: Links::new(),
            options,
            ports: ALL.into_iter().zip(ports).collect(),
            nats: OnceLock::new(),
        })
    }

    /// The program of the log's servers.
    pub(crate) fn nats(&self) -> Result<&NatsProgram> {
        if let Some(nats) = self.nats.get() {
            return Ok(nats);
        }
        let found = test_servers::nats_program()?;
        Ok(self.nats.get_or_init(|| found))
    }

    /// The port of a process's service.
    pub(crate) fn port(&self, unit: Unit) -> u16 {
        self.ports.get(&unit).map_or(0, |ports| ports.main)
    }

    /// The port of a NATS server for the other servers, or of our node's metrics.
    pub(crate) fn side_port(&self, unit: Unit) -> u16 {
        self.ports.get(&unit).map_or(0, |ports| ports.side)
    }

    /// The port of a NATS server's health report.
    pub(crate) fn health_port(&self, unit: Unit) -> u16 {
        self.ports.get(&unit).map_or(0, |ports| ports.health)
    }

    /// The port by which `from` reaches `to`.
    pub(crate) fn port_from(&self, from: Unit, to: Unit) -> u16 {
        let own = match (from, to) {
            (Unit::Nats(_), Unit::Nats(_)) => self.side_port(to),
            _ => self.port(to),
        };
        self.links.get(&(from, to)).copied().unwrap_or(own)
    }

    pub(crate) fn folder_of(&self, unit: Unit) -> PathBuf {
        self.folder.join(unit.to_string())
    }

    /// The URL of the log's servers, without links.
    pub(crate) fn nats_url(&self) -> String {
        nats_url(|nats| self.port(nats))
    }

    /// Creates the folders and files that a process needs before it is started.
    pub(crate) fn prepare(&self, unit: Unit) -> Result<()> {
        let home = self.folder_of(unit);
        fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
        match unit {
            Unit::Postgres => self.prepare_postgres(&home),
            Unit::Nats(_) => Ok(fs::write(home.join("nats.conf"), self.nats_settings(unit))?),
            Unit::Ingest(_) | Unit::Api(_) => {
                let text = self.node_settings(|to| self.port_from(unit, to), self.side_port(unit));
                Ok(fs::write(home.join("linesman.toml"), text)?)
            }
            Unit::Nginx => {
                nginx::prepare(&home, self.port(unit), |node| self.port_from(unit, node))
            }
        }
    }

    /// Starts a process that was prepared.
    pub(crate) fn start(&self, unit: Unit) -> Result<Child> {
        let mut command = match self.options.lifetime {
            Lifetime::WithThread => test_servers::child_command("sh", user(unit), end_signal(unit)),
            Lifetime::UntilStopped => detached(user(unit)),
        };
        command.args(["-c", LAUNCH, "sh"]);
        self.add_program(unit, &mut command)?;
        let home = self.folder_of(unit);
        let output = fs::File::options().create(true).append(true).open(home.join("output"))?;
        command.current_dir(&home).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        command.spawn().with_context(|| format!("cannot start {unit}"))
    }

    /// A verb of the program on this cluster, as an operator runs it: without links.
    pub(crate) fn verb(&self, words: &[&str]) -> Result<Command> {
        self.verb_of(&self.program, words)
    }

    /// The same with another build.
    pub(crate) fn verb_of(&self, program: &Path, words: &[&str]) -> Result<Command> {
        let home = self.folder.join("operator");
        let file = home.join("linesman.toml");
        if !file.is_file() {
            fs::create_dir_all(&home)?;
            fs::write(&file, self.node_settings(|to| self.port(to), 0))?;
        }
        let mut command = shell::command("timeout", &home);
        command.arg(VERB_SECONDS_MAX).arg(program);
        command.arg("--config").arg(file).arg("--data").arg(home.join("data")).args(words);
        Ok(command)
    }

    /// A verb of the program at a node, which its own server carries out.
    pub(crate) fn verb_at(&self, node: Unit, words: &[&str]) -> Command {
        let mut command = shell::command("timeout", &self.folder_of(node));
        command.arg(VERB_SECONDS_MAX).arg(self.programs.get(&node).unwrap_or(&self.program));
        command.args(["--config", "linesman.toml", "--data", "data"]).args(words);
        command
    }

    fn prepare_postgres(&self, home: &Path) -> Result<()> {
        test_servers::chown_to_postgres(home)?;
        let data = home.join("data");
        if data.is_dir() {
            return Ok(());
        }
        // Under another name until it is complete, in case of an interruption.
        let fresh = home.join("data.fresh");
        if fresh.is_dir() {
            fs::remove_dir_all(&fresh)?;
        }
        let mut init = as_postgres("initdb", home)?;
        init.arg("-D").arg(&fresh).args(["--username=postgres", "--auth=trust"]);
        shell::output(init.args(["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]))?;
        fs::rename(fresh, data)?;
        Ok(())
    }

    /// Creates the database, if there is none.
    pub(crate) fn create_database(&self) -> Result<()> {
        let mut create = self.ask_postgres("createdb")?;
        match shell::output(create.args(["-U", "postgres", DATABASE])) {
            Err(error) if !format!("{error:#}").contains("already exists") => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// A client program of PostgreSQL, with the server's address.
    pub(crate) fn ask_postgres(&self, program: &str) -> Result<Command> {
        let mut command = as_postgres(program, &self.folder_of(Unit::Postgres))?;
        command.args(["-h", "127.0.0.1", "-p", &self.port(Unit::Postgres).to_string()]);
        Ok(command)
    }

    fn add_program(&self, unit: Unit, command: &mut Command) -> Result<()> {
        let port = self.port(unit).to_string();
        match unit {
            Unit::Postgres => {
                command
                    .arg(test_servers::postgres_programs()?.join("postgres"))
                    .arg("-D")
                    .arg("data")
                    .args(["-k", "", "-h", "127.0.0.1", "-p", &port])
                    .args(["-c", "max_connections=200"])
                    .args(["-c", if self.options.syncs { "fsync=on" } else { "fsync=off" }]);
            }
            Unit::Nats(_) => {
                command.arg(&self.nats()?.path).args(["-c", "nats.conf"]);
            }
            Unit::Ingest(_) | Unit::Api(_) => {
                command
                    .arg(self.programs.get(&unit).unwrap_or(&self.program))
                    .args(["--config", "linesman.toml", "--data", "data", "serve", "--role"])
                    .arg(unit.role().unwrap_or_default())
                    .args(["--listen", &format!("127.0.0.1:{port}")])
                    .envs(self.options.environment.iter().map(|(name, value)| {
                        (name, value.replace("{home}", &self.folder_of(unit).to_string_lossy()))
                    }));
            }
            Unit::Nginx => {
                command.args(["nginx", "-c", "nginx.conf", "-e", "error.log", "-p"]);
                command.arg(self.folder_of(unit));
            }
        }
        Ok(())
    }

    fn nats_settings(&self, unit: Unit) -> String {
        let routes: Vec<String> = NATS
            .into_iter()
            .filter(|other| *other != unit)
            .map(|other| format!("nats://127.0.0.1:{}", self.port_from(unit, other)))
            .collect();
        // Nothing listens on port 9: advertised routes lead nowhere, and only the routes written here are used.
        let advertise = if self.options.advertises { "" } else { "advertise: \"127.0.0.1:9\"" };
        format!(
            "server_name: {unit}\nlisten: \"127.0.0.1:{}\"\nhttp: \"127.0.0.1:{}\"\njetstream {{ store_dir: store, max_mem: 64MB, max_file: 4GB }}\n\
             cluster {{\n  name: linesman\n  listen: \"127.0.0.1:{}\"\n  no_advertise: true\n  {advertise}\n  routes: [{}]\n}}\n",
            self.port(unit),
            self.health_port(unit),
            self.side_port(unit),
            routes.join(", ")
        )
    }

    fn node_settings(&self, port_of: impl Fn(Unit) -> u16, metrics: u16) -> String {
        format!(
            "[database]\nurl = \"postgres://postgres@127.0.0.1:{}/{DATABASE}\"\n\n[cluster]\nnats_url = \"{}\"\n\n\
             [server]\nops_listen = \"127.0.0.1:{metrics}\"\n{}",
            port_of(Unit::Postgres),
            nats_url(&port_of),
            self.options.settings
        )
    }
}

fn nats_url(port_of: impl Fn(Unit) -> u16) -> String {
    let urls = NATS.map(|nats| format!("nats://127.0.0.1:{}", port_of(nats)));
    urls.join(",")
}

/// PostgreSQL refuses to run as root.
fn user(unit: Unit) -> Option<&'static str> {
    (unit == Unit::Postgres).then_some(test_servers::POSTGRES_USER)
}

/// The signal that ends a process without leaving children behind.
fn end_signal(unit: Unit) -> &'static str {
    match unit {
        // If these were killed, their children would remain.
        Unit::Postgres => "INT",
        Unit::Nginx => "TERM",
        Unit::Nats(_) | Unit::Ingest(_) | Unit::Api(_) => "KILL",
    }
}

/// A command in a session of its own, which does not end with the terminal.
fn detached(user: Option<&str>) -> Command {
    let mut command = Command::new("setsid");
    if let Some(user) = user.filter(|_| rustix::process::geteuid().is_root()) {
        command.args(["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"]);
    }
    command.arg("sh");
    command
}

fn as_postgres(program: &str, home: &Path) -> Result<Command> {
    let mut command = test_servers::child_command(
        test_servers::postgres_programs()?.join(program),
        Some(test_servers::POSTGRES_USER),
        "INT",
    );
    command.current_dir(home);
    Ok(command)
}

fn choose_ports() -> Result<Vec<Ports>> {
    let ports = |_| {
        let free = test_servers::free_port;
        Ok(Ports { main: free()?, side: free()?, health: free()? })
    };
    ALL.into_iter().map(ports).collect()
}

fn read_ports(text: &str) -> Result<Vec<Ports>> {
    let ports: Vec<Ports> = serde_json::from_str(text)?;
    ensure!(ports.len() == ALL.len(), "{} parts have ports", ports.len());
    Ok(ports)
}

/// The api node at a port, directly or by a link.
pub(crate) fn api_at(layout: &ClusterLayout, port: u16) -> Option<Unit> {
    APIS.into_iter()
        .find(|api| layout.port(*api) == port || layout.port_from(Unit::Nginx, *api) == port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> (tempfile::TempDir, ClusterLayout) {
        let folder = tempfile::tempdir().unwrap();
        let options = ClusterOptions {
            lifetime: Lifetime::WithThread,
            settings: String::new(),
            environment: Vec::new(),
            advertises: false,
            syncs: true,
        };
        let layout = ClusterLayout::at(folder.path(), Path::new("linesman"), options).unwrap();
        (folder, layout)
    }

    #[test]
    fn ports_are_different_and_found_again() {
        let (folder, layout) = layout();
        let mut all: Vec<u16> = ALL
            .iter()
            .flat_map(|it| [layout.port(*it), layout.side_port(*it), layout.health_port(*it)])
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3 * ALL.len());
        let again = ClusterLayout::at(folder.path(), Path::new("linesman"), layout.options.clone())
            .unwrap();
        assert_eq!(again.ports, layout.ports);
    }

    #[test]
    fn a_damaged_file_of_ports_is_told() {
        assert!(read_ports("[{\"main\":1,\"side\":2,\"health\":3}]").is_err());
        assert!(read_ports("{").is_err());
    }

    #[test]
    fn everybody_knocks_where_the_links_say() {
        let (_folder, mut layout) = layout();
        let (api, nats) = (Unit::Api(1), Unit::Nats(2));
        assert_eq!(layout.port_from(api, nats), layout.port(nats));
        assert_eq!(layout.port_from(Unit::Nats(1), nats), layout.side_port(nats));
        layout.links.insert((api, nats), 7);
        layout.links.insert((Unit::Nats(1), nats), 8);
        assert!(
            layout.node_settings(|to| layout.port_from(api, to), 0).contains("nats://127.0.0.1:7,")
        );
        assert!(layout.nats_settings(Unit::Nats(1)).contains("nats://127.0.0.1:8,"));
        assert_eq!(layout.port_from(Unit::Api(2), nats), layout.port(nats));
    }
}
