//! Random numbers derived from a seed.

/// `SplitMix64`: small, and the same on every platform.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound.max(1))).unwrap_or_default()
    }

    /// A number from `low` to `high`, both inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.saturating_sub(low).unsigned_abs().saturating_add(1);
        low.saturating_add_unsigned(self.next() % span)
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(u32::try_from(length).unwrap_or(u32::MAX))).unwrap_or_default()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.index(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_gives_another() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..50).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(7), shuffled(7));
        assert_ne!(shuffled(7), shuffled(8));
        let mut all = shuffled(7);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..50));
    }
}
