//! Hashes made at compile time: FNV-1a, 64 bits.

/// A hash in the making. Every part goes in with its length or as eight bytes, so that no two sequences of parts
/// read alike.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The hash of nothing.
    #[expect(clippy::new_without_default, reason = "a default could not be const")]
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a number.
    pub const fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Adds a name.
    pub const fn name(self, name: &str) -> Self {
        self.bytes(name.as_bytes()).number(name.len() as u64)
    }

    /// The hash.
    #[must_use]
    pub const fn finish(self) -> u64 {
        self.0
    }

    const fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut index = 0;
        while index < bytes.len() {
            self.0 = (self.0 ^ bytes[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            index += 1;
        }
        self
    }
}

/// The hash of a name.
#[must_use]
pub const fn fingerprint_of_name(name: &str) -> u64 {
    Fingerprint::new().bytes(name.as_bytes()).finish()
}
