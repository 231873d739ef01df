use super::*;

const LIMITS: Limits = Limits { send: 1000, put: 1 << 20, ..Limits::MODEST };

fn key() -> RegionKey {
    RegionKey::from_bytes(std::array::from_fn(|index| 0x40 + index as u8))
}

/// A frame of each form with the hexadecimal digits of its header.
fn golden() -> Vec<(Frame, String)> {
    let zeroes = |bytes: usize| "00".repeat(bytes);
    let key_digits: String = (0x40..0x60).map(|byte| format!("{byte:02x}")).collect();
    vec![
        (
            Frame::Handshake { step: 0x0403_0201, len: 0x0134 },
            format!("47575446 0100 01 00 01020304 00000000 3401000000000000 {}", zeroes(40)),
        ),
        (
            Frame::Message { tag: Tag(0x1413_1211), len: 1000 },
            format!("47575446 0100 02 00 11121314 00000000 e803000000000000 {}", zeroes(40)),
        ),
        (
            Frame::Put { notice: None, key: key(), offset: 0x2827_2625_2423_2221, len: 0x0003_0201 },
            format!("47575446 0100 03 00 00000000 00000000 0102030000000000 2122232425262728 {key_digits}"),
        ),
        (
            Frame::Put { notice: Some(Notice::new(0x3433, 0x3231)), key: key(), offset: 5, len: 0 },
            format!("47575446 0100 03 01 31323334 00000000 {} 0500000000000000 {key_digits}", zeroes(8)),
        ),
        (Frame::Heartbeat, format!("47575446 0100 04 00 {}", zeroes(56))),
        (Frame::Bye, format!("47575446 0100 05 00 {}", zeroes(56))),
    ]
}

#[test]
fn the_bytes_of_every_frame_are_fixed() {
    for (frame, digits) in golden() {
        let header = frame.encode();
        let encoded: String = header.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(encoded, digits.replace(' ', ""), "{frame:?}");
        assert_eq!(Frame::decode(&header, &LIMITS), Ok(frame));
    }
}

/// No two headers mean the same, and none panics.
fn decodes_to_itself_or_not_at_all(header: &[u8; Frame::HEADER_LEN]) -> bool {
    match Frame::decode(header, &LIMITS) {
        Ok(frame) => {
            assert_eq!(frame.encode(), *header, "{frame:?}");
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.offence().is_empty());
            false
        }
    }
}

#[test]
fn any_changed_byte_is_an_error_or_another_frame() {
    for (frame, _) in golden() {
        let good = frame.encode();
        for index in 0..good.len() {
            for value in (0..=255).filter(|value| *value != good[index]) {
                let mut bad = good;
                bad[index] = value;
                let decoded = decodes_to_itself_or_not_at_all(&bad);
                assert!(!decoded || Frame::decode(&bad, &LIMITS) != Ok(frame));
                assert!(!decoded || !(0..6).contains(&index), "magic and version are checked");
            }
        }
    }
}

#[test]
fn noise_behind_a_good_magic_never_panics() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut accepted = 0;
    for round in 0..200_000 {
        let mut header = [0; Frame::HEADER_LEN];
        for byte in &mut header {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
        header[..6].copy_from_slice(&Frame::Bye.encode()[..6]);
        if round % 2 == 0 {
            // Near misses: a put with a plausible length.
            header[6..8].copy_from_slice(&[3, 1]);
            header[12..16].fill(0);
            header[19..24].fill(0);
        }
        accepted += u32::from(decodes_to_itself_or_not_at_all(&header));
    }
    assert!(accepted > 1000, "the near misses hit: {accepted}");
}

#[test]
fn no_length_beyond_the_limit_is_believed() {
    let frames = [
        ("handshake", Frame::Handshake { step: 1, len: 0 }, Frame::MAX_HANDSHAKE),
        ("message", Frame::Message { tag: Tag(1), len: 0 }, LIMITS.send),
        ("put", Frame::Put { notice: None, key: key(), offset: 0, len: 0 }, LIMITS.put),
    ];
    for (kind, frame, max) in frames {
        let max = max as u64;
        for len in [0, 1, max - 1, max, max + 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 63, u64::MAX] {
            let mut header = frame.encode();
            header[16..24].copy_from_slice(&len.to_le_bytes());
            let decoded = Frame::decode(&header, &LIMITS);
            if len <= max {
                assert_eq!(decoded.map(|frame| frame.payload() as u64), Ok(len));
            } else {
                assert_eq!(decoded, Err(FrameError::TooLong { kind, len, max: max as usize }));
            }
        }
    }
}

#[test]
fn each_fault_is_named() {
    let with = |index: usize, value: u8, frame: Frame| {
        let mut header = frame.encode();
        header[index] = value;
        Frame::decode(&header, &LIMITS)
    };
    let message = Frame::Message { tag: Tag(1), len: 1 };
    let put = Frame::Put { notice: None, key: key(), offset: 0, len: 1 };
    assert_eq!(with(0, b'H', message), Err(FrameError::Magic { found: *b"HWTF" }));
    assert_eq!(with(4, 2, message), Err(FrameError::Version { found: 2 }));
    for found in [0, 6, 255] {
        assert_eq!(with(6, found, message), Err(FrameError::Kind { found }));
    }
    assert_eq!(with(7, 1, message), Err(FrameError::Flags { kind: "message", found: 1 }));
    assert_eq!(with(7, 2, put), Err(FrameError::Flags { kind: "put", found: 2 }));
    let not_zero = |kind, field| Err(FrameError::NotZero { kind, field });
    assert_eq!(with(8, 1, put), not_zero("put", "label"));
    assert_eq!(with(15, 1, message), not_zero("message", "reserved field"));
    assert_eq!(with(16, 1, Frame::Bye), not_zero("bye", "length"));
    assert_eq!(with(24, 1, message), not_zero("message", "offset"));
    assert_eq!(with(63, 1, Frame::Heartbeat), not_zero("heartbeat", "key"));
}
