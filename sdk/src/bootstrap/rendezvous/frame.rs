//! What goes over the wire between a rank and the rendezvous.
//!
//! ```text
//! server                          rank
//!   │── Challenge (64 bytes) ──────▶│   magic, version, whether a proof is asked for, nonce
//!   │◀────── Join (256 bytes) ──────│   rank, size, instance, who it is, its nonce, its proof
//!   │── Welcome (112 bytes) ───────▶│   when all have joined: epoch, secret or proof
//!   │◀──────── Header + bytes ──────│   one contribution to round 0, 1, ...
//!   │── Header + all bytes ────────▶│   when all have contributed
//! ```
//!
//! Both sides check the magic before they believe anything else; the first three have a fixed size. Instead of
//! `Welcome` and of later answers the server may send a failure, which ends everything. A `Welcome` comes
//! behind a header, so that it can be told from a failure. All numbers are little endian.
#![forbid(unsafe_code)]

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The most bytes a rank may contribute to one round.
pub(super) const MAX_CONTRIBUTION: usize = 64 * 1024;

/// The most bytes the reason of a failure takes.
pub(super) const MAX_REASON: usize = 2048;

/// How each of the first messages begins.
pub(super) const MAGIC: [u8; 8] = *b"gradwire";

/// The version of everything in this module.
pub(super) const VERSION: u16 = 1;

/// The first words of a server.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Debug)]
#[repr(C)]
pub(super) struct Challenge {
    pub(super) magic: [u8; 8],
    pub(super) version: U16,
    /// 1 when a rank must prove that it knows the job's secret.
    pub(super) proof: u8,
    pub(super) reserved: [u8; 21],
    pub(super) nonce: [u8; 32],
}

/// The answer of a rank.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Debug)]
#[repr(C)]
pub(super) struct Join {
    pub(super) magic: [u8; 8],
    pub(super) version: U16,
    pub(super) who_len: U16,
    pub(super) rank: U32,
    pub(super) size: U32,
    /// How long the rank is prepared to wait for the others.
    pub(super) timeout_ms: U32,
    /// Random, the same in every attempt of one process: tells a second attempt from a second process.
    pub(super) instance: [u8; 16],
    pub(super) reserved: [u8; 24],
    /// Host and process number, for messages.
    pub(super) who: [u8; 128],
    pub(super) nonce: [u8; 32],
    /// Over the server's nonce and all bytes before this field; zero where none is asked for.
    pub(super) proof: [u8; 32],
}

impl Join {
    /// The bytes the proof covers.
    pub(super) fn proven(&self) -> &[u8] {
        &self.as_bytes()[..size_of::<Self>() - size_of_val(&self.proof)]
    }

    /// Who says it is there, made printable.
    pub(super) fn who(&self) -> String {
        printable(&self.who[..usize::from(self.who_len.get()).min(self.who.len())])
    }
}

/// What a rank gets when all have joined.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Debug)]
#[repr(C)]
pub(super) struct Welcome {
    /// Random, new for every incarnation of the job.
    pub(super) epoch: [u8; 16],
    /// 1 when `secret` holds one.
    pub(super) has_secret: u8,
    pub(super) reserved: [u8; 7],
    /// Handed out only where the operating system tells who listens.
    pub(super) secret: [u8; 32],
    /// Over both nonces and the epoch, where a proof is asked for.
    pub(super) proof: [u8; 32],
}

/// What precedes every later message.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Debug)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: [u8; 8],
    pub(super) kind: U32,
    /// Which exchange, from 0.
    pub(super) round: U32,
    /// How long the rank is prepared to wait; 0 from the server.
    pub(super) timeout_ms: U32,
    /// Bytes that follow.
    pub(super) len: U32,
}

impl Header {
    pub(super) const WELCOME: u32 = 1;
    pub(super) const FAILURE: u32 = 2;
    pub(super) const CONTRIBUTION: u32 = 3;
    pub(super) const GATHERED: u32 = 4;

    /// A header for `len` bytes; the callers' lengths are far below 4 GiB.
    pub(super) fn new(kind: u32, round: u32, timeout_ms: u32, len: usize) -> Self {
        let len = u32::try_from(len).unwrap_or(u32::MAX).into();
        Self { magic: MAGIC, kind: kind.into(), round: round.into(), timeout_ms: timeout_ms.into(), len }
    }
}

