//! Reading in batches of bounded size.

use std::iter::FusedIterator;

/// Maximum size of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimit {
    pub items: usize,
    /// A batch ends with the item that reaches this size.
    pub bytes: usize,
}

/// Groups items into batches. An error comes after the batch of the items before it, and is the last item.
#[derive(Debug)]
pub struct Batches<I, T, E> {
    items: I,
    limit: BatchLimit,
    bytes_of: fn(&T) -> usize,
    failed: Option<E>,
    ended: bool,
}

impl<I, T, E> Batches<I, T, E>
where
    I: Iterator<Item = Result<T, E>>,
{
    pub fn new(items: I, limit: BatchLimit, bytes_of: fn(&T) -> usize) -> Self {
        Self { items, limit, bytes_of, failed: None, ended: false }
    }
}

impl<I, T, E> Iterator for Batches<I, T, E>
where
    I: Iterator<Item = Result<T, E>>,
{
    type Item = Result<Vec<T>, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while !self.ended
            && batch.len() < self.limit.items.max(1)
            && (batch.is_empty() || bytes < self.limit.bytes)
        {
            match self.items.next() {
                Some(Ok(item)) => {
                    bytes += (self.bytes_of)(&item);
                    batch.push(item);
                }
                Some(Err(error)) => (self.failed, self.ended) = (Some(error), true),
                None => self.ended = true,
            }
        }
        if batch.is_empty() { self.failed.take().map(Err) } else { Some(Ok(batch)) }
    }
}

impl<I, T, E> FusedIterator for Batches<I, T, E> where I: Iterator<Item = Result<T, E>> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(
        limit: BatchLimit,
        items: &[Result<usize, &'static str>],
    ) -> Vec<Result<Vec<usize>, &'static str>> {
        Batches::new(items.iter().copied(), limit, |bytes| *bytes).collect()
    }

    #[test]
    fn a_batch_is_bounded_by_count_and_by_bytes() {
        let limit = BatchLimit { items: 3, bytes: 10 };
        let items = [1, 1, 1, 1, 9, 30, 2].map(Ok);
        assert_eq!(
            batches(limit, &items),
            [Ok(vec![1, 1, 1]), Ok(vec![1, 9]), Ok(vec![30]), Ok(vec![2])]
        );
        assert_eq!(batches(limit, &[]), []);
        let none = BatchLimit { items: 0, bytes: 0 };
        assert_eq!(batches(none, &items).len(), 7, "at least one item, or it would never end");
    }

    #[test]
    fn an_error_comes_after_what_was_read_before_it() {
        let limit = BatchLimit { items: 3, bytes: 10 };
        let items = [Ok(1), Ok(1), Err("damaged"), Ok(1)];
        assert_eq!(batches(limit, &items), [Ok(vec![1, 1]), Err("damaged")]);
        assert_eq!(batches(limit, &items[2..]), [Err("damaged")]);
    }
}
