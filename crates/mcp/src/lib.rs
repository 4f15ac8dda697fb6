//! The API for agents: the Model Context Protocol, with operations that read as tools, documents and events as
//! resources, and prompts.
//!
//! The protocol is implemented by the official crate `rmcp`. Over HTTP a [`Server`] answers one message at a time and
//! keeps no state, so any node can answer any message. A tool has the rights of the key behind its [`Reader`]:
//! nothing is decided here. Schemas come from the OpenAPI document, which is generated from the tables that the
//! service runs on.

mod call;
mod handler;
mod header;
mod http;
mod message;
mod method;
mod page;
mod prompt;
mod reader;
mod resource;
mod server;
mod stdio;
mod tool;
mod version;

pub use crate::call::Call;
pub use crate::header::Headers;
pub use crate::http::Answer;
pub use crate::method::Method;
pub use crate::page::{Page, Refused};
pub use crate::reader::{Answering, Reader};
pub use crate::resource::Document;
pub use crate::server::{MESSAGE_BYTES_MAX, Server};
pub use crate::stdio::{ServeError, serve};
