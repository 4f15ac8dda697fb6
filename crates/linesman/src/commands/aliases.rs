//! `linesman aliases`: exports and imports learned name aliases.

use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, bail};
use market::{Alias, Meaning, Operation};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::{AliasesCommand, output};
use crate::config::Config;
use crate::open;

/// Maximum number of aliases in one control command.
const ALIASES_AT_ONCE: usize = 500;
/// The version in the first line of an export.
const ALIASES_VERSION: u32 = 1;

pub(crate) fn run(config: &Config, data: &Path, command: &AliasesCommand) -> anyhow::Result<()> {
    match command {
        AliasesCommand::Export => {
            let book = open::read_book(config, data)?;
            let head = json!({ "linesman_aliases": ALIASES_VERSION }).to_string();
            output::print_line(&head)?;
            for alias in book.aliases() {
                output::print_line(&serde_json::to_string(&AliasLine::from(alias))?)?;
            }
            Ok(())
        }
        AliasesCommand::Import(args) => {
            let aliases = read_aliases(&args.file)?;
            let parts = aliases.chunks(ALIASES_AT_ONCE);
            let operations: Vec<Operation> =
                parts.map(|aliases| Operation::Teach { aliases: aliases.to_vec() }).collect();
            open::operate(config, data, &operations)?;
            output::print_line(&format!("{} aliases imported", aliases.len()))
        }
    }
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
        std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut aliases = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(opened).lines()) {
        let line =
            line.with_context(|| format!("{}:{number}: cannot read the line", file.display()))?;
        let head: Option<u32> = serde_json::from_str::<serde_json::Value>(&line)
            .ok()
            .and_then(|value| u32::try_from(value.get("linesman_aliases")?.as_u64()?).ok());
        match head {
            Some(ALIASES_VERSION) => continue,
            Some(version) => bail!(
                "{} has version {version}; this program supports {ALIASES_VERSION}",
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
        serde_json::from_str(line).context("not an alias as `aliases export` prints it")?;
    let meaning = match (is, is_not) {
        (Some(who), None) => Meaning::Is(who),
        (None, Some(who)) => Meaning::IsNot(who),
        _ => bail!("either `is` or `is_not` is required"),
    };
    let who = match &meaning {
        Meaning::Is(who) | Meaning::IsNot(who) => who,
    };
    let most = domain::message::NAME_BYTES_MAX;
    if [&name, who].iter().any(|text| text.trim().is_empty() || text.len() > most) {
        bail!("a name must have 1 to {most} bytes");
    }
    Ok(Alias { sport, feed, name, meaning })
}
