//! Callers that do not belong to the job.

use super::{Endpoint, PATIENCE, PEER, connect, drive};
use crate::ShmConfig;
use crate::address::Name;
use crate::frame::Frame;
use crate::socket::{self, Incoming, Socket};
use gradwire_transport::{Event, LossReason, Transport};
use rustix::fd::AsFd;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

fn call(endpoint: &Endpoint) -> Socket {
    socket::dial(Name::from_address(&endpoint.shm.address()).expect("ours")).expect("listening")
}

fn throw(socket: &Socket, bytes: &[u8]) {
    rustix::net::send(socket.as_fd(), bytes, rustix::net::SendFlags::NOSIGNAL).expect("room");
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

#[test]
fn those_who_do_not_know_the_secret_do_not_get_in() {
    for secrets in [[Some([1; 32]), Some([2; 32])], [Some([1; 32]), None], [None, Some([2; 32])]] {
        let [mut left, mut right] =
            secrets.map(|secret| Endpoint::new(ShmConfig { secret, ..ShmConfig::default() }));
        let addresses = [left.shm.address(), right.shm.address()];
        left.shm.connect(PEER, &addresses[1]).expect("the same host");
        right.shm.connect(PEER, &addresses[0]).expect("the same host");
        drive(&mut [&mut left, &mut right], |ends| ends.iter().any(|end| end.loss().is_some()));
        for endpoint in [&left, &right] {
            assert!(matches!(endpoint.loss(), None | Some(LossReason::Refused(_))), "{:?}", endpoint.loss());
            assert!(!endpoint.has(&Event::Connected(PEER)));
        }
    }
}

#[test]
fn silent_babbling_and_half_hearted_callers_do_not_keep_the_job_out() {
    let config = ShmConfig { half_open: 16, ..ShmConfig::default() };
    let (mut left, mut right) = (Endpoint::new(config.clone()), Endpoint::new(config));
    let hello = Frame::Hello {
        from: Name([1; 16]),
        to: Name::from_address(&left.shm.address()).expect("ours"),
        challenge: [2; 32],
    };
    let hello = hello.encode();
    let mut callers = Vec::new();
    for index in 0..60 {
        let caller = call(&left);
        match index % 4 {
            0 => {}
            1 => throw(&caller, &hello.as_bytes()[..index]),
            2 => throw(&caller, &[0xff; 200]),
            _ => throw(&caller, hello.as_bytes()),
        }
        callers.push(caller);
    }
    connect(&mut left, &mut right);
}

#[test]
fn callers_come_and_go_without_a_trace() {
    let mut endpoint = Endpoint::new(ShmConfig::default());
    let before = open_descriptors();
    for _ in 0..50 {
        for _ in 0..20 {
            drop(call(&endpoint));
        }
        endpoint.step();
    }
    let start = Instant::now();
    while open_descriptors() > before {
        assert!(start.elapsed() < PATIENCE);
        endpoint.step();
    }
    assert!(endpoint.events.is_empty());
}

#[test]
fn a_caller_that_does_not_prove_itself_in_time_is_dropped() {
    let mut endpoint =
        Endpoint::new(ShmConfig { handshake_timeout: Duration::from_millis(20), ..ShmConfig::default() });
    let caller = call(&endpoint);
    let start = Instant::now();
    while matches!(caller.receive(), Incoming::Nothing) {
        assert!(start.elapsed() < PATIENCE);
        endpoint.step();
    }
    assert!(matches!(caller.receive(), Incoming::Ended(_)));
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert_eq!(endpoint.shm.deadline(), None);
}
