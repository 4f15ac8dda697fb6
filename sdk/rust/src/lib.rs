//! A client of Linesman, a sports odds service.
//!
//! [`Client`] has a method for each operation of the API. It returns a [`Request`]: set parameters, then await it for
//! one response, or read a list with [`Request::items`] and [`Request::pages`]. [`Feed`] pushes the messages of a
//! feed, [`Client::stream`] follows changes. The README has examples.
//!
//! Temporary failures of reads are retried as the server asks, responses are cached while they are current, prices
//! are exact, and additions of newer servers are kept: unknown fields in `other`, unknown values in `Other`.

mod cache;
mod client;
mod clock;
mod error;
mod export;
mod feed;
mod http;
mod macros;
mod price;
mod query;
mod reader;
mod request;
mod stream;
pub mod types;

#[cfg(test)]
mod document_tests;

pub use crate::client::{Client, ClientBuilder};
pub use crate::clock::{Clock, Waiting};
pub use crate::error::{Error, ErrorCode, Result};
pub use crate::export::{Export, ExportRequest};
pub use crate::feed::{Feed, FeedBuilder};
pub use crate::price::{OddsFormat, Price};
pub use crate::reader::Meta;
pub use crate::request::{Answer, Body, Items, Page, Raw, Request};
pub use crate::stream::{Changes, State, StreamEvent, StreamRequest, Update};
