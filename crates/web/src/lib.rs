//! Web pages: accounts, the operators' console, the board, the status page and the API reference.

mod context;
mod dashboard;
mod docs;
mod sample;

pub use context::{Web, WebSettings};
pub use dashboard::{
    RouteView, Who, answer, covers, is_stream, keep_pages, operation_words, routes, take_form,
    watch,
};
pub use docs::answer as docs_answer;
pub use docs::site::guide_text;
