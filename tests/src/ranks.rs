//! Ranks as threads of this process, joined by any transport, and values to give them.

use gradwire::{Communicator, Element, Rank};
use gradwire_transport::Transport;
use gradwire_transport_libfabric::{Libfabric, LibfabricConfig, OpenError};
use gradwire_transport_shm::{Shm, ShmConfig};
use gradwire_transport_sim::{Config, Network};
use gradwire_transport_tcp::{Tcp, TcpConfig};
use std::io::Write;

/// What joins the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// The simulated network at its best.
    Sim,
    /// Puts that overtake each other and arrive in pieces, repeated notices, short queues.
    HostileSim,
    /// Shared memory.
    Shm,
    /// libfabric's provider over TCP.
    Libfabric,
    /// TCP over loopback.
    Tcp,
}

impl Over {
    /// Runs a test, where this machine has what it needs; else says, past the capture of output, why not.
    pub fn try_out(self, test: impl FnOnce(Self)) {
        let missing = match self {
            Self::Libfabric => libfabric().err(),
            Self::Sim | Self::HostileSim | Self::Shm | Self::Tcp => None,
        };
        match missing {
            None => test(self),
            Some(error) => drop(writeln!(std::io::stderr(), "skipped over {self:?}: {error}")),
        }
    }
}

fn libfabric() -> Result<Libfabric, OpenError> {
    let mut config = LibfabricConfig::default();
    config.provider = Some("tcp;ofi_rxm".to_owned());
    Libfabric::new(config)
}

/// Runs `program` on every rank and returns what each returned.
///
/// # Panics
///
/// When the ranks cannot be joined, or when `program` does.
pub fn run<R: Send>(over: Over, ranks: usize, program: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
    let network =
        Network::new(7, if over == Over::HostileSim { Config::hostile() } else { Config::default() });
    let transport = |_| -> gradwire::Result<Box<dyn Transport>> {
        Ok(match over {
            Over::Sim | Over::HostileSim => Box::new(network.endpoint()),
            Over::Shm => Box::new(Shm::new(ShmConfig::default()).unwrap()),
            Over::Libfabric => Box::new(libfabric().unwrap()),
            Over::Tcp => Box::new(Tcp::new(TcpConfig::default()).unwrap()),
        })
    };
    gradwire::run_over(ranks, transport, program).unwrap()
}

/// Distinct for every rank and element, and exact in f32 sums.
#[must_use]
pub fn value(rank: Rank, index: usize) -> f32 {
    ((rank * 7919 + index * 31) % 1009) as f32 - 500.0
}

/// The [`value`]s of a rank.
#[must_use]
pub fn values(rank: Rank, count: usize) -> Vec<f32> {
    (0..count).map(|index| value(rank, index)).collect()
}

/// What an all_reduce by `Sum` makes of all ranks' [`values`].
#[must_use]
pub fn sums(ranks: usize, count: usize) -> Vec<f32> {
    (0..count).map(|index| (0..ranks).map(|rank| value(rank, index)).sum()).collect()
}

/// Elements of any type and any bits, the same for the same seed.
#[must_use]
pub fn any_bits<T: Element>(seed: u64, count: usize) -> Vec<T> {
    let mut random = Random::new(seed);
    let mut element = T::default();
    let mut next = || {
        let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut element);
        bytes.copy_from_slice(&random.next().to_be_bytes()[..bytes.len()]);
        element
    };
    (0..count).map(|_| next()).collect()
}

/// Random numbers that are the same for the same seed (xorshift64*). The high bits are the better ones.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number below `limit`, up to 2^32.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((self.next() >> 32) * limit) >> 32
    }
}

/// A hash of the bytes of values (FNV-1a): equal on two ranks only if every bit is.
#[must_use]
pub fn hash<T: Element>(values: &[T]) -> u64 {
    let bytes = zerocopy::IntoBytes::as_bytes(values);
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
