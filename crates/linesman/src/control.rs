//! How a command line reaches a running server, and waits until what it wants is in force.
//!
//! The server listens on a loopback port and writes port and password into the data folder, readable by its
//! owner only. A command is one line, the answer is one line. The password alone means that the store has changed and
//! is to be read again; behind it there may be a wish: an operation to carry out, or something to be shown.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use domain::{EventId, World};
use market::Operation;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serve::App;
use subtle::ConstantTimeEq;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::folder::{Folder, create_private};
use crate::identities::{ShownEvent, ShownPair};

/// A command and its answer are shorter; whoever has more to say says it in several.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// The longest answer: ten thousand pairs in doubt, in words.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// Connections that have not said the password, and how long they may take to: a command line says it at once. Whoever
/// else is on the machine holds little, and not for long.
const STRANGERS_MAX: usize = 256;
const PASSWORD_TIME_MAX: Duration = Duration::from_secs(2);
/// How long either side waits for the other's line; reading a hundred thousand keys takes under a second.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
/// How long a command line waits for a server that is just starting or stopping.
const SERVER_TIME_MAX: Duration = Duration::from_secs(10);

/// What a command line wants of a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wish {
    /// An operator's word on identities.
    Operate(Operation),
    /// An event with all its refs.
    Show(EventId),
    /// Pairs that may be one.
    Unsure,
}

/// What somebody who knows the password wants.
enum Admitted {
    ToReload,
    /// It is on the rest of the line.
    WithWish,
}

/// The server's side.
#[derive(Debug)]
pub(crate) struct Control {
    listener: TcpListener,
    password: String,
    folder: Folder,
}

