//! Limit of open streams on this node. Those of one key are counted over all nodes, by `accounts`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use accounts::{KeyEntry, KeyId, StreamRefusal, StreamSlots};

#[derive(Debug, Default)]
pub(super) struct NodeSlots(AtomicUsize);

/// A slot on this node, held as long as a stream is open.
#[derive(Debug)]
struct NodeSlot(Arc<NodeSlots>);

/// A stream's slots: on this node, and of its key.
#[derive(Debug)]
pub(super) struct StreamSlot {
    of_key: accounts::StreamSlot,
    _of_node: NodeSlot,
}

/// The key and slot that give the right to a stream.
#[derive(Clone, Debug)]
pub(super) struct KeyRight {
    pub(super) entry: Arc<KeyEntry>,
    pub(super) slot: Arc<StreamSlot>,
}

/// Reason why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The node has reached its limit.
    Node,
    Key(StreamRefusal),
}

impl NodeSlots {
    /// Takes a slot on a node with at most `node_max`, for a key with at most `key_max` streams.
    pub(super) async fn take(
        self: &Arc<Self>,
        node_max: usize,
        of: &Arc<StreamSlots>,
        key: &KeyId,
        key_max: u32,
    ) -> Result<StreamSlot, Refused> {
        let of_key = of.open(key, key_max).await.map_err(Refused::Key)?;
        let taken = self.0.fetch_add(1, Ordering::Relaxed);
        let _of_node = NodeSlot(Arc::clone(self));
        if taken >= node_max {
            return Err(Refused::Node);
        }
        Ok(StreamSlot { of_key, _of_node })
    }
}

impl StreamSlot {
    /// True if the stream is still counted for its key; if not, nothing may be sent on it.
    pub(super) fn is_held(&self) -> bool {
        self.of_key.is_held()
    }
}

impl Drop for NodeSlot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
