//! What must hold for any bytes whatever, as one function for each decoder. `schema/fuzz/` hands them to libFuzzer;
//! the tests below hand them golden messages with thousands of seeded changes.
//!
//! Each function decodes, looks at all that came out, and checks that it survives the way back.

mod gradient;

pub use gradient::gradient;

use crate::control::{AbortReport, ControlError, Hello, PREFIX, PeerTable, TensorManifest};
use crate::{
    CallSignature, Equivalence, FrameHeader, FrameKind, MismatchTable, WindowReply, WindowRequest, crc32c,
};
use std::fmt::{Debug, Display};

/// A frame; first as it is, then with its header's checksum put right.
pub fn frame(bytes: &[u8]) {
    read_frame(bytes);
    let mut bytes = bytes.to_vec();
    if let Some(header) = bytes.first_chunk_mut::<{ FrameHeader::LEN }>() {
        header[..4].copy_from_slice(&FrameHeader::MAGIC);
        header[4] = FrameHeader::VERSION;
        let crc = crc32c(&header[..60]);
        header[60..].copy_from_slice(&crc.to_le_bytes());
    }
    read_frame(&bytes);
}

fn read_frame(bytes: &[u8]) {
    let Some((header, rest)) = looked_at(FrameHeader::read(bytes)) else { return };
    assert_eq!(header.encode(), bytes[..FrameHeader::LEN]);
    if let Some(payload) = looked_at(header.payload(rest)) {
        assert!(payload.len() <= rest.len());
        assert_eq!(rest.len() as u64, header.payload_len);
    }
    if let Some(len) = looked_at(header.payload_len_within(1 << 20)) {
        assert!(len <= 1 << 20);
    }
}

/// A call signature.
pub fn signature(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk() else { return };
    let Some(signature) = looked_at(CallSignature::decode(bytes)) else { return };
    assert!(!signature.describe().to_string().is_empty() || signature.count == 0);
    assert_eq!(signature.encode(), *bytes);
}

/// A table of signatures. The first byte is the communicator's size.
pub fn table(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let Some(table) = looked_at(MismatchTable::decode(bytes, (*size).into())) else { return };
    assert!(table.entries().len() <= usize::from(*size));
    assert_eq!(table.calls().len() > 1, !table.agrees());
    assert_eq!(table.calls().iter().map(|(_, ranks)| ranks.len()).sum::<usize>(), table.entries().len());
    assert_eq!(table.encode(), bytes);
    let mut twice = table.clone();
    assert_eq!(twice.merge(&table), Ok(()));
    assert_eq!(twice, table);
}

/// A frame about a window. The bytes are the header's fields from the sequence on.
pub fn window(bytes: &[u8]) {
    for kind in [FrameKind::Window, FrameKind::WindowReply] {
        let mut header = FrameHeader::new(kind).encode();
        header[16..60].iter_mut().zip(bytes).for_each(|(field, byte)| *field = *byte);
        let crc = crc32c(&header[..60]);
        header[60..].copy_from_slice(&crc.to_le_bytes());
        let Some(header) = looked_at(FrameHeader::decode(&header)) else { continue };
        let mut again = header;
        if kind == FrameKind::Window {
            let Some(request) = looked_at(WindowRequest::decode(&header)) else { continue };
            request.encode(&mut again);
        } else {
            let Some(reply) = looked_at(WindowReply::decode(&header)) else { continue };
            reply.encode(&mut again);
        }
        assert_eq!(again, header);
    }
}

/// A value that is checked on receipt.
pub fn equivalence(bytes: &[u8]) {
    unpack::<bool>(bytes);
    unpack::<[bool; 5]>(bytes);
    unpack::<[[f32; 2]; 3]>(bytes);
}

fn unpack<T: Equivalence + Debug>(bytes: &[u8]) {
    let right = bytes.len() == T::PACKED_SIZE;
    let bytes = bytes.get(..T::PACKED_SIZE).unwrap_or(bytes);
    let Some(value) = looked_at(T::unpack(bytes)) else { return };
    let mut packed = vec![0xee; T::PACKED_SIZE];
    value.pack(&mut packed);
    assert!(packed == bytes || !right);
}

/// A control message; as it is, then with its prefix and file identifier put right.
pub fn control(bytes: &[u8]) {
    read_control(bytes);
    if let Some((_, message)) = bytes.split_first_chunk::<PREFIX>() {
        read_control(&sealed(message));
    }
}

fn read_control(bytes: &[u8]) {
    survives(bytes, Hello::decode, Hello::encode);
    survives(bytes, PeerTable::decode, PeerTable::encode);
    survives(bytes, AbortReport::decode, AbortReport::encode);
    if let Some(manifest) = survives(bytes, TensorManifest::decode, TensorManifest::encode) {
        assert_eq!(manifest.first_difference(&manifest), None);
    }
}

/// Checks that what was read is not much more than arrived, and means the same when sent on.
fn survives<T: Debug + PartialEq>(
    bytes: &[u8],
    decode: fn(&[u8]) -> Result<T, ControlError>,
    encode: fn(&T) -> Vec<u8>,
) -> Option<T> {
    let message = looked_at(decode(bytes))?;
    let encoded = encode(&message);
    assert!(encoded.len() <= 16 * bytes.len(), "{} bytes became {}", bytes.len(), encoded.len());
    assert_eq!(decode(&encoded).as_ref(), Ok(&message));
    Some(message)
}

/// Reads every field, by printing it, or the error.
fn looked_at<T: Debug, E: Display>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(value) => {
            assert!(!format!("{value:?}").is_empty());
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// `message` with the prefix and the file identifier that go with it.
pub(crate) fn sealed(message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    if let Some(identifier) = message.get_mut(4..8) {
        identifier.copy_from_slice(b"GWC1");
    }
    let len = (message.len() as u32).to_le_bytes();
    [&len, &crc32c(&message).to_le_bytes(), message.as_slice()].concat()
}

#[cfg(test)]
mod tests;
