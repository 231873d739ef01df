//! What must hold for any bytes whatever, as one function for each decoder. `schema/fuzz/` hands them to libFuzzer;
//! the tests below hand them golden messages with thousands of seeded changes.
//!
//! Each function decodes, looks at all that came out, and checks that it survives the way back.

use crate::control::{AbortReport, ControlError, Hello, PREFIX, PeerTable, TensorManifest};
use crate::{CallSignature, FrameHeader, MismatchTable, crc32c};
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
mod tests {
    use super::*;
    use crate::golden;

    const ROUNDS: u64 = 4000;

    #[test]
    fn frames() {
        for seed in ["frame_header.bin", "frame_kinds.bin"] {
            for_each_change(&golden::read(seed), frame);
        }
    }

    #[test]
    fn signatures() {
        for seed in ["call_signature.bin", "call_signature_barrier.bin"] {
            for_each_change(&golden::read(seed), signature);
        }
    }

    #[test]
    fn tables() {
        let mut seed = vec![8];
        seed.extend(golden::read("mismatch_table.bin"));
        for_each_change(&seed, table);
    }

    #[test]
    fn control_messages() {
        for seed in ["hello.bin", "peer_table.bin", "abort_report.bin", "tensor_manifest.bin"] {
            for_each_change(&golden::read(seed), control);
        }
    }

    /// Calls `check` with thousands of changed copies of `seed`, always the same ones.
    fn for_each_change(seed: &[u8], check: fn(&[u8])) {
        check(seed);
        for round in 0..ROUNDS {
            let mut random = Random(round);
            let mut bytes = seed.to_vec();
            for _ in 0..=random.below(4) {
                change(&mut bytes, &mut random);
            }
            check(&bytes);
        }
    }

    fn change(bytes: &mut Vec<u8>, random: &mut Random) {
        let len = bytes.len();
        if len == 0 {
            bytes.push(random.next() as u8);
            return;
        }
        let at = random.below(len);
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => bytes.extend_from_within(at..),
            4 => drop(bytes.drain(at..len.min(at + 1 + random.below(16)))),
            5 => bytes.copy_within(at..len.min(at + 8), random.below(len.saturating_sub(8).max(1))),
            // A length, a count or an offset of 32 bits that is nearly right, or enormous.
            _ => {
                let at = at & !3;
                if let Some(word) = bytes[at..].first_chunk_mut::<4>() {
                    let near =
                        u32::from_le_bytes(*word).wrapping_add(random.below(17) as u32).wrapping_sub(8);
                    let values =
                        [near, 0, 1, i32::MAX as u32, u32::MAX, len as u32, near << 1, near.swap_bytes()];
                    *word = values[random.below(values.len())].to_le_bytes();
                }
            }
        }
    }

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word ^ (word >> 27)
        }

        fn below(&mut self, limit: usize) -> usize {
            (self.next() >> 16) as usize % limit
        }
    }
}
