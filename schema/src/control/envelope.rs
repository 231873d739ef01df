//! What stands around every message: length, checksum, file identifier, union.

use super::{ControlError, wire};
use crate::crc32c;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, VerifierOptions, WIPOffset};

/// Bytes in front of a message: its length and its CRC32C, 32 bits each.
pub const PREFIX: usize = 8;
/// The longest message in bytes, without its prefix.
pub const MAX_MESSAGE: usize = 64 << 20;

/// How many bytes follow this prefix: ask before making room for them.
///
/// # Errors
///
/// [`ControlError::TooLong`] above `max` or [`MAX_MESSAGE`].
pub fn announced_len(prefix: &[u8; PREFIX], max: usize) -> Result<usize, ControlError> {
    let [l0, l1, l2, l3, ..] = *prefix;
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    let max = max.min(MAX_MESSAGE);
    match usize::try_from(len) {
        Ok(len) if len <= max => Ok(len),
        _ => Err(ControlError::TooLong { len: len.into(), max: max as u64 }),
    }
}

pub(super) type Builder = FlatBufferBuilder<'static>;
pub(super) type Body = (wire::Body, WIPOffset<UnionWIPOffset>);

/// The bytes to send.
pub(super) fn seal(build: impl FnOnce(&mut Builder) -> Body) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let (body_type, body) = build(&mut builder);
    let message = wire::Message::create(&mut builder, &wire::MessageArgs { body_type, body: Some(body) });
    wire::finish_message_buffer(&mut builder, message);
    let message = builder.finished_data();

    let mut bytes = Vec::with_capacity(PREFIX + message.len());
    bytes.extend_from_slice(&(message.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32c(message).to_le_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// A message all of whose offsets lie inside it, and its bytes without the prefix.
pub(super) fn open(bytes: &[u8]) -> Result<(wire::Message<'_>, &[u8]), ControlError> {
    let found = bytes.len() as u64;
    let Some((prefix, message)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(ControlError::Length { expected: PREFIX as u64, found });
    };
    let len = announced_len(prefix, MAX_MESSAGE)?;
    if message.len() != len {
        return Err(ControlError::Length { expected: (PREFIX + len) as u64, found });
    }
    let [.., c0, c1, c2, c3] = *prefix;
    let (expected, crc) = (crc32c(message), u32::from_le_bytes([c0, c1, c2, c3]));
    if crc != expected {
        return Err(ControlError::Checksum { expected, found: crc });
    }
    // The identifier stands behind the offset of the root; the verifier does not look at it.
    match message.split_first_chunk::<8>() {
        None => return Err(ControlError::Length { expected: PREFIX as u64 + 8, found }),
        Some(([_, _, _, _, identifier @ ..], _)) if identifier != wire::MESSAGE_IDENTIFIER.as_bytes() => {
            return Err(ControlError::Identifier(*identifier));
        }
        Some(_) => {}
    }
    // No message of ours shares bytes, so none has more tables than words. Tables of one kind may share their vtable,
    // which is no longer than they are.
    let options = VerifierOptions {
        max_depth: 8,
        max_tables: len / 4,
        max_apparent_size: 4 * len,
        ..VerifierOptions::default()
    };
    let root = wire::root_as_message_with_opts(&options, message)
        .map_err(|error| ControlError::Malformed(error.to_string()))?;
    Ok((root, message))
}

/// The error for a message of another kind.
pub(super) fn unexpected(expected: &'static str, message: wire::Message<'_>) -> ControlError {
    ControlError::Unexpected { expected, found: format!("{:?}", message.body_type()) }
}
