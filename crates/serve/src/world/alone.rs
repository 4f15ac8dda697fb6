//! An operator's word on a world that nobody runs: its log is read, and what changes is appended.
//!
//! Nothing is made ready to be served, which takes most of the memory of a running world: so a book can be made smaller
//! here that has become too large to be run.

use std::sync::Arc;

use change_log::Log;
use domain::Clock;
use market::book::IMAGE_VERSION;
use market::{Book, Ids, Operation};

use crate::world::start::{Entries, Start, WorldError, new_ids, read_tail};
use crate::world::{OperateError, WorldOptions};

/// An operation on a world that nobody runs was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AloneError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error(transparent)]
    Operate(#[from] OperateError),
}

/// Carries out operations, each durable before the next. The caller sees to it that nobody runs the world meanwhile.
///
/// # Errors
/// The log cannot be read or written, or an operation cannot be done; those before it were.
pub fn operate_alone(
    options: &WorldOptions,
    clock: &dyn Clock,
    operations: &[Operation],
) -> Result<(), AloneError> {
    let mut log = Log::open(&options.log).map_err(WorldError::from)?;
    let (mut book, mut entries) = read_back(&mut log, options)?;
    for operation in operations {
        let now = clock.now();
        let changes = book.operate(operation, now).map_err(OperateError::from)?;
        changes.iter().for_each(|change| entries.push(change));
        log.append(now.as_millis(), entries.iter()).map_err(WorldError::from)?;
        entries = Entries::default();
    }
    let drops = |operation: &Operation| matches!(operation, Operation::Drop { .. });
    if operations.iter().any(drops) {
        // Or the next start would have to hold all that was dropped once more.
        let image = book.to_image();
        log.write_checkpoint(log.last_seq(), IMAGE_VERSION, &image).map_err(WorldError::from)?;
    }
    Ok(())
}

/// The book, and what its log has yet to be told of it.
fn read_back(log: &mut Log, options: &WorldOptions) -> Result<(Book, Entries), WorldError> {
    let checkpoint = log.latest_checkpoint()?;
    let seq = checkpoint.as_ref().map_or(0, |held| held.seq);
    let catalogue = || Arc::clone(&options.catalogue);
    let book = checkpoint.map(|held| Book::from_image(held.version, &held.payload, catalogue()));
    let book = book.transpose()?;
    let tail = read_tail(log, seq)?;
    if book.is_none() && tail.is_empty() {
        let Start { book, entries, .. } = Start::afresh(options, new_ids(options));
        return Ok((book, entries));
    }
    let mut book = book.unwrap_or_else(|| Book::new(catalogue(), Ids::Minted { salt: 0 }));
    for (at, change) in tail {
        book.absorb(&change, at);
    }
    Ok((book, Entries::default()))
}
