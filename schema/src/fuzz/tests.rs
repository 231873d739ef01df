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
fn windows() {
    for frame in golden::read("window_frames.bin").as_chunks::<{ FrameHeader::LEN }>().0 {
        for_each_change(&frame[16..60], window);
    }
}

#[test]
fn gradients() {
    for_each_change(&gradient::sample(), gradient);
}

#[test]
fn equivalences() {
    for_each_change(&[1; 5], equivalence);
    for_each_change(&[0; 24], equivalence);
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
                let near = u32::from_le_bytes(*word).wrapping_add(random.below(17) as u32).wrapping_sub(8);
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
