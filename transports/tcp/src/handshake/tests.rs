use super::*;
use proptest::prelude::*;

fn identity(id: u8, secret: Option<u8>) -> Identity {
    Identity::new(EndpointId([id; 16]), secret.map(|byte| [byte; 32]))
}

/// Moves output of `from` to `to`, `step` bytes at a time.
fn carry(
    from: &mut Handshake,
    to: &mut Handshake,
    to_id: &Identity,
    step: usize,
) -> Result<Progress, Refusal> {
    let mut last = Progress::Pending;
    while !from.output().is_empty() {
        let len = from.output().len().min(to.wanted()).min(step);
        assert!(len > 0, "bytes are left that the other side does not want");
        last = to.receive(&from.output()[..len], to_id)?;
        from.wrote(len);
    }
    Ok(last)
}

fn meet(dialler: &Identity, listener: &Identity, wanted: u8, step: usize) -> Result<(), Refusal> {
    let mut dial = Handshake::dial(dialler, EndpointId([wanted; 16]))?;
    let mut listen = Handshake::listen();
    assert_eq!(carry(&mut dial, &mut listen, listener, step)?, Progress::Pending);
    assert_eq!(carry(&mut listen, &mut dial, dialler, step)?, Progress::Pending);
    assert_eq!(carry(&mut dial, &mut listen, listener, step)?, Progress::Proven(dialler.id));
    assert!(listen.output().is_empty(), "no welcome before it is said");
    listen.welcome();
    assert_eq!(carry(&mut listen, &mut dial, dialler, step)?, Progress::Done);
    assert_eq!(carry(&mut dial, &mut listen, listener, step)?, Progress::Done);
    Ok(())
}

#[test]
fn friends_meet() {
    for secret in [None, Some(9)] {
        for step in [1, 7, 1000] {
            assert_eq!(meet(&identity(1, secret), &identity(2, secret), 2, step), Ok(()));
        }
    }
}

#[test]
fn others_do_not() {
    let (ours, theirs) = (identity(1, Some(9)), identity(2, Some(8)));
    assert_eq!(meet(&ours, &theirs, 2, 64), Err(Refusal::OtherSecret));
    assert_eq!(meet(&ours, &identity(2, None), 2, 64), Err(Refusal::SecretOnOneSide));
    assert_eq!(meet(&ours, &identity(3, Some(9)), 2, 64), Err(Refusal::OtherEndpoint));
    assert_eq!(meet(&ours, &identity(1, Some(9)), 1, 64), Err(Refusal::OtherEndpoint), "ourselves");
}

#[test]
fn a_dialler_without_the_secret_proves_nothing() {
    let listener = identity(2, Some(9));
    let mut dial = Handshake::dial(&identity(1, Some(8)), listener.id).expect("random numbers");
    let mut listen = Handshake::listen();
    carry(&mut dial, &mut listen, &listener, 64).expect("a well-formed hello");
    let guess = [Prelude::new(Kind::Proof, 0).as_bytes(), &[0x55; PROOF]].concat();
    assert_eq!(listen.receive(&guess[..PRELUDE], &listener), Ok(Progress::Pending));
    assert_eq!(listen.receive(&guess[PRELUDE..], &listener), Err(Refusal::OtherSecret));
}

#[test]
fn our_own_proof_cannot_be_reflected() {
    let dialler = identity(1, Some(9));
    let mut dial = Handshake::dial(&dialler, EndpointId([2; 16])).expect("random numbers");
    let mut echo = dial.output().to_vec();
    echo[9] = Kind::Challenge as u8;
    echo.extend([0; PROOF]);
    assert_eq!(dial.receive(&echo[..PRELUDE], &dialler), Ok(Progress::Pending));
    assert_eq!(dial.receive(&echo[PRELUDE..], &dialler), Err(Refusal::OtherEndpoint));
}

#[test]
fn the_reason_of_a_rejection_arrives() {
    let dialler = identity(1, Some(9));
    for refusal in Refusal::ALL.into_iter().filter(|refusal| *refusal != Refusal::OtherProtocol) {
        let mut dial = Handshake::dial(&dialler, EndpointId([2; 16])).expect("random numbers");
        let mut listen = Handshake::listen();
        listen.reject(refusal);
        assert_eq!(carry(&mut listen, &mut dial, &dialler, 64), Err(refusal));
    }
}

#[test]
fn another_protocol_is_told_by_its_first_byte() {
    for bytes in [&b"HTTP/1.1 400 Bad Request"[..], b"\x16\x03\x01", b"SSH-2.0", b"grad-wire", b"\0"] {
        let dialler = identity(1, None);
        let mut dial = Handshake::dial(&dialler, EndpointId([2; 16])).expect("random numbers");
        assert_eq!(dial.receive(bytes, &dialler), Err(Refusal::OtherProtocol));
        assert_eq!(Handshake::listen().receive(bytes, &dialler), Err(Refusal::OtherProtocol));
    }
}

proptest! {
    #[test]
    fn no_bytes_let_a_stranger_in(bytes in prop::collection::vec(any::<u8>(), 0..400), honest in 0usize..81) {
        let listener = identity(2, Some(9));
        let hello = Handshake::dial(&identity(1, Some(9)), listener.id).expect("random numbers");
        let bytes = [&hello.output()[..honest.min(OPENING)], &bytes].concat();
        let mut listen = Handshake::listen();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let len = rest.len().min(listen.wanted());
            let Ok(progress) = listen.receive(&rest[..len], &listener) else { break };
            prop_assert_eq!(progress, Progress::Pending);
            rest = &rest[len..];
        }
    }
}
