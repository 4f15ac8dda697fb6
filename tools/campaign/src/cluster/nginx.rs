//! The settings of nginx in front of the api nodes. A GET is sent to the next node if one fails or answers 503.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::Result;

use super::unit::{APIS, Unit};

const SETTINGS: &str = r#"worker_processes 1;
daemon off;
pid nginx.pid;
events { worker_connections 2048; }
http {
  access_log off;
  client_body_temp_path temp/body; proxy_temp_path temp/proxy; fastcgi_temp_path temp/fastcgi;
  uwsgi_temp_path temp/uwsgi; scgi_temp_path temp/scgi;
  client_max_body_size 9m;
  # Which nodes are ready: written again whenever that changes.
  upstream nodes { include nodes.conf; keepalive 64; }
  server {
    listen 127.0.0.1:PORT;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $http_host;
    proxy_pass_header Date;
    proxy_connect_timeout 500ms;
    # Who answered, for whoever looks for the one that is different.
    add_header X-Served-By $upstream_addr always;
    location /v1/ {
      proxy_pass http://nodes;
      proxy_read_timeout 2s;
      # A GET goes to the next node where one is gone, silent, or says that it cannot answer now.
      proxy_next_upstream error timeout http_502 http_503 http_504;
    }
    # Pushes are not repeated here: their sender does it, and nothing is taken twice.
    location / { proxy_pass http://nodes; proxy_read_timeout 75s; proxy_buffering off; }
  }
}
"#;

/// Writes the settings of an nginx at a port, in front of nodes at other ports.
pub(super) fn prepare(home: &Path, port: u16, port_of: impl Fn(Unit) -> u16) -> Result<()> {
    fs::create_dir_all(home.join("temp"))?;
    fs::write(home.join("nginx.conf"), SETTINGS.replace("PORT", &port.to_string()))?;
    fs::write(home.join("nodes.conf"), nodes_text(&APIS, port_of))?;
    Ok(())
}

/// The list of nodes behind nginx.
pub(super) fn nodes_text(nodes: &[Unit], port_of: impl Fn(Unit) -> u16) -> String {
    let mut text = String::new();
    for node in nodes {
        // nginx's own failure detection is off (`max_fails=0`): one slow answer must not remove a node for all
        // clients.
        writeln!(text, "server 127.0.0.1:{} max_fails=0;", port_of(*node)).unwrap_or_default();
    }
    text
}
