//! Who are you? Five messages of fixed length, before any frame.
//!
//! ```text
//! dialler                                  listener
//!   Hello   who I am, whom I want, nonce  ->
//!           <-  Challenge   who I am, nonce, proof over both
//!   Proof   over both                     ->
//!           <-  Welcome     once `connect` was called for the dialler
//!   Ready                                 ->
//! ```
//!
//! After Ready the listener, after Welcome the dialler counts the other as connected. A connection that breaks
//! before that is tried again, and nothing of it was seen by anyone.
//!
//! A proof is an HMAC-SHA256 of its maker's role and of both opening messages under the job's secret, so that
//! neither can be replayed or reflected. Without a secret the key is all zero: the messages are the same, and
//! nothing is proven but that the other side speaks this protocol. A message that cannot be right is refused
//! at its first wrong byte. No message has a length of the sender's choice.
//!
//! It guards the door, not the road: what follows is neither encrypted nor signed.

use crate::address::EndpointId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::ops::Range;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// This endpoint, as it introduces itself.
pub(crate) struct Identity {
    pub(crate) id: EndpointId,
    mac: Hmac<Sha256>,
    authenticated: bool,
}

impl Identity {
    pub(crate) fn new(id: EndpointId, secret: Option<[u8; 32]>) -> Self {
        // A key shorter than a block counts as if filled up with zeros.
        let mut key = [0; 64];
        key[..32].copy_from_slice(&secret.unwrap_or_default());
        let mac = Hmac::new(&key.into());
        Self { id, mac, authenticated: secret.is_some() }
    }

    fn proof(&self, role: Role, hello: &Opening, challenge: &Opening) -> Hmac<Sha256> {
        let mac = self.mac.clone();
        mac.chain_update(role.label()).chain_update(hello.as_bytes()).chain_update(challenge.as_bytes())
    }

    fn opening(&self, kind: Kind, to: EndpointId) -> Result<Opening, Refusal> {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).map_err(|_| Refusal::NoRandomness)?;
        Ok(Opening { prelude: Prelude::new(kind, self.authenticated.into()), from: self.id, to, nonce })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("id", &self.id)
            .field("authenticated", &self.authenticated)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Dialler,
    Listener,
}

impl Role {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Dialler => b"gradwire tcp dialler",
            Self::Listener => b"gradwire tcp listener",
        }
    }
}

/// Why a handshake ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Refusal {
    OtherProtocol = 1,
    OtherVersion,
    OtherEndpoint,
    OtherSecret,
    SecretOnOneSide,
    OutOfTurn,
    NoRandomness,
}

impl Refusal {
    const ALL: [Self; 7] = [
        Self::OtherProtocol,
        Self::OtherVersion,
        Self::OtherEndpoint,
        Self::OtherSecret,
        Self::SecretOnOneSide,
        Self::OutOfTurn,
        Self::NoRandomness,
    ];

    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::OtherProtocol => "what listens at its address speaks another protocol",
            Self::OtherVersion => "it speaks another version of the protocol",
            Self::OtherEndpoint => "another endpoint listens at its address",
            Self::OtherSecret => "it has another job secret",
            Self::SecretOnOneSide => "only one of the two has a job secret",
            Self::OutOfTurn => "it sent a message out of turn",
            Self::NoRandomness => "the system gave no random numbers",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Hello = 1,
    Challenge,
    Proof,
    Welcome,
    Ready,
    Reject,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Prelude {
    magic: [u8; 8],
    version: u8,
    kind: u8,
    /// Hello and Challenge: whether there is a secret. Reject: the reason.
    detail: u8,
    zero: [u8; 5],
}

impl Prelude {
    const MAGIC: [u8; 8] = *b"gradwire";
    const VERSION: u8 = 1;

