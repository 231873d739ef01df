//! The suite on TCP, over loopback.

use gradwire_tests::conformance::Backend;
use gradwire_transport::{RegionKey, Transport};
use gradwire_transport_tcp::{Tcp, TcpConfig};
use std::time::Duration;

/// One job with a secret of its own.
#[derive(Debug)]
struct TcpBackend;

impl TcpBackend {
    fn open(secret: u8) -> Box<dyn Transport> {
        let mut config = TcpConfig::default();
        config.secret = Some([secret; 32]);
        config.interface = Some("127.0.0.1".parse().expect("a selector"));
        config.connect_timeout = Duration::from_secs(3);
        Box::new(Tcp::new(config).expect("an endpoint"))
    }
}

impl Backend for TcpBackend {
    const NAME: &'static str = "tcp";

    fn start() -> Self {
        Self
    }

    fn endpoint(&mut self) -> Box<dyn Transport> {
        Self::open(1)
    }

    fn stranger(&mut self) -> Option<Box<dyn Transport>> {
        Some(Self::open(2))
    }

    fn stretch(key: &RegionKey, len: u64) -> Option<RegionKey> {
        Some(crate::stretch(key, len))
    }
}

gradwire_tests::conformance_suite!(TcpBackend);
