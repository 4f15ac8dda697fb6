//! What a connection asked last. Whoever polls asks the same again and again, and what a target means does not change
//! while the service runs: it is read once.

use std::fmt;

use domain::SportId;

use crate::answers::Selector;
use crate::operation::Operation;
use http::Request;

/// The last target of a connection that was understood, and what it means. It may hold a key and is never shown.
#[derive(Default)]
pub(crate) struct Habit(Option<Box<Known>>);

struct Known {
    /// Path and query, with the question mark between.
    target: String,
    meaning: Meaning,
}

/// What is asked, before it is known who asks.
#[derive(Clone)]
pub(crate) struct Meaning {
    pub(crate) operation: Operation,
    pub(crate) sport: Option<SportId>,
    pub(crate) selector: Selector,
}

/// A longer target is not worth its memory on every connection.
const TARGET_BYTES_MAX: usize = 256;

impl Habit {
    /// What it means, if it is the same as last time.
    pub(crate) fn recall(&self, request: &Request<'_>) -> Option<&Meaning> {
        let Known { target, meaning } = self.0.as_deref()?;
        // The path has no question mark, so this can only be one way.
        let same = target.len() == request.path.len() + 1 + request.query.len()
            && target.starts_with(request.path)
            && target.ends_with(request.query);
        same.then_some(meaning)
    }

    /// Remembers what a target means.
    pub(crate) fn learn(&mut self, request: &Request<'_>, meaning: &Meaning) {
        if request.path.len() + request.query.len() > TARGET_BYTES_MAX {
            return;
        }
        let meaning = meaning.clone();
        let empty = || Box::new(Known { target: String::new(), meaning: meaning.clone() });
        let known = self.0.get_or_insert_with(empty);
        known.target.clear();
        for part in [request.path, "?", request.query] {
            known.target.push_str(part);
        }
        known.meaning = meaning;
    }
}

impl fmt::Debug for Habit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Habit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_same_target_is_recalled() {
        let ask = |target| Request::new("GET", target);
        let meaning =
            Meaning { operation: Operation::ListBooks, sport: None, selector: Selector::Books };
        let mut habit = Habit::default();
        assert!(habit.recall(&ask("/v1/books")).is_none());
        habit.learn(&ask("/v1/books?a=1"), &meaning);
        assert!(habit.recall(&ask("/v1/books?a=1")).is_some());
        for other in ["/v1/books", "/v1/books?a=2", "/v1/books?a=11", "/v1/book?sa=1", "/v1/books?"]
        {
            assert!(habit.recall(&ask(other)).is_none(), "{other}");
        }
        habit.learn(&ask("/v1/books"), &meaning);
        assert!(habit.recall(&ask("/v1/books?a=1")).is_none());
        assert!(habit.recall(&ask("/v1/books")).is_some());
        let long = format!("/v1/books?a={}", "1".repeat(TARGET_BYTES_MAX));
        habit.learn(&ask(&long), &meaning);
        assert!(habit.recall(&ask(&long)).is_none());
    }
}