    const fn new(kind: Kind, detail: u8) -> Self {
        Self { magic: Self::MAGIC, version: Self::VERSION, kind: kind as u8, detail, zero: [0; 5] }
    }
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Opening {
    prelude: Prelude,
    from: EndpointId,
    to: EndpointId,
    nonce: [u8; 32],
}

const PRELUDE: usize = size_of::<Prelude>();
const OPENING: usize = size_of::<Opening>();
const PROOF: usize = 32;

/// Where a handshake stands.
#[derive(Clone, Copy)]
enum State {
    /// The listener awaits a Hello.
    Listening,
    /// The dialler awaits a Challenge.
    Helloed { hello: Opening },
    /// The listener awaits a Proof.
    Challenged { hello: Opening, challenge: Opening },
    /// The listener knows whom it talks to, and is to say Welcome.
    Proven,
    /// The dialler awaits a Welcome.
    Proved,
    /// The listener awaits a Ready.
    Welcomed,
    /// Frames follow.
    Done,
}

/// What the bytes received so far have led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    Pending,
    /// Listener only: the other side is this endpoint, and waits for [`Handshake::welcome`].
    Proven(EndpointId),
    /// Dialler: the other side welcomed us; the last output is still to be written. Listener: it is ready.
    Done,
}

/// One side of one handshake, without I/O: read at most [`wanted`](Self::wanted) bytes and hand them to
/// [`receive`](Self::receive); write [`output`](Self::output).
pub(crate) struct Handshake {
    state: State,
    received: [u8; Self::LONGEST],
    filled: usize,
    output: [u8; Self::LONGEST],
    /// The part of `output` not written yet.
    unwritten: Range<usize>,
}

impl Handshake {
    fn new(state: State) -> Self {
        let empty = [0; Self::LONGEST];
        Self { state, received: empty, filled: 0, output: empty, unwritten: 0..0 }
    }

    /// The most bytes one message has.
    pub(crate) const LONGEST: usize = OPENING + PROOF;

    pub(crate) fn dial(identity: &Identity, peer: EndpointId) -> Result<Self, Refusal> {
        let hello = identity.opening(Kind::Hello, peer)?;
        let mut this = Self::new(State::Helloed { hello });
        this.say(&[hello.as_bytes()]);
        Ok(this)
    }

    pub(crate) fn listen() -> Self {
        Self::new(State::Listening)
    }

    /// How many more bytes belong to the message under way. What follows the last message is not ours to read.
    pub(crate) fn wanted(&self) -> usize {
        let whole = match self.state {
            _ if self.filled < PRELUDE => PRELUDE,
            State::Listening => OPENING,
            State::Helloed { .. } => OPENING + PROOF,
            State::Challenged { .. } => PRELUDE + PROOF,
            State::Proved | State::Proven | State::Welcomed | State::Done => PRELUDE,
        };
        whole - self.filled
    }

