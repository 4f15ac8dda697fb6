//! What one operation of the API does, by route.

mod analytics;
mod books;
mod coverage;
mod event;
mod events;
mod odds;
mod scores;
mod sports;
mod status;
