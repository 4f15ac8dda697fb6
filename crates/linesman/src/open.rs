//! Opens the accounts and the live world for a command.
//!
//! Changes of the world are executed by the server that runs on the folder, or here if none does; in a cluster, by
//! the leader.

use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::Path;
use std::sync::Arc;

use accounts::{Actor, AuditAction, Need, Registry};
use anyhow::{Context, bail, ensure};
use change_log::{LogError, LogView};
use domain::World;
use market::{Book, Operation};
use store::Store;

use crate::clock::SystemClock;
use crate::config::Config;
use crate::control::{self, ControlCommand};
use crate::folder::Folder;
use crate::{catalogue, cluster, worlds};

/// Opens the cluster's database, or the folder's own; a lost one is not created again.
pub(crate) async fn open_store(config: &Config, folder: &Folder) -> anyhow::Result<Store> {
    if config.cluster.is_none() && has_lost_accounts(folder).await? {
        bail!(
            "{} is missing or empty, but {} was used before (it has a log). Restore the file from a backup; or, to start \
             without keys, feed tokens and accounts, run once: linesman serve --new-accounts",
            folder.accounts().display(),
            folder.path().display()
        );
    }
    open_or_make_store(config, folder).await
}

/// The data folder of a command that needs one; only `serve` and `init` create it. A cluster stores its data
/// elsewhere.
pub(crate) fn open_folder(config: &Config, data: &Path) -> anyhow::Result<Folder> {
    if config.cluster.is_some() {
        return Ok(Folder::at(data));
    }
    check_folder(data)?;
    Folder::open(data)
}

/// Refuses a path that is not a data folder.
pub(crate) fn check_folder(data: &Path) -> anyhow::Result<()> {
    let folder = Folder::at(data);
    ensure!(
        folder.accounts().exists() || was_served_from(&folder)?,
        "there is no data folder at {}; --data names it (`linesman init` and `linesman serve` create one)",
        data.display()
    );
    Ok(())
}

/// Whether a used folder has lost its accounts.
async fn has_lost_accounts(folder: &Folder) -> anyhow::Result<bool> {
    let path = folder.accounts();
    let failed = || format!("cannot read {}", path.display());
    Ok(was_served_from(folder)? && Store::is_new(&path).await.with_context(failed)?)
}

/// Whether a world has a log here.
fn was_served_from(folder: &Folder) -> anyhow::Result<bool> {
    for world in World::ALL {
        let entries = match std::fs::read_dir(folder.log(world)) {
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => continue,
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

/// As [`open_store`]; creates the folder's own store if there is none.
pub(crate) async fn open_or_make_store(config: &Config, folder: &Folder) -> anyhow::Result<Store> {
    if let Some(cluster) = &config.cluster {
        return Store::connect(cluster.database_url.reveal())
            .await
            .context("database.url cannot be used");
    }
    let path = folder.accounts();
    Store::open(&path).await.with_context(|| format!("{} cannot be opened", path.display()))
}

/// Runs a command on the store.
pub(crate) fn on_store(
    config: &Config,
    data: &Path,
    command: impl AsyncFnOnce(&Registry, &CommandContext<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let folder = open_folder(config, data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = open_store(config, &folder).await?;
        let context = CommandContext { config, folder: &folder, store: &store };
        let done = command(&Registry::new(store.clone(), Arc::new(SystemClock)), &context).await;
        store.close().await;
        done
    })
}

/// The inputs of a command.
pub(crate) struct CommandContext<'a> {
    config: &'a Config,
    folder: &'a Folder,
    store: &'a Store,
}

impl CommandContext<'_> {
    pub(crate) fn store(&self) -> &Store {
        self.store
    }

    /// Waits until a change is effective; if that is not confirmed, adds this to the audit log.
    pub(crate) async fn settle(
        &self,
        registry: &Registry,
        (action, subject, detail): (AuditAction, &str, &str),
        need: Need,
    ) -> anyhow::Result<()> {
        let done = self.make_effective(need).await;
        let open = accounts::not_confirmed(detail);
        if done.is_err()
            && let Err(error) = registry.note(&Actor::command_line(), action, subject, &open).await
        {
            tracing::warn!(event = "audit.failed", %error, "the missing confirmation is not in the audit log");
        }
        done
    }

    /// Waits until a stored change is effective: in the server on the folder, or on every node.
    pub(crate) async fn make_effective(&self, need: Need) -> anyhow::Result<()> {
        match &self.config.cluster {
            None => control::make_effective(self.folder).await,
            Some(cluster) => cluster::confirm(cluster, self.store, need).await,
        }
    }
}

/// Adds changes of identities to the audit log.
async fn note_operations(
    config: &Config,
    folder: &Folder,
    operations: &[Operation],
) -> anyhow::Result<()> {
    let store = open_store(config, folder).await?;
    let registry = Registry::new(store.clone(), Arc::new(SystemClock));
    for operation in operations {
        let (action, subject, detail) = web::operation_words(operation);
        registry.note(&Actor::command_line(), action, &subject, &detail).await?;
    }
    store.close().await;
    Ok(())
}

/// Executes operations in the server that runs on the folder, or here if none does, and audits them.
pub(crate) fn operate(
    config: &Config,
    data: &Path,
    operations: &[Operation],
) -> anyhow::Result<()> {
    let folder = open_folder(config, data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Some(cluster) = &config.cluster {
            cluster::operate(cluster, operations).await?;
            return note_operations(config, &folder, operations).await;
        }
        for (done, operation) in operations.iter().enumerate() {
            let command = ControlCommand::Operate(operation.clone());
            if control::ask_server(&folder, &command).await?.is_none() {
                // No server can start while the lock is held.
                let _lock = folder.lock().await?;
                let rest = operations.get(done..).unwrap_or_default();
                worlds::operate_alone(config, &folder, rest)?;
                break;
            }
        }
        note_operations(config, &folder, operations).await
    })
}

/// The live world, replayed from its log.
pub(crate) fn read_book(config: &Config, data: &Path) -> anyhow::Result<Book> {
    let catalogue = &catalogue::load(config)?;
    if let Some(cluster) = &config.cluster {
        return cluster::read_book(cluster, catalogue);
    }
    check_folder(data)?;
    let folder = Folder::at(data).log(World::Live);
    let mut view = match LogView::open(&folder) {
        Err(LogError::Io { source, .. }) if source.kind() == NotFound => {
            bail!("there is no log at {} yet; a server writes it", folder.display())
        }
        opened => opened?,
    };
    Ok(engine::replay_book(&mut view, catalogue)?)
}
