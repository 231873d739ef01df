//! CRC32C by tables, eight bytes a step, for any processor.

/// The polynomial, bit-reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: what byte `b`, followed by `k` zero bytes, does to the state.
static TABLES: [[u32; 256]; 8] = tables();

pub(super) fn update(state: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(state, |state, word| {
        let mixed = (u64::from_le_bytes(*word) ^ u64::from(state)).to_le_bytes();
        mixed.iter().zip(TABLES.iter().rev()).fold(0, |next, (byte, table)| next ^ table[usize::from(*byte)])
    });
    rest.iter().fold(state, |state, byte| (state >> 8) ^ TABLES[0][usize::from(state as u8 ^ byte)])
}

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = (state >> 1) ^ (POLYNOMIAL * (state & 1));
            bit += 1;
        }
        tables[0][byte] = state;
        byte += 1;
    }
    let mut distance = 1;
    while distance < 8 {
        byte = 0;
        while byte < 256 {
            let state = tables[distance - 1][byte];
            tables[distance][byte] = (state >> 8) ^ tables[0][(state & 0xff) as usize];
            byte += 1;
        }
        distance += 1;
    }
    tables
}
