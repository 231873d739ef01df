//! Where an endpoint is found: a rank of the communicator, and the tag under which it receives.

use gradwire_transport::{Address, ConnectError};
use zerocopy::little_endian::{I32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An endpoint of the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub(super) rank: i32,
    pub(super) tag: i32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 4],
    /// The number that the ranks of the network have agreed on.
    network: U64,
    rank: I32,
    tag: I32,
}

const MAGIC: [u8; 4] = *b"mpi1";

pub(super) fn encode(network: u64, place: Place) -> Address {
    let layout =
        Layout { magic: MAGIC, network: network.into(), rank: place.rank.into(), tag: place.tag.into() };
    Address::from_bytes(layout.as_bytes()).expect("twenty bytes are an address")
}

/// The place, when it lies in `network`, which has `size` ranks.
pub(super) fn decode(network: u64, size: i32, address: &Address) -> Result<Place, ConnectError> {
    let layout = Layout::ref_from_bytes(address.as_bytes())
        .ok()
        .filter(|layout| layout.magic == MAGIC)
        .ok_or(ConnectError::BadAddress("it is not one of an MPI communicator"))?;
    if layout.network != network {
        return Err(ConnectError::BadAddress("it belongs to another MPI communicator"));
    }
    let place = Place { rank: layout.rank.get(), tag: layout.tag.get() };
    if !(0..size).contains(&place.rank) || place.tag < 0 {
        return Err(ConnectError::BadAddress("the communicator has no such rank"));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_addresses_of_the_same_network_are_understood() {
        let place = Place { rank: 3, tag: 17 };
        let address = encode(7, place);
        assert_eq!(address.as_bytes(), b"mpi1\x07\0\0\0\0\0\0\0\x03\0\0\0\x11\0\0\0");
        assert_eq!(decode(7, 4, &address), Ok(place));
        assert!(decode(8, 4, &address).is_err());
        assert!(decode(7, 3, &address).is_err(), "there are three ranks");
        assert!(decode(7, 4, &encode(7, Place { rank: -1, tag: 17 })).is_err());
        assert!(decode(7, 4, &encode(7, Place { rank: 0, tag: -2 })).is_err());
        for len in 0..address.as_bytes().len() {
            assert!(decode(7, 4, &Address::from_bytes(&address.as_bytes()[..len]).unwrap()).is_err());
        }
    }
}
