//! `linesman keys`: creates, lists, revokes and rotates API keys, with a running server or without.

use std::path::Path;

use accounts::{Actor, AuditAction, KeyRecord, Limits, Need, NewKey};
use anyhow::bail;

use crate::cli::{KeyKind, KeysCommand, KeysCreateArgs, Permission, output};
use crate::config::Config;
use crate::{catalogue, open};

pub(crate) fn run(config: &Config, data: &Path, command: &KeysCommand) -> anyhow::Result<()> {
    let new_key = match command {
        KeysCommand::Create(args) => Some(new_key(config, args)?),
        KeysCommand::List(_) | KeysCommand::Revoke(_) | KeysCommand::Rotate(_) => None,
    };
    let by = Actor::command_line();
    open::on_store(config, data, async |registry, context| match (command, new_key) {
        (KeysCommand::Create(args), Some(new)) => {
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
            // Printed before anything that may fail: it is shown only once.
            output::print_line(&lines.collect::<anyhow::Result<Vec<String>>>()?.join("\n"))?;
            context.make_effective(Need::Soon).await
        }
        (KeysCommand::List(args), _) => {
            let keys = registry.list_keys().await?;
            if args.json {
                output::print_line(&serde_json::to_string(&keys)?)
            } else {
                output::print_line(&key_table(&keys))
            }
        }
        (KeysCommand::Revoke(args), _) => {
            let record = registry.revoke_key(args.key.reveal(), &by).await?;
            let said = (AuditAction::KeyRevoked, record.id.as_str(), record.hint.as_str());
            context.settle(registry, said, Need::Everywhere).await
        }
        (KeysCommand::Rotate(args), _) => {
            let rotated = registry.rotate_key(args.key.reveal(), args.overlap, &by).await?;
            let (secret, record) = rotated;
            // Printed before anything that may fail: it is shown only once.
            output::print_line(secret.expose())?;
            let old = record.rotated_from.as_ref().map_or("", |id| id.as_str());
            let need = match args.overlap {
                Some(overlap) if !overlap.is_zero() => Need::Soon,
                Some(_) | None => Need::Everywhere,
            };
            let detail = format!("new key {}", record.id);
            context.settle(registry, (AuditAction::KeyRotated, old, &detail), need).await
        }
        (KeysCommand::Create(_), None) => Ok(()),
    })
}

fn new_key(config: &Config, args: &KeysCreateArgs) -> anyhow::Result<NewKey> {
    let catalogue = catalogue::load(config)?;
    for group in &args.groups {
        if !catalogue.has_group(group) {
            let mut groups: Vec<&str> =
                catalogue.sports().map(|(_, sport)| &*sport.group).collect();
            groups.dedup();
            bail!("unknown sport group `{group}`; the groups are {}", groups.join(", "));
        }
    }
    let has = |permission| args.permissions.contains(&permission);
    if has(Permission::None) && args.permissions.len() > 1 {
        bail!("`--permissions none` cannot be combined with others");
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
        odds_read: has(Permission::OddsRead),
        export_read: has(Permission::ExportRead),
        account_id: None,
        streams: args.streams,
        limits: Limits {
            burst_per_minute: args.burst_per_minute.unwrap_or(defaults.burst_per_minute),
            requests_per_day: args.requests_per_day.unwrap_or(defaults.requests_per_day),
            requests_per_month: args.requests_per_month,
        },
    })
}

fn key_table(keys: &[KeyRecord]) -> String {
    let mut lines = vec![format!(
        "{:<20} {:<14} {:<20} {:<18} {:>8} {:>10} {:>10} {:>8}  state",
        "id", "key", "name", "groups", "/minute", "/day", "/month", "streams"
    )];
    for key in keys {
        let groups = key.groups.as_ref().map_or("all".to_owned(), |groups| groups.join(","));
        let streams = key.streams.map_or("-".to_owned(), |n| n.to_string());
        let month = key.limits.requests_per_month.map_or("-".to_owned(), |n| n.to_string());
        let state = key.revoked_at.map_or("active".to_owned(), |at| format!("revoked {at}"));
        lines.push(format!(
            "{:<20} {:<14} {:<20} {:<18} {:>8} {:>10} {:>10} {:>8}  {state}",
            key.id.as_str(),
            key.hint,
            key.name,
            groups,
            key.limits.burst_per_minute,
            key.limits.requests_per_day,
            month,
            streams
        ));
    }
    lines.join("\n")
}
