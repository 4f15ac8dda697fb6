//! The client of a running server's control socket.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::protocol::{ControlCommand, socket_path};
use crate::folder::Folder;

/// Maximum size of an answer: ten thousand possible duplicates.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// How much longer than the server the command line waits.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait for a server that is starting or stopping.
const SERVER_TIME_MAX: Duration = Duration::from_secs(10);
/// Sends a command to a running server; returns its output, or `None` if no server runs on the folder.
pub(crate) async fn ask_server(
    folder: &Folder,
    command: &ControlCommand,
) -> anyhow::Result<Option<String>> {
    // A cluster's command line may have no folder.
    if !folder.path().is_dir() {
        return Ok(None);
    }
    let begun = Instant::now();
    let line = format!("{}\n", serde_json::to_string(command)?);
    loop {
        // A socket without a lock was left by a killed server.
        if !folder.is_served()? {
            return Ok(None);
        }
        let sent = timeout(command.time_max() + GRACE, send(folder, &line))
            .await
            .context("the server did not answer in time");
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

/// Makes a stored change effective in the server that runs on the folder, if any. A server that starts later reads
/// the store anyway.
pub(crate) async fn make_effective(folder: &Folder) -> anyhow::Result<()> {
    let reloaded = ask_server(folder, &ControlCommand::Reload).await;
    reloaded.map(drop).context(
        "the change is stored, but the running server did not confirm it; restart the server to be sure",
    )
}

/// Sends a line and returns the answer; `None` if no server answers.
async fn send(folder: &Folder, line: &str) -> io::Result<Option<String>> {
    let sending = async {
        let (path, _open) = socket_path(folder)?;
        let mut stream = UnixStream::connect(path).await?;
        stream.write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
        Ok::<_, io::Error>(answer.trim().to_owned())
    };
    let no_server = [
        ErrorKind::NotFound,
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        // The backlog is full.
        ErrorKind::WouldBlock,
    ];
    match sending.await {
        Ok(answer) => Ok(Some(answer).filter(|answer| !answer.is_empty())),
        Err(error) if no_server.contains(&error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}
