//! The server's side of the control socket.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api::Api;
use domain::World;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::event_view::{EventView, PairView};
use super::protocol::{ANSWER_TIME_MAX, ControlCommand, socket_path};
use crate::folder::Folder;

/// A command is shorter; whoever has more to say says it in several.
const COMMAND_BYTES_MAX: u64 = 1 << 20;
/// Connections that are answered at the same time, and how long one may take to send its command, which a command line
/// does at once.
const CONNECTIONS_MAX: usize = 256;
const COMMAND_TIME_MAX: Duration = Duration::from_secs(2);
/// The listening socket.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    folder: Folder,
}

impl Control {
    /// Opens the control socket of a folder whose lock is held: a socket that is there already was left by a server
    /// that was killed. A command line that connects from now on is answered once [`Control::run`] is called.
    pub(crate) fn open(folder: &Folder) -> anyhow::Result<Self> {
        let bind = || {
            folder.remove_leftovers()?;
            let (path, _open) = socket_path(folder)?;
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok::<_, io::Error>(listener)
        };
        let failed = || format!("the control socket {} cannot be made", folder.control().display());
        Ok(Self { listener: bind().with_context(failed)?, folder: folder.clone() })
    }

    /// Answers commands for as long as the server runs.
    pub(crate) async fn run(self: Arc<Self>, api: Arc<Api>, url: String) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (api, url) = (Arc::clone(&api), url.clone());
                    tokio::spawn(async move {
                        if timeout(ANSWER_TIME_MAX, answer(&api, &url, stream)).await.is_err() {
                            tracing::warn!("a control command took too long");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a control connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// The server stops: commands are not answered any more.
    pub(crate) fn close(&self) {
        if let Err(error) = fs::remove_file(self.folder.control()) {
            tracing::debug!(%error, "the control socket was removed before");
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
        Ok(Err(error)) => Err(format!("the command cannot be read: {error}")),
        Err(_) => {
            tracing::debug!("a control connection sent no command");
            return;
        }
    };
    let answer = match answer {
        Ok(shown) => format!("ok {shown}\n"),
        Err(why) => format!("{}\n", why.replace('\n', " ")),
    };
    if let Err(error) = writer.write_all(answer.as_bytes()).await {
        tracing::debug!(%error, "a control command did not wait for its answer");
    }
}

/// Executes a command, and gives what is to be shown as one line.
async fn execute(api: &Api, url: &str, command: &str) -> Result<String, String> {
    let command = serde_json::from_str(command)
        .map_err(|_| "the server does not know this command; is it of the same version?")?;
    let live = api.world(World::Live);
    match command {
        ControlCommand::Reload => match api.accounts.reload().await {
            Ok(()) => Ok(String::new()),
            Err(error) => Err(format!("the server cannot read its store: {error}")),
        },
        ControlCommand::Url => Ok(url.to_owned()),
        ControlCommand::Operate(operation) => {
            let done = live.operate(operation).await;
            done.map(|_| String::new()).map_err(|error| error.to_string())
        }
        ControlCommand::Show(event) => {
            let shown = EventView::published(&live.identities(), event, &api.catalogue);
            let shown = shown.ok_or_else(|| format!("there is no event {event}"))?;
            serde_json::to_string(&shown).map_err(|error| error.to_string())
        }
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
