//! A rank's side of the rendezvous.
#![forbid(unsafe_code)]

use super::endpoint::reach;
use super::frame::{self, Challenge, Header, Join, MAGIC, MAX_CONTRIBUTION, MAX_REASON, VERSION, Welcome};
use super::lobby::{JOIN_PROOF, WELCOME_PROOF};
use super::{Epoch, incarnation};
use crate::bootstrap::stream::Stream;
use crate::config::MeetingAddress;
use crate::secret::random;
use crate::{Error, JobSecret, Rank, Result};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Whom to meet, and as whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) address: &'a MeetingAddress,
    pub(crate) rank: Rank,
    pub(crate) size: usize,
    /// The secret all incarnations of the job share, where there is one.
    pub(crate) key: Option<&'a JobSecret>,
    /// Whether the server was there before this process: then a refused connection is final.
    pub(crate) is_hosted: bool,
    pub(crate) deadline: Instant,
}

/// A rank that has met the others.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Stream,
    rank: Rank,
    size: usize,
    round: u32,
    epoch: Epoch,
    secret: Option<JobSecret>,
}

/// Why an attempt to join failed.
enum Failure {
    /// It may succeed later: nobody listens yet, a connection was reset.
    Passing(String),
    /// What listens there speaks something else.
    Stranger(String),
    /// It will not.
    Final(Error),
}

impl Client {
    #[cfg(test)]
    pub(crate) fn join(request: &Request<'_>) -> Result<Self> {
        Self::join_or(request, &mut || ())
    }

    /// Joins, trying again until the deadline, and waits until all ranks have. Calls `nobody_there` once when there has been nobody
    /// for a while.
    pub(crate) fn join_or(request: &Request<'_>, nobody_there: &mut dyn FnMut()) -> Result<Self> {
        let start = Instant::now();
        let instance = random()?;
        let mut pause = Duration::from_millis(5);
        let (mut attempts, mut strangers, mut has_told) = (0, 0, false);
        loop {
            attempts += 1;
            let reason = match attempt(request, instance) {
                Ok(client) => return Ok(client),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Stranger(reason)) => {
                    strangers += 1;
                    reason
                }
                Err(Failure::Passing(reason)) => reason,
            };
            tracing::debug!("attempt {attempts} to reach {}: {reason}", request.address);
            // Between half and all of the pause, so that many ranks do not come back at the same moment.
            let [jitter]: [u8; 1] = random()?;
            let wait = pause.mul_f64(0.5 + f64::from(jitter) / 512.0);
            if strangers >= MAX_STRANGERS || Instant::now() + wait >= request.deadline {
                return Err(request.unreachable(start.elapsed(), attempts, &reason));
            }
            std::thread::sleep(wait);
            if !has_told && strangers == 0 && start.elapsed() >= PUNCTUAL {
                has_told = true;
                nobody_there();
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Whether a rendezvous listens there.
    pub(crate) fn answers(address: &MeetingAddress, deadline: Instant) -> bool {
        reach(address, deadline).is_ok_and(|stream| greeting(&stream, deadline).is_ok())
    }

    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The incarnation all ranks have in common.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The secret of this incarnation, where there is one.
    pub(crate) fn secret(&self) -> Option<&JobSecret> {
        self.secret.as_ref()
    }

    /// Gives `bytes` to all ranks, and takes theirs.
    pub(crate) fn all_gather(&mut self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        if bytes.len() > MAX_CONTRIBUTION {
            let len = bytes.len();
            return Err(misuse(&format!(
                "{len} bytes are more than a start can exchange ({MAX_CONTRIBUTION})"
            )));
        }
        let header = Header::new(Header::CONTRIBUTION, self.round, milliseconds_until(deadline), bytes.len());
        let message = [header.as_bytes(), bytes].concat();
        // A server that has ended the start has said why before it closed.
        let sent = self.stream.write_all(&message, deadline);
        let max = frame::max_gathered(self.size);
        let (header, body) = receive(&self.stream, max, deadline).map_err(|error| match (sent, error) {
            (_, Failure::Final(error)) => error,
            (Err(error), _) => bootstrap(&format!("the rendezvous was lost: {error}")),
            (Ok(()), Failure::Passing(reason) | Failure::Stranger(reason)) => {
                bootstrap(&format!("the rendezvous was lost: {reason}"))
            }
        })?;
        let expected = header.kind.get() == Header::GATHERED && header.round.get() == self.round;
        self.round = self.round.wrapping_add(1);
        let contributions = frame::scattered(&body, self.size).filter(|_| expected);
        contributions
            .ok_or_else(|| bootstrap("the rendezvous answered with something else than it was asked"))
    }
}

/// One attempt, from the connection to the welcome.
fn attempt(request: &Request<'_>, instance: [u8; 16]) -> Result<Client, Failure> {
    let stream = reach(request.address, request.deadline).map_err(|reason| {
        if request.is_hosted {
            Failure::Final(bootstrap(&format!("{LAUNCHER_IS_GONE}: {reason}")))
        } else {
            Failure::Passing(reason)
        }
    })?;
    let challenge = greeting(&stream, request.deadline)?;
    if challenge.version.get() != VERSION {
        let theirs = challenge.version.get();
        let reason = format!("the rendezvous speaks version {theirs}, this process version {VERSION}");
        return Err(Failure::Final(bootstrap(&reason)));
    }
    let nonce: [u8; 32] = random().map_err(Failure::Final)?;
    let mut join = request.join(instance, nonce);
    match (challenge.proof, request.key) {
        (0, None) => {}
        (0, Some(_)) => return Err(Failure::Final(bootstrap(ONLY_HERE))),
        (_, None) => return Err(Failure::Final(bootstrap(ONLY_THERE))),
        (_, Some(key)) => join.proof = key.proof(JOIN_PROOF, &[&challenge.nonce, join.proven()]),
    }
    stream.write_all(join.as_bytes(), request.deadline).map_err(passing)?;
    let (header, body) = receive(&stream, size_of::<Welcome>(), request.deadline)?;
    let welcome = Welcome::read_from_bytes(&body).ok().filter(|_| header.kind.get() == Header::WELCOME);
    let welcome =
        welcome.ok_or_else(|| Failure::Stranger("it answered something else than a welcome".into()))?;
    let secret = match request.key {
        Some(key) => {
            if !key.proves(&welcome.proof, WELCOME_PROOF, &[&nonce, &challenge.nonce, &welcome.epoch]) {
                return Err(Failure::Stranger("it does not know the secret of the job".into()));
            }
            Some(incarnation(key, &welcome.epoch))
        }
        None => (welcome.has_secret == 1).then(|| JobSecret::from_bytes(welcome.secret)),
    };
    Ok(Client { stream, rank: request.rank, size: request.size, round: 0, epoch: welcome.epoch, secret })
}

impl Request<'_> {
    fn join(&self, instance: [u8; 16], nonce: [u8; 32]) -> Join {
        let mut join = Join::new_zeroed();
        let who = who();
        let who = &who.as_bytes()[..who.floor_char_boundary(join.who.len())];
        join.magic = MAGIC;
        join.version = VERSION.into();
        join.who[..who.len()].copy_from_slice(who);
        join.who_len = u16::try_from(who.len()).unwrap_or_default().into();
        join.rank = u32::try_from(self.rank).unwrap_or(u32::MAX).into();
        join.size = u32::try_from(self.size).unwrap_or(u32::MAX).into();
        join.timeout_ms = milliseconds_until(self.deadline).into();
        join.instance = instance;
        join.nonce = nonce;
        join
    }

    fn unreachable(&self, waited: Duration, attempts: usize, reason: &str) -> Error {
        let Self { address, rank, size, .. } = self;
        let waited = waited.as_secs_f32();
        bootstrap(&format!(
            "rank {rank} of {size} did not meet the others at {address} in {waited:.1} s and {attempts} attempts: {reason}"
        ))
    }
}

/// Reads the first words of the server; what begins otherwise is a stranger.
fn greeting(stream: &Stream, deadline: Instant) -> Result<Challenge, Failure> {
    let deadline = deadline.min(Instant::now() + GREETING);
    let mut bytes = [0; size_of::<Challenge>()];
    let (magic, rest) = bytes.split_at_mut(MAGIC.len());
    stream.read_exact(magic, deadline).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => Failure::Passing("something listens there, but it says nothing".into()),
        _ => passing(error),
    })?;
    if *magic != MAGIC {
        let words = frame::printable(magic);
        return Err(Failure::Stranger(format!(
            "another program listens there: its first words are {words:?}"
        )));
    }
    stream.read_exact(rest, deadline).map_err(passing)?;
    Challenge::read_from_bytes(&bytes).map_err(|_| Failure::Stranger("its greeting is malformed".into()))
}

