//! The assembled service: the routes of each listener, health, readiness and metrics.

mod listener_service;
mod metrics;
mod not_ready;
mod ops;
mod route;
mod service;

pub use listener_service::{ListenerService, run};
pub use not_ready::answer_until;
pub use service::agents::{Agents, agent_server};
pub use service::{ListenerRole, Service};
