//! NATS servers with JetStream; one, or several that replicate.

mod group;
mod program;

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    free_port,
    process::{Process, child_command},
};

pub use self::{
    group::{GroupMember, wait_for_nats_group},
    program::{NatsProgram, NatsVersion, nats_program},
};

/// Number of lines of a server's output that are printed after a failed test.
const LINES_SHOWN: usize = 60;

/// Running servers without data; several form one cluster.
#[derive(Debug)]
pub struct Nats {
    program: PathBuf,
    folder: TempDir,
    members: Vec<Member>,
    /// The only accepted user and password; `None` accepts everybody.
    login: Option<(String, String)>,
}

#[derive(Debug)]
struct Member {
    port: u16,
    route_port: u16,
    monitor_port: u16,
    process: Option<Process>,
}

impl Nats {
    /// Starts this number of new servers.
    ///
    /// # Errors
    /// NATS is not installed, or does not start.
    pub fn start(servers: usize) -> Result<Self> {
        Self::start_for(servers, None)
    }

    /// Starts one new server that accepts only this user and password.
    ///
    /// # Errors
    /// NATS is not installed, or does not start.
    pub fn start_guarded(user: &str, password: &str) -> Result<Self> {
        Self::start_for(1, Some((user.to_owned(), password.to_owned())))
    }

    fn start_for(servers: usize, login: Option<(String, String)>) -> Result<Self> {
        let program = nats_program()?.path;
        let folder =
            tempfile::Builder::new().prefix("nats-").tempdir().context("no temporary folder")?;
        let members = (0..servers)
            .map(|_| {
                let (port, route_port, monitor_port) = (free_port()?, free_port()?, free_port()?);
                Ok(Member { port, route_port, monitor_port, process: None })
            })
            .collect::<Result<Vec<_>>>()?;
        let group: Vec<GroupMember> = (0..)
            .zip(&members)
            .map(|(number, it)| GroupMember { name: name(number), monitor: it.monitor_port })
            .collect();
        let mut nats = Self { program, folder, members, login };
        for member in 0..servers {
            nats.start_again(member)?;
        }
        if servers > 1 {
            wait_for_nats_group(&group, |member| {
                nats.kill(member)?;
                nats.start_again(member)
            })?;
        }
        Ok(nats)
    }

    /// Restarts a stopped or killed server, on the same port with the same data.
    ///
    /// # Errors
    /// There is no such server, or it does not start.
    pub fn start_again(&mut self, member: usize) -> Result<()> {
        let mut command = self.command(member)?;
        let output = self.folder.path().join(format!("output-{member}"));
        let mut process = Process::start(&mut command, Signal::TERM, &output)?;
        let port = self.port(member)?;
        process
            .wait_until("nats-server", || TcpStream::connect(("127.0.0.1", port)).is_ok())
            .with_context(|| fs::read_to_string(&output).unwrap_or_default())?;
        self.member(member)?.process = Some(process);
        Ok(())
    }

    /// The addresses of all servers, comma-separated, with user and password.
    pub fn url(&self) -> String {
        let login = self.login.as_ref().map(|(user, password)| format!("{user}:{password}@"));
        let login = login.unwrap_or_default();
        let url = |member: &Member| format!("nats://{login}127.0.0.1:{}", member.port);
        self.members.iter().map(url).collect::<Vec<_>>().join(",")
    }

    /// The port of a server on the local address.
    ///
    /// # Errors
    /// There is no such server.
    pub fn port(&self, member: usize) -> Result<u16> {
        Ok(self.members.get(member).context("there is no such server")?.port)
    }

    /// Kills a server.
    ///
    /// # Errors
    /// There is no such server, or it cannot be waited for.
    pub fn kill(&mut self, member: usize) -> Result<()> {
        self.member(member)?.process.take().map_or(Ok(()), |mut process| process.kill())
    }

    /// Deletes the data of a killed server.
    ///
    /// # Errors
    /// It cannot be deleted.
    pub fn delete_data(&mut self, member: usize) -> Result<()> {
        let kept = self.folder.path().join(format!("data-{member}"));
        fs::remove_dir_all(&kept).with_context(|| format!("cannot remove {}", kept.display()))
    }

    /// Copies the data of a killed server, like a backup.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn copy_data(&self, member: usize) -> Result<TempDir> {
        let copy = tempfile::tempdir().context("no temporary folder")?;
        copy_all(&self.folder.path().join(format!("data-{member}")), &copy.path().join("data"))?;
        Ok(copy)
    }

    /// Replaces the data of a killed server by a copy.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn restore_data(&mut self, member: usize, copy: &TempDir) -> Result<()> {
        self.delete_data(member)?;
        copy_all(&copy.path().join("data"), &self.folder.path().join(format!("data-{member}")))
    }

    fn member(&mut self, member: usize) -> Result<&mut Member> {
        self.members.get_mut(member).context("there is no such server")
    }

    fn command(&self, number: usize) -> Result<Command> {
        let member = self.members.get(number).context("there is no such server")?;
        let mut command = child_command(&self.program, None, "KILL");
        command
            .args(["-a", "127.0.0.1", "-p", &member.port.to_string()])
            .args(["-m", &member.monitor_port.to_string()])
            .args(["--server_name", &name(number), "-js", "-sd"])
            .arg(self.folder.path().join(format!("data-{number}")));
        if let Some((user, password)) = &self.login {
            command.args(["--user", user, "--pass", password]);
        }
        if self.members.len() > 1 {
            let others =
                self.members.iter().map(|other| format!("nats://127.0.0.1:{}", other.route_port));
            command
                .args(["--cluster_name", "test", "--cluster"])
                .arg(format!("nats://127.0.0.1:{}", member.route_port))
                .args(["--routes", &others.collect::<Vec<_>>().join(",")]);
        }
        Ok(command)
    }
}

fn name(number: usize) -> String {
    format!("n{number}")
}

/// Prints the servers' output after a failed test.
impl Drop for Nats {
    #[expect(clippy::print_stderr, reason = "it belongs to what the failing test prints")]
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        for number in 0..self.members.len() {
            let output = self.folder.path().join(format!("output-{number}"));
            let said = fs::read_to_string(output).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines.get(lines.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default();
            eprintln!("the last output of NATS server {number}:\n{}", last.join("\n"));
        }
    }
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    let copied = copied.is_ok_and(|status| status.success());
    ensure!(copied, "cannot copy {} to {}", from.display(), to.display());
    Ok(())
}