/// The contributions of all ranks as one message: for each its length and its bytes.
pub(super) fn gathered(round: u32, contributions: &[Vec<u8>]) -> Vec<u8> {
    let len = contributions.iter().map(|bytes| 4 + bytes.len()).sum();
    let mut message = Header::new(Header::GATHERED, round, 0, len).as_bytes().to_vec();
    message.reserve_exact(len);
    for bytes in contributions {
        message.extend_from_slice(U32::new(u32::try_from(bytes.len()).unwrap_or(u32::MAX)).as_bytes());
        message.extend_from_slice(bytes);
    }
    message
}

/// The longest body of a `GATHERED` message of `size` ranks.
pub(super) fn max_gathered(size: usize) -> usize {
    size.saturating_mul(4 + MAX_CONTRIBUTION)
}

/// The opposite of [`gathered`], without the header: exactly `size` contributions, or nothing.
pub(super) fn scattered(mut bytes: &[u8], size: usize) -> Option<Vec<Vec<u8>>> {
    let mut contributions = Vec::new();
    for _ in 0..size {
        let (len, rest) = U32::read_from_prefix(bytes).ok()?;
        let (contribution, rest) = rest.split_at_checked(usize::try_from(len.get()).ok()?)?;
        contributions.push(contribution.to_vec());
        bytes = rest;
    }
    bytes.is_empty().then_some(contributions)
}

/// A failure and its reason as one message.
pub(super) fn failure(reason: &str) -> Vec<u8> {
    let reason = &reason.as_bytes()[..reason.floor_char_boundary(MAX_REASON)];
    let mut message = Header::new(Header::FAILURE, 0, 0, reason.len()).as_bytes().to_vec();
    message.extend_from_slice(reason);
    message
}

/// Bytes of a peer as text that cannot disturb a terminal.
pub(super) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_those_of_the_picture() {
        assert_eq!(size_of::<Challenge>(), 64);
        assert_eq!(size_of::<Join>(), 256);
        assert_eq!(size_of::<Header>() + size_of::<Welcome>(), 112);
    }

    #[test]
    fn what_was_gathered_comes_apart_again() {
        let contributions = vec![vec![1, 2, 3], vec![], vec![9; 300]];
        let message = gathered(7, &contributions);
        let (header, body) = Header::read_from_prefix(&message).unwrap();
        assert_eq!((header.kind.get(), header.round.get()), (Header::GATHERED, 7));
        assert_eq!(header.len.get() as usize, body.len());
        assert_eq!(scattered(body, 3), Some(contributions));
        assert_eq!(scattered(body, 2), None);
        assert_eq!(scattered(body, 4), None);
        for len in 0..body.len() {
            assert_eq!(scattered(&body[..len], 3), None, "{len} bytes");
        }
    }

    #[test]
    fn a_length_that_lies_allocates_nothing() {
        assert_eq!(scattered(&[0xff; 64], 1), None);
        assert_eq!(scattered(&[0; 8], usize::MAX), None);
    }

    proptest! {
        #[test]
        fn whatever_a_peer_sends_is_read_or_refused(bytes: Vec<u8>, size in 0_usize..40) {
            if let Some(contributions) = scattered(&bytes, size) {
                prop_assert_eq!(contributions.len(), size);
                prop_assert_eq!(&gathered(0, &contributions)[size_of::<Header>()..], &bytes[..]);
            }
            prop_assert!(!printable(&bytes).contains(char::is_control));
        }

        #[test]
        fn all_contributions_arrive(contributions: Vec<Vec<u8>>) {
            let message = gathered(0, &contributions);
            prop_assert_eq!(scattered(&message[size_of::<Header>()..], contributions.len()), Some(contributions));
        }
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let message = failure(&"é".repeat(MAX_REASON));
        assert_eq!(message.len(), size_of::<Header>() + MAX_REASON);
        assert!(std::str::from_utf8(&message[size_of::<Header>()..]).is_ok());
        assert_eq!(printable(b"a\x1b[31m\n"), "a?[31m?");
    }
}
