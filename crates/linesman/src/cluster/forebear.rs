//! The process that ran on this folder before this one, where it ended without signing off.
//!
//! Every revocation waits for every listed node, and for one that does not answer until its right to let keys in has
//! run out. A node that was killed cannot say so, and no other node can tell it from one that is cut off from the
//! database while JetStream vouches for it. But whoever has the lock of its folder knows: the system gives that only
//! once its holder has ended. So a node leaves its name there, and the next one on the folder takes it off the list.
//!
//! That it is the same lock is the whole proof. A folder that was copied, restored or mounted elsewhere has another
//! lock file, by device and number; one that came to another machine, or through a restart of this one, has another
//! boot. There nothing is taken off, and the node is waited for until it was silent for minutes.

use std::fs;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};
use store::Store;

use crate::folder::{Folder, Lock, LockName, create_private};

/// Where the system tells one start of the machine from the next.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Names that are kept where they cannot be taken off; more would be a folder whose database is never reached.
const NODES_MAX: usize = 64;

/// What a process leaves for the next.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    boot: String,
    lock: LockName,
    /// Itself, and those before it that are still listed.
    nodes: Vec<String>,
}

/// Takes those off the list who had this lock before, and leaves this node's name for whoever has it next. What fails
/// costs revocations a few seconds for minutes, and nothing else.
pub(crate) async fn succeed(folder: &Folder, lock: &Lock, store: &Store, node: &str) {
    let (boot, lock) = match (fs::read_to_string(BOOT_ID), lock.name()) {
        (Ok(boot), Ok(lock)) => (boot.trim().to_owned(), lock),
        (Err(error), _) | (_, Err(error)) => {
            tracing::debug!(%error, "a node that ends without a word is not told from others");
            return;
        }
    };
    let mut nodes = Vec::new();
    for gone in ended(folder, &boot, lock) {
        match store.forget_node(&gone).await {
            Ok(()) => tracing::info!(node = gone, "revocations no longer wait for who ran here"),
            Err(error) => {
                tracing::warn!(%error, node = gone, "revocations wait for a node that has ended");
                nodes.push(gone);
            }
        }
    }
    nodes.truncate(NODES_MAX);
    nodes.push(node.to_owned());
    if let Err(error) = write(folder, &Note { boot, lock, nodes }) {
        tracing::warn!(%error, "if this node is killed, revocations wait for it for minutes");
    }
}

/// The nodes that have ended, as far as this lock proves it.
fn ended(folder: &Folder, boot: &str, lock: LockName) -> Vec<String> {
    let Ok(text) = fs::read_to_string(folder.node()) else {
        return Vec::new();
    };
    match serde_json::from_str::<Note>(&text) {
        Ok(note) if note.boot == boot && note.lock == lock => note.nodes,
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// Whole or not at all.
fn write(folder: &Folder, note: &Note) -> io::Result<()> {
    let fresh = folder.node().with_extension("fresh");
    create_private(&fresh)?.write_all(serde_json::to_string(note)?.as_bytes())?;
    fs::rename(fresh, folder.node())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_note_counts_only_under_the_same_lock_of_the_same_boot() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let lock = folder.lock().await.unwrap().name().unwrap();
        assert_eq!(ended(&folder, "boot", lock), Vec::<String>::new());
        write(&folder, &Note { boot: "boot".into(), lock, nodes: vec!["a".into()] }).unwrap();
        assert_eq!(ended(&folder, "boot", lock), ["a"]);
        assert_eq!(ended(&folder, "another boot", lock), Vec::<String>::new());
        // A copy of the folder has a lock of its own, whatever its note says.
        let copy_dir = tempfile::tempdir().unwrap();
        let copy = Folder::open(copy_dir.path()).unwrap();
        fs::copy(folder.node(), copy.node()).unwrap();
        let other = copy.lock().await.unwrap().name().unwrap();
        assert_ne!(other, lock);
        assert_eq!(ended(&copy, "boot", other), Vec::<String>::new());
        fs::write(folder.node(), "no note").unwrap();
        assert_eq!(ended(&folder, "boot", lock), Vec::<String>::new());
    }
}
