//! Frames about windows: what an origin asks of the owner of memory, and what the owner answers.
//!
//! A request is a [`FrameHeader`] and, where there are any, the values behind it. This module says what the header's
//! fields mean; whether a range lies inside the memory, and the payload fits, is for the owner to check.

use crate::{FrameHeader, UnknownCode};

/// What an accumulate does with the value that is there and its operand. The codes are part of the wire format and
/// never change meaning; those of reductions are their [`OperationId`](crate::OperationId)s.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum WindowUpdate {
    Sum = 1,
    Product = 3,
    Min = 4,
    Max = 5,
    BitwiseAnd = 8,
    BitwiseOr = 9,
    BitwiseXor = 10,
    LogicalAnd = 11,
    LogicalOr = 12,
    LogicalXor = 13,
    /// The operand takes the value's place.
    Replace = 64,
    /// The value stays.
    Keep = 65,
}

impl WindowUpdate {
    /// All of them, by code.
    pub const ALL: [Self; 12] = [
        Self::Sum,
        Self::Product,
        Self::Min,
        Self::Max,
        Self::BitwiseAnd,
        Self::BitwiseOr,
        Self::BitwiseXor,
        Self::LogicalAnd,
        Self::LogicalOr,
        Self::LogicalXor,
        Self::Replace,
        Self::Keep,
    ];

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The update of a code.
    ///
    /// # Errors
    ///
    /// [`UnknownCode`] for every code not listed above.
    pub fn from_code(code: u8) -> Result<Self, UnknownCode> {
        let unknown = UnknownCode { field: "window update", value: code.into() };
        Self::ALL.into_iter().find(|update| update.code() == code).ok_or(unknown)
    }
}

/// What an origin asks of the owner of memory, or tells it. Offsets and counts are in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WindowRequest {
    /// Write the payload.
    Put {
        /// The first element.
        offset: u64,
        /// To be raised afterwards.
        notice: Option<u32>,
    },
    /// Send values.
    Get {
        /// The first element.
        offset: u64,
        /// How many.
        count: u32,
    },
    /// Combine values with the payload.
    Accumulate {
        /// The first element.
        offset: u64,
        /// How.
        update: WindowUpdate,
    },
    /// The same, and send what was there before.
    GetAccumulate {
        /// The first element.
        offset: u64,
        /// How.
        update: WindowUpdate,
    },
    /// The payload is a comparand and a value: where the comparand is there, the value takes its place. Send what was
    /// there before.
    CompareAndSwap {
        /// The element.
        offset: u64,
    },
    /// Grant a lock when it is free.
    Lock {
        /// For the sender alone.
        exclusive: bool,
    },
    /// The sender needs its lock no more, or waits for it no longer.
    Unlock,
    /// The sender's memory is open to the receiver.
    Post,
    /// The sender has done what it wanted with the receiver's memory.
    Complete,
    /// The sender has dropped the window.
    Close,
}

impl WindowRequest {
    /// Writes it into the fields of a header; all but these stay as they are.
    pub fn encode(&self, header: &mut FrameHeader) {
        let (code, update, offset, slot) = match *self {
            Self::Put { offset, notice } => {
                (1, None, offset, notice.map_or(0, |notice| notice.saturating_add(1)))
            }
            Self::Get { offset, count } => (2, None, offset, count),
            Self::Accumulate { offset, update } => (3, Some(update), offset, 0),
            Self::GetAccumulate { offset, update } => (4, Some(update), offset, 0),
            Self::CompareAndSwap { offset } => (5, None, offset, 0),
            Self::Lock { exclusive: false } => (6, None, 0, 0),
            Self::Lock { exclusive: true } => (7, None, 0, 0),
            Self::Unlock => (8, None, 0, 0),
            Self::Post => (9, None, 0, 0),
            Self::Complete => (10, None, 0, 0),
            Self::Close => (11, None, 0, 0),
        };
        header.tag = code | update.map_or(0, |update: WindowUpdate| u32::from(update.code())) << 8;
        (header.offset, header.slot) = (offset, slot);
    }

    /// Reads it from the fields of a header.
    ///
    /// # Errors
    ///
    /// [`UnknownCode`] for what this version does not know, and for fields that are not 0 and have no meaning.
    pub fn decode(header: &FrameHeader) -> Result<Self, UnknownCode> {
        let &FrameHeader { offset, tag, slot, .. } = header;
        let update = u8::try_from(tag >> 8).map_err(|_| unknown("window request", tag.into()))?;
        let request = match tag as u8 {
            1 => Self::Put { offset, notice: slot.checked_sub(1) },
            2 => Self::Get { offset, count: slot },
            3 => Self::Accumulate { offset, update: WindowUpdate::from_code(update)? },
            4 => Self::GetAccumulate { offset, update: WindowUpdate::from_code(update)? },
            5 => Self::CompareAndSwap { offset },
            6 => Self::Lock { exclusive: false },
            7 => Self::Lock { exclusive: true },
            8 => Self::Unlock,
            9 => Self::Post,
            10 => Self::Complete,
            11 => Self::Close,
            _ => return Err(unknown("window request", tag.into())),
        };
        let mut canonical = *header;
        request.encode(&mut canonical);
        if canonical.tag != tag {
            return Err(unknown("window update", update.into()));
        }
        if canonical != *header {
            return Err(unknown("a window request's unused field", offset.max(slot.into())));
        }
        Ok(request)
    }
}

/// What the owner of memory answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WindowReply {
    /// All requests up to this one have been carried out.
    Applied,
    /// So has this one: the payload is what was there before.
    Values,
    /// The lock is the receiver's.
    Granted,
}

impl WindowReply {
    /// Writes it into the fields of a header; all but the tag stay as they are.
    pub const fn encode(self, header: &mut FrameHeader) {
        header.tag = match self {
            Self::Applied => 1,
            Self::Values => 2,
            Self::Granted => 3,
        };
    }

    /// Reads it from the fields of a header.
    ///
    /// # Errors
    ///
    /// [`UnknownCode`] for what this version does not know.
    pub fn decode(header: &FrameHeader) -> Result<Self, UnknownCode> {
        match header.tag {
            1 => Ok(Self::Applied),
            2 => Ok(Self::Values),
            3 => Ok(Self::Granted),
            tag => Err(unknown("window reply", tag.into())),
        }
    }
}

const fn unknown(field: &'static str, value: u64) -> UnknownCode {
    UnknownCode { field, value }
}

#[cfg(test)]
mod tests;