    /// Takes at most [`wanted`](Self::wanted) bytes.
    pub(crate) fn receive(&mut self, bytes: &[u8], identity: &Identity) -> Result<Progress, Refusal> {
        let bytes = &bytes[..bytes.len().min(self.wanted())];
        self.received[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
        self.check_prelude()?;
        if self.filled < PRELUDE || self.wanted() > 0 {
            return Ok(Progress::Pending);
        }
        let message = self.received;
        self.filled = 0;
        self.understand(&message, identity)
    }

    /// The listener lets a proven dialler in.
    pub(crate) fn welcome(&mut self) {
        if matches!(self.state, State::Proven) {
            self.state = State::Welcomed;
            self.say(&[Prelude::new(Kind::Welcome, 0).as_bytes()]);
        }
    }

    /// The listener turns a dialler away, if that one speaks the protocol at all.
    pub(crate) fn reject(&mut self, refusal: Refusal) {
        if refusal != Refusal::OtherProtocol && self.unwritten.is_empty() {
            self.say(&[Prelude::new(Kind::Reject, refusal as u8).as_bytes()]);
        }
    }

    /// Dialler only: whether the other side has proven itself and all that is missing is its welcome.
    pub(crate) fn awaits_welcome(&self) -> bool {
        matches!(self.state, State::Proved)
    }

    /// Listener only: who the other side says it is, proven or not.
    pub(crate) fn claimed(&self) -> Option<EndpointId> {
        match self.state {
            State::Challenged { hello, .. } => Some(hello.from),
            _ => None,
        }
    }

    pub(crate) fn output(&self) -> &[u8] {
        &self.output[self.unwritten.clone()]
    }

    pub(crate) fn wrote(&mut self, len: usize) {
        self.unwritten.start = (self.unwritten.start + len).min(self.unwritten.end);
    }

    /// Refuses at the first byte that cannot be right.
    fn check_prelude(&self) -> Result<(), Refusal> {
        let known = self.filled.min(Prelude::MAGIC.len());
        if self.received[..known] != Prelude::MAGIC[..known] {
            return Err(Refusal::OtherProtocol);
        }
        if self.filled < PRELUDE {
            return Ok(());
        }
        let (prelude, _) = Prelude::ref_from_prefix(&self.received).map_err(|_| Refusal::OtherProtocol)?;
        if prelude.version != Prelude::VERSION {
            return Err(Refusal::OtherVersion);
        }
        let dialler = matches!(self.state, State::Helloed { .. } | State::Proved);
        if dialler && prelude.kind == Kind::Reject as u8 {
            let told = Refusal::ALL.into_iter().find(|refusal| *refusal as u8 == prelude.detail);
            return Err(told.unwrap_or(Refusal::OtherProtocol));
        }
        let awaited = match self.state {
            State::Listening => Kind::Hello,
            State::Helloed { .. } => Kind::Challenge,
            State::Challenged { .. } => Kind::Proof,
            State::Proved => Kind::Welcome,
            State::Welcomed => Kind::Ready,
            State::Proven | State::Done => return Err(Refusal::OutOfTurn),
        };
        if prelude.kind != awaited as u8 || prelude.zero != [0; 5] {
            return Err(Refusal::OutOfTurn);
        }
        Ok(())
    }

    /// Answers a complete message of the awaited kind.
    fn understand(&mut self, message: &[u8], identity: &Identity) -> Result<Progress, Refusal> {
        match self.state {
            State::Listening => {
                let (hello, _) = Opening::read_from_prefix(message).map_err(|_| Refusal::OutOfTurn)?;
                check_opening(&hello, identity, None)?;
                let challenge = identity.opening(Kind::Challenge, hello.from)?;
                let proof = identity.proof(Role::Listener, &hello, &challenge).finalize().into_bytes();
                self.say(&[challenge.as_bytes(), &proof]);
                self.state = State::Challenged { hello, challenge };
            }
            State::Helloed { hello } => {
                let (challenge, rest) = Opening::read_from_prefix(message).map_err(|_| Refusal::OutOfTurn)?;
                check_opening(&challenge, identity, Some(hello.to))?;
                let proof = identity.proof(Role::Listener, &hello, &challenge);
                proof.verify_slice(&rest[..PROOF]).map_err(|_| Refusal::OtherSecret)?;
                let proof = identity.proof(Role::Dialler, &hello, &challenge).finalize().into_bytes();
                self.say(&[Prelude::new(Kind::Proof, 0).as_bytes(), &proof]);
                self.state = State::Proved;
            }
            State::Challenged { hello, challenge } => {
                let proof = identity.proof(Role::Dialler, &hello, &challenge);
                proof.verify_slice(&message[PRELUDE..PRELUDE + PROOF]).map_err(|_| Refusal::OtherSecret)?;
                self.state = State::Proven;
                return Ok(Progress::Proven(hello.from));
            }
            State::Proved => {
                self.say(&[Prelude::new(Kind::Ready, 0).as_bytes()]);
                self.state = State::Done;
                return Ok(Progress::Done);
            }
            State::Welcomed => {
                self.state = State::Done;
                return Ok(Progress::Done);
            }
            State::Proven | State::Done => return Err(Refusal::OutOfTurn),
        }
        Ok(Progress::Pending)
    }

    fn say(&mut self, parts: &[&[u8]]) {
        self.unwritten = 0..0;
        for part in parts {
            let end = self.unwritten.end + part.len();
            self.output[self.unwritten.end..end].copy_from_slice(part);
            self.unwritten.end = end;
        }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Listening => "Listening",
            State::Helloed { .. } => "Helloed",
            State::Challenged { .. } => "Challenged",
            State::Proven => "Proven",
            State::Proved => "Proved",
            State::Welcomed => "Welcomed",
            State::Done => "Done",
        };
        f.debug_struct("Handshake").field("state", &state).finish_non_exhaustive()
    }
}

/// Whether an opening message is for us and, where that is known, from whom it should be.
fn check_opening(opening: &Opening, identity: &Identity, from: Option<EndpointId>) -> Result<(), Refusal> {
    let stranger = from.is_some_and(|from| from != opening.from);
    if opening.to != identity.id || opening.from == identity.id || stranger {
        return Err(Refusal::OtherEndpoint);
    }
    if opening.prelude.detail != u8::from(identity.authenticated) {
        return Err(Refusal::SecretOnOneSide);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
