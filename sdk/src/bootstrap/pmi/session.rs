//! A conversation with the process manager: a question, an answer, each one line.
#![forbid(unsafe_code)]

use super::message::{Message, from_hex, to_hex};
use super::{Wire, bootstrap, fd};
use crate::bootstrap::rendezvous::reach;
use crate::bootstrap::stream::Stream;
use crate::{Rank, Result};
use std::io::ErrorKind;
use std::time::Instant;

/// The most bytes a rank may contribute, as at the rendezvous.
const MAX_CONTRIBUTION: usize = 64 * 1024;
/// The longest line that is read.
const MAX_LINE: usize = 64 * 1024;
/// The longest line that every process manager reads.
const SAFE_LINE: usize = 1000;

/// An open conversation.
#[derive(Debug)]
pub(super) struct Session {
    stream: Stream,
    unread: Vec<u8>,
    rank: Rank,
    size: usize,
    space: String,
    max_key: usize,
    max_value: usize,
    round: usize,
}

impl Session {
    /// Connects and introduces this process.
    pub(super) fn open(wire: &Wire, deadline: Instant) -> Result<Self> {
        match wire {
            Wire::Descriptor { number, rank, size } => {
                let socket = fd::duplicate(*number).map_err(|reason| {
                    bootstrap(format!(
                        "PMI_FD={number} cannot be used: {reason}; is it left over from another program?"
                    ))
                })?;
                Self::new(Stream::new(socket), *rank, *size).start(deadline)
            }
            Wire::Port { address, id } => {
                let stream = reach(address, deadline)
                    .map_err(|reason| bootstrap(format!("PMI_PORT={address} cannot be reached: {reason}")))?;
                Self::new(stream, 0, 0).identify(id, deadline)?.start(deadline)
            }
        }
    }

    pub(super) fn new(stream: Stream, rank: Rank, size: usize) -> Self {
        let (space, max_key, max_value) = (String::new(), 0, 0);
        Self { stream, unread: Vec::new(), rank, size, space, max_key, max_value, round: 0 }
    }

    /// Shows who we are to a server that knows more about it.
    fn identify(mut self, id: &str, deadline: Instant) -> Result<Self> {
        self.ask(&format!("cmd=initack pmiid={id}"), "initack", deadline)?;
        let (mut rank, mut size) = (None, None);
        while rank.is_none() || size.is_none() {
            let message = self.hear("set", deadline)?;
            rank = rank.or(message.number("rank"));
            size = size.or(message.number("size"));
        }
        (self.rank, self.size) = (rank.unwrap_or_default(), size.unwrap_or_default());
        if self.rank >= self.size || self.size > crate::config::MAX_RANKS {
            return Err(bootstrap(format!("the process manager says: rank {} of {}", self.rank, self.size)));
        }
        Ok(self)
    }

    pub(super) fn start(mut self, deadline: Instant) -> Result<Self> {
        self.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline)?;
        let maxes = self.ask("cmd=get_maxes", "maxes", deadline)?;
        self.max_key = maxes.number("keylen_max").unwrap_or(64);
        self.max_value = maxes.number("vallen_max").unwrap_or(256);
        let space = self.ask("cmd=get_my_kvsname", "my_kvsname", deadline)?;
        self.space = space.value("kvsname").unwrap_or_default().to_owned();
        Ok(self)
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Puts `bytes` where all ranks can get them, and gets theirs.
    pub(super) fn all_gather(&mut self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        if bytes.len() > MAX_CONTRIBUTION {
            let len = bytes.len();
            return Err(bootstrap(format!(
                "{len} bytes are more than a start can exchange ({MAX_CONTRIBUTION})"
            )));
        }
        let text = to_hex(bytes);
        let piece_len = self.piece_len()?;
        let mut pieces: Vec<&str> =
            text.as_bytes().chunks(piece_len).filter_map(|piece| str::from_utf8(piece).ok()).collect();
        if pieces.is_empty() {
            pieces.push("");
        }
        for (index, piece) in pieces.iter().enumerate() {
            let (space, key) = (&self.space, self.key(self.rank, index));
            let more = if index + 1 < pieces.len() { '+' } else { '.' };
            self.ask(
                &format!("cmd=put kvsname={space} key={key} value={more}{piece}"),
                "put_result",
                deadline,
            )?;
        }
        self.barrier(deadline)?;
        let contributions = (0..self.size).map(|rank| self.get(rank, deadline)).collect::<Result<_>>()?;
        self.round += 1;
        Ok(contributions)
    }

