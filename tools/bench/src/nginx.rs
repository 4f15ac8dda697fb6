//! The reference: nginx, which sends the same bytes from a file.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::machine::{self, SERVER_CORE};
use super::service::{Answer, get};
use shell::repository::Repository;

/// A running nginx; stopped when dropped.
#[derive(Debug)]
pub(super) struct Nginx {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Nginx {
    /// Serves each body at `/0`, `/1` and so on, with one worker, from files, without a log.
    pub(super) fn start(folder: &Path, bodies: &[&Answer]) -> Result<Self> {
        fs::create_dir_all(folder.join("temp"))?;
        let mut places = String::new();
        for (number, answer) in bodies.iter().enumerate() {
            fs::write(folder.join(number.to_string()), &answer.body)?;
            let encoding = answer.header("content-encoding").map_or(String::new(), |encoding| {
                format!("add_header Content-Encoding {encoding};")
            });
            write!(places, "location = /{number} {{ {encoding} }}\n ")?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let root = folder.display();
        let settings = format!(
            "worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;\n\
             events {{ worker_connections 20000; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;\n\
             keepalive_timeout 1h; open_file_cache max=100; default_type application/json;\n\
             client_body_temp_path {root}/temp/1; proxy_temp_path {root}/temp/2; fastcgi_temp_path {root}/temp/3;\n\
             uwsgi_temp_path {root}/temp/4; scgi_temp_path {root}/temp/5;\n\
             server {{ listen 127.0.0.1:{port} backlog=4096; root {root};\n {places} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, settings)?;
        let mut command = shell::command("taskset", folder);
        command
            .args(["-c", &SERVER_CORE.to_string(), "nginx", "-p"])
            .arg(folder)
            .arg("-c")
            .arg(&file);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start nginx")?;
        let nginx = Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        let begun = Instant::now();
        while get(nginx.address, "/0", "").is_err() {
            ensure!(begun.elapsed() < Duration::from_secs(10), "nginx does not answer");
            shell::sleep(Duration::from_millis(10));
        }
        for (number, answer) in bodies.iter().enumerate() {
            let served = get(nginx.address, &format!("/{number}"), "")?;
            ensure!(served.body == answer.body, "nginx does not serve the same bytes");
        }
        Ok(nginx)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The worker only ends with its parent if that is terminated, not killed.
        machine::terminate(self.child.id()).unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Installs missing programs that a run needs.
pub(super) fn install(repository: &Repository, programs: &[(&str, &str)]) -> Result<()> {
    for (program, package) in programs {
        if shell::succeeds(shell::command("which", &repository.root).arg(program)) {
            continue;
        }
        shell::say(&format!("   {program} is missing: apt-get install {package}"));
        let mut install = shell::command("apt-get", &repository.root);
        shell::run(install.args(["install", "-y", "-q", package]))?;
    }
    Ok(())
}
