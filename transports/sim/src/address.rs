//! What an address of the simulated network says.

use gradwire_transport::{Address, ConnectError};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Which endpoint of a network, in the order they were made.
pub(crate) type NodeIndex = u32;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 4],
    /// The number of the network in this process.
    network: U64,
    node: U32,
}

const MAGIC: [u8; 4] = *b"sim1";

pub(crate) fn encode(network: u64, node: NodeIndex) -> Address {
    let layout = Layout { magic: MAGIC, network: network.into(), node: node.into() };
    Address::from_bytes(layout.as_bytes()).expect("sixteen bytes are an address")
}

/// The endpoint, when it belongs to `network`.
pub(crate) fn decode(network: u64, address: &Address) -> Result<NodeIndex, ConnectError> {
    let layout = Layout::ref_from_bytes(address.as_bytes())
        .ok()
        .filter(|layout| layout.magic == MAGIC)
        .ok_or(ConnectError::BadAddress("it is not one of a simulated network"))?;
    if layout.network != network {
        return Err(ConnectError::BadAddress("it belongs to another simulated network"));
    }
    Ok(layout.node.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_addresses_of_the_same_network_are_understood() {
        let address = encode(7, 3);
        assert_eq!(address.as_bytes(), b"sim1\x07\0\0\0\0\0\0\0\x03\0\0\0");
        assert_eq!(decode(7, &address), Ok(3));
        assert!(decode(8, &address).is_err());
        for len in 0..address.as_bytes().len() {
            assert!(decode(7, &Address::from_bytes(&address.as_bytes()[..len]).unwrap()).is_err());
        }
        assert!(decode(7, &Address::from_bytes(b"mis1\x07\0\0\0\0\0\0\0\x03\0\0\0").unwrap()).is_err());
    }
}
