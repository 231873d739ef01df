//! Those who do not belong to the job, at either end.

use super::*;
use crate::bootstrap::rendezvous::frame::{Challenge, Header, Join, MAGIC, VERSION};
use crate::bootstrap::rendezvous::lobby::MAX_HALF_OPEN;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

fn socket_address(address: &MeetingAddress) -> SocketAddr {
    let MeetingAddress::Tcp { host, port } = address else { panic!("{address}") };
    SocketAddr::new(host.parse().unwrap(), *port)
}

/// A program that listens where the ranks want to meet, and does this with each connection.
fn program(behave: fn(TcpStream)) -> MeetingAddress {
    let address = tcp();
    let listener = TcpListener::bind(socket_address(&address)).unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(behave));
    address
}

#[test]
fn strangers_at_the_door_do_not_keep_a_job_from_forming() {
    let address = tcp();
    let _host = host(&address, 3, Some(&key(1)));
    let knock = || TcpStream::connect(socket_address(&address)).unwrap();

    let silent: Vec<TcpStream> = (0..200).map(|_| knock()).collect();
    let hesitant: Vec<TcpStream> = (1..100)
        .map(|len| {
            let mut stream = knock();
            stream.write_all(&MAGIC.repeat(32)[..len]).unwrap();
            stream
        })
        .collect();
    for len in 0..256 {
        let mut stream = knock();
        // The other side may have had enough already.
        let _ = stream.write_all(&MAGIC.repeat(32)[..len]);
    }
    for _ in 0..20 {
        let _ = knock().write_all(&[b'x'; 256]);
    }
    job(3, |rank| join(&address, rank, 3, Some(&key(1)), PLENTY).unwrap());
    drop((silent, hesitant));
}

#[test]
fn the_oldest_of_too_many_strangers_leaves_for_the_next() {
    let address = tcp();
    let _host = host(&address, 2, None);
    let mut strangers: Vec<TcpStream> = Vec::new();
    for _ in 0..=MAX_HALF_OPEN {
        let mut stranger = TcpStream::connect(socket_address(&address)).unwrap();
        stranger.set_read_timeout(Some(PLENTY)).unwrap();
        stranger.read_exact(&mut [0; size_of::<Challenge>()]).unwrap();
        strangers.push(stranger);
    }
    // The last one has been greeted, so somebody has left, and nobody else has.
    let hear = |stranger: &mut TcpStream| {
        stranger.set_nonblocking(true).unwrap();
        stranger.read(&mut [0]).map_err(|error| error.kind())
    };
    assert_eq!(hear(&mut strangers[0]), Ok(0));
    assert_eq!(hear(&mut strangers[MAX_HALF_OPEN]), Err(ErrorKind::WouldBlock));
}

