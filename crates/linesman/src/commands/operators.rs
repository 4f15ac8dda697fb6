//! `linesman operators`: lists operators, and prints links for operators who cannot sign in.
//!
//! A user who can write the data folder has full control anyway, so no password is required.

use std::path::Path;
use std::sync::Arc;

use accounts::{AccountRecord, Actor, LinkToken, People, PeopleRules};
use anyhow::{Context, bail};
use domain::suggest::did_you_mean;

use crate::cli::{OperatorsCommand, OperatorsLinkArgs, output};
use crate::clock::SystemClock;
use crate::commands::serve::banner::public_url;
use crate::config::Config;
use crate::control::{self, ControlCommand};
use crate::folder::Folder;
use crate::open;

pub(crate) fn run(config: &Config, data: &Path, command: &OperatorsCommand) -> anyhow::Result<()> {
    let folder = open::open_folder(config, data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = open::open_store(config, &folder).await?;
        let people = People::new(store.clone(), Arc::new(SystemClock), PeopleRules::default())?;
        let done = match command {
            OperatorsCommand::List => list(&people).await,
            OperatorsCommand::Link(args) => print_link(config, &folder, &people, args).await,
        };
        store.close().await;
        done
    })
}

async fn list(people: &People) -> anyhow::Result<()> {
    let mut lines =
        vec![format!("{:<40} {:<24} {:<14} state", "address", "since", "second factor")];
    for operator in people.operators().await? {
        let state =
            operator.suspended_at.map_or("active".to_owned(), |at| format!("suspended {at}"));
        let factor = if operator.second_factor { "on" } else { "off" };
        let since = operator.created_at.to_string();
        lines.push(format!("{:<40} {since:<24} {factor:<14} {state}", operator.email));
    }
    output::print_line(&lines.join("\n"))
}

async fn print_link(
    config: &Config,
    folder: &Folder,
    people: &People,
    args: &OperatorsLinkArgs,
) -> anyhow::Result<()> {
    // Checked first, so that no link is created and then lost if this fails.
    let base = base_url(config, folder).await?;
    let (token, note) = link(people, args).await?;
    output::print_error(note);
    output::print_line(&format!("{base}/link/{}", token.expose()))
}

/// A link, and a note that explains it.
async fn link(
    people: &People,
    args: &OperatorsLinkArgs,
) -> anyhow::Result<(LinkToken, &'static str)> {
    let actor = Actor::command_line();
    let operators = people.operators().await?;
    if args.new || (operators.is_empty() && args.email.is_none()) {
        let note = "this one-time link creates an operator and is valid for a day:";
        return Ok((people.operator_link(&actor).await?, note));
    }
    let operator = find(&operators, args.email.as_deref())?;
    if operator.suspended_at.is_some() {
        bail!(
            "{} is suspended; another operator can resume the account in the console",
            operator.email
        );
    }
    if args.without_second_factor {
        people.remove_second_factor(&operator.id, &actor).await?;
    }
    let token = people.reset_link(&operator.id, &actor).await?;
    let note = if operator.second_factor && !args.without_second_factor {
        "this one-time link sets a new password and is valid for a day; the second factor stays on (see --without-second-factor):"
    } else {
        "this one-time link sets a new password and is valid for a day:"
    };
    Ok((token, note))
}

fn find<'a>(
    operators: &'a [AccountRecord],
    email: Option<&str>,
) -> anyhow::Result<&'a AccountRecord> {
    match (email, operators) {
        (Some(email), _) => {
            let email = email.to_lowercase();
            operators.iter().find(|operator| operator.email == email).with_context(|| {
                let known = operators.iter().map(|operator| operator.email.as_str());
                let near = did_you_mean(&email, known);
                format!("unknown operator {email}{near}; see `linesman operators list`")
            })
        }
        (None, [only]) => Ok(only),
        (None, _) => {
            bail!("there are several operators; name one: operators link EMAIL")
        }
    }
}

/// The URL of the web pages, from the running server or the configuration.
async fn base_url(config: &Config, folder: &Folder) -> anyhow::Result<String> {
    let running = control::ask_server(folder, &ControlCommand::Url).await?;
    let configured = || public_url(config, config.server.listen);
    Ok(running.unwrap_or_else(configured).trim_end_matches('/').to_owned())
}
