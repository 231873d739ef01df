//! Last words.

use super::envelope::{open, seal, unexpected};
use super::reader::Reader;
use super::{ControlError, limits, wire};
use crate::UnknownCode;

/// A rank gives up, and tells the others why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AbortReport {
    /// Who reports.
    pub rank: u32,
    /// What happened.
    pub cause: AbortCause,
    /// The ranks it is about: lost, waited for, different.
    pub ranks: Vec<u32>,
    /// What happened, in words. Encoding cuts it off after [`limits::TEXT`] bytes.
    pub text: String,
    /// The communicator of the call that failed.
    pub communicator: u32,
    /// Which call on it.
    pub sequence: u64,
}

/// What happened. The codes are part of the wire format and never change meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum AbortCause {
    /// A rank was lost.
    PeerLost = 1,
    /// A deadline passed.
    TimedOut = 2,
    /// The ranks called different things.
    Mismatch = 3,
    /// The program asked for it.
    Aborted = 4,
    /// The operating system refused something.
    System = 5,
    /// A mistake in the library.
    Bug = 6,
}

impl AbortCause {
    /// All of them, by code.
    pub const ALL: [Self; 6] =
        [Self::PeerLost, Self::TimedOut, Self::Mismatch, Self::Aborted, Self::System, Self::Bug];

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The cause of a code.
    ///
    /// # Errors
    ///
    /// [`UnknownCode`] for every code not listed above.
    pub const fn from_code(code: u8) -> Result<Self, UnknownCode> {
        if code >= 1 && code as usize <= Self::ALL.len() {
            Ok(Self::ALL[code as usize - 1])
        } else {
            Err(UnknownCode { field: "cause", value: code as u64 })
        }
    }
}

impl AbortReport {
    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let text = &self.text[..self.text.floor_char_boundary(limits::TEXT)];
        seal(|builder| {
            let args = wire::AbortReportArgs {
                rank: self.rank,
                cause: wire::Cause(self.cause.code()),
                ranks: Some(builder.create_vector(&self.ranks)),
                text: Some(builder.create_string(text)),
                communicator: self.communicator,
                sequence: self.sequence,
            };
            (wire::Body::AbortReport, wire::AbortReport::create(builder, &args).as_union_value())
        })
    }

    /// Reads a report.
    ///
    /// # Errors
    ///
    /// [`ControlError`], by the first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, ControlError> {
        let (message, bytes) = open(bytes)?;
        let report = message.body_as_abort_report().ok_or_else(|| unexpected("AbortReport", message))?;
        let mut reader = Reader::new(bytes);
        Ok(Self {
            rank: report.rank(),
            cause: AbortCause::from_code(report.cause().0)?,
            ranks: reader.numbers("ranks", report.ranks(), limits::RANKS)?,
            text: reader.text("text", report.text(), limits::TEXT)?,
            communicator: report.communicator(),
            sequence: report.sequence(),
        })
    }
}
