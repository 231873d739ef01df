//! The second half of the server: it passes the contributions of all ranks around, round by round.
#![forbid(unsafe_code)]

use super::Epoch;
use super::channel::Channel;
use super::frame::{Header, MAGIC, MAX_CONTRIBUTION, Welcome, failure, gathered};
use super::host::Server;
use super::lobby::WELCOME_PROOF;
use super::seats::{Occupant, before};
use crate::bootstrap::stream::wait_until;
use crate::error::Ranks;
use crate::secret::random;
use crate::{Rank, Result};
use rustix::event::{PollFd, PollFlags};
use std::io::{Error, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

/// How long the last answers may take to leave when the host has had enough, or the start has failed.
const LINGER: Duration = Duration::from_secs(1);

/// A rank that has been seated.
#[derive(Debug)]
pub(super) struct Member {
    /// None when it has gone.
    channel: Option<Channel>,
    server_nonce: [u8; 32],
    occupant: Occupant,
}

/// All ranks, and what they have contributed to the current round.
#[derive(Debug)]
pub(super) struct Rounds {
    members: Vec<Member>,
    round: u32,
    contributions: Vec<Option<Vec<u8>>>,
    deadline: Option<Instant>,
    /// Set when all was said: the time to leave.
    leave_by: Option<Instant>,
    has_failed: bool,
}

impl Rounds {
    /// Tells every rank that all are there, and what they have in common.
    pub(super) fn welcome(mut members: Vec<Member>, server: &Server) -> Result<Self> {
        let epoch: Epoch = random()?;
        let hands_out = server.hands_out_secret();
        let secret = if hands_out { random()? } else { [0; 32] };
        for member in &mut members {
            let nonces = [&member.occupant.nonce[..], &member.server_nonce];
            let proof = match &server.rules.key {
                Some(key) => key.proof(WELCOME_PROOF, &[nonces[0], nonces[1], &epoch]),
                None => [0; 32],
            };
            let welcome = Welcome { epoch, has_secret: hands_out.into(), reserved: [0; 7], secret, proof };
            let header = Header::new(Header::WELCOME, 0, 0, size_of::<Welcome>());
            member.send(Arc::from([header.as_bytes(), welcome.as_bytes()].concat()));
        }
        let contributions = vec![None; members.len()];
        Ok(Self { members, round: 0, contributions, deadline: None, leave_by: None, has_failed: false })
    }

    /// Goes on until all ranks have left, or `stop` becomes readable and the last answers have gone out.
    pub(super) fn run(mut self, stop: &impl AsFd) {
        let mut is_stopped = false;
        loop {
            let now = Instant::now();
            self.conclude(now);
            let mut present = self.members.iter().filter_map(|member| member.channel.as_ref()).peekable();
            let is_late = self.leave_by.is_some_and(|leave_by| leave_by <= now);
            if is_late || present.peek().is_none() || is_stopped && present.all(Channel::is_flushed) {
                return;
            }
            let Ok((stopped, ready)) = self.wait(stop, is_stopped) else { return };
            for rank in ready {
                self.serve(rank);
            }
            if stopped {
                is_stopped = true;
                self.leave_by.get_or_insert(now + LINGER);
            }
        }
    }

    /// Waits for the host's stop, ranks that are ready, or the time to do something.
    fn wait(&self, stop: &impl AsFd, is_stopped: bool) -> std::io::Result<(bool, Vec<Rank>)> {
        let present = self.members.iter().enumerate();
        let present: Vec<(Rank, &Channel)> =
            present.filter_map(|(rank, member)| Some((rank, member.channel.as_ref()?))).collect();
        let mut descriptors =
            vec![PollFd::new(stop, if is_stopped { PollFlags::empty() } else { PollFlags::IN })];
        descriptors.extend(present.iter().map(|(_, channel)| channel.interest()));
        wait_until(&mut descriptors, self.deadline.into_iter().chain(self.leave_by).min())?;
        let (stop, channels) = descriptors.split_at(1);
        let is_ready = |descriptor: &PollFd<'_>| !descriptor.revents().is_empty();
        let ready = present.iter().zip(channels).filter(|(_, descriptor)| is_ready(descriptor));
        Ok((stop.iter().any(is_ready), ready.map(|((rank, _), _)| *rank).collect()))
    }

    /// Does for one rank what can be done now.
    fn serve(&mut self, rank: Rank) {
        match self.members[rank].advance() {
            Ok(None) => {}
            // What comes after the end is read, so that closing does not cut off what was said.
            Ok(Some(_)) if self.has_failed => {}
            Ok(Some((header, bytes))) if self.accepts(rank, &header) => {
                let timeout = Duration::from_millis(header.timeout_ms.get().into());
                let deadline = Instant::now() + before(timeout);
                self.deadline = Some(self.deadline.map_or(deadline, |other| other.min(deadline)));
                self.contributions[rank] = Some(bytes);
            }
            Ok(Some(_)) => self.fail(&format!("{} broke the protocol of the start", self.name(rank))),
            Err(error) => {
                tracing::debug!("the connection of rank {rank} ended: {error}");
                self.members[rank].channel = None;
            }
        }
    }

    fn accepts(&self, rank: Rank, header: &Header) -> bool {
        header.round.get() == self.round && self.contributions[rank].is_none()
    }

    /// Ends the round if it is complete or cannot become so.
    fn conclude(&mut self, now: Instant) {
        if self.has_failed || self.contributions.iter().all(Option::is_none) {
            return;
        }
        let missing: Vec<Rank> =
            (0..self.members.len()).filter(|&rank| self.contributions[rank].is_none()).collect();
        if missing.is_empty() {
            let contributions: Vec<Vec<u8>> =
                self.contributions.iter_mut().filter_map(Option::take).collect();
            let message: Arc<[u8]> = Arc::from(gathered(self.round, &contributions));
            self.members.iter_mut().for_each(|member| member.send(message.clone()));
            self.round = self.round.wrapping_add(1);
            self.deadline = None;
        } else if let Some(&gone) = missing.iter().find(|&&rank| self.members[rank].channel.is_none()) {
            self.fail(&format!("{} ended during the start", self.name(gone)));
        } else if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.fail(&format!("{} did not take part in the start in time", Ranks(&missing)));
        }
    }

    fn fail(&mut self, reason: &str) {
        tracing::debug!("the start has failed: {reason}");
        let message: Arc<[u8]> = Arc::from(failure(reason));
        self.members.iter_mut().for_each(|member| member.send(message.clone()));
        self.has_failed = true;
        self.deadline = None;
        self.leave_by.get_or_insert(Instant::now() + LINGER);
    }

    fn name(&self, rank: Rank) -> String {
        format!("rank {rank} ({})", self.members[rank].occupant.who)
    }
}

