//! Properties of all operations of the API.

mod admission;
mod caching;
mod epoch;
mod errors;
mod faults;
pub(crate) mod key_authority;
mod limits;
mod order;
mod paging;
mod params;
mod sandbox;
