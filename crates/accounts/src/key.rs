//! API keys: their text, their grants, the ring of live keys in memory, and the counting of their requests.

pub(crate) mod grant;
pub(crate) mod hold;
pub(crate) mod lease;
pub(crate) mod lease_worker;
pub(crate) mod meter;
pub(crate) mod ring;
pub(crate) mod secret;
pub(crate) mod stream_slots;
pub(crate) mod usage;
pub(crate) mod usage_counter;
pub(crate) mod window;
