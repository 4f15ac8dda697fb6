//! Converts upstream bytes to feed messages. Every source of prices, whatever its format, is converted to
//! [`domain::message::FeedMessage`]; nothing enters the service in any other way. No I/O, no clock.

pub mod adapter;
pub mod push;
pub mod sandbox;
