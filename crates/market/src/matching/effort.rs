//! Counts the comparisons that a message causes, and limits them.
//!
//! The listings that a new one is compared with depend on other feeds, so nothing in the message itself bounds the
//! work. Each message therefore has a budget. When it is spent, a listing is not compared any further, after the most
//! similar ones; prices and scores whose players cannot be resolved within it are rejected.
//!
//! The count is thread-local: one thread decides on one message at a time, and comparing is a pure function without
//! other state.

use std::cell::Cell;

/// The budget of a message, in typing-error checks of two words.
///
/// One is 0.1 to 0.4 µs of one core. A new listing of people whom twenty feeds list costs some hundred, a field of
/// 156 players in other spellings less than a thousand.
pub const EFFORT_MAX: usize = 2048;

thread_local! {
    static SPENT: Cell<usize> = const { Cell::new(0) };
}

/// Begins a message.
pub(crate) fn begin() {
    SPENT.set(0);
}

pub(crate) fn spend(units: usize) {
    SPENT.set(SPENT.get().saturating_add(units));
}

/// The effort of the last message that this thread decided on, so far.
pub fn spent() -> usize {
    SPENT.get()
}

pub(crate) fn is_exhausted() -> bool {
    spent() >= EFFORT_MAX
}