#[test]
fn a_stranger_who_claims_a_rank_without_the_secret_takes_no_seat() {
    let address = tcp();
    let _host = host(&address, 2, Some(&key(1)));
    let mut stranger = TcpStream::connect(socket_address(&address)).unwrap();
    let mut join_message = Join::new_zeroed();
    join_message.magic = MAGIC;
    join_message.version = VERSION.into();
    join_message.size = 2.into();
    join_message.timeout_ms = 1.into();
    stranger.write_all(join_message.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stranger.read_to_end(&mut answer).unwrap();
    let (_, answer) = Challenge::read_from_prefix(&answer).unwrap();
    let (header, reason) = Header::read_from_prefix(answer).unwrap();
    assert_eq!(header.kind.get(), Header::FAILURE);
    assert!(String::from_utf8_lossy(reason).contains("secret"));
    job(2, |rank| join(&address, rank, 2, Some(&key(1)), PLENTY).unwrap());
}

#[test]
fn a_member_that_breaks_the_protocol_ends_the_start_and_nothing_else() {
    for header in [
        Header::new(Header::CONTRIBUTION, 0, 1000, usize::MAX),
        Header::new(Header::CONTRIBUTION, 9, 1000, 0),
        Header::new(Header::GATHERED, 0, 1000, 0),
        Header::new_zeroed(),
    ] {
        let address = tcp();
        let _host = host(&address, 2, None);
        let outcomes = job(2, |rank| {
            if rank == 1 {
                let mut hostile = TcpStream::connect(socket_address(&address)).unwrap();
                let mut join_message = Join::new_zeroed();
                join_message.magic = MAGIC;
                join_message.version = VERSION.into();
                join_message.rank = 1.into();
                join_message.size = 2.into();
                join_message.timeout_ms = 60_000.into();
                hostile.write_all(join_message.as_bytes()).unwrap();
                hostile.read_exact(&mut [0; size_of::<Challenge>() + size_of::<Header>()]).unwrap();
                hostile.write_all(header.as_bytes()).unwrap();
                // Until the server has had enough.
                hostile.set_read_timeout(Some(PLENTY)).unwrap();
                let _ = hostile.read_to_end(&mut Vec::new());
                return Ok(Vec::new());
            }
            join(&address, 0, 2, None, PLENTY)?.all_gather(&[1], Instant::now() + PLENTY)
        });
        assert!(reason(&outcomes[0]).contains("rank 1 ("), "{header:?}: {outcomes:?}");
    }
}

#[test]
fn another_program_on_the_port_is_recognised() {
    let talker = program(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let noise = program(|mut stream| {
        let _ = stream.write_all(&[0xa5; 4096]);
    });
    for address in [talker, noise] {
        let outcome = join(&address, 1, 2, None, PLENTY);
        let reason = reason(&outcome);
        assert!(
            reason.contains("another program listens there") && reason.contains(&address.to_string()),
            "{reason}"
        );
    }
    let silent = program(std::mem::forget);
    let outcome = join(&silent, 1, 2, None, Duration::from_millis(300));
    assert!(reason(&outcome).contains("it says nothing"), "{outcome:?}");
    let closing = program(drop);
    let outcome = join(&closing, 1, 2, None, Duration::from_millis(300));
    assert!(reason(&outcome).contains("did not meet the others"), "{outcome:?}");
}

#[test]
fn another_job_on_the_port_is_recognised() {
    let address = tcp();
    let _other_job = host(&address, 2, Some(&key(9)));
    let outcome = join(&address, 1, 2, Some(&key(1)), PLENTY);
    assert!(reason(&outcome).contains("secret"), "{outcome:?}");
}

#[test]
fn rank_0_says_that_the_port_is_taken() {
    let address = program(drop);
    let outcome = Host::start(&address, Rules { size: 2, key: None, repeats: false });
    let reason = reason(&outcome);
    assert!(reason.contains(&address.to_string()) && reason.contains("another program"), "{reason}");
}

#[test]
fn rank_0_says_that_the_address_is_not_its_own() {
    let elsewhere = MeetingAddress::Tcp { host: "192.0.2.1".into(), port: 4000 };
    let outcome = Host::start(&elsewhere, Rules { size: 2, key: None, repeats: false });
    assert!(reason(&outcome).contains("no interface of this host has this address"), "{outcome:?}");
}

#[test]
fn an_answer_that_lies_about_its_length_is_refused() {
    let address = program(|mut stream| {
        let mut challenge = Challenge::new_zeroed();
        challenge.magic = MAGIC;
        challenge.version = VERSION.into();
        let lie = Header::new(Header::WELCOME, 0, 0, usize::MAX);
        let _ = stream.write_all(&[challenge.as_bytes(), lie.as_bytes()].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let outcome = join(&address, 1, 2, None, PLENTY);
    assert!(reason(&outcome).contains("malformed"), "{outcome:?}");
}

#[test]
fn a_server_without_the_secret_convinces_nobody() {
    let address = program(|mut stream| {
        let mut challenge = Challenge::new_zeroed();
        challenge.magic = MAGIC;
        challenge.version = VERSION.into();
        challenge.proof = 1;
        let header = Header::new(Header::WELCOME, 0, 0, 88);
        let _ = stream.write_all(&[challenge.as_bytes(), header.as_bytes(), &[0; 88]].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let outcome = join(&address, 1, 2, Some(&key(1)), PLENTY);
    assert!(reason(&outcome).contains("does not know the secret"), "{outcome:?}");
}

#[test]
fn a_server_of_another_version_is_named() {
    let address = program(|mut stream| {
        let mut challenge = Challenge::new_zeroed();
        challenge.magic = MAGIC;
        challenge.version = (VERSION + 1).into();
        let _ = stream.write_all(challenge.as_bytes());
    });
    let outcome = join(&address, 1, 2, None, PLENTY);
    assert!(reason(&outcome).contains(&format!("version {}", VERSION + 1)), "{outcome:?}");
}
