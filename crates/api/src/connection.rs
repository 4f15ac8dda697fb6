//! State kept per connection between requests, for all interfaces.

use accounts::ConnectionKey;
use http::ConnectionState;

use crate::admission::last_request::LastRequest;
use crate::v1::parsed_target::ParsedTarget;
use crate::v4::parsed::Parsed;

/// State of a connection: the last key, and the parsed form of the last request to each interface.
#[derive(Debug, Default)]
pub struct Memory {
    pub(crate) key: ConnectionKey,
    pub(crate) last_v1: LastRequest<ParsedTarget>,
    pub(crate) last_v4: LastRequest<Parsed>,
}

pub(crate) type Connection = ConnectionState<Memory>;
