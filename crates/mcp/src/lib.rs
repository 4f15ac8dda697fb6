//! The API for agents: tools of the Model Context Protocol that are operations which read, over the Rust client.
//!
//! The protocol is that of the crate `rmcp`. What a tool may do is what the client's key may do: nothing is decided
//! here. Schemas come from the OpenAPI document, which comes from the tables that the service runs on.

mod call;
mod server;
mod tool;

pub use crate::server::{ServeError, serve};
