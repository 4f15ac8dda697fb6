//! What is remembered of a connection from one request to the next, whichever interface it asks.

use accounts::ConnectionKey;
use http::ConnectionState;

use crate::v1::last_request::{LastRequest, ParsedTarget};
use crate::v4::parsed::Parsed;

/// What is remembered of a connection: the key it sent last, and what its last request to each interface meant.
#[derive(Debug, Default)]
pub struct Memory {
    pub(crate) key: ConnectionKey,
    pub(crate) last_v1: LastRequest<ParsedTarget>,
    pub(crate) last_v4: LastRequest<Parsed>,
}

pub(crate) type Connection = ConnectionState<Memory>;
