//! What an operator sees and says of identities: `linesman events` and `linesman aliases`.
//!
//! Looking asks the server where one runs, which has it ready, and otherwise reads the live world's log. What changes
//! something is carried out by the server where one runs, and otherwise here, in its place; where many nodes share the
//! log, by the one that writes it.

mod shown;

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, bail};
use change_log::{LogError, LogView};
use domain::{EventId, World};
use market::{Alias, Book, Meaning, Operation};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::{AliasesVerb, EventsVerb, ListerRef, output};
use crate::config::Config;
use crate::control::ControlCommand;
use crate::folder::Folder;
pub(crate) use crate::identities::shown::{ShownEvent, ShownPair};
use crate::{cluster, control, load_catalogue, verbs, worlds};

/// Aliases told to a server in one control command.
const ALIASES_AT_ONCE: usize = 500;
/// The first line of an export says what follows.
const ALIASES_VERSION: u32 = 1;

pub(crate) fn events(config: &Config, data: &Path, verb: &EventsVerb) -> anyhow::Result<()> {
    let operation = match verb {
        EventsVerb::Show(args) => {
            let shown = show(config, data, args.event)?;
            let text = if args.json { serde_json::to_string(&shown)? } else { shown.to_text() };
            return Ok(output::print_line(&text)?);
        }
        EventsVerb::Unsure(args) => return list_unsure(&unsure(config, data)?, args.json),
        EventsVerb::Merge(args) => Operation::Merge { one: args.one, other: args.other },
        EventsVerb::Apart(args) => Operation::Part { one: args.one, other: args.other },
        EventsVerb::Split(args) => {
            let ListerRef { feed, reference } = args.lister.clone();
            Operation::Split { event: args.event, feed, reference }
        }
    };
    operate(config, data, &[operation])
}

pub(crate) fn aliases(config: &Config, data: &Path, verb: &AliasesVerb) -> anyhow::Result<()> {
    match verb {
        AliasesVerb::Export => {
            let book = read_book(config, data)?;
            let head = json!({ "linesman_aliases": ALIASES_VERSION }).to_string();
            output::print_line(&head)?;
            for alias in book.aliases() {
                output::print_line(&serde_json::to_string(&AliasLine::from(alias))?)?;
            }
            Ok(())
        }
        AliasesVerb::Import(args) => {
            let aliases = read_aliases(&args.file)?;
            let parts = aliases.chunks(ALIASES_AT_ONCE);
            let operations: Vec<Operation> =
                parts.map(|aliases| Operation::Teach { aliases: aliases.to_vec() }).collect();
            operate(config, data, &operations)?;
            Ok(output::print_line(&format!("{} aliases taken in", aliases.len()))?)
        }
    }
}

/// An event as the server that runs on the folder has it, or as the log tells it where none does.
fn show(config: &Config, data: &Path, event: EventId) -> anyhow::Result<ShownEvent> {
    if let Some(shown) = ask_server(data, &ControlCommand::Show(event))? {
        return Ok(serde_json::from_str(&shown)?);
    }
    let book = read_book(config, data)?;
    let profile = book.profile(event).with_context(|| format!("there is no event {event}"))?;
    Ok(ShownEvent::of(&profile, &book))
}

/// Pairs that may be one, likewise.
fn unsure(config: &Config, data: &Path) -> anyhow::Result<Vec<ShownPair>> {
    if let Some(shown) = ask_server(data, &ControlCommand::Unsure)? {
        return Ok(serde_json::from_str(&shown)?);
    }
    let book = read_book(config, data)?;
    Ok(book.unsure().map(|pair| ShownPair::of(&pair, &book)).collect())
}

/// `None`: no server runs on the folder, or there is none.
fn ask_server(data: &Path, command: &ControlCommand) -> anyhow::Result<Option<String>> {
    if !data.is_dir() {
        return Ok(None);
    }
    let folder = Folder::at(data);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(control::ask_server(&folder, command))
}

