//! Room in rows for what wires render of them: opaque bytes, made once for each change and shared by all snapshots
//! until the next one.

use std::sync::OnceLock;

/// Wires that have a slot in every row: `/v1` and `/v4`. A slot costs 48 bytes a record.
pub const WIRES_MAX: usize = 2;

/// The number of a wire's slot.
#[derive(Clone, Copy, Debug)]
pub struct WireSlot(usize);

impl WireSlot {
    /// A slot of its own for each wire; checked when it is compiled.
    pub const fn new(number: usize) -> Self {
        assert!(number < WIRES_MAX, "there is no such slot");
        Self(number)
    }
}

/// What a wire made of a row. The meaning of all three is the wire's.
#[derive(Debug)]
pub struct Rendered {
    pub bytes: Box<[u8]>,
    /// Where parts of the bytes end.
    pub ends: [u32; 3],
    /// Tells the bytes from others, but for chance.
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
