//! How two processes come to trust each other: four frames, driven from both ends without waiting.
//!
//! The dialler says `Hello`; the listener answers with its proof and a challenge; the dialler proves itself and
//! passes its inbox and bell; the listener, once its own caller has asked for this peer, passes its own.

use crate::address::Name;
use crate::bell::Bell;
use crate::frame::{Frame, Proof};
use crate::link::Link;
use crate::proof::{Role, Transcript};
use crate::ring::{Consumer, HEADER, Producer};
use crate::segment::{self, Refused, Words};
use crate::socket::{Descriptors, Incoming, Socket};
use crate::{MAX_RING, MIN_RING};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

/// What a process brings into every handshake.
pub(crate) struct Identity {
    pub(crate) name: Name,
    pub(crate) secret: Option<[u8; 32]>,
    pub(crate) bell: Bell,
    /// Bytes of an inbox.
    pub(crate) capacity: usize,
}

/// How far a handshake has come.
pub(crate) enum Step<T> {
    /// The other side has to say something.
    Wait,
    /// Done.
    Done(T),
    /// The line is dead; whoever dialled may try again later.
    Broken,
    /// The other side is not who it should be, or talks nonsense.
    Refused(&'static str),
    /// This process lacks the means.
    System(i32),
}

impl<T> Step<T> {
    fn after_sending(result: Result<(), Errno>) -> Self {
        match result {
            Ok(()) => Self::Wait,
            // The far side closed, or its queue is full with what we never sent: it is not worth waiting for.
            Err(_) => Self::Broken,
        }
    }
}

/// Why one dials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// To connect.
    Connect,
    /// To see whether the other is there and belongs to the job: it will dial itself.
    Probe,
}

/// The dialler's side.
pub(crate) struct Dial {
    purpose: Purpose,
    socket: Socket,
    transcript: Transcript,
    /// Where the peer will write, once we have passed it on.
    inbox: Option<Words>,
}

impl Dial {
    /// Calls `listener` and says hello.
    pub(crate) fn new(identity: &Identity, listener: Name, purpose: Purpose) -> Result<Self, Errno> {
        let socket = crate::socket::dial(listener)?;
        let challenge = random()?;
        socket.send(&Frame::Hello { from: identity.name, to: listener, challenge }, &[])?;
        let transcript = Transcript {
            dialler: identity.name,
            listener,
            dialler_challenge: challenge,
            listener_challenge: Proof::default(),
        };
        Ok(Self { purpose, socket, transcript, inbox: None })
    }

    pub(crate) fn advance(&mut self, identity: &Identity) -> Step<(Words, Producer<Words>, Bell)> {
        loop {
            let step = match self.socket.receive() {
                Incoming::Frame(Frame::Challenge { challenge, proof }, _) if self.inbox.is_none() => {
                    self.transcript.listener_challenge = challenge;
                    self.prove(identity, &proof)
                }
                Incoming::Frame(Frame::Welcome { capacity }, descriptors) => match self.inbox.take() {
                    Some(inbox) => match accept_means(capacity, descriptors) {
                        Ok((outgoing, bell)) => Step::Done((inbox, outgoing, bell)),
                        Err(reason) => Step::Refused(reason),
                    },
                    None => Step::Refused("a welcome before the proof"),
                },
                Incoming::Frame(Frame::Refused, _) => Step::Refused("it does not accept our proof"),
                Incoming::Frame(..) | Incoming::Malformed => Step::Refused("a malformed handshake"),
                Incoming::Nothing => return Step::Wait,
                Incoming::Ended(_) => Step::Broken,
            };
            if !matches!(step, Step::Wait) {
                return step;
            }
        }
    }

    fn prove<T>(&mut self, identity: &Identity, proof: &Proof) -> Step<T> {
        let secret = identity.secret.as_ref();
        if !self.transcript.verify(secret, Role::Listener, proof) {
            return Step::Refused("it does not know this job's secret");
        }
        if self.purpose == Purpose::Probe {
            // All is well, and this line has served.
            return Step::Broken;
        }
        let (segment, inbox) = match create_inbox(identity.capacity) {
            Ok(inbox) => inbox,
            Err(refused) => return Step::System(refused.code),
        };
        self.inbox = Some(inbox);
        let proof = self.transcript.prove(secret, Role::Dialler);
        let frame = Frame::Proof { proof, capacity: identity.capacity as u64 };
        Step::after_sending(self.socket.send(&frame, &[segment.as_fd(), identity.bell.as_fd()]))
    }

    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }
}

