//! The doors: listening sockets on the chosen addresses.

use crate::interface::{self, LocalAddress};
use crate::{BindError, TcpConfig, socket};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Listening sockets, and the addresses under which peers find them, best first.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) sockets: Vec<OwnedFd>,
    pub(crate) candidates: Vec<SocketAddr>,
}

impl Listeners {
    /// Listens on each address that the selector allows, or, without one, on the wildcard of each family.
    pub(crate) fn bind(config: &TcpConfig) -> Result<Self, BindError> {
        let ports = config.ports.clone().unwrap_or(0..=0);
        if ports.is_empty() || (*ports.start() == 0 && *ports.end() != 0) {
            return Err(BindError::BadRange { first: *ports.start(), last: *ports.end() });
        }
        let chosen = interface::choose(config.interface.as_ref())?;
        let mut listeners = Self { sockets: Vec::new(), candidates: Vec::new() };
        if config.interface.is_none() {
            listeners.bind_wildcards(&chosen, ports)?;
        } else {
            for local in chosen {
                let port = listeners.walk(local.address, ports.clone())?;
                listeners.candidates.push(SocketAddr::new(local.address, port));
            }
        }
        Ok(listeners)
    }

    fn bind_wildcards(
        &mut self,
        chosen: &[LocalAddress],
        ports: impl Iterator<Item = u16> + Clone,
    ) -> Result<(), BindError> {
        let mut port_of = |wildcard: IpAddr| {
            let wanted = chosen.iter().any(|local| local.address.is_ipv4() == wildcard.is_ipv4());
            wanted.then(|| self.walk(wildcard, ports.clone())).transpose()
        };
        let v4 = port_of(Ipv4Addr::UNSPECIFIED.into())?;
        let v6 = port_of(Ipv6Addr::UNSPECIFIED.into())?;
        for local in chosen {
            let port = if local.address.is_ipv4() { v4 } else { v6 };
            self.candidates.extend(port.map(|port| SocketAddr::new(local.address, port)));
        }
        Ok(())
    }

    /// Takes the first free port and tells it.
    fn walk(&mut self, ip: IpAddr, ports: impl Iterator<Item = u16> + Clone) -> Result<u16, BindError> {
        for port in ports.clone() {
            let address = SocketAddr::new(ip, port);
            match listen(address) {
                Ok((socket, port)) => {
                    self.sockets.push(socket);
                    return Ok(port);
                }
                Err((_, Errno::ADDRINUSE)) => {}
                Err((context, errno)) => return Err(refused(context, address, errno)),
            }
        }
        let first = ports.clone().next().unwrap_or_default();
        let last = ports.last().unwrap_or_default();
        if first == last {
            return Err(BindError::PortInUse { address: SocketAddr::new(ip, first) });
        }
        Err(BindError::RangeExhausted { address: ip, first, last })
    }
}

/// A socket that accepts connections, and its port.
fn listen(address: SocketAddr) -> Result<(OwnedFd, u16), (&'static str, Errno)> {
    let socket = socket::open(address).map_err(|errno| ("socket", errno))?;
    // Connections of an earlier process that linger on the port do not matter; another listener still does.
    net::sockopt::set_socket_reuseaddr(&socket, true).map_err(|errno| ("SO_REUSEADDR", errno))?;
    if address.is_ipv6() {
        net::sockopt::set_ipv6_v6only(&socket, true).map_err(|errno| ("IPV6_V6ONLY", errno))?;
    }
    net::bind(&socket, &address).map_err(|errno| ("bind", errno))?;
    // The system cuts the backlog down to what it allows.
    net::listen(&socket, i32::from(u16::MAX)).map_err(|errno| ("listen", errno))?;
    let bound = net::getsockname(&socket).map_err(|errno| ("getsockname", errno))?;
    let bound = SocketAddr::try_from(bound).map_err(|errno| ("getsockname", errno))?;
    Ok((socket, bound.port()))
}

fn refused(context: &'static str, address: SocketAddr, errno: Errno) -> BindError {
    match errno {
        Errno::ACCESS | Errno::PERM => BindError::Denied { address },
        errno => BindError::system(context, errno.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::ops::RangeInclusive;

    fn config(interface: &str, ports: RangeInclusive<u16>) -> TcpConfig {
        let interface = Some(interface.parse().expect("a selector"));
        TcpConfig { interface, ports: Some(ports), ..TcpConfig::default() }
    }

    /// A run of `len` ports of 127.0.0.1, all of them taken by the listeners handed out.
    fn taken(len: u16) -> (Vec<TcpListener>, u16) {
        for _ in 0..100 {
            let first = TcpListener::bind("127.0.0.1:0").expect("a port");
            let start = first.local_addr().expect("its address").port();
            let rest = (1..len).map(|next| TcpListener::bind(("127.0.0.1", start.checked_add(next)?)).ok());
            if let Some(rest) = rest.collect::<Option<Vec<_>>>() {
                return (std::iter::once(first).chain(rest).collect(), start);
            }
        }
        panic!("no run of {len} free ports found");
    }

    #[test]
    fn the_whole_range_is_walked() {
        let (mut taken, first) = taken(4);
        drop(taken.remove(2));
        let found = Listeners::bind(&config("127.0.0.1", first..=first + 3)).expect("one port is free");
        assert_eq!(found.candidates, [SocketAddr::from(([127, 0, 0, 1], first + 2))]);
        let error = Listeners::bind(&config("127.0.0.1", first..=first + 3)).expect_err("none is free now");
        let address = [127, 0, 0, 1].into();
        assert_eq!(error, BindError::RangeExhausted { address, first, last: first + 3 });
    }

    #[test]
    fn a_single_port_in_use_is_named() {
        let (_taken, first) = taken(1);
        let error = Listeners::bind(&config("127.0.0.1", first..=first)).expect_err("the port is taken");
        assert_eq!(error, BindError::PortInUse { address: SocketAddr::from(([127, 0, 0, 1], first)) });
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake to be found")]
    fn ranges_that_are_none_are_refused() {
        for (first, last) in [(2, 1), (0, 7)] {
            let error = Listeners::bind(&config("127.0.0.1", first..=last)).expect_err("no range");
            assert_eq!(error, BindError::BadRange { first, last });
        }
        let _ = 2..=1;
    }

    #[test]
    fn without_a_selector_every_address_is_a_candidate() {
        let found = Listeners::bind(&TcpConfig::default()).expect("a port");
        assert!(found.sockets.len() <= 2, "one wildcard for each family");
        assert!(found.candidates.last().is_some_and(|last| last.ip().is_loopback() && last.port() != 0));
    }
}
