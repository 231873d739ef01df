//! Numbers that peers cannot guess.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// An endless row of them from one seed of the system, so that only the first can fail.
pub(crate) struct Nonces {
    mac: Hmac<Sha256>,
    count: u64,
}

impl Nonces {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut seed = [0; 64];
        getrandom::fill(&mut seed)?;
        Ok(Self { mac: Hmac::new(&seed.into()), count: 0 })
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.count += 1;
        let digest = self.mac.clone().chain_update(self.count.to_le_bytes()).finalize().into_bytes();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl std::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nonces").field("count", &self.count).finish_non_exhaustive()
    }
}
