//! `linesman feeds`: feed tokens, and removal of a feed's listings.

use std::path::Path;
use std::time::Duration;

use accounts::{Actor, AuditAction, FeedRecord, Need, Scores};
use anyhow::bail;
use domain::suggest::did_you_mean;
use domain::{Clock as _, Timestamp};
use market::Operation;

use crate::cli::{FeedsCommand, FeedsCreateArgs, output};
use crate::clock::SystemClock;
use crate::commands::adapters;
use crate::commands::serve::banner::public_url;
use crate::config::Config;
use crate::{catalogue, open};

pub(crate) fn run(config: &Config, data: &Path, command: &FeedsCommand) -> anyhow::Result<()> {
    match command {
        FeedsCommand::Kinds(args) => return adapters::kinds(args.json),
        FeedsCommand::Check(args) => return adapters::check(config, data, args),
        FeedsCommand::Translate(args) => return adapters::translate(config, args),
        FeedsCommand::Create(args) if config.adapters.iter().any(|own| own.name == args.name) => {
            bail!("`{}` is the name of an adapter in the configuration; choose another", args.name)
        }
        FeedsCommand::Create(_)
        | FeedsCommand::List(_)
        | FeedsCommand::Revoke(_)
        | FeedsCommand::Pause(_)
        | FeedsCommand::Resume(_)
        | FeedsCommand::Drop(_)
        | FeedsCommand::Status(_)
        | FeedsCommand::Read(_)
        | FeedsCommand::Quarantine(_) => {}
    }
    if let FeedsCommand::Create(FeedsCreateArgs { bookmaker: Some(key), .. }) = command {
        check_bookmaker(config, key)?;
    }
    if let FeedsCommand::Drop(args) = command {
        let feed = args.name.as_str().into();
        return open::operate(config, data, &[Operation::Drop { feed }]);
    }
    let by = Actor::command_line();
    open::on_store(config, data, async |registry, context| match command {
        FeedsCommand::Create(args) => {
            let scores = if args.scores { Scores::Allowed } else { Scores::OfUnbound };
            let bookmaker = args.bookmaker.as_deref();
            let (token, _) = registry.create_feed(&args.name, bookmaker, scores, &by).await?;
            output::print_line(token.expose())?;
            context.make_effective(Need::Soon).await?;
            let url = public_url(config, config.server.listen);
            output::print_hint(&first_push(&url, token.expose(), bookmaker, SystemClock.now()));
            Ok(())
        }
        FeedsCommand::List(args) => print_list(&registry.list_feeds().await?, args.json),
        FeedsCommand::Revoke(args) => {
            registry.revoke_feed(&args.name, &by).await?;
            let said = (AuditAction::FeedRevoked, args.name.as_str(), "");
            context.settle(registry, said, Need::Everywhere).await
        }
        FeedsCommand::Pause(args) | FeedsCommand::Resume(args) => {
            let paused = matches!(command, FeedsCommand::Pause(_));
            if config.adapters.iter().any(|own| own.name == args.name) {
                // The leader checks for it every second.
                return Ok(registry.pause_adapter(&args.name, paused, &by).await?);
            }
            registry.pause_feed(&args.name, paused, &by).await?;
            let action = if paused { AuditAction::FeedPaused } else { AuditAction::FeedResumed };
            context.settle(registry, (action, &args.name, ""), Need::Everywhere).await
        }
        FeedsCommand::Status(args) => {
            adapters::status(config, context.store(), args.name.as_deref(), args.json).await
        }
        FeedsCommand::Read(args) => adapters::read(config, registry, &args.name).await,
        FeedsCommand::Quarantine(args) => {
            adapters::quarantine(config, context.store(), &args.name, args.json).await
        }
        FeedsCommand::Drop(_)
        | FeedsCommand::Kinds(_)
        | FeedsCommand::Check(_)
        | FeedsCommand::Translate(_) => Ok(()),
    })
}

/// A sample push that works as printed, and the request that shows its price.
fn first_push(url: &str, token: &str, bookmaker: Option<&str>, now: Timestamp) -> String {
    let url = url.trim_end_matches('/');
    let start = now.plus(Duration::from_secs(7 * 86_400));
    let bookmaker = bookmaker.unwrap_or("fanduel");
    format!(
        "\nThe token is not shown again. Try it:\n  \
         curl {url}/ingest/v1/messages -H 'Authorization: Bearer {token}' --data-binary @- <<'END'\n\
         {{\"type\":\"event\",\"ref\":\"first\",\"sport\":\"mma\",\"competition\":\"Test\",\
         \"commence_time\":\"{start}\",\"home\":\"Ana Testa\",\"away\":\"Bea Probe\"}}\n\
         {{\"type\":\"odds\",\"ref\":\"first\",\"bookmaker\":\"{bookmaker}\",\"market\":\"moneyline\",\
         \"format\":\"american\",\"outcomes\":[{{\"name\":\"Ana Testa\",\"price\":140}},\
         {{\"name\":\"Bea Probe\",\"price\":-165}}]}}\nEND\n\
         A key of `linesman keys create --kind production` reads it once it is published."
    )
}

fn check_bookmaker(config: &Config, key: &str) -> anyhow::Result<()> {
    let catalogue = catalogue::load(config)?;
    if catalogue.bookmaker_id(key).is_none() {
        let near = did_you_mean(key, catalogue.bookmakers().map(|(_, held)| &*held.key));
        bail!("unknown bookmaker `{key}`{near}; add it with a catalogue file (catalogue.file)");
    }
    Ok(())
}

fn print_list(feeds: &[FeedRecord], json: bool) -> anyhow::Result<()> {
    if json {
        return output::print_line(&serde_json::to_string(feeds)?);
    }
    let lines = feeds.iter().map(|feed| {
        let state = match (feed.revoked_at, feed.paused_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => format!("paused {at}"),
            (None, None) => "active".to_owned(),
        };
        let bookmaker = feed.bookmaker.as_deref().unwrap_or("any");
        format!(
            "{:<24} {:<16} {:<7} {:<22} {state}",
            feed.name,
            bookmaker,
            if feed.scores { "yes" } else { "no" },
            feed.created_at.to_string()
        )
    });
    let head =
        format!("{:<24} {:<16} {:<7} {:<22} state", "name", "bookmaker", "scores", "created");
    output::print_line(&[head].into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_push_is_two_messages_that_a_feed_may_send() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let catalogue = domain::Catalogue::load(None).unwrap();
        for bookmaker in [None, Some("pinnacle")] {
            let hint = first_push("https://odds.example.com/", "fk_1", bookmaker, now);
            assert!(hint.contains("curl https://odds.example.com/ingest/v1/messages -H"), "{hint}");
            let body = hint.split_once("<<'END'\n").unwrap().1.split_once("\nEND\n").unwrap().0;
            for line in body.lines() {
                let bound = bookmaker.and_then(|key| catalogue.bookmaker_id(key));
                feeds::push::parse_line(line.as_bytes(), &catalogue, bound).unwrap();
            }
            assert!(body.contains(bookmaker.unwrap_or("fanduel")));
        }
    }
}
