//! An operator's operation on a world that no process runs: reads its log and appends the changes.
//!
//! Nothing is prepared for serving, which takes most of the memory of a running world. So a book that has become too
//! large to run can be reduced here.

use change_log::Log;
use domain::Clock;
use market::Operation;
use market::book::IMAGE_VERSION;

use crate::entries::Entries;
use crate::error::{OperateError, WorldError};
use crate::options::WorldOptions;
use crate::start::Start;

/// An operation on a world that is not running was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AloneError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error(transparent)]
    Operate(#[from] OperateError),
}

/// Carries out operations, each durable before the next. The caller ensures that no process runs the world meanwhile.
///
/// # Errors
/// The log cannot be read or written, or an operation cannot be done; those before it were.
pub fn operate_alone(
    options: &WorldOptions,
    clock: &dyn Clock,
    operations: &[Operation],
) -> Result<(), AloneError> {
    let mut log = Log::open(&options.log).map_err(WorldError::from)?;
    let Start { mut book, mut entries, .. } = Start::recover_book(&mut log, options)?;
    for operation in operations {
        let now = clock.now();
        let changes = book.operate(operation, now).map_err(OperateError::from)?;
        changes.iter().for_each(|change| entries.push(change));
        log.append(now.as_millis(), entries.iter()).map_err(WorldError::from)?;
        entries = Entries::default();
    }
    let drops = |operation: &Operation| matches!(operation, Operation::Drop { .. });
    if operations.iter().any(drops) {
        // Otherwise the next start would have to load everything that was dropped once more.
        let image = book.to_image();
        log.write_checkpoint(log.last_seq(), IMAGE_VERSION, &image).map_err(WorldError::from)?;
    }
    Ok(())
}
