//! What `address()` hands out: who the endpoint is and where it listens.

use gradwire_transport::Address;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The random name of one [`Tcp`](crate::Tcp) object; what a peer is recognised by, wherever it seems to call from.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub(crate) struct EndpointId(pub(crate) [u8; 16]);

impl fmt::Debug for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A running system, told from others by the number it drew at boot. All zero: not known.
///
/// Two equal numbers prove nothing (cloned machines, containers): they only make a try over loopback worth while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub(crate) struct Boot(pub(crate) [u8; 16]);

impl Boot {
    pub(crate) fn current() -> Self {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        Self(u128::from_str_radix(&digits, 16).unwrap_or_default().to_le_bytes())
    }

    fn may_be(self, other: Self) -> bool {
        let unknown = Self([0; 16]);
        self == other || self == unknown || other == unknown
    }
}

/// An [`Address`], taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: EndpointId,
    pub(crate) boot: Boot,
    /// Where it listens, best first, loopback last.
    pub(crate) candidates: Vec<SocketAddr>,
}

impl Endpoint {
    pub(crate) const MAX_CANDIDATES: usize = 24;

    /// At most the first [`MAX_CANDIDATES`](Self::MAX_CANDIDATES) candidates fit.
    pub(crate) fn encode(&self) -> Address {
        let candidates = self.candidates.iter().take(Self::MAX_CANDIDATES).map(|c| WireCandidate::from(*c));
        let candidates: Vec<_> = candidates.collect();
        let head = WireHead {
            magic: WireHead::MAGIC,
            version: WireHead::VERSION,
            count: candidates.len() as u8,
            id: self.id,
            boot: self.boot,
        };
        let bytes = [head.as_bytes(), candidates.as_bytes()].concat();
        Address::from_bytes(&bytes)
            .expect("the head and the most candidates are shorter than an address may be")
    }

    pub(crate) fn decode(address: &Address) -> Result<Self, &'static str> {
        let (head, rest) = WireHead::ref_from_prefix(address.as_bytes()).map_err(|_| "it is too short")?;
        if head.magic != WireHead::MAGIC {
            return Err("it belongs to another transport");
        }
        if head.version != WireHead::VERSION {
            return Err("it is of another version");
        }
        let candidates = <[WireCandidate]>::ref_from_bytes(rest).map_err(|_| "it has an odd length")?;
        if candidates.len() != usize::from(head.count) || candidates.len() > Self::MAX_CANDIDATES {
            return Err("its number of candidates is wrong");
        }
        let candidates = candidates.iter().map(WireCandidate::decode).collect::<Option<_>>();
        Ok(Self { id: head.id, boot: head.boot, candidates: candidates.ok_or("a candidate is malformed")? })
    }

    /// The candidates of `self` that are worth a try from `here`: a common family, and no loopback of another host.
    pub(crate) fn reachable_from(&self, here: &Self) -> Vec<SocketAddr> {
        let same_host = self.boot.may_be(here.boot);
        let usable = |candidate: &SocketAddr| same_host || !candidate.ip().is_loopback();
        let families: Vec<bool> =
            here.candidates.iter().filter(|c| usable(c)).map(SocketAddr::is_ipv4).collect();
        let reachable = self.candidates.iter().filter(|c| usable(c) && families.contains(&c.is_ipv4()));
        reachable.copied().collect()
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct WireHead {
    magic: [u8; 6],
    version: u8,
    count: u8,
    id: EndpointId,
    boot: Boot,
}

impl WireHead {
    const MAGIC: [u8; 6] = *b"gw-tcp";
    const VERSION: u8 = 1;
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct WireCandidate {
    /// 4 or 6.
    family: u8,
    zero: u8,
    port: U16,
    /// Network order; an IPv4 address is followed by zeros.
    address: [u8; 16],
}

impl WireCandidate {
    fn decode(&self) -> Option<SocketAddr> {
        let [a, b, c, d, rest @ ..] = self.address;
        let ip = match self.family {
            4 if rest == [0; 12] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            6 => IpAddr::V6(Ipv6Addr::from(self.address)),
            _ => return None,
        };
        let plausible = self.zero == 0 && self.port.get() != 0 && !ip.is_unspecified() && !ip.is_multicast();
        plausible.then(|| SocketAddr::new(ip, self.port.get()))
    }
}

impl From<SocketAddr> for WireCandidate {
    fn from(candidate: SocketAddr) -> Self {
        let mut address = [0; 16];
        let family = match candidate.ip() {
            IpAddr::V4(ip) => {
                address[..4].copy_from_slice(&ip.octets());
                4
            }
            IpAddr::V6(ip) => {
                address = ip.octets();
                6
            }
        };
        Self { family, zero: 0, port: U16::new(candidate.port()), address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn endpoint(boot: u8, candidates: &[&str]) -> Endpoint {
        let candidates = candidates.iter().map(|c| c.parse().expect("a socket address")).collect();
        Endpoint { id: EndpointId([7; 16]), boot: Boot([boot; 16]), candidates }
    }

    #[test]
    fn it_survives_the_journey() {
        let sent = endpoint(1, &["192.0.2.1:29500", "[fd00::1]:29501", "127.0.0.1:1"]);
        assert_eq!(Endpoint::decode(&sent.encode()), Ok(sent));
        let many = endpoint(1, &["192.0.2.1:29500"; Endpoint::MAX_CANDIDATES + 9]);
        let decoded = Endpoint::decode(&many.encode()).expect("an address");
        assert_eq!(decoded.candidates.len(), Endpoint::MAX_CANDIDATES);
    }

    #[test]
    fn only_what_can_be_reached_is_tried() {
        let here = endpoint(1, &["192.0.2.1:1", "127.0.0.1:1", "[::1]:1"]);
        let tried = |boot, candidates: &[&str]| {
            let reachable = endpoint(boot, candidates).reachable_from(&here);
            reachable.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let peer = ["198.51.100.1:2", "[fd00::2]:2", "127.0.0.1:2", "[::1]:2"];
        assert_eq!(tried(1, &peer), peer, "same host: IPv6 is common through ::1");
        assert_eq!(tried(2, &peer), ["198.51.100.1:2"], "another host: no loopback, no IPv6");
        assert_eq!(tried(0, &peer), peer, "unknown: try everything");
        assert_eq!(tried(2, &["[fd00::2]:2"]), [""; 0], "no common family");
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Endpoint::decode(&Address::from_bytes(&bytes).expect("short"));
        }

        #[test]
        fn a_changed_byte_is_refused_or_gives_other_values(at in 0usize..60, flip in 1u8..) {
            let sent = endpoint(1, &["192.0.2.1:29500"]);
            let mut bytes = sent.encode().as_bytes().to_vec();
            prop_assume!(at < bytes.len());
            bytes[at] ^= flip;
            let read = Endpoint::decode(&Address::from_bytes(&bytes).expect("short"));
            prop_assert_ne!(read, Ok(sent));
        }
    }
}
