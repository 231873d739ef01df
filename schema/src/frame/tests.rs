use super::*;
use crate::golden;
use proptest::prelude::*;

/// A header in which every byte of every field differs from its neighbours.
fn sample() -> FrameHeader {
    FrameHeader {
        flags: FrameFlags::PAYLOAD_CRC,
        communicator: 0x1112_1314,
        epoch: 0x2122_2324,
        sequence: 0x3132_3334_3536_3738,
        signature: 0x4142_4344_4546_4748,
        payload_len: 0x5152_5354_5556_5758,
        offset: 0x6162_6364_6566_6768,
        source: 0x7172_7374,
        tag: 0x8182_8384,
        slot: 0x9192_9394,
        ..FrameHeader::new(FrameKind::Ready)
    }
}

/// Bytes changed by `change`, with a checksum that fits.
fn resealed(change: impl FnOnce(&mut [u8; FrameHeader::LEN])) -> [u8; FrameHeader::LEN] {
    let mut bytes = sample().encode();
    change(&mut bytes);
    let crc = crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn golden_bytes() {
    golden::check("frame_header.bin", &sample().encode());
    golden::check(
        "frame_kinds.bin",
        FrameKind::ALL.map(|kind| FrameHeader::new(kind).encode()).as_flattened(),
    );
}

#[test]
fn reads_at_every_alignment() {
    let header = sample();
    let mut bytes = [0; 16 + FrameHeader::LEN + 3];
    for offset in 0..16 {
        bytes.fill(0xee);
        bytes[offset..][..FrameHeader::LEN].copy_from_slice(&header.encode());
        let (read, rest) = FrameHeader::read(&bytes[offset..]).unwrap();
        assert_eq!(read, header);
        assert_eq!(rest.len(), 16 - offset + 3);
        assert!(rest.iter().all(|byte| *byte == 0xee));
    }
}

#[test]
fn refuses_fewer_bytes_than_a_header() {
    let bytes = sample().encode();
    for len in 0..FrameHeader::LEN {
        assert_eq!(
            FrameHeader::read(&bytes[..len]),
            Err(FrameError::Truncated { expected: 64, found: len as u64 })
        );
    }
}

#[test]
fn refuses_every_flipped_bit() {
    let bytes = sample().encode();
    for bit in 0..FrameHeader::LEN * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = FrameHeader::decode(&damaged).unwrap_err();
        match bit / 8 {
            0..4 => assert!(matches!(error, FrameError::Magic(_)), "{error}"),
            4 => assert!(matches!(error, FrameError::Version { .. }), "{error}"),
            _ => assert!(matches!(error, FrameError::Checksum { .. }), "{error}"),
        }
    }
}

/// Case 70: each value of each byte that is not a number, with a checksum that fits.
#[test]
fn all_values_of_every_code() {
    for value in 0..=u8::MAX {
        let kind = FrameHeader::decode(&resealed(|bytes| bytes[5] = value)).map(|header| header.kind);
        match FrameKind::ALL.iter().find(|kind| kind.code() == value) {
            Some(known) => assert_eq!(kind, Ok(*known)),
            None => assert_eq!(kind, Err(FrameError::Kind(value))),
        }

        let version = FrameHeader::decode(&resealed(|bytes| bytes[4] = value)).map(|_| ());
        assert_eq!(version, if value == 1 { Ok(()) } else { Err(FrameError::Version { found: value }) });

        for byte in [6, 7] {
            let flags = u16::from(value) << (8 * (byte - 6));
            let read =
                FrameHeader::decode(&resealed(|bytes| bytes[6..8].copy_from_slice(&flags.to_le_bytes())));
            match flags & !1 {
                0 => assert_eq!(read.unwrap().flags.contains(FrameFlags::PAYLOAD_CRC), flags == 1),
                unknown => assert_eq!(read, Err(FrameError::Flags(unknown))),
            }
        }
    }
}

/// Case 59: the length decides about nothing before it is compared with what fits.
#[test]
fn announced_lengths() {
    let max = 4096;
    for len in [0, 1, max - 1, max, max + 1, 1 << 31, u64::from(u32::MAX), 1 << 63, u64::MAX] {
        let header = FrameHeader { payload_len: len, ..FrameHeader::new(FrameKind::Eager) };
        let expected = if len <= max { Ok(len as usize) } else { Err(FrameError::TooLong { len, max }) };
        assert_eq!(header.payload_len_within(max as usize), expected);

        let (header, rest) =
            FrameHeader::read(&header.encode()).map(|(header, rest)| (header, rest.len())).unwrap();
        assert_eq!(rest, 0);
        let expected =
            if len == 0 { Ok(&[][..]) } else { Err(FrameError::Truncated { expected: len, found: 0 }) };
        assert_eq!(header.payload(&[]), expected);
    }
    let header = FrameHeader { payload_len: 3, ..FrameHeader::new(FrameKind::Eager) };
    assert_eq!(header.payload(b"abc"), Ok(&b"abc"[..]));
    assert_eq!(header.payload(b"abcde"), Err(FrameError::Trailing { expected: 3, excess: 2 }));
}

#[test]
fn the_payload_has_its_own_checksum() {
    let mut payload = b"gradients".to_vec();
    payload.extend_from_slice(&crc32c(b"gradients").to_le_bytes());
    let mut header = FrameHeader::new(FrameKind::Eager);
    header.flags = FrameFlags::NONE.with(FrameFlags::PAYLOAD_CRC);
    header.payload_len = payload.len() as u64;
    assert_eq!(header.payload(&payload), Ok(&b"gradients"[..]));

    for byte in 0..payload.len() {
        let mut damaged = payload.clone();
        damaged[byte] ^= 0x10;
        let error = header.payload(&damaged).unwrap_err();
        assert!(matches!(error, FrameError::PayloadChecksum { .. }), "{error}");
    }
    header.payload_len = 3;
    assert_eq!(header.payload(b"abc"), Err(FrameError::Truncated { expected: 4, found: 3 }));
}

#[test]
fn strangers_are_named() {
    let mut bytes = [b' '; 64];
    bytes[..14].copy_from_slice(b"GET / HTTP/1.1");
    let error = FrameHeader::decode(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "not a Gradwire frame: it begins with \"GET \"");
    let error = FrameHeader::decode(&resealed(|bytes| bytes[4] = 2)).unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
}

proptest! {
    #[test]
    fn round_trip(
        kind in prop::sample::select(&FrameKind::ALL[..]),
        sealed: bool,
        words: [u64; 4],
        halves: [u32; 5],
    ) {
        let header = FrameHeader {
            flags: if sealed { FrameFlags::PAYLOAD_CRC } else { FrameFlags::NONE },
            communicator: halves[0],
            epoch: halves[1],
            sequence: words[0],
            signature: words[1],
            payload_len: words[2],
            offset: words[3],
            source: halves[2],
            tag: halves[3],
            slot: halves[4],
            ..FrameHeader::new(kind)
        };
        prop_assert_eq!(FrameHeader::decode(&header.encode()), Ok(header));
    }
}
