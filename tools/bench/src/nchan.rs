//! The reference for streams: nginx with nchan, one worker, messages in memory.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::machine::{self, SERVER_CORE};
use super::service::{call, get};

/// Path of the module in Debian's package.
pub(super) const MODULE: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

/// A running nginx with one channel; stopped when dropped.
#[derive(Debug)]
pub(super) struct Nchan {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Nchan {
    pub(super) fn start(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder.join("temp"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let root = folder.display();
        let settings = format!(
            "load_module {MODULE};\n\
             worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;\n\
             worker_rlimit_nofile 40000; events {{ worker_connections 20000; }}\n\
             http {{ access_log off; tcp_nodelay on;\n\
             client_body_temp_path {root}/temp/1; proxy_temp_path {root}/temp/2; fastcgi_temp_path {root}/temp/3;\n\
             uwsgi_temp_path {root}/temp/4; scgi_temp_path {root}/temp/5; nchan_shared_memory_size 256m;\n\
             server {{ listen 127.0.0.1:{port} backlog=4096;\n\
             location = /ready {{ return 204; }}\n\
             location = /pub {{ nchan_publisher; nchan_channel_id odds; nchan_message_buffer_length 10; }}\n\
             location = /sub {{ nchan_subscriber eventsource websocket; nchan_channel_id odds;\n\
             nchan_subscriber_first_message newest; }} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, settings)?;
        let mut command = shell::command("taskset", folder);
        command.args(["-c", &SERVER_CORE.to_string(), "nginx", "-p"]).arg(folder).arg("-c");
        command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start nginx")?;
        let nchan = Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        let begun = Instant::now();
        while get(nchan.address, "/ready", "").is_err() {
            let log = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
            ensure!(begun.elapsed() < Duration::from_secs(10), "nchan does not answer: {log}");
            shell::sleep(Duration::from_millis(10));
        }
        Ok(nchan)
    }

    /// Sends a message of `bytes` bytes to all subscribers.
    pub(super) fn publish(&self, bytes: usize) -> Result<()> {
        let head = format!(
            "POST /pub HTTP/1.1\r\nHost: bench\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n"
        );
        let answer = call(self.address, &[head.as_bytes(), &vec![b'x'; bytes]])?;
        ensure!(matches!(answer.status, 200..=202), "nchan took no message: {}", answer.head);
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process that holds the connections.
    pub(super) fn worker(&self) -> Result<u32> {
        let workers = machine::children(self.pid())?;
        workers.first().copied().context("nginx has no worker")
    }
}

impl Drop for Nchan {
    fn drop(&mut self) {
        // The worker only ends with its parent if that is terminated, not killed.
        machine::terminate(self.child.id()).unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