impl Control {
    /// Opens the control port and writes down where it is. From here on a command line that finds the folder
    /// taken can reach the server; it is answered once [`Control::run`] is.
    pub(crate) async fn open(folder: &Folder) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no control port")?;
        let password: String =
            rand::random::<[u64; 4]>().iter().map(|n| format!("{n:016x}")).collect();
        let control = Self { listener, password, folder: folder.clone() };
        control.write_note(None)?;
        Ok(control)
    }

    /// Writes down how to reach the server, for command lines; and where people reach it, once that is known.
    pub(crate) fn write_note(&self, url: Option<&str>) -> anyhow::Result<()> {
        let address = self.listener.local_addr()?.to_string();
        let note = json!({ "address": address, "password": self.password, "url": url });
        write_private(&self.folder, &note.to_string())
            .with_context(|| format!("{} cannot be written", self.folder.control().display()))
    }

    /// Answers commands for as long as the server runs.
    pub(crate) async fn run(self: Arc<Self>, app: Arc<App>) {
        let strangers = Arc::new(Semaphore::new(STRANGERS_MAX));
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&strangers).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((mut stream, _)) => {
                    let (control, app) = (Arc::clone(&self), Arc::clone(&app));
                    tokio::spawn(async move {
                        let admitted = timeout(PASSWORD_TIME_MAX, control.admit(&mut stream)).await;
                        drop(place);
                        let Ok(Some(admitted)) = admitted else { return };
                        let answering = control.answer(&app, stream, admitted);
                        if timeout(ANSWER_TIME_MAX, answering).await.is_err() {
                            tracing::warn!("a control command took too long");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a control connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Reads the password, and no more than that; `None` where it is not ours.
    async fn admit(&self, stream: &mut TcpStream) -> Option<Admitted> {
        let mut said = vec![0; self.password.len() + 1];
        stream.read_exact(&mut said).await.ok()?;
        let (end, password) = said.split_last()?;
        if !bool::from(password.ct_eq(self.password.as_bytes())) {
            let told = stream.write_all(b"the server does not know this password\n").await;
            tracing::debug!(told = told.is_ok(), "a control command had a wrong password");
            return None;
        }
        match end {
            b'\n' => Some(Admitted::ToReload),
            b' ' => Some(Admitted::WithWish),
            _ => None,
        }
    }

    async fn answer(&self, app: &App, mut stream: TcpStream, admitted: Admitted) {
        let (reader, mut writer) = stream.split();
        let mut line = String::new();
        let answer = match admitted {
            Admitted::WithWish => {
                match BufReader::new(reader.take(LINE_BYTES_MAX)).read_line(&mut line).await {
                    Ok(_) => fulfil(app, line.trim()).await,
                    Err(error) => Err(format!("the command cannot be read: {error}")),
                }
            }
            Admitted::ToReload => match app.accounts.reload().await {
                Ok(()) => Ok(String::new()),
                Err(error) => Err(format!("the server cannot read its store: {error}")),
            },
        };
        let answer = match answer {
            Ok(shown) => format!("ok {shown}\n"),
            Err(why) => format!("{}\n", why.replace('\n', " ")),
        };
        if let Err(error) = writer.write_all(answer.as_bytes()).await {
            tracing::debug!(%error, "a control command did not wait for its answer");
        }
    }

    /// The server is going: nobody can be told anything any more.
    pub(crate) fn close(&self) {
        if let Err(error) = fs::remove_file(self.folder.control()) {
            tracing::debug!(%error, "the control note was gone already");
        }
    }
}

/// Does what is wished, and gives what is to be shown as one line of JSON.
async fn fulfil(app: &App, wish: &str) -> Result<String, String> {
    let wish = serde_json::from_str(wish)
        .map_err(|_| "the server does not know this command; is it of the same version?")?;
    let live = app.world(World::Live);
    match wish {
        Wish::Operate(operation) => {
            let done = live.operate(operation).await;
            done.map(|_| String::new()).map_err(|error| error.to_string())
        }
        Wish::Show(event) => {
            let shown = ShownEvent::published(&live.identities(), event, &app.catalogue);
            let shown = shown.ok_or_else(|| format!("there is no event {event}"))?;
            serde_json::to_string(&shown).map_err(|error| error.to_string())
        }
        Wish::Unsure => {
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

/// Has a running server fulfil a wish and gives what it shows; `None` where none runs on the folder.
pub(crate) async fn ask_server(folder: &Folder, wish: &Wish) -> anyhow::Result<Option<String>> {
    let begun = Instant::now();
    let text = serde_json::to_string(wish)?;
    loop {
        if !folder.is_served()? {
            return Ok(None);
        }
        match tell(folder, Some(&text)).await {
            Ok(Told::Done(shown)) => return Ok(Some(shown)),
            Ok(Told::Refused(why)) => bail!("{why}"),
            Ok(Told::Nobody) if begun.elapsed() < SERVER_TIME_MAX => {}
            Ok(Told::Nobody) => bail!("the server that runs on this folder does not answer"),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Makes what was written to the store effective in a server that runs on the folder, if one does.
pub(crate) async fn make_effective(folder: &Folder) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        // Looked at after the store was written: a server that comes later reads it anyway. The note alone
        // tells nothing, for a server that was killed leaves it behind and its port goes to somebody else.
        if !folder.is_served()? {
            return Ok(());
        }
        let told = tell(folder, None).await;
        if matches!(told, Ok(Told::Done(_))) {
            return Ok(());
        }
        if begun.elapsed() >= SERVER_TIME_MAX {
            return match told {
                Ok(Told::Refused(why)) => {
                    bail!("the change is stored, but the running server did not take it: {why}")
                }
                Ok(Told::Done(_) | Told::Nobody) => bail!("{NOT_CONFIRMED}"),
                Err(error) => Err(error).context(NOT_CONFIRMED),
            };
        }
        // A server is starting or stopping on the folder.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const NOT_CONFIRMED: &str = "the change is stored, but the server that runs on this folder did not confirm it; restart it to be sure";

enum Told {
    /// With what there is to show.
    Done(String),
    Refused(String),
    Nobody,
}

/// Where the server that runs on a folder is reached by people, if it has said so.
pub(crate) fn address(folder: &Folder) -> Option<String> {
    let note = fs::read_to_string(folder.control()).ok()?;
    let note: serde_json::Value = serde_json::from_str(&note).ok()?;
    Some(note.get("url")?.as_str()?.to_owned())
}

async fn tell(folder: &Folder, wish: Option<&str>) -> anyhow::Result<Told> {
    let note = match fs::read_to_string(folder.control()) {
        Ok(note) => note,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Told::Nobody),
        Err(error) => return Err(error).context("the control note cannot be read"),
    };
    let note: serde_json::Value =
        serde_json::from_str(&note).context("the control note is damaged")?;
    let field = |name: &str| note.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    let address: SocketAddr = field("address").parse().context("the control note is damaged")?;
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        let command = match wish {
            Some(wish) => format!("{} {wish}\n", field("password")),
            None => format!("{}\n", field("password")),
        };
        stream.write_all(command.as_bytes()).await?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = timeout(ANSWER_TIME_MAX, asking).await.context("no answer in time")??;
    Ok(match answer.trim() {
        "ok" => Told::Done(String::new()),
        "" => Told::Nobody,
        answer => match answer.strip_prefix("ok ") {
            Some(shown) => Told::Done(shown.to_owned()),
            None => Told::Refused(answer.to_owned()),
        },
    })
}

fn write_private(folder: &Folder, text: &str) -> std::io::Result<()> {
    let path = folder.control();
    let new = path.with_extension("new");
    create_private(&new)?.write_all(text.as_bytes())?;
    fs::rename(new, path)
}
