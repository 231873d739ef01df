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
    #[cfg(feature = "libfabric")]
    match config.transport {
        TransportChoice::Libfabric => all.push(libfabric(config, secret)?),
        TransportChoice::Auto if may_have_card(config) => match libfabric(config, secret) {
            Ok(libfabric) => all.push(libfabric),
            Err(error) => tracing::info!("{error}"),
        },
        _ => {}
    }
    #[cfg(feature = "tcp")]
    if wants(TransportChoice::Tcp) {
        all.push(tcp(config, secret)?);
    }
    if config.transport == TransportChoice::Own {
        return Err(Error::Bootstrap(
            "the settings ask for a transport of the program's, which brings none".into(),
        ));
    }
    if all.is_empty() {
        return Err(Error::Bootstrap(
            format!("GRADWIRE_TRANSPORT={:?}: the program was built without it", config.transport).into(),
        ));
    }
    Ok(all)
}

/// What joins the ranks of one host where the program brings a transport of its own for the others.
pub(crate) fn inside_hosts(secret: Option<[u8; 32]>) -> Result<Vec<Box<dyn Transport>>> {
    #[cfg(feature = "shm")]
    return Ok(vec![shm(secret)?]);
    #[cfg(not(feature = "shm"))]
    {
        let _ = secret;
        Ok(Vec::new())
    }
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
    let settings = tcp_settings(config, secret)?;
    let tcp = gradwire_transport_tcp::Tcp::new(settings).map_err(|error| refused("tcp", "shm", error))?;
    Ok(Box::new(tcp))
}

#[cfg(feature = "tcp")]
fn tcp_settings(config: &Config, secret: Option<[u8; 32]>) -> Result<gradwire_transport_tcp::TcpConfig> {
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
    Ok(settings)
}

/// RDMA. Without an RDMA card only where it was asked for: everything else is faster without libfabric in between.
#[cfg(feature = "libfabric")]
pub(crate) fn libfabric(config: &Config, secret: Option<[u8; 32]>) -> Result<Box<dyn Transport>> {
    let mut settings = gradwire_transport_libfabric::LibfabricConfig::default();
    settings.provider = config.fabric_provider.clone();
    settings.domains = config
        .interfaces
        .iter()
        .filter_map(|interface| match interface {
            Interface::Name(name) => Some(name.clone()),
            Interface::Network { .. } => None,
        })
        .collect();
    settings.control = tcp_settings(config, secret)?;
    // Where it does not work there is something else to try, and time must be left for that.
    settings.control.connect_timeout = config.start_timeout / 3;
    let libfabric = gradwire_transport_libfabric::Libfabric::new(settings)
        .map_err(|error| refused("libfabric", "tcp", error))?;
    let is_wanted = config.transport == TransportChoice::Libfabric || config.fabric_provider.is_some();
    if !is_wanted && !libfabric.is_hardware() {
        return Err(refused("libfabric", "tcp", "it has no provider for an RDMA card"));
    }
    Ok(Box::new(libfabric))
}

/// Whether it is worth while to look for RDMA cards: to load the library takes longer than all else at start-up.
#[cfg(feature = "libfabric")]
pub(crate) fn may_have_card(config: &Config) -> bool {
    let has_devices =
        |class: &str| std::fs::read_dir(class).is_ok_and(|mut devices| devices.next().is_some());
    config.fabric_provider.is_some()
        || ["/sys/class/infiniband", "/sys/class/cxi"].into_iter().any(has_devices)
}

#[cfg(any(feature = "shm", feature = "tcp"))]
fn refused(transport: &str, other: &str, error: impl std::fmt::Display) -> Error {
    Error::System(
        format!("{transport} cannot be used: {error} (GRADWIRE_TRANSPORT={other} does without)").into(),
    )
}
