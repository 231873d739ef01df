//! The suite on libfabric, over providers that need no network card. Where there is no library, or a library without the
//! provider, each test says so and is skipped.

use gradwire_tests::conformance::Backend;
use gradwire_transport::Transport;
use gradwire_transport_libfabric::{Libfabric, LibfabricConfig, OpenError};
use std::time::Duration;

/// A provider to test.
trait Provider {
    const NAME: &'static str;
    /// Whether notices travel as messages, as where completions carry few bits.
    const IS_NARROW: bool = false;
}

/// One job with a secret of its own.
struct Fabric<P>(std::marker::PhantomData<P>);

impl<P: Provider> Fabric<P> {
    fn open(secret: u8) -> Result<Libfabric, OpenError> {
        let mut config = LibfabricConfig::default();
        config.provider = Some(P::NAME.to_owned());
        config.control.secret = Some([secret; 32]);
        config.control.interface = Some("127.0.0.1".parse().expect("a selector"));
        config.control.connect_timeout = Duration::from_secs(3);
        let mut endpoint = Libfabric::new(config)?;
        if P::IS_NARROW {
            endpoint.narrow_completions();
        }
        Ok(endpoint)
    }
}

impl<P: Provider> Backend for Fabric<P> {
    const NAME: &'static str = P::NAME;

    fn missing() -> Option<String> {
        match Self::open(1) {
            Err(error @ (OpenError::NotPresent { .. } | OpenError::NoProvider { .. })) => {
                Some(error.to_string())
            }
            _ => None,
        }
    }

    fn start() -> Self {
        Self(std::marker::PhantomData)
    }

    fn endpoint(&mut self) -> Box<dyn Transport> {
        Box::new(Self::open(1).expect("an endpoint"))
    }

    fn stranger(&mut self) -> Option<Box<dyn Transport>> {
        Some(Box::new(Self::open(2).expect("an endpoint")))
    }
}

macro_rules! provider {
    ($module:ident, $name:literal $(, $narrow:literal)?) => {
        mod $module {
            struct This;

            impl super::Provider for This {
                const NAME: &'static str = $name;
                $(const IS_NARROW: bool = $narrow;)?
            }

            gradwire_tests::conformance_suite!(super::Fabric<This>);
        }
    };
}

provider!(tcp, "tcp;ofi_rxm");
provider!(narrow_tcp, "tcp;ofi_rxm", true);
provider!(shm, "shm");
provider!(sockets, "sockets");
