//! The book from outside: rule by rule, compared with a naive model, and fed with damaged bytes. All data is
//! invented.
#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "an integration binary is all tests, its helpers too"
)]

mod adversary;
mod against_model;
mod analysis;
mod events;
mod histories;
mod hostile;
mod identity;
mod memory;
mod model;
mod odds;
mod operator;
mod order;
mod outcomes;
mod parts;
mod pictures;
mod real_feeds;
mod record;
mod recordings;
mod refusals;
mod scores;
mod shown;
mod test_book;
mod vocabulary;
mod world;
