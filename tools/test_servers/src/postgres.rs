//! A PostgreSQL server for a test.

use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use crate::{
    POSTGRES_USER as USER, free_port,
    process::{Process, child_command, run},
};

const MISSING: &str = "PostgreSQL is not installed (on Debian: apt-get install postgresql; `cargo xtask test` does it)";
/// Folder of the server's programs on Debian and its derivatives, with one folder per version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A running server without data. Its collation is that of a language, as on most installations and unlike SQLite.
#[derive(Debug)]
pub struct Postgres {
    process: Option<Process>,
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    /// True if commits wait for the disk.
    is_durable: bool,
}

impl Postgres {
    /// Starts a new server.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    pub fn start() -> Result<Self> {
        Self::start_with(false)
    }

    /// Starts a new server whose commits wait for the disk, as in production: for measurements.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start.
    pub fn start_durable() -> Result<Self> {
        Self::start_with(true)
    }

    fn start_with(is_durable: bool) -> Result<Self> {
        let programs = postgres_programs()?;
        let folder =
            tempfile::Builder::new().prefix("pg-").tempdir().context("no temporary folder")?;
        chown_to_postgres(folder.path())?;
        let mut server = Self { process: None, programs, folder, port: free_port()?, is_durable };
        let data = server.data();
        let mut init = server.command("initdb");
        init.arg("-D").arg(&data).args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--locale-provider=icu",
            "--icu-locale=en",
            "--no-sync",
        ]);
        run(&mut init)?;
        server.start_again()?;
        Ok(server)
    }

    /// Restarts it after it was stopped or killed, on the same port with the same data.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&mut self) -> Result<()> {
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.folder.path())
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            // The tests do not cover power failures, so commits need not wait for the disk.
            .args(["-c", if self.is_durable { "fsync=on" } else { "fsync=off" }])
            .args(["-c", "max_connections=60"]);
        let mut process =
            Process::start(&mut command, Signal::INT, &self.folder.path().join("output"))?;
        let mut ready = self.command("pg_isready");
        ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        process
            .wait_until("PostgreSQL", || ready.output().is_ok_and(|out| out.status.success()))
            .with_context(|| self.output())?;
        self.process = Some(process);
        Ok(())
    }

    /// Creates an empty database and returns its address.
    ///
    /// # Errors
    /// The name is taken, or the server does not answer.
    pub fn create_database(&self, name: &str) -> Result<String> {
        let mut create = self.command("createdb");
        create.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "postgres", name]);
        run(&mut create)?;
        Ok(self.url(name))
    }

    /// Dumps a database and restores it as a new one, as in docs/operations/backup.md; returns the address of the new
    /// one.
    ///
    /// # Errors
    /// Either fails.
    pub fn dump_and_restore(&self, from: &str, to: &str) -> Result<String> {
        let file = self.folder.path().join(format!("{to}.dump"));
        let port = self.port.to_string();
        let server = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
        let mut dump = self.command("pg_dump");
        run(dump.args(server).args(["-Fc", from, "-f"]).arg(&file))?;
        let url = self.create_database(to)?;
        let mut restore = self.command("pg_restore");
        run(restore.args(server).args(["--exit-on-error", "-d", to]).arg(&file))?;
        Ok(url)
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        url(self.port, database)
    }

    /// The port on the local address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops it in order: open connections are closed.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn stop(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), |mut process| process.stop())
    }

    /// Ends it at once, without a shutdown.
    ///
    /// # Errors
    /// It cannot be signalled or waited for.
    pub fn crash(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        process.signal(Signal::QUIT)?;
        process.stop()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn output(&self) -> String {
        fs::read_to_string(self.folder.path().join("output")).unwrap_or_default()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = child_command(self.programs.join(program), Some(USER), "INT");
        // Programs warn about a working directory without access.
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The data is no longer needed.
        self.crash().unwrap_or_default();
    }
}

/// The address of a database on a port of this machine.
fn url(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}")
}

/// The folder with the newest version's programs.
///
/// # Errors
/// None is installed.
pub fn postgres_programs() -> Result<PathBuf> {
    let versions = fs::read_dir(VERSIONS).context(MISSING)?.filter_map(Result::ok);
    let mut folders: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let number = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .filter(|(_, bin)| bin.join("initdb").is_file())
        .collect();
    folders.sort_unstable();
    folders.pop().map(|(_, bin)| bin).context(MISSING)
}

/// Changes the owner of a folder to the server's user, if we are root.
///
/// # Errors
/// There is no such user, or the owner cannot be changed.
pub fn chown_to_postgres(folder: &Path) -> Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let id = |flag| -> Result<u32> {
        run(Command::new("id").args([flag, USER]))?.trim().parse().context("`id` prints no number")
    };
    chown(folder, Some(id("-u")?), Some(id("-g")?)).context("a folder cannot be given away")
}
