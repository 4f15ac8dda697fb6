//! How much comparing a message has cost, and when it has cost enough.
//!
//! What a listing is compared with depends on what others have listed, so nothing in the message itself bounds the
//! work. Each message has a budget instead. Where it is spent, a listing is compared with nothing further, the
//! likeliest having come first; prices and scores whose players cannot be recognised within it are refused.
//!
//! The count is the thread's own: one thread decides on one message at a time, and comparing is a pure function that
//! has nowhere else to write to.

use std::cell::Cell;

/// What a message may cost, in looks for a slip of the pen between two words.
///
/// One is 0.1 to 0.4 µs of one core. A new listing of people whom twenty feeds list costs some hundred, a field of 156
/// players in other spellings less than a thousand.
pub const EFFORT_MAX: usize = 2048;

thread_local! {
    static SPENT: Cell<usize> = const { Cell::new(0) };
}

/// A message begins.
pub(crate) fn begin() {
    SPENT.set(0);
}

pub(crate) fn spend(units: usize) {
    SPENT.set(SPENT.get().saturating_add(units));
}

/// What the message that this thread decided on last has cost so far.
pub fn spent() -> usize {
    SPENT.get()
}

pub(crate) fn is_exhausted() -> bool {
    spent() >= EFFORT_MAX
}
