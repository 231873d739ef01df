mod agreement;
mod strangers;

use super::{Client, Host, Request, Rules};
use crate::config::MeetingAddress;
use crate::{Error, JobSecret, Rank, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough that only a hang reaches it.
const PLENTY: Duration = Duration::from_secs(60);

/// An address on the loopback network that nobody else uses: no other test, no other process, no connection
/// that the system picks a port for.
fn loopback() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [low, high, ..] = std::process::id().to_le_bytes();
    let ip = Ipv4Addr::new(127, high | 1, low, NEXT.fetch_add(1, Ordering::Relaxed));
    SocketAddr::new(ip.into(), 4711)
}

fn tcp() -> MeetingAddress {
    let address = loopback();
    MeetingAddress::Tcp { host: address.ip().to_string(), port: address.port() }
}

fn unix() -> MeetingAddress {
    MeetingAddress::Unix(format!("gradwire-test-{}-{}", std::process::id(), loopback()))
}

fn key(byte: u8) -> JobSecret {
    JobSecret::from_bytes([byte; 32])
}

fn host(address: &MeetingAddress, size: usize, key: Option<&JobSecret>) -> Host {
    Host::start(address, Rules { size, key: key.cloned(), repeats: false }).unwrap()
}

fn join(
    address: &MeetingAddress,
    rank: Rank,
    size: usize,
    key: Option<&JobSecret>,
    timeout: Duration,
) -> Result<Client> {
    Client::join(&Request { address, rank, size, key, is_hosted: false, deadline: Instant::now() + timeout })
}

/// Runs a job of `size` ranks, one thread each, and returns what each of them says, by rank.
fn job<T: Send>(size: usize, rank: impl Fn(Rank) -> T + Sync) -> Vec<T> {
    let rank = &rank;
    thread::scope(|scope| {
        let start = |r| {
            // Small stacks: hundreds of ranks run in one process.
            thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, move || rank(r)).unwrap()
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Bytes that differ per rank and round, in content and length.
fn contribution(rank: Rank, round: usize) -> Vec<u8> {
    (0..rank % 7 + round).map(|index| u8::try_from((31 * rank + 7 * round + index) % 251).unwrap()).collect()
}

#[track_caller]
fn reason<T: std::fmt::Debug>(outcome: &Result<T>) -> String {
    match outcome {
        Err(Error::Bootstrap(reason)) => reason.to_string(),
        other => panic!("{other:?} is no failed start"),
    }
}