/// Reads a message with at most `max` bytes behind its header. A failure is final.
fn receive(stream: &Stream, max: usize, deadline: Instant) -> Result<(Header, Vec<u8>), Failure> {
    let mut header = Header::new_zeroed();
    stream.read_exact(header.as_mut_bytes(), deadline).map_err(passing)?;
    let is_failure = header.kind.get() == Header::FAILURE;
    let len = usize::try_from(header.len.get()).unwrap_or(usize::MAX);
    if header.magic != MAGIC || len > if is_failure { MAX_REASON } else { max } {
        return Err(Failure::Stranger("its answer is malformed".into()));
    }
    let mut body = Vec::new();
    while body.len() < len {
        // Memory follows what has arrived.
        let start = body.len();
        body.resize(len.min(start + 64 * 1024), 0);
        stream.read_exact(&mut body[start..], deadline).map_err(passing)?;
    }
    if is_failure {
        return Err(Failure::Final(bootstrap(&frame::printable(&body))));
    }
    Ok((header, body))
}

fn passing(error: std::io::Error) -> Failure {
    Failure::Passing(match error.kind() {
        ErrorKind::TimedOut => "the other ranks did not come in time".into(),
        ErrorKind::UnexpectedEof => "the connection was closed".into(),
        _ => error.to_string(),
    })
}

/// Host and process number, for messages.
fn who() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}, process {}", std::process::id())
}

fn milliseconds_until(deadline: Instant) -> u32 {
    u32::try_from(deadline.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(u32::MAX)
}

fn bootstrap(reason: &str) -> Error {
    Error::Bootstrap(Arc::from(reason))
}

fn misuse(reason: &str) -> Error {
    Error::Misuse(Arc::from(reason))
}

/// Rank 0 listens by then, where it is on the host that has the address, and does nothing else before.
const PUNCTUAL: Duration = Duration::from_secs(1);

/// How long a server may take for its first words, in one attempt.
const GREETING: Duration = Duration::from_secs(5);
/// After this many answers of something else nothing better is to be expected.
const MAX_STRANGERS: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

const LAUNCHER_IS_GONE: &str = "the launcher that started this process has ended, or this process runs in another network namespace (a \
     container) than its launcher";
const ONLY_HERE: &str = "this process has a secret (GRADWIRE_SECRET_FILE), but the rendezvous has none: it must be set for all ranks";
const ONLY_THERE: &str = "the rendezvous asks for the secret of the job, but this process has none: set GRADWIRE_SECRET_FILE for all ranks";