/// Carries out operations in the server that runs on the folder, or here where none does, and writes them down.
pub(crate) fn operate(
    config: &Config,
    data: &Path,
    operations: &[Operation],
) -> anyhow::Result<()> {
    let folder = Folder::open(data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Some(cluster) = &config.cluster {
            cluster::operate(cluster, operations).await?;
            return verbs::note_operations(config, &folder, operations).await;
        }
        for (done, operation) in operations.iter().enumerate() {
            let command = ControlCommand::Operate(operation.clone());
            if control::ask_server(&folder, &command).await?.is_none() {
                // Nobody can start one in between while the lock is held.
                let _lock = folder.lock().await?;
                let rest = operations.get(done..).unwrap_or_default();
                worlds::operate_alone(config, &folder, rest)?;
                break;
            }
        }
        verbs::note_operations(config, &folder, operations).await
    })
}

/// The live world as its log tells it.
fn read_book(config: &Config, data: &Path) -> anyhow::Result<Book> {
    let catalogue = &load_catalogue(config)?;
    if let Some(cluster) = &config.cluster {
        return cluster::read_book(cluster, catalogue);
    }
    let folder = Folder::at(data).log(World::Live);
    let mut view = match LogView::open(&folder) {
        Err(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            bail!("there is no log at {}; --data names the data folder", folder.display())
        }
        opened => opened?,
    };
    Ok(serve::replay_book(&mut view, catalogue)?)
}

fn list_unsure(pairs: &[ShownPair], json: bool) -> anyhow::Result<()> {
    for pair in pairs {
        let line = if json { serde_json::to_string(pair)? } else { pair.to_text() };
        output::print_line(&line)?;
    }
    if pairs.is_empty() && !json {
        output::print_line("nothing is unsure")?;
    }
    Ok(())
}

/// An alias as a line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AliasLine {
    sport: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feed: Option<Box<str>>,
    name: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_not: Option<Box<str>>,
}

impl From<&Alias> for AliasLine {
    fn from(alias: &Alias) -> Self {
        let (is, is_not) = match &alias.meaning {
            Meaning::Is(who) => (Some(who.clone()), None),
            Meaning::IsNot(who) => (None, Some(who.clone())),
        };
        Self {
            sport: alias.sport.clone(),
            feed: alias.feed.clone(),
            name: alias.name.clone(),
            is,
            is_not,
        }
    }
}

fn read_aliases(file: &Path) -> anyhow::Result<Vec<Alias>> {
    let opened =
        std::fs::File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let mut aliases = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(opened).lines()) {
        let line = line.with_context(|| format!("{}:{number} cannot be read", file.display()))?;
        let head: Option<u32> = serde_json::from_str::<serde_json::Value>(&line)
            .ok()
            .and_then(|value| u32::try_from(value.get("linesman_aliases")?.as_u64()?).ok());
        match head {
            Some(ALIASES_VERSION) => continue,
            Some(version) => bail!(
                "{} has version {version}; this program reads {ALIASES_VERSION}",
                file.display()
            ),
            None if line.trim().is_empty() => continue,
            None => {}
        }
        let alias = read_alias(&line).with_context(|| format!("{}:{number}", file.display()))?;
        aliases.push(alias);
    }
    Ok(aliases)
}

fn read_alias(line: &str) -> anyhow::Result<Alias> {
    let AliasLine { sport, feed, name, is, is_not } =
        serde_json::from_str(line).context("not an alias such as `aliases export` prints")?;
    let meaning = match (is, is_not) {
        (Some(who), None) => Meaning::Is(who),
        (None, Some(who)) => Meaning::IsNot(who),
        _ => bail!("either `is` or `is_not` is needed"),
    };
    let who = match &meaning {
        Meaning::Is(who) | Meaning::IsNot(who) => who,
    };
    let most = domain::message::NAME_BYTES_MAX;
    if [&name, who].iter().any(|text| text.trim().is_empty() || text.len() > most) {
        bail!("a name has 1 to {most} bytes");
    }
    Ok(Alias { sport, feed, name, meaning })
}
