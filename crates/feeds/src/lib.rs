//! Upstream bytes to feed messages. Every source of prices, whatever its format, ends here as
//! [`domain::message::FeedMessage`]; nothing enters the service any other way. No I/O, no clock.

pub mod adapter;
pub mod push;
pub mod sandbox;