    /// Gets all pieces of a rank's contribution: those before the last begin with `+`, the last with `.`.
    fn get(&mut self, rank: Rank, deadline: Instant) -> Result<Vec<u8>> {
        let mut text = String::new();
        for index in 0.. {
            let (space, key) = (&self.space, self.key(rank, index));
            let answer = self.ask(&format!("cmd=get kvsname={space} key={key}"), "get_result", deadline)?;
            let value = answer.value("value").unwrap_or_default();
            text += value.get(1..).unwrap_or_default();
            match value.as_bytes().first() {
                Some(b'+') if text.len() < 2 * MAX_CONTRIBUTION => {}
                Some(b'.') => break,
                _ => {
                    return Err(bootstrap(format!(
                        "rank {rank} has put something else than {value:?} promises"
                    )));
                }
            }
        }
        from_hex(&text)
            .ok_or_else(|| bootstrap(format!("rank {rank} has put something that is not hexadecimal")))
    }

    /// Unique within the job: a key can be put once.
    fn key(&self, rank: Rank, index: usize) -> String {
        format!("gradwire-{}-{rank}-{index}", self.round)
    }

    /// How many digits go into one value.
    fn piece_len(&self) -> Result<usize> {
        let key = self.key(usize::MAX >> 32, usize::MAX >> 32);
        let line = format!("cmd=put kvsname={} key={key} value=+\n", self.space).len();
        let room = SAFE_LINE.saturating_sub(line).min(self.max_value.saturating_sub(2));
        if key.len() >= self.max_key || room < 16 {
            let (key, value) = (self.max_key, self.max_value);
            return Err(bootstrap(format!(
                "the process manager takes keys of {key} and values of {value} bytes: too few"
            )));
        }
        Ok(room)
    }

    pub(super) fn barrier(&mut self, deadline: Instant) -> Result<()> {
        self.ask("cmd=barrier_in", "barrier_out", deadline).map(drop)
    }

    pub(super) fn finalize(&mut self, deadline: Instant) -> Result<()> {
        self.ask("cmd=finalize", "finalize_ack", deadline).map(drop)
    }

    /// Says one line and hears the answer to it.
    fn ask(&mut self, question: &str, answer: &str, deadline: Instant) -> Result<Message> {
        let line = format!("{question}\n");
        self.stream.write_all(line.as_bytes(), deadline).map_err(|error| lost(&error, question))?;
        self.hear(answer, deadline)
    }

    /// Hears one answer. Settings that the process manager mentions unasked, such as `debug`, are passed over.
    fn hear(&mut self, expected: &str, deadline: Instant) -> Result<Message> {
        let (line, message) = loop {
            let line = self.line(deadline).map_err(|error| lost(&error, expected))?;
            let message = Message::parse(&line);
            if expected == "set" || message.value("cmd") != Some("set") {
                break (line, message);
            }
        };
        if let Some(failure) = message.failure() {
            return Err(bootstrap(format!(
                "the process manager refused ({failure}) when asked for {expected}"
            )));
        }
        if message.value("cmd") != Some(expected) {
            return Err(bootstrap(format!("the process manager said {line:?} when asked for {expected}")));
        }
        Ok(message)
    }

    fn line(&mut self, deadline: Instant) -> std::io::Result<String> {
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
            }
            if self.unread.len() > MAX_LINE {
                return Err(std::io::Error::new(ErrorKind::InvalidData, "its line does not end"));
            }
            let mut piece = [0; 4096];
            let count = self.stream.read_some(&mut piece, deadline)?;
            self.unread.extend_from_slice(&piece[..count]);
        }
    }
}

fn lost(error: &std::io::Error, context: &str) -> crate::Error {
    match error.kind() {
        ErrorKind::TimedOut => bootstrap(format!(
            "the process manager did not answer in time ({context}): other ranks may not have started"
        )),
        ErrorKind::UnexpectedEof => bootstrap(format!("the process manager hung up ({context})")),
        _ => bootstrap(format!("the connection to the process manager broke ({context}): {error}")),
    }
}
