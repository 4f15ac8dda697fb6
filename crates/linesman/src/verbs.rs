//! Keys, feeds and maintenance from the command line, while a server runs on the folder or not.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use accounts::{Actor, Deed, KeyRecord, Limits, Maintenance, Need, NewKey, Registry, Scores};
use anyhow::{Context, bail};
use domain::{World, suggest::did_you_mean};
use market::Operation;
use store::Store;

use crate::cli::{
    FeedsCreateArgs, FeedsVerb, KeyKind, KeysCreateArgs, KeysVerb, MaintenanceVerb, Permissions,
    output,
};
use crate::clock::SystemClock;
use crate::cluster;
use crate::config::Config;
use crate::control;
use crate::folder::Folder;
use crate::identities;
use crate::load_catalogue;

pub(crate) fn keys(config: &Config, data: &Path, verb: &KeysVerb) -> anyhow::Result<()> {
    let new_key = match verb {
        KeysVerb::Create(args) => Some(new_key(config, args)?),
        KeysVerb::List(_) | KeysVerb::Revoke(_) | KeysVerb::Rotate(_) => None,
    };
    let by = Actor::command_line();
    on_store(config, data, async |registry, scene| match (verb, new_key) {
        (KeysVerb::Create(args), Some(new)) => {
            let made = registry.create_keys(&new, usize::try_from(args.count)?, &by).await?;
            let lines = made.iter().map(|(secret, record)| {
                if !args.json {
                    return Ok(secret.expose().to_owned());
                }
                let mut whole = serde_json::to_value(record)?;
                if let Some(fields) = whole.as_object_mut() {
                    fields.insert("key".into(), secret.expose().into());
                }
                Ok(whole.to_string())
            });
            // Shown once, so it comes before everything that may fail or be broken off.
            print(&lines.collect::<anyhow::Result<Vec<String>>>()?.join("\n"))?;
            scene.make_effective(Need::Soon).await
        }
        (KeysVerb::List(args), _) => {
            let keys = registry.list_keys().await?;
            if args.json { print(&serde_json::to_string(&keys)?) } else { print(&key_table(&keys)) }
        }
        (KeysVerb::Revoke(args), _) => {
            let record = registry.revoke_key(args.key.reveal(), &by).await?;
            let said = (Deed::KeyRevoked, record.id.as_str(), record.hint.as_str());
            scene.settle(registry, said, Need::Everywhere).await
        }
        (KeysVerb::Rotate(args), _) => {
            let rotated = registry.rotate_key(args.key.reveal(), args.overlap, &by).await?;
            let (secret, record) = rotated;
            // Shown once, so it comes before everything that may fail or be broken off.
            print(secret.expose())?;
            let old = record.rotated_from.as_ref().map_or("", |id| id.as_str());
            let need = match args.overlap {
                Some(overlap) if !overlap.is_zero() => Need::Soon,
                Some(_) | None => Need::Everywhere,
            };
            let detail = format!("new key {}", record.id);
            scene.settle(registry, (Deed::KeyRotated, old, &detail), need).await
        }
        (KeysVerb::Create(_), None) => Ok(()),
    })
}

