//! `linesman feeds`: feed tokens, and removal of what a feed listed.

use std::path::Path;

use accounts::{Actor, AuditAction, Need, Scores};
use anyhow::bail;
use domain::suggest::did_you_mean;
use market::Operation;

use crate::cli::{FeedsCreateArgs, FeedsVerb, output};
use crate::config::Config;
use crate::{catalogue, open};

pub(crate) fn run(config: &Config, data: &Path, verb: &FeedsVerb) -> anyhow::Result<()> {
    if let FeedsVerb::Create(FeedsCreateArgs { bookmaker: Some(key), .. }) = verb {
        let catalogue = catalogue::load(config)?;
        if catalogue.bookmaker_id(key).is_none() {
            let near = did_you_mean(key, catalogue.bookmakers().map(|(_, held)| &*held.key));
            bail!("unknown bookmaker `{key}`{near}; add it with a catalogue file (catalogue.file)");
        }
    }
    if let FeedsVerb::Drop(args) = verb {
        let feed = args.name.as_str().into();
        return open::operate(config, data, &[Operation::Drop { feed }]);
    }
    let by = Actor::command_line();
    open::on_store(config, data, async |registry, scene| match verb {
        FeedsVerb::Create(args) => {
            let scores = if args.scores { Scores::Allowed } else { Scores::OfUnbound };
            let bookmaker = args.bookmaker.as_deref();
            let (token, _) = registry.create_feed(&args.name, bookmaker, scores, &by).await?;
            output::print_line(token.expose())?;
            scene.make_effective(Need::Soon).await
        }
        FeedsVerb::List(args) => {
            let feeds = registry.list_feeds().await?;
            if args.json {
                return output::print_line(&serde_json::to_string(&feeds)?);
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
            let head = format!(
                "{:<24} {:<16} {:<7} {:<22} state",
                "name", "bookmaker", "scores", "created"
            );
            output::print_line(&[head].into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
        }
        FeedsVerb::Revoke(args) => {
            registry.revoke_feed(&args.name, &by).await?;
            let said = (AuditAction::FeedRevoked, args.name.as_str(), "");
            scene.settle(registry, said, Need::Everywhere).await
        }
        FeedsVerb::Pause(args) | FeedsVerb::Resume(args) => {
            let paused = matches!(verb, FeedsVerb::Pause(_));
            registry.pause_feed(&args.name, paused, &by).await?;
            let deed = if paused { AuditAction::FeedPaused } else { AuditAction::FeedResumed };
            scene.settle(registry, (deed, &args.name, ""), Need::Everywhere).await
        }
        FeedsVerb::Drop(_) => Ok(()),
    })
}
