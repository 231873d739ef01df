//! Shared memory: all endpoints in one process, which to the kernel makes no difference.

use gradwire_tests::conformance::Backend;
use gradwire_transport::Transport;
use gradwire_transport_shm::{Shm, ShmConfig};

struct SharedMemory;

impl SharedMemory {
    fn with_secret(secret: [u8; 32]) -> Box<dyn Transport> {
        let config = ShmConfig { secret: Some(secret), ..ShmConfig::default() };
        Box::new(Shm::new(config).expect("shared memory"))
    }
}

impl Backend for SharedMemory {
    const NAME: &'static str = "shm";

    fn start() -> Self {
        Self
    }

    fn endpoint(&mut self) -> Box<dyn Transport> {
        Self::with_secret([1; 32])
    }

    fn stranger(&mut self) -> Option<Box<dyn Transport>> {
        Some(Self::with_secret([2; 32]))
    }
}

gradwire_tests::conformance_suite!(SharedMemory);