impl AsFd for Dial {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The listener's side.
pub(crate) struct Caller {
    socket: Socket,
    stage: Stage,
}

enum Stage {
    Stranger,
    Challenged(Transcript),
    Proven { name: Name, outgoing: Producer<Words>, bell: Bell },
    Over,
}

impl Caller {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, stage: Stage::Stranger }
    }

    /// The name that the caller has proven to belong to the job.
    pub(crate) fn proven(&self) -> Option<Name> {
        match self.stage {
            Stage::Proven { name, .. } => Some(name),
            _ => None,
        }
    }

    /// `Done` once the caller has proven itself.
    pub(crate) fn advance(&mut self, identity: &Identity) -> Step<()> {
        loop {
            let step = match (std::mem::replace(&mut self.stage, Stage::Over), self.socket.receive()) {
                (stage, Incoming::Nothing) => {
                    self.stage = stage;
                    return if self.proven().is_some() { Step::Done(()) } else { Step::Wait };
                }
                (_, Incoming::Ended(_)) => Step::Broken,
                (Stage::Stranger, Incoming::Frame(Frame::Hello { from, to, challenge }, _))
                    if to == identity.name && from != identity.name =>
                {
                    self.challenge(identity, from, challenge)
                }
                (
                    Stage::Challenged(transcript),
                    Incoming::Frame(Frame::Proof { proof, capacity }, descriptors),
                ) => self.judge(identity, &transcript, &proof, capacity, descriptors),
                _ => Step::Refused("a malformed handshake"),
            };
            if !matches!(step, Step::Wait) {
                return step;
            }
        }
    }

    fn challenge(&mut self, identity: &Identity, dialler: Name, dialler_challenge: Proof) -> Step<()> {
        let Ok(listener_challenge) = random() else { return Step::Broken };
        let transcript =
            Transcript { dialler, listener: identity.name, dialler_challenge, listener_challenge };
        let proof = transcript.prove(identity.secret.as_ref(), Role::Listener);
        self.stage = Stage::Challenged(transcript);
        Step::after_sending(self.socket.send(&Frame::Challenge { challenge: listener_challenge, proof }, &[]))
    }

    fn judge(
        &mut self,
        identity: &Identity,
        transcript: &Transcript,
        proof: &Proof,
        capacity: u64,
        descriptors: Descriptors,
    ) -> Step<()> {
        if !transcript.verify(identity.secret.as_ref(), Role::Dialler, proof) {
            // Best effort: it hears our closing in any case.
            let _ = self.socket.send(&Frame::Refused, &[]);
            return Step::Refused("it does not know this job's secret");
        }
        match accept_means(capacity, descriptors) {
            Ok((outgoing, bell)) => {
                self.stage = Stage::Proven { name: transcript.dialler, outgoing, bell };
                Step::Wait
            }
            Err(reason) => Step::Refused(reason),
        }
    }

    /// Welcomes a caller that has proven itself. `Err` holds the raw code; the caller may dial again.
    pub(crate) fn welcome(self, identity: &Identity) -> Result<Link, i32> {
        let Stage::Proven { name, outgoing, bell } = self.stage else { return Err(0) };
        let (segment, inbox) = create_inbox(identity.capacity).map_err(|refused| refused.code)?;
        let frame = Frame::Welcome { capacity: identity.capacity as u64 };
        self.socket.send(&frame, &[segment.as_fd(), identity.bell.as_fd()]).map_err(Errno::raw_os_error)?;
        Ok(Link::new(self.socket, name, Consumer::new(inbox), outgoing, bell))
    }
}

impl AsFd for Caller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn random() -> Result<Proof, Errno> {
    let mut bytes = Proof::default();
    getrandom::fill(&mut bytes).map_err(|_| Errno::NOSYS)?;
    Ok(bytes)
}

fn create_inbox(capacity: usize) -> Result<(rustix::fd::OwnedFd, Words), Refused> {
    let (segment, mapping) = segment::create("gradwire-inbox", segment_len(capacity))?;
    Ok((segment, Words::new(mapping)))
}

const fn segment_len(capacity: usize) -> usize {
    HEADER * size_of::<u64>() + capacity
}

/// Checks and maps what a peer passed: where we write to it, and its bell.
fn accept_means(capacity: u64, descriptors: Descriptors) -> Result<(Producer<Words>, Bell), &'static str> {
    let [Some(segment), Some(bell)] = descriptors else { return Err("a handshake without its descriptors") };
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    if !capacity.is_power_of_two() || !(MIN_RING..=MAX_RING).contains(&capacity) {
        return Err("an inbox of a size that is not allowed");
    }
    let mapping = segment::accept(&segment, segment_len(capacity))?;
    Ok((Producer::new(Words::new(mapping)), Bell::accept(bell)?))
}
