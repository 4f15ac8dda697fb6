//! What an operator sees and says of identities: `linesman events` and `linesman aliases`.
//!
//! Looking reads the live world's log, so it works whether a server runs or not. What changes something is carried out by
//! the server where one runs, and otherwise here, in its place.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use change_log::{LogError, LogView};
use domain::message::Fixture;
use domain::{Catalogue, World};
use market::{Alias, Book, Change, Ids, Meaning, Operation, Profile, Unsure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::{AliasesVerb, EventsVerb, ListerRef, output};
use crate::config::Config;
use crate::folder::Folder;
use crate::{control, load_catalogue, program};

/// Aliases told to a server in one line of the control port.
const ALIASES_AT_ONCE: usize = 500;
/// The first line of an export says what follows.
const ALIASES_VERSION: u32 = 1;

pub(crate) fn events(config: &Config, data: &Path, verb: &EventsVerb) -> anyhow::Result<()> {
    let operation = match verb {
        EventsVerb::Show(args) => {
            let book = read_book(&load_catalogue(config)?, data)?;
            let profile = book.profile(args.event);
            let profile = profile.with_context(|| format!("there is no event {}", args.event))?;
            let text =
                if args.json { profile_json(&profile) } else { profile_text(&book, &profile) };
            return Ok(output::print_line(&text)?);
        }
        EventsVerb::Unsure(args) => {
            return list_unsure(&read_book(&load_catalogue(config)?, data)?, args.json);
        }
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
            let book = read_book(&load_catalogue(config)?, data)?;
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

/// Carries out operations in the server that runs on the folder, or here where none does.
fn operate(config: &Config, data: &Path, operations: &[Operation]) -> anyhow::Result<()> {
    let folder = Folder::open(data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for (done, operation) in operations.iter().enumerate() {
            if control::operate_on_server(&folder, operation).await?.is_none() {
                // Nobody can start one in between while the lock is held.
                let _lock = folder.lock().await?;
                let rest = operations.get(done..).unwrap_or_default();
                return program::operate_alone(config, &folder, rest);
            }
        }
        Ok(())
    })
}

/// The live world as its log tells it.
fn read_book(catalogue: &Arc<Catalogue>, data: &Path) -> anyhow::Result<Book> {
    let folder = Folder::at(data).log(World::Live);
    let view = match LogView::open(&folder) {
        Err(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            bail!("there is no log at {}; --data names the data folder", folder.display())
        }
        opened => opened?,
    };
    let mut book = Book::new(Arc::clone(catalogue), Ids::Minted { salt: 0 });
    let mut from = view.first_seq();
    for seq in view.checkpoints().iter().rev() {
        if let Ok(checkpoint) = view.checkpoint(*seq) {
            book =
                Book::from_image(checkpoint.version, &checkpoint.payload, Arc::clone(catalogue))?;
            from = seq + 1;
            break;
        }
    }
    let entries = match view.read_from(from) {
        Err(LogError::NotKept { .. }) => return Ok(book),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let change = Change::decode(entry.version, &entry.payload)?;
        book.absorb(&change, domain::Timestamp::from_millis(entry.at_ms));
    }
    Ok(book)
}

fn profile_text(book: &Book, profile: &Profile) -> String {
    let mut text = format!(
        "{} {}\n  {}, {}, starts {}",
        profile.event, profile.fixture, profile.sport, profile.competition, profile.commence_time
    );
    for id in &profile.also {
        put(&mut text, format_args!("\n  also answers as {id}"));
    }
    for held in &profile.refs {
        put(
            &mut text,
            format_args!(
                "\n  {}:{} {}{}, {}, starts {}\n    {}",
                held.feed,
                held.reference,
                held.fixture,
                if held.swapped { " (the other way round)" } else { "" },
                held.competition,
                held.commence_time,
                held.why
            ),
        );
    }
    for unsure in &profile.unsure {
        put(&mut text, format_args!("\n  not sure: {}", unsure_text(book, unsure)));
    }
    text
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let written = text.write_fmt(more);
    debug_assert!(written.is_ok());
}

fn profile_json(profile: &Profile) -> String {
    let refs = profile.refs.iter().map(|held| {
        let mut value = json!({
            "feed": held.feed, "ref": held.reference, "competition": held.competition,
            "commence_time": held.commence_time.to_string(), "swapped": held.swapped, "why": held.why,
        });
        add_names(&mut value, &held.fixture);
        value
    });
    let mut value = json!({
        "id": profile.event.to_string(), "sport": profile.sport, "competition": profile.competition,
        "commence_time": profile.commence_time.to_string(),
        "also": profile.also.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "refs": refs.collect::<Vec<_>>(),
        "unsure": profile.unsure.iter().map(unsure_json).collect::<Vec<_>>(),
    });
    add_names(&mut value, &profile.fixture);
    value.to_string()
}

fn add_names(value: &mut serde_json::Value, fixture: &Fixture) {
    let Some(fields) = value.as_object_mut() else { return };
    match fixture {
        Fixture::HeadToHead { home, away } => {
            fields.insert("home".to_owned(), json!(home));
            fields.insert("away".to_owned(), json!(away));
        }
        Fixture::Field { title } => {
            fields.insert("title".to_owned(), json!(title));
        }
    }
}

fn list_unsure(book: &Book, json: bool) -> anyhow::Result<()> {
    let mut any = false;
    for unsure in book.unsure() {
        any = true;
        let line = if json { unsure_json(&unsure).to_string() } else { unsure_text(book, &unsure) };
        output::print_line(&line)?;
    }
    if !any && !json {
        output::print_line("nothing is unsure")?;
    }
    Ok(())
}

fn unsure_text(book: &Book, unsure: &Unsure) -> String {
    let side = |id| match book.event(id) {
        Some(event) => format!("{id} {}, starts {}", event.fixture, event.commence_time),
        None => format!("{id}"),
    };
    let (one, other) = (side(unsure.one), side(unsure.other));
    format!("{one} | {other} | {} ({})", unsure.doubt, unsure.evidence)
}

fn unsure_json(unsure: &Unsure) -> serde_json::Value {
    json!({
        "one": unsure.one.to_string(), "other": unsure.other.to_string(),
        "doubt": unsure.doubt.to_string(), "evidence": unsure.evidence.to_string(),
    })
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
