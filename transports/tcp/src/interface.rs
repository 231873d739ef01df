//! This host's addresses, and the choice among them.

use crate::BindError;
use nix::net::if_::InterfaceFlags;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

/// Which local addresses to use: a comma-separated list of interface names (`eth0`), name prefixes (`ib*`),
/// networks (`10.0.0.0/8`) and addresses (`192.0.2.7`, `fd00::7`). An address that fits one of them is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceSelector(Vec<Pattern>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    Name(String),
    Prefix(String),
    Network(IpAddr, u8),
}

/// Why a text is no selector.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{item:?} is no interface name, name prefix with `*`, address, or network such as 10.0.0.0/8")]
pub struct SelectorError {
    /// The part that was not understood.
    pub item: String,
}

impl InterfaceSelector {
    fn selects(&self, local: &LocalAddress) -> bool {
        self.0.iter().any(|pattern| match pattern {
            Pattern::Name(name) => *name == local.interface,
            Pattern::Prefix(prefix) => local.interface.starts_with(prefix),
            Pattern::Network(network, bits) => same_network(*network, local.address, *bits),
        })
    }
}

impl FromStr for InterfaceSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        text.split(',').map(|item| Pattern::parse(item.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for InterfaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pattern) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            match pattern {
                Pattern::Name(name) => f.write_str(name)?,
                Pattern::Prefix(prefix) => write!(f, "{prefix}*")?,
                Pattern::Network(address, bits) if *bits == width(*address) => write!(f, "{address}")?,
                Pattern::Network(address, bits) => write!(f, "{address}/{bits}")?,
            }
        }
        Ok(())
    }
}

impl Pattern {
    fn parse(item: &str) -> Result<Self, SelectorError> {
        let error = || SelectorError { item: item.to_owned() };
        if let Ok(address) = item.parse::<IpAddr>() {
            return Ok(Self::Network(address, width(address)));
        }
        if let Some((address, bits)) = item.split_once('/') {
            let address = address.parse::<IpAddr>().map_err(|_| error())?;
            let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= width(address)).ok_or_else(error)?;
            return Ok(Self::Network(address, bits));
        }
        let name = item.strip_suffix('*').unwrap_or(item);
        let odd = |c: char| c.is_whitespace() || matches!(c, '*' | '/' | ':');
        if name.is_empty() || name.len() > 15 || name.contains(odd) {
            return Err(error());
        }
        Ok(if name.len() < item.len() { Self::Prefix(name.to_owned()) } else { Self::Name(name.to_owned()) })
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn same_network(network: IpAddr, address: IpAddr, bits: u8) -> bool {
    let differing = match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing >= u32::from(bits)
}

/// An address of this host by which a peer may reach it. Declared in the order in which peers should try.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reach {
    /// A network card, or something that looks like one.
    Network,
    /// A bridge: often the same private address on every host, but at times the host's only real one.
    Bridge,
    /// Processes of this host only.
    Loopback,
}

/// One address of one interface that is up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LocalAddress {
    pub(crate) interface: String,
    pub(crate) address: IpAddr,
    pub(crate) reach: Reach,
}

/// The addresses that `selector` allows, best first.
pub(crate) fn choose(selector: Option<&InterfaceSelector>) -> Result<Vec<LocalAddress>, BindError> {
    let all = local_addresses()?;
    let mut chosen = all.clone();
    chosen.retain(|local| selector.is_none_or(|selector| selector.selects(local)));
    if chosen.is_empty() {
        let available: Vec<_> =
            all.iter().map(|local| format!("{} {}", local.interface, local.address)).collect();
        let selector = selector.map(ToString::to_string).unwrap_or_default();
        return Err(BindError::NoInterface { selector, available: available.join(", ") });
    }
    chosen.sort_by_key(|local| local.reach);
    Ok(chosen)
}

/// Leaves out interfaces that are down or without a carrier, and link-local addresses, which mean nothing
/// without a scope that differs from host to host.
fn local_addresses() -> Result<Vec<LocalAddress>, BindError> {
    let failed = |code: nix::errno::Errno| BindError::system("getifaddrs", code as i32);
    let mut found = Vec::new();
    for entry in nix::ifaddrs::getifaddrs().map_err(failed)? {
        let Some(address) = entry.address.as_ref().and_then(ip_address) else { continue };
        if !entry.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING) || link_local(address)
        {
            continue;
        }
        // By the address, not by the interface: routed hosts keep their real address on `lo`.
        let reach = if address.is_loopback() {
            Reach::Loopback
        } else if Path::new("/sys/class/net").join(&entry.interface_name).join("bridge").exists() {
            Reach::Bridge
        } else {
            Reach::Network
        };
        found.push(LocalAddress { interface: entry.interface_name, address, reach });
    }
    Ok(found)
}

fn ip_address(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

fn link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(interface: &str, address: &str) -> LocalAddress {
        let address = address.parse().expect("an address");
        LocalAddress { interface: interface.to_owned(), address, reach: Reach::Network }
    }

    #[test]
    fn selectors_select() {
        let selector: InterfaceSelector =
            "eth0, ib*,10.1.0.0/16,fd00::/8,192.0.2.7".parse().expect("a selector");
        for (interface, address, wanted) in [
            ("eth0", "198.51.100.1", true),
            ("eth01", "198.51.100.1", false),
            ("ib3", "198.51.100.1", true),
            ("wlan0", "10.1.255.255", true),
            ("wlan0", "10.2.0.0", false),
            ("wlan0", "fdff::1", true),
            ("wlan0", "fe00::1", false),
            ("wlan0", "192.0.2.7", true),
            ("wlan0", "192.0.2.6", false),
        ] {
            assert_eq!(selector.selects(&local(interface, address)), wanted, "{interface} {address}");
        }
        assert_eq!(selector.to_string(), "eth0,ib*,10.1.0.0/16,fd00::/8,192.0.2.7");
    }

    #[test]
    fn nonsense_is_named() {
        for item in ["", "10.0.0.0/33", "fd00::/129", "10.0.0/8", "a b", "*", "eth0:1", "a-very-long-name"] {
            let error = item.parse::<InterfaceSelector>().expect_err(item);
            assert_eq!(error.item, item);
        }
        assert_eq!("eth0,,".parse::<InterfaceSelector>().expect_err("an empty item").item, "");
    }

    #[test]
    fn a_missing_interface_lists_the_local_ones() {
        let selector: InterfaceSelector = "nosuch0".parse().expect("a selector");
        let text = choose(Some(&selector)).expect_err("there is no such interface").to_string();
        assert!(text.contains("nosuch0") && text.contains("lo 127.0.0.1"), "{text}");
    }

    #[test]
    fn loopback_comes_last() {
        let chosen = choose(None).expect("addresses");
        assert!(chosen.is_sorted_by_key(|local| local.reach));
        assert!(chosen.iter().all(|local| !link_local(local.address)));
        assert_eq!(chosen.last().map(|local| local.reach), Some(Reach::Loopback));
    }
}
