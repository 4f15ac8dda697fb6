//! The interfaces for programs: v1 of the API, the ingest endpoint, and their description (`OpenAPI`).

mod admission;
mod answers;
mod asset;
mod connection;
mod context;
mod error;
pub mod ingest;
pub mod metrics;
pub mod openapi;
mod operation;
mod panics;
mod position;
mod response_head;
pub mod v1;
pub mod v4;

pub use admission::refusal::no_such_path;
pub use answers::Selector;
pub use asset::Asset;
pub use connection::Memory;
pub use context::{AdapterReports, Api, ApiSettings};
use domain::World;
pub use error::{ApiError, ErrorCode, check_target};
use market::Wire;
pub use operation::{Operation, Row, STREAM_PATH};
pub use panics::catch_panics;

/// The wires for which a world's snapshots are rendered at each cut.
pub const fn wires(world: World) -> &'static [&'static dyn Wire] {
    match world {
        World::Live => &[&v1::wire::V1, &v4::wire::V4::LIVE],
        World::Sandbox => &[&v1::wire::V1, &v4::wire::V4::SANDBOX],
    }
}
