//! A fast hasher for tables that no input can fill with chosen keys.

use std::hash::Hasher;

/// A fast hasher for keys that cannot be chosen from outside: hashes of words under a secret key, and ids created
/// here.
#[derive(Debug, Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        // A hash map uses bits from the top and from the bottom.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(5).wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(u64::try_from(value).unwrap_or(u64::MAX));
    }
}
