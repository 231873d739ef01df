//! The first 64 bytes of a gradient on the wire.
//!
//! ```text
//! offset  bytes  field
//!      0      8  magic, "GRADWIRE"
//!      8      4  version, 1
//!     12      4  how many tensors have a run-time length
//!     16      8  fingerprint of the layout
//!     24      8  total length in bytes: header, lengths, tensors and padding
//!     32     24  zero
//!     56      8  check over all of the above and the lengths
//! ```
//!
//! All numbers are little endian. Then come the run-time lengths (outermost extents, `u64`), then the tensors in layout
//! order, in their format in memory. The lengths and each tensor start at a multiple of 64 bytes; what fills the gaps is zero.
//!
//! The check is a sum of products: each 64-bit word, folded once upon itself, times an odd constant of its own. A
//! change within any one word always changes the sum; of changes to several words one in about 2^64 goes unnoticed.
//! Unlike a CRC its terms do not wait for each other: it takes about a nanosecond. Tensors are not in it: who sends them
//! over an unreliable path checks the payload there.

use crate::Layout;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

/// Every tensor starts at a multiple of this many bytes.
pub(crate) const LINE: usize = 64;

const MAGIC: u64 = u64::from_le_bytes(*b"GRADWIRE");
const VERSION: u32 = 1;

/// The header of a gradient on the wire. Its bytes are those of the struct.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    magic: u64,
    version: u32,
    run_time_lengths: u32,
    fingerprint: u64,
    total_length: u64,
    reserved: [u64; 3],
    check: u64,
}

const _: () = assert!(size_of::<Header>() == LINE);

impl Header {
    /// The header of a gradient of this layout. `lengths` is the sum of the run-time lengths' [`term`]s.
    #[inline]
    pub(super) fn new(layout: &Layout, total_length: u64, lengths: u64) -> Self {
        let header = Self {
            magic: MAGIC,
            version: VERSION,
            run_time_lengths: layout.run_time_lengths as u32,
            fingerprint: layout.fingerprint,
            total_length,
            reserved: [0; 3],
            check: 0,
        };
        Self { check: header.own_terms().wrapping_add(lengths), ..header }
    }

    /// The layout's fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Bytes of the whole gradient on the wire, this header included.
    #[must_use]
    pub fn total_length(&self) -> u64 {
        self.total_length
    }

    /// Whether header and lengths arrived as they were sent, and mean this layout.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    #[inline]
    pub(super) fn check(&self, layout: &Layout, lengths: &[u64]) -> Result<(), HeaderError> {
        // One comparison where all is well: a header is right exactly if it is the one we would have written.
        let terms = lengths.iter().zip(0..).map(|(length, index)| term(index, *length));
        let right = Self::new(layout, self.total_length, terms.fold(0, u64::wrapping_add));
        let differences = self.words().into_iter().zip(right.words()).map(|(found, right)| found ^ right);
        if differences.fold(0, |all, difference| all | difference) == 0 {
            return Ok(());
        }
        self.check_layout(layout).and(Err(HeaderError::Check))
    }

    /// Whether the header means this layout, as far as one can tell without the lengths.
    #[cold]
    pub(super) fn check_layout(&self, layout: &Layout) -> Result<(), HeaderError> {
        if self.magic != MAGIC {
            return Err(HeaderError::Magic);
        }
        if self.version != VERSION {
            return Err(HeaderError::Version { found: self.version });
        }
        if self.fingerprint != layout.fingerprint {
            return Err(HeaderError::Fingerprint {
                layout: layout.name,
                expected: layout.fingerprint,
                found: self.fingerprint,
            });
        }
        Ok(())
    }

    /// Puts a header in front of `bytes` that fits to whatever lengths follow: fuzzing gets behind the check.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn forge(layout: &Layout, bytes: &mut [u8]) {
        let total_length = bytes.len() as u64;
        let Some((header, rest)) = bytes.split_first_chunk_mut::<LINE>() else { return };
        let lengths = rest.as_chunks().0.iter().take(layout.run_time_lengths).zip(0..);
        let terms = lengths.map(|(length, index)| term(index, u64::from_le_bytes(*length)));
        *header = transmute!(Self::new(layout, total_length, terms.fold(0, u64::wrapping_add)));
    }

    #[inline]
    fn own_terms(&self) -> u64 {
        let [words @ .., _] = self.words();
        words.into_iter().zip(1 << 32..).fold(0, |sum, (word, place)| sum.wrapping_add(term(place, word)))
    }

    #[inline]
    fn words(&self) -> [u64; LINE / size_of::<u64>()] {
        transmute!(*self)
    }
}

/// What a word at a place adds to the check. Lengths stand at 0, 1, ...; the header's own words at 2^32 and on.
#[inline]
pub(super) const fn term(place: u64, word: u64) -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014), made odd so that the product can be undone.
    let key = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let key = key ^ (key >> 31);
    (word ^ (word >> 32)).wrapping_mul(key | 1)
}

/// What is wrong with a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HeaderError {
    /// The bytes are something else.
    #[error("the bytes are no gradient: they do not begin with GRADWIRE")]
    Magic,
    /// Another version of the format.
    #[error(
        "the gradient is in version {found} of the wire format, this library reads version {VERSION}: use the same release on all ranks"
    )]
    Version { found: u32 },
    /// Another struct.
    #[error(
        "the gradient has another layout than `{layout}`: fingerprint {found:#018x} instead of {expected:#018x}; build all ranks from the same struct"
    )]
    Fingerprint { layout: &'static str, expected: u64, found: u64 },
    /// Changed on the way.
    #[error("the header or the lengths were damaged on the way: their check does not fit")]
    Check,
}

#[cfg(test)]
mod tests {
    use super::{Header, HeaderError, term};
    use crate::Layout;
    use zerocopy::{FromBytes, IntoBytes};

    const LAYOUT: &Layout = &Layout::new("Empty", &[]);

    #[test]
    fn every_flipped_bit_shows() {
        let lengths = [0, 7, 1 << 40, u64::MAX];
        let sum = lengths
            .iter()
            .zip(0..)
            .fold(0, |sum: u64, (length, place)| sum.wrapping_add(term(place, *length)));
        let header = Header::new(LAYOUT, 4096, sum);
        assert_eq!(header.check(LAYOUT, &lengths), Ok(()));
        for bit in 0..512 {
            let mut bytes = [0; 64];
            bytes.copy_from_slice(header.as_bytes());
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = Header::read_from_bytes(&bytes).unwrap();
            assert!(damaged.check(LAYOUT, &lengths).is_err(), "bit {bit}");
        }
        for bit in 0..256 {
            let mut damaged = lengths;
            damaged[bit / 64] ^= 1 << (bit % 64);
            assert_eq!(header.check(LAYOUT, &damaged), Err(HeaderError::Check), "bit {bit} of the lengths");
        }
    }

    #[test]
    fn swapped_lengths_show() {
        let sum = term(0, 10).wrapping_add(term(1, 20));
        let header = Header::new(LAYOUT, 4096, sum);
        assert_eq!(header.check(LAYOUT, &[20, 10]), Err(HeaderError::Check));
        assert_eq!(header.check(LAYOUT, &[13, 19]), Err(HeaderError::Check));
    }
}