impl Member {
    pub(super) fn new(channel: Channel, server_nonce: [u8; 32], occupant: Occupant) -> Self {
        Self { channel: Some(channel), server_nonce, occupant }
    }

    fn send(&mut self, message: Arc<[u8]>) {
        if let Some(channel) = &mut self.channel
            && channel.send(message).is_err()
        {
            self.channel = None;
        }
    }

    /// Sends and reads what can be: a contribution, when it is complete.
    fn advance(&mut self) -> std::io::Result<Option<(Header, Vec<u8>)>> {
        let Some(channel) = &mut self.channel else { return Ok(None) };
        channel.flush()?;
        let Some(bytes) = channel.receive(size_of::<Header>())? else { return Ok(None) };
        let malformed = || Error::new(ErrorKind::InvalidData, "a malformed message");
        let (header, _) = Header::read_from_prefix(bytes).map_err(|_| malformed())?;
        let len = usize::try_from(header.len.get()).map_err(|_| malformed())?;
        if header.magic != MAGIC || header.kind.get() != Header::CONTRIBUTION || len > MAX_CONTRIBUTION {
            return Err(malformed());
        }
        let Some(bytes) = channel.receive(size_of::<Header>() + len)? else { return Ok(None) };
        let contribution = bytes[size_of::<Header>()..].to_vec();
        channel.consume();
        Ok(Some((header, contribution)))
    }
}
