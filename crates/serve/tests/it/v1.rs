//! Tests of single operations of the API, by route.

mod analytics;
mod books;
mod catalogues;
mod changes;
mod coverage;
mod csv;
mod event;
mod events;
pub(crate) mod export;
mod history;
mod history_log;
mod history_random;
mod history_turns;
mod odds;
mod paths;
mod scores;
mod sports;
mod status;
mod stream;
