//! How a command line reaches a running server, and waits until its change is effective there.
//!
//! The server listens on a Unix socket in the data folder that only the folder's owner can connect to. A command is one
//! line of JSON, the answer is one line of text.

mod shown;

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use domain::{EventId, World};
use market::Operation;
use serde::{Deserialize, Serialize};
use serve::App;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub(crate) use crate::control::shown::{ShownEvent, ShownPair};
use crate::folder::Folder;

/// A command is shorter; whoever has more to say says it in several.
const COMMAND_BYTES_MAX: u64 = 1 << 20;
/// The longest answer: ten thousand pairs in doubt, in words.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// Connections that are answered at the same time, and how long one may take to send its command, which a command line
/// does at once.
const CONNECTIONS_MAX: usize = 256;
const COMMAND_TIME_MAX: Duration = Duration::from_secs(2);
/// How long either side waits for the other; reading a hundred thousand keys takes under a second.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
/// How long a command line waits for a server that is just starting or stopping.
const SERVER_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest path that the address of a socket holds on Linux, without its end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What a command line asks of a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ControlCommand {
    /// The store has changed and is to be read again.
    Reload,
    /// The URL of the service's pages.
    Url,
    /// An operator's change of identities.
    Operate(Operation),
    /// An event with all its refs.
    Show(EventId),
    /// Pairs that may be one.
    Unsure,
}

/// The server's side.
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
    pub(crate) async fn run(self: Arc<Self>, app: Arc<App>, url: String) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (app, url) = (Arc::clone(&app), url.clone());
                    tokio::spawn(async move {
                        if timeout(ANSWER_TIME_MAX, answer(&app, &url, stream)).await.is_err() {
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

/// The path of the socket, short enough for its address. A long one leads through the open folder, which has to stay
/// open while the path is used.
fn socket_path(folder: &Folder) -> io::Result<(PathBuf, Option<File>)> {
    let path = folder.control();
    if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return Ok((path, None));
    }
    let open = File::open(folder.path())?;
    let through = Folder::at(format!("/proc/self/fd/{}", open.as_raw_fd()).as_ref());
    Ok((through.control(), Some(open)))
}

/// Reads one command and answers it.
async fn answer(app: &App, url: &str, mut stream: UnixStream) {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(COMMAND_BYTES_MAX));
    let answer = match timeout(COMMAND_TIME_MAX, reader.read_line(&mut line)).await {
        Ok(Ok(_)) => execute(app, url, line.trim()).await,
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
async fn execute(app: &App, url: &str, command: &str) -> Result<String, String> {
    let command = serde_json::from_str(command)
        .map_err(|_| "the server does not know this command; is it of the same version?")?;
    let live = app.world(World::Live);
    match command {
        ControlCommand::Reload => match app.accounts.reload().await {
            Ok(()) => Ok(String::new()),
            Err(error) => Err(format!("the server cannot read its store: {error}")),
        },
        ControlCommand::Url => Ok(url.to_owned()),
        ControlCommand::Operate(operation) => {
            let done = live.operate(operation).await;
            done.map(|_| String::new()).map_err(|error| error.to_string())
        }
        ControlCommand::Show(event) => {
            let shown = ShownEvent::published(&live.identities(), event, &app.catalogue);
            let shown = shown.ok_or_else(|| format!("there is no event {event}"))?;
            serde_json::to_string(&shown).map_err(|error| error.to_string())
        }
        ControlCommand::Unsure => {
            let identities = live.identities();
            let pairs: Vec<ShownPair> = identities
                .unsure()
                .iter()
                .map(|pair| ShownPair::published(pair, &identities))
                .collect();
            serde_json::to_string(&pairs).map_err(|error| error.to_string())
        }
    }
}

/// Has a running server execute a command and gives what it shows; `None` where none runs on the folder.
pub(crate) async fn ask_server(
    folder: &Folder,
    command: &ControlCommand,
) -> anyhow::Result<Option<String>> {
    let begun = Instant::now();
    let line = format!("{}\n", serde_json::to_string(command)?);
    loop {
        // A socket without a lock was left by a server that was killed.
        if !folder.is_served()? {
            return Ok(None);
        }
        let sent = timeout(ANSWER_TIME_MAX, send(folder, &line)).await.context("no answer in time");
        match sent?.context("the control socket cannot be used")? {
            Some(answer) if answer == "ok" => return Ok(Some(String::new())),
            Some(answer) => match answer.strip_prefix("ok ") {
                Some(shown) => return Ok(Some(shown.to_owned())),
                None => bail!("{answer}"),
            },
            // A server is starting or stopping on the folder.
            None if begun.elapsed() < SERVER_TIME_MAX => {}
            None => bail!("the server that runs on this folder does not answer"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Makes what was written to the store effective in a server that runs on the folder, if one does. A server that starts
/// later reads the store anyway.
pub(crate) async fn make_effective(folder: &Folder) -> anyhow::Result<()> {
    let reloaded = ask_server(folder, &ControlCommand::Reload).await;
    reloaded.map(drop).context(
        "the change is stored, but the server that runs on this folder did not confirm it; restart it to be sure",
    )
}

/// Sends a line and gives the answer; `None` where nobody answers.
async fn send(folder: &Folder, line: &str) -> io::Result<Option<String>> {
    let sending = async {
        let (path, _open) = socket_path(folder)?;
        let mut stream = UnixStream::connect(path).await?;
        stream.write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
        Ok::<_, io::Error>(answer.trim().to_owned())
    };
    let nobody = [
        ErrorKind::NotFound,
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        // Too many wait to be accepted.
        ErrorKind::WouldBlock,
    ];
    match sending.await {
        Ok(answer) => Ok(Some(answer).filter(|answer| !answer.is_empty())),
        Err(error) if nobody.contains(&error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}
