//! The API, by subject.

mod cache;
mod epoch;
mod error;
mod event;
mod fault;
mod key;
mod limits;
mod odds;
mod order;
mod paging;
mod param;
mod sandbox;
mod score;
mod state;
pub(crate) mod trust;
