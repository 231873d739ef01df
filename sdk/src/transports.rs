//! The backends by name: the one place that knows which there are.

use crate::config::{Config, Interface, TransportChoice};
use crate::{Error, Result};
use gradwire_transport::Transport;

/// The transports that the settings ask for, in the order of preference.
pub(crate) fn open(config: &Config, secret: Option<[u8; 32]>) -> Result<Vec<Box<dyn Transport>>> {
    let wants = |choice| config.transport == choice || config.transport == TransportChoice::Auto;
    let mut all: Vec<Box<dyn Transport>> = Vec::new();
    #[cfg(feature = "shm")]
    if wants(TransportChoice::Shm) {
        all.push(shm(secret)?);
    }
    #[cfg(feature = "tcp")]
    if wants(TransportChoice::Tcp) {
        all.push(tcp(config, secret)?);
    }
    if all.is_empty() {
        return Err(Error::Bootstrap(
            format!("GRADWIRE_TRANSPORT={:?}: the program was built without it", config.transport).into(),
        ));
    }
    Ok(all)
}

/// Shared memory.
#[cfg(feature = "shm")]
pub(crate) fn shm(secret: Option<[u8; 32]>) -> Result<Box<dyn Transport>> {
    let config = gradwire_transport_shm::ShmConfig { secret, ..Default::default() };
    let shm =
        gradwire_transport_shm::Shm::new(config).map_err(|error| refused("shared memory", "tcp", error))?;
    Ok(Box::new(shm))
}

/// TCP.
#[cfg(feature = "tcp")]
pub(crate) fn tcp(config: &Config, secret: Option<[u8; 32]>) -> Result<Box<dyn Transport>> {
    let mut settings = gradwire_transport_tcp::TcpConfig::default();
    settings.secret = secret;
    settings.ports = config.port_range.clone();
    settings.connect_timeout = config.start_timeout;
    if !config.interfaces.is_empty() {
        let text = config.interfaces.iter().map(|interface| match interface {
            Interface::Name(name) => name.clone(),
            Interface::Network { address, prefix } => format!("{address}/{prefix}"),
        });
        let text: Vec<String> = text.collect();
        let selector = text.join(",").parse().map_err(|error| refused("tcp", "shm", error))?;
        settings.interface = Some(selector);
    }
    let tcp = gradwire_transport_tcp::Tcp::new(settings).map_err(|error| refused("tcp", "shm", error))?;
    Ok(Box::new(tcp))
}

#[cfg(any(feature = "shm", feature = "tcp"))]
fn refused(transport: &str, other: &str, error: impl std::fmt::Display) -> Error {
    Error::System(
        format!("{transport} cannot be used: {error} (GRADWIRE_TRANSPORT={other} does without)").into(),
    )
}
