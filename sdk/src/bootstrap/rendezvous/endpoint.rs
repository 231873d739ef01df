//! Listening at and connecting to the place of the rendezvous.
#![forbid(unsafe_code)]

use crate::bootstrap::stream::Stream;
use crate::config::MeetingAddress;
use crate::{Error, Result};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A socket that takes connections, without blocking.
#[derive(Debug)]
pub(super) struct Listener {
    socket: OwnedFd,
    local: bool,
}

impl Listener {
    /// Listens at `address`.
    ///
    /// A host given as a number is taken at its word. A name may mean another address to each rank (often
    /// 127.0.1.1 on its own host), so then all addresses of this host are listened on.
    pub(super) fn bind(address: &MeetingAddress) -> Result<Self> {
        let bound = match address {
            MeetingAddress::Unix(name) => bind_unix(name),
            MeetingAddress::Tcp { host, port } => match literal(host) {
                Some(ip) => bind_tcp(SocketAddr::new(ip, *port)),
                None => bind_tcp((Ipv6Addr::UNSPECIFIED, *port).into()).or_else(|error| match error.kind() {
                    ErrorKind::AddrInUse => Err(error),
                    _ => bind_tcp((Ipv4Addr::UNSPECIFIED, *port).into()),
                }),
            },
        };
        let socket = bound.map_err(|error| Error::Bootstrap(Arc::from(explain(&error, address))))?;
        Ok(Self { socket, local: matches!(address, MeetingAddress::Unix(_)) })
    }

    /// Takes one connection; `None` when there is none, or it was a stranger's.
    pub(super) fn accept(&self) -> io::Result<Option<Stream>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let stream = Stream::new(rustix::net::accept_with(&self.socket, flags)?);
        if self.local && stream.peer_user()? != rustix::process::geteuid() {
            tracing::debug!("refused a connection of another user");
            return Ok(None);
        }
        Ok(Some(stream))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The addresses at which the process that listens at `address` reaches itself.
pub(in crate::bootstrap) fn own_view(address: &MeetingAddress) -> MeetingAddress {
    match address {
        MeetingAddress::Tcp { host, port } if literal(host).is_none() => {
            MeetingAddress::Tcp { host: "localhost".into(), port: *port }
        }
        _ => address.clone(),
    }
}

/// Whether this host has the address: a rank of another one cannot listen there. A name that nobody knows, or not at once, may be
/// this host's: the others wait for whoever listens.
pub(in crate::bootstrap) fn is_here(address: &MeetingAddress, deadline: Instant) -> bool {
    let MeetingAddress::Tcp { host, port } = address else { return true };
    let deadline = deadline.min(Instant::now() + LOOK_UP);
    let is_own = |address: &SocketAddr| {
        // Only a host's own addresses can be bound.
        let bound = TcpListener::bind(SocketAddr::new(address.ip(), 0));
        !bound.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
    };
    resolve(host, *port, deadline).map_or(true, |addresses| addresses.iter().any(is_own))
}

/// Connects, or says why not; every failure may pass with time.
pub(in crate::bootstrap) fn reach(address: &MeetingAddress, deadline: Instant) -> Result<Stream, String> {
    match address {
        MeetingAddress::Unix(name) => {
            let stream = connect_unix(name).map_err(|error| error.to_string())?;
            match stream.peer_user() {
                Ok(user) if user == rustix::process::geteuid() => Ok(stream),
                Ok(user) => Err(format!("its listener belongs to another user ({})", user.as_raw())),
                Err(error) => Err(error.to_string()),
            }
        }
        MeetingAddress::Tcp { host, port } => {
            let mut reason = format!("{host} has no address");
            for address in resolve(host, *port, deadline)? {
                match connect_tcp(address, deadline) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => reason = format!("{address}: {error}"),
                }
            }
            Err(reason)
        }
    }
}

fn bind_unix(name: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    listen(&socket, i32::MAX)?;
    Ok(socket)
}

fn bind_tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // A second call only lengthens the queue, to what the system allows.
    listen(&listener, i32::MAX)?;
    Ok(listener.into())
}

fn connect_unix(name: &str) -> io::Result<Stream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(Stream::new(socket))
}

fn connect_tcp(address: SocketAddr, deadline: Instant) -> io::Result<Stream> {
    let left = deadline.saturating_duration_since(Instant::now());
    let stream = TcpStream::connect_timeout(&address, left.clamp(Duration::from_millis(1), ATTEMPT))?;
    if stream.local_addr()? == stream.peer_addr()? {
        // With nobody listening, a socket of this host can be given the very port it asks for.
        return Err(io::Error::new(ErrorKind::ConnectionRefused, "nobody listens there"));
    }
    Ok(Stream::new(stream.into()))
}

/// Looks a name up. The system's resolver knows no deadline, so a thread waits for it.
fn resolve(host: &str, port: u16, deadline: Instant) -> Result<Vec<SocketAddr>, String> {
    if let Some(ip) = literal(host) {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let name = host.to_owned();
    std::thread::Builder::new()
        .name("gradwire-resolve".into())
        .spawn(move || {
            let addresses = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            // Nobody waits any more when the deadline has passed.
            let _ = sender.send(addresses);
        })
        .map_err(|error| format!("no thread to look up {host}: {error}"))?;
    match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(format!("the name {host} cannot be resolved: {error}")),
        Err(_) => Err(format!("the name {host} is still being resolved")),
    }
}

fn literal(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

fn explain(error: &io::Error, address: &MeetingAddress) -> String {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => "another program, or another job, uses it: choose another one",
        ErrorKind::AddrNotAvailable => "no interface of this host has this address",
        ErrorKind::PermissionDenied => "ports below 1024 need a privilege: choose another one",
        _ => "a rank must be able to listen there",
    };
    format!("this rank cannot listen at {address} ({error}): {remedy}")
}

/// How long a rank that could listen looks a name up first.
const LOOK_UP: Duration = Duration::from_millis(500);

/// The longest attempt to connect to one address.
const ATTEMPT: Duration = Duration::from_secs(5);
