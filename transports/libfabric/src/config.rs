//! What a user can set.

use gradwire_transport_tcp::TcpConfig;

/// Settings of a [`Libfabric`](crate::Libfabric) transport.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LibfabricConfig {
    /// The provider by its exact name, as `fi_info` lists it: `verbs;ofi_rxm`, `efa`, `tcp;ofi_rxm`. `None`: that of a
    /// network card, else one that works everywhere.
    pub provider: Option<String>,
    /// The provider's domains (interfaces or cards) to prefer, best first. Empty: any but loopback.
    pub domains: Vec<String>,
    /// The connections that watch over the peers. Their secret keeps strangers out, their `connect_timeout` bounds the
    /// making of a connection on the fabric as well.
    pub control: TcpConfig,
}
