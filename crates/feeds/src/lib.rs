//! Upstream bytes to the messages of the feed door. Every source of prices, whatever it speaks, ends here as
//! [`domain::message::FeedMessage`]; nothing enters the service any other way. No I/O, no clock.

pub mod push;
pub mod sandbox;
