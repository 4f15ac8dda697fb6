//! Slots in rows for the output of wires: opaque bytes, rendered once for each change and shared by all snapshots
//! until the next one.

use std::sync::OnceLock;

/// Number of wires with a slot in every row: `/v1` and `/v4`. A slot costs 48 bytes per record.
pub const WIRES_MAX: usize = 2;

/// The number of a wire's slot.
#[derive(Clone, Copy, Debug)]
pub struct WireSlot(usize);

impl WireSlot {
    /// A distinct slot for each wire; checked at compile time.
    pub const fn new(number: usize) -> Self {
        assert!(number < WIRES_MAX, "there is no such slot");
        Self(number)
    }
}

/// The rendered form of a row. The wire defines the meaning of all three fields.
#[derive(Debug)]
pub struct Rendered {
    pub bytes: Box<[u8]>,
    /// Ends of parts of the bytes.
    pub ends: [u32; 3],
    /// A hash of the bytes.
    pub hash: u64,
}

/// One slot for each wire.
#[derive(Debug, Default)]
pub(crate) struct Slots([OnceLock<Rendered>; WIRES_MAX]);

impl Slots {
    #[expect(clippy::indexing_slicing, reason = "the number of a slot is below WIRES_MAX")]
    pub(crate) fn get_or_render(
        &self,
        slot: WireSlot,
        render: impl FnOnce() -> Rendered,
    ) -> &Rendered {
        self.0[slot.0].get_or_init(render)
    }
}
