//! What programs call: v1 of the API, the ingest endpoint, and their description (`OpenAPI`).

mod answers;
mod asset;
mod context;
mod error;
pub mod ingest;
pub mod metrics;
pub mod openapi;
mod operation;
mod panics;
pub mod v1;

pub use answers::Selector;
pub use asset::Asset;
pub use context::{AdapterReports, Api, ApiSettings};
pub use error::{ApiError, ErrorCode, check_target};
pub use operation::{Operation, Row};
pub use panics::catch_panics;
