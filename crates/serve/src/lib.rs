//! The service put together: which part answers a request at which listener, health, readiness and metrics.

mod entrance;
mod metrics;
mod not_ready;
mod ops;
mod route;
mod service;

pub use entrance::Entrance;
pub use not_ready::answer_until;
pub use service::{Doors, Service};
