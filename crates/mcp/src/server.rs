//! The server's tools and documents.

use serde_json::Value;

use crate::resource::Document;
use crate::tool::Tools;

/// Maximum size of a message: tools take a few short parameters.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The tools, resources and prompts, built once.
#[derive(Debug)]
pub struct Server {
    pub(crate) tools: Tools,
    pub(crate) documents: Vec<Document>,
}

impl Server {
    /// Creates a server for the API that an `OpenAPI` document describes.
    pub fn new(openapi: &Value, documents: Vec<Document>) -> Self {
        Self { tools: Tools::of(openapi), documents }
    }
}
