//! CRC32C, the checksum of headers and control messages (Castagnoli polynomial, reflected; RFC 3720, appendix B.4).

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod arch;
mod table;

/// The CRC32C of `bytes`.
#[must_use]
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    !update(!0, bytes)
}

#[inline]
fn update(state: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(state) = arch::update(state, bytes) {
        return state;
    }
    table::update(state, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Update = fn(u32, &[u8]) -> u32;

    fn implementations() -> Vec<(&'static str, Update)> {
        let mut all: Vec<(&'static str, Update)> = vec![("table", table::update), ("chosen", update)];
        #[cfg(target_arch = "x86_64")]
        if arch::update(0, &[]).is_some() {
            all.push(("sse4.2", |state, bytes| arch::update(state, bytes).unwrap()));
        } else {
            println!("skipped: this processor has no SSE4.2");
        }
        all
    }

    /// One bit at a time, straight from the polynomial.
    fn oracle(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |state, byte| {
            (0..8).fold(state ^ u32::from(*byte), |state, _| (state >> 1) ^ (0x82f6_3b78 * (state & 1)))
        })
    }

    #[test]
    fn known_vectors() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        let vectors: [(&[u8], u32); 6] = [
            (b"", 0),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
        ];
        for (name, update) in implementations() {
            for (bytes, crc) in vectors {
                assert_eq!(!update(!0, bytes), crc, "{name}, {bytes:?}");
            }
        }
    }

    #[test]
    fn every_length_at_every_alignment() {
        let bytes: Vec<u8> = (0..200_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for (name, update) in implementations() {
            for start in 0..16 {
                for len in 0..bytes.len() - start {
                    let bytes = &bytes[start..][..len];
                    assert_eq!(!update(!0, bytes), oracle(bytes), "{name}, {start}+{len}");
                }
            }
        }
    }
}
