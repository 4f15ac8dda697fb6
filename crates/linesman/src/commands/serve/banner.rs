//! The output of a start: all addresses, and on the first start a request to try.

use std::net::SocketAddr;
use std::path::Path;

use accounts::{Accounts, Actor, KeyKind, KeySecret, LinkToken, NewKey, People};

use crate::cli::{Role, output};
use crate::commands::serve::Listeners;
use crate::config::Config;

/// The secrets that the first start prints, once.
#[derive(Default)]
pub(super) struct FirstStart {
    key: Option<KeySecret>,
    operator_link: Option<LinkToken>,
}

impl FirstStart {
    pub(super) async fn make(
        config: &Config,
        accounts: &Accounts,
        people: &People,
    ) -> anyhow::Result<Self> {
        let operator_link =
            if config.dashboard.enabled { people.first_operator_link().await? } else { None };
        Ok(Self { key: first_key(accounts).await?, operator_link })
    }
}

/// On the first start, a sandbox key for trying the service.
async fn first_key(accounts: &Accounts) -> anyhow::Result<Option<KeySecret>> {
    if accounts.has_keys().await? {
        return Ok(None);
    }
    let new = NewKey { name: "first start".to_owned(), ..NewKey::of_kind(KeyKind::Sandbox) };
    let (secret, _) = accounts.create_key(new, &Actor::service()).await?;
    Ok(Some(secret))
}

/// The URL of the web pages.
pub(crate) fn public_url(config: &Config, main: SocketAddr) -> String {
    config.dashboard.public_url.clone().unwrap_or_else(|| own_url(config, main))
}

/// The URL of a listener, as a browser on this machine opens it.
fn own_url(config: &Config, address: SocketAddr) -> String {
    let scheme = if config.server.tls().is_some() { "https" } else { "http" };
    format!("{scheme}://{}", reachable(address))
}

/// An address that can be opened: `localhost` replaces one that stands for all addresses of the machine.
fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        return format!("localhost:{}", address.port());
    }
    address.to_string()
}

/// The inputs of the banner.
pub(super) struct Banner<'a> {
    pub(super) config: &'a Config,
    pub(super) role: Role,
    pub(super) listeners: &'a Listeners,
    pub(super) first_start: &'a FirstStart,
    pub(super) data: &'a Path,
}

impl Banner<'_> {
    /// Prints it; a full disk behind stdout does not end the service.
    pub(super) fn print_or_warn(&self) {
        let listeners = self.listeners;
        if let Err(error) = output::print_line(&self.text()) {
            tracing::warn!(event = "service.banner_failed", %error, listen = %listeners.main, "banner not printed");
        }
        tracing::info!(event = "service.started", listen = %listeners.main, operator = %listeners.operator, data = %self.data.display(), "serving");
    }

    fn text(&self) -> String {
        let base = own_url(self.config, self.listeners.main);
        let mut text = format!("Linesman is at {base}\n");
        if self.role != Role::Ingest {
            text.push_str(&self.request(&base));
        }
        if let Some(link) = &self.first_start.operator_link {
            let public = public_url(self.config, self.listeners.main);
            text.push_str(&format!(
                "\nThere is no operator yet. This one-time link creates the first one and is valid for a day:\n  {public}/link/{}\n",
                link.expose()
            ));
        }
        text.push('\n');
        for (name, url) in self.places(base) {
            text.push_str(&format!("{name:<10} {url}\n"));
        }
        text
    }

    /// A request to try, with the first key or a new one.
    fn request(&self, base: &str) -> String {
        if let Some(key) = &self.first_start.key {
            let key = key.expose();
            return format!(
                "\nA sandbox key, shown only once:\n  {key}\n\nTry it:\n  \
                 curl -H 'X-API-Key: {key}' '{base}/v1/sports/mma/odds?limit=2'\n"
            );
        }
        let program = std::env::args().next().unwrap_or_else(|| "linesman".to_owned());
        format!(
            "\nTry it with a new sandbox key:\n  curl -H \"X-API-Key: $({} --data {} keys create \
             --kind sandbox)\" '{base}/v1/sports/mma/odds?limit=2'\n",
            shell_word(&program),
            shell_word(&self.data.display().to_string())
        )
    }

    /// The pages and endpoints that can be opened, each with its URL.
    fn places(&self, base: String) -> Vec<(&'static str, String)> {
        let (dashboard, listeners) = (&self.config.dashboard, self.listeners);
        let public = public_url(self.config, listeners.main);
        let serves = self.role != Role::Ingest;
        let pages = serves && dashboard.enabled;
        let page = |is_there: bool, name, path| is_there.then(|| (name, format!("{public}{path}")));
        let ingest = listeners.ingest.map_or(base, |address| own_url(self.config, address));
        let metrics = format!("http://{}/metrics", reachable(listeners.operator));
        [
            page(pages && dashboard.board.is_some(), "Board", "/board"),
            page(pages && dashboard.status_page, "Status", "/status"),
            page(pages, "Dashboard", "/dashboard"),
            page(pages, "Console", "/console"),
            page(serves && dashboard.docs, "Docs", "/docs"),
            Some(("Metrics", metrics)),
            Some(("Ingest", format!("{ingest}/ingest/v1/messages"))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A text quoted for a shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