pub(crate) fn feeds(config: &Config, data: &Path, verb: &FeedsVerb) -> anyhow::Result<()> {
    if let FeedsVerb::Create(FeedsCreateArgs { bookmaker: Some(key), .. }) = verb {
        let catalogue = load_catalogue(config)?;
        if catalogue.bookmaker_id(key).is_none() {
            let near = did_you_mean(key, catalogue.bookmakers().map(|(_, held)| &*held.key));
            bail!(
                "there is no bookmaker `{key}`{near}; a catalogue file can add it (catalogue.file)"
            );
        }
    }
    if let FeedsVerb::Drop(args) = verb {
        let feed = args.name.as_str().into();
        return identities::operate(config, data, &[Operation::Drop { feed }]);
    }
    let by = Actor::command_line();
    on_store(config, data, async |registry, scene| match verb {
        FeedsVerb::Create(args) => {
            let scores = if args.scores { Scores::Allowed } else { Scores::OfUnbound };
            let bookmaker = args.bookmaker.as_deref();
            let (token, _) = registry.create_feed(&args.name, bookmaker, scores, &by).await?;
            print(token.expose())?;
            scene.make_effective(Need::Soon).await
        }
        FeedsVerb::List(args) => {
            let feeds = registry.list_feeds().await?;
            if args.json {
                return print(&serde_json::to_string(&feeds)?);
            }
            let lines = feeds.iter().map(|feed| {
                let state = match (feed.revoked_at, feed.paused_at) {
                    (Some(at), _) => format!("revoked {at}"),
                    (None, Some(at)) => format!("paused {at}"),
                    (None, None) => "live".to_owned(),
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
            print(&[head].into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
        }
        FeedsVerb::Revoke(args) => {
            registry.revoke_feed(&args.name, &by).await?;
            let said = (Deed::FeedRevoked, args.name.as_str(), "");
            scene.settle(registry, said, Need::Everywhere).await
        }
        FeedsVerb::Pause(args) | FeedsVerb::Resume(args) => {
            let paused = matches!(verb, FeedsVerb::Pause(_));
            registry.pause_feed(&args.name, paused, &by).await?;
            let deed = if paused { Deed::FeedPaused } else { Deed::FeedResumed };
            scene.settle(registry, (deed, &args.name, ""), Need::Everywhere).await
        }
        FeedsVerb::Drop(_) => Ok(()),
    })
}

pub(crate) fn maintenance(
    config: &Config,
    data: &Path,
    verb: &MaintenanceVerb,
) -> anyhow::Result<()> {
    on_store(config, data, async |registry, scene| {
        let wanted = match verb {
            MaintenanceVerb::On(args) => {
                let seconds = u32::try_from(args.retry_after.as_secs()).unwrap_or(u32::MAX);
                Maintenance::On { retry_after_s: seconds.max(1) }
            }
            MaintenanceVerb::Off => Maintenance::Off,
        };
        registry.set_maintenance(wanted, &Actor::command_line()).await?;
        let deed = match wanted {
            Maintenance::On { .. } => Deed::MaintenanceOn,
            Maintenance::Off => Deed::MaintenanceOff,
        };
        scene.settle(registry, (deed, "service", ""), Need::Everywhere).await
    })
}

/// Writes down what was said of identities on the command line.
pub(crate) async fn note_operations(
    config: &Config,
    folder: &Folder,
    operations: &[Operation],
) -> anyhow::Result<()> {
    let store = open_store(config, folder).await?;
    let registry = Registry::new(store.clone(), Arc::new(SystemClock));
    for operation in operations {
        let (deed, subject, detail) = serve::operation_words(operation);
        registry.note(&Actor::command_line(), deed, &subject, &detail).await?;
    }
    store.close().await;
    Ok(())
}

/// Runs a verb on the store.
fn on_store(
    config: &Config,
    data: &Path,
    verb: impl AsyncFnOnce(&Registry, &Scene<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let folder = Folder::open(data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = open_store(config, &folder).await?;
        let scene = Scene { config, folder: &folder, store: &store };
        let done = verb(&Registry::new(store.clone(), Arc::new(SystemClock)), &scene).await;
        store.close().await;
        done
    })
}

/// Where a verb is carried out.
struct Scene<'a> {
    config: &'a Config,
    folder: &'a Folder,
    store: &'a Store,
}

impl Scene<'_> {
    /// Waits until what was done, and written down with it, is in force, and writes down where that is not known.
    async fn settle(
        &self,
        registry: &Registry,
        (deed, subject, detail): (Deed, &str, &str),
        need: Need,
    ) -> anyhow::Result<()> {
        let done = self.make_effective(need).await;
        let open = accounts::not_confirmed(detail);
        if done.is_err()
            && let Err(error) = registry.note(&Actor::command_line(), deed, subject, &open).await
        {
            tracing::warn!(%error, "that it is not confirmed is not in the audit log");
        }
        done
    }

    /// Waits until what was written is in force: in the server on the folder, or on every node.
    async fn make_effective(&self, need: Need) -> anyhow::Result<()> {
        match &self.config.cluster {
            None => control::make_effective(self.folder).await,
            Some(cluster) => cluster::confirm(cluster, self.store, need).await,
        }
    }
}

/// The database that many nodes share, or the folder's own, which is never made anew where it was before.
pub(crate) async fn open_store(config: &Config, folder: &Folder) -> anyhow::Result<Store> {
    if config.cluster.is_none() && has_lost_accounts(folder).await? {
        bail!(
            "{} is missing or empty, but {} was used before: its log is there. Put the file back from a backup; or, to begin \
             without any key, feed token or account, start once with: linesman serve --new-accounts",
            folder.accounts().display(),
            folder.path().display()
        );
    }
    open_or_make_store(config, folder).await
}

/// Whether the accounts of a folder that was served from are gone.
async fn has_lost_accounts(folder: &Folder) -> anyhow::Result<bool> {
    let path = folder.accounts();
    let failed = || format!("{} cannot be read", path.display());
    Ok(was_served_from(folder)? && Store::is_new(&path).await.with_context(failed)?)
}

/// Whether a world has a log here.
fn was_served_from(folder: &Folder) -> anyhow::Result<bool> {
    for world in World::ALL {
        let entries = match std::fs::read_dir(folder.log(world)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("segment-") || name.starts_with("checkpoint-") {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The same, making the folder's own where there is none: somebody said that it is meant.
pub(crate) async fn open_or_make_store(config: &Config, folder: &Folder) -> anyhow::Result<Store> {
    if let Some(cluster) = &config.cluster {
        return Store::connect(cluster.database_url.reveal())
            .await
            .context("database.url cannot be used");
    }
    let path = folder.accounts();
    Store::open(&path).await.with_context(|| format!("{} cannot be opened", path.display()))
}

fn new_key(config: &Config, args: &KeysCreateArgs) -> anyhow::Result<NewKey> {
    let catalogue = load_catalogue(config)?;
    for group in &args.groups {
        if !catalogue.has_group(group) {
            let mut groups: Vec<&str> =
                catalogue.sports().map(|(_, sport)| &*sport.group).collect();
            groups.dedup();
            bail!("there is no sport group `{group}`; the groups are {}", groups.join(", "));
        }
    }
    let defaults = Limits::DEFAULT;
    let kind = match args.kind {
        KeyKind::Sandbox => accounts::KeyKind::Sandbox,
        KeyKind::Production => accounts::KeyKind::Production,
    };
    Ok(NewKey {
        kind,
        name: args.name.clone().unwrap_or_default(),
        groups: (!args.groups.is_empty()).then(|| args.groups.clone()),
        odds_read: args.permissions == Permissions::OddsRead,
        account_id: None,
        limits: Limits {
            burst_per_minute: args.burst_per_minute.map_or(defaults.burst_per_minute, Into::into),
            requests_per_day: args
                .requests_per_day
                .map_or(Ok(defaults.requests_per_day), |n| countable(n, "--requests-per-day"))?,
            requests_per_month: args
                .requests_per_month
                .map(|n| countable(n, "--requests-per-month"))
                .transpose()?,
        },
    })
}

fn countable(limit: NonZeroU64, flag: &str) -> anyhow::Result<u32> {
    u32::try_from(limit.get()).with_context(|| format!("{flag} takes at most {}", u32::MAX))
}

fn key_table(keys: &[KeyRecord]) -> String {
    let mut lines = vec![format!(
        "{:<20} {:<14} {:<20} {:<18} {:>8} {:>10} {:>10}  state",
        "id", "key", "name", "groups", "a minute", "a day", "a month"
    )];
    for key in keys {
        let groups = key.groups.as_ref().map_or("all".to_owned(), |groups| groups.join(","));
        let month = key.limits.requests_per_month.map_or("-".to_owned(), |n| n.to_string());
        let state = key.revoked_at.map_or("live".to_owned(), |at| format!("revoked {at}"));
        lines.push(format!(
            "{:<20} {:<14} {:<20} {:<18} {:>8} {:>10} {:>10}  {state}",
            key.id.as_str(),
            key.hint,
            key.name,
            groups,
            key.limits.burst_per_minute,
            key.limits.requests_per_day,
            month
        ));
    }
    lines.join("\n")
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(output::print_line(text)?)
}
