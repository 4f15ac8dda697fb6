//! The server side of the control socket.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api::Api;
use domain::World;
use engine::{Compact, HistoryError, WorldHandle};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::event_view::{EventView, PairView};
use super::protocol::{ANSWER_TIME_MAX, ControlCommand, socket_path};
use crate::folder::Folder;

/// Maximum size of a command; a larger change is split into several.
const COMMAND_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of connections served at the same time, and the time in which each must send its command.
const CONNECTIONS_MAX: usize = 256;
const COMMAND_TIME_MAX: Duration = Duration::from_secs(2);
/// The listening socket.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    folder: Folder,
}

impl Control {
    /// Opens the control socket of a folder whose lock is held; an existing socket was left by a killed server.
    /// Connections are answered once [`Control::run`] is called.
    pub(crate) fn open(folder: &Folder) -> anyhow::Result<Self> {
        let bind = || {
            folder.remove_leftovers()?;
            let (path, _open) = socket_path(folder)?;
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok::<_, io::Error>(listener)
        };
        let failed = || format!("cannot create the control socket {}", folder.control().display());
        Ok(Self { listener: bind().with_context(failed)?, folder: folder.clone() })
    }

    /// Answers commands while the server runs.
    pub(crate) async fn run(self: Arc<Self>, api: Arc<Api>, url: String) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (api, url) = (Arc::clone(&api), url.clone());
                    tokio::spawn(async move {
                        answer(&api, &url, stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(event = "control.accept_failed", %error, "a control connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Removes the socket when the server stops.
    pub(crate) fn close(&self) {
        if let Err(error) = fs::remove_file(self.folder.control()) {
            tracing::debug!(event = "control.remove_failed", %error, "the control socket was already gone");
        }
    }
}

/// Reads one command and answers it.
async fn answer(api: &Api, url: &str, mut stream: UnixStream) {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(COMMAND_BYTES_MAX));
    let answer = match timeout(COMMAND_TIME_MAX, reader.read_line(&mut line)).await {
        Ok(Ok(_)) => execute(api, url, line.trim()).await,
        Ok(Err(error)) => Err(format!("cannot read the command: {error}")),
        Err(_) => {
            tracing::debug!(event = "control.idle_closed", "a control connection sent no command");
            return;
        }
    };
    let answer = match answer {
        Ok(shown) => format!("ok {shown}\n"),
        Err(why) => format!("{}\n", why.replace('\n', " ")),
    };
    let written = timeout(ANSWER_TIME_MAX, writer.write_all(answer.as_bytes())).await;
    if !matches!(written, Ok(Ok(()))) {
        tracing::debug!(
            event = "control.reply_failed",
            "a client did not wait for the answer, or did not read it"
        );
    }
}

/// Writes the archive, and merges its files if requested.
async fn flush(live: &WorldHandle, compact: Compact) -> Result<String, String> {
    if !live.leads() {
        return Err("another node writes the archive: the one that leads".to_owned());
    }
    match live.history.flush(compact).await {
        Ok(true) => Ok(String::new()),
        Ok(false) => Err("the archive cannot be written; see the server's log".to_owned()),
        Err(error @ HistoryError::Off) => Err(format!("there is no archive: {error}")),
        Err(HistoryError::Busy) => {
            Err("too many orders wait for the archive; repeat this one later".to_owned())
        }
        Err(_) => Err("the archiver has ended; see the server's log".to_owned()),
    }
}

/// Executes a command; returns its output as one line.
async fn execute(api: &Api, url: &str, command: &str) -> Result<String, String> {
    let command: ControlCommand = serde_json::from_str(command)
        .map_err(|_| "the server does not know this command; it may be another version")?;
    let time_max = command.time_max();
    let executed = timeout(time_max, execute_known(api, url, command)).await;
    executed.unwrap_or_else(|_| {
        tracing::warn!(event = "control.timed_out", "a control command took too long");
        Err("the command took too long".to_owned())
    })
}

async fn execute_known(api: &Api, url: &str, command: ControlCommand) -> Result<String, String> {
    let live = api.world(World::Live);
    match command {
        ControlCommand::Reload => match api.accounts.reload().await {
            Ok(()) => Ok(String::new()),
            Err(error) => Err(format!("the server cannot read its database: {error}")),
        },
        ControlCommand::Url => Ok(url.to_owned()),
        ControlCommand::Operate(operation) => {
            let done = live.operate(operation).await;
            done.map(|_| String::new()).map_err(|error| error.to_string())
        }
        ControlCommand::Show(event) => {
            let shown = EventView::published(&live.identities(), event, &live.published().snapshot);
            let shown = shown.ok_or_else(|| format!("there is no event {event}"))?;
            serde_json::to_string(&shown).map_err(|error| error.to_string())
        }
        ControlCommand::FlushHistory => flush(live, Compact::Due).await,
        ControlCommand::CompactHistory { before: Some(date) } => {
            flush(live, Compact::Before(date)).await
        }
        ControlCommand::CompactHistory { before: None } => flush(live, Compact::All).await,
        ControlCommand::Unsure => {
            let identities = live.identities();
            let pairs: Vec<PairView> = identities
                .unsure()
                .iter()
                .map(|pair| PairView::published(pair, &identities))
                .collect();
            serde_json::to_string(&pairs).map_err(|error| error.to_string())
        }
    }
}
