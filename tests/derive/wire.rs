//! Gradients on the wire: slices out, views in, and every damage told.

use crate::models::{Generic, Mlp, Tuple, Wide, mlp, wide};
use gradwire::Gradient;
use gradwire_schema::gradient::{EncodeError, HeaderError, TensorName, ViewError};
use half::bf16;
use proptest::prelude::*;
use std::io::IoSlice;
use std::marker::PhantomData;

/// Bytes that start at a multiple of 64, and room to shift them.
struct Aligned(Vec<u64>);

impl Aligned {
    fn new(bytes: &[u8], shift: usize) -> Self {
        let mut this = Self(vec![0; (bytes.len() + shift).div_ceil(8) + 8]);
        this.bytes_mut(shift, bytes.len()).copy_from_slice(bytes);
        this
    }

    fn start(&self) -> usize {
        self.0.as_ptr().addr().wrapping_neg() % 64
    }

    fn bytes(&self, shift: usize, length: usize) -> &[u8] {
        &zerocopy::IntoBytes::as_bytes(&self.0[..])[self.start() + shift..][..length]
    }

    fn bytes_mut(&mut self, shift: usize, length: usize) -> &mut [u8] {
        let start = self.start();
        &mut zerocopy::IntoBytes::as_mut_bytes(&mut self.0[..])[start + shift..][..length]
    }
}

/// The gradient as a vectored write sends it.
fn encoded<G: Gradient>(gradient: &G) -> Vec<u8> {
    let mut prefix = vec![0xff; G::PREFIX_SIZE];
    let mut parts = vec![IoSlice::new(&[]); G::MAX_PARTS];
    let parts = gradient.encode(&mut prefix, &mut parts).unwrap();
    parts.iter().flat_map(|part| part.to_vec()).collect()
}

fn view<G: Gradient>(bytes: &[u8]) -> Result<(), ViewError> {
    let aligned = Aligned::new(bytes, 0);
    G::view(aligned.bytes(0, bytes.len())).map(|_| ())
}

fn name(structure: &'static str, field: &'static str) -> TensorName {
    TensorName { structure, field }
}

#[test]
fn what_is_sent_is_seen() {
    let sent = mlp(5);
    let aligned = Aligned::new(&encoded(&sent), 0);
    let bytes = aligned.bytes(0, encoded(&sent).len());
    let seen = Mlp::<3>::view(bytes).unwrap();
    assert_eq!(seen.w1, &*sent.w1);
    assert_eq!(seen.b1, &sent.b1);
    assert_eq!(seen.w2, sent.w2);
    assert_eq!(*seen.grad_norm, 2.5);
    assert_eq!(*seen.samples, 1005);
    assert_eq!(seen.head.weight, sent.head.weight);
    assert_eq!(*seen.head.r#type, 5);
    for tensor in [seen.w1.as_ptr().addr(), seen.b1.as_ptr().addr(), seen.head.weight.as_ptr().addr()] {
        assert!(bytes.as_ptr_range().contains(&std::ptr::without_provenance(tensor)), "copied");
        assert!(tensor.is_multiple_of(64));
    }
}

#[test]
fn tensors_that_never_need_padding_have_no_slice_for_it() {
    assert_eq!(Wide::MAX_PARTS, 1 + 8 + 5);
}

#[test]
fn what_is_sent_is_not_copied() {
    let sent = mlp(5);
    let mut prefix = [0; Mlp::<3>::PREFIX_SIZE];
    let mut parts = [IoSlice::new(&[]); Mlp::<3>::MAX_PARTS];
    let parts = sent.encode(&mut prefix, &mut parts).unwrap();
    assert_eq!(parts[1].as_ptr().addr(), sent.w1.as_ptr().addr());
    assert_eq!(parts[1].len(), 24);
    assert_eq!(parts[3].as_ptr().addr(), sent.b1.as_ptr().addr());
}

#[test]
fn tuples_generics_and_aliases_are_seen() {
    let inner = Tuple(vec![1.0, -2.0], "stays", Box::new([1, 2, 3, 4, 5]));
    let sent = Generic::<bf16, i32, Tuple> { floats: vec![bf16::ONE], one: -7, inner, marker: PhantomData };
    let bytes = encoded(&sent);
    let aligned = Aligned::new(&bytes, 0);
    let seen = Generic::<bf16, i32, Tuple>::view(aligned.bytes(0, bytes.len())).unwrap();
    assert_eq!((seen.floats, *seen.one), (&[bf16::ONE][..], -7));
    assert_eq!((seen.inner.0, seen.inner.2), (&[1.0, -2.0][..], &[1, 2, 3, 4, 5]));
    assert_eq!(sent.inner.1, "stays");
    let again = seen;
    assert_eq!(format!("{again:?}"), format!("{seen:?}"));
    assert!(
        format!("{seen:?}")
            .starts_with("GenericView { floats: [1.0], one: -7, inner: TupleView([1.0, -2.0], ")
    );
}

#[test]
fn piece_by_piece_is_the_same() {
    for sent in [wide(0, 0), wide(1, 7), wide(64, 8), wide(65, 9), wide(1000, 100)] {
        let mut pieces = Vec::new();
        sent.for_each_part(|part| pieces.extend_from_slice(part));
        assert_eq!(pieces, encoded(&sent));
        assert_eq!(sent.header().total_length(), pieces.len() as u64);
        assert_eq!(sent.header().fingerprint(), Wide::FINGERPRINT);
    }
}

#[test]
fn many_lengths_take_several_lines() {
    #[derive(Gradient, Clone)]
    struct Three(Vec<u8>, Vec<u16>, Vec<u32>);
    #[derive(Gradient)]
    struct Nine(Three, Three, Three);

    let three = |seed| Three(vec![seed; 1], vec![2; 2], vec![3; usize::from(seed)]);
    let sent = Nine(three(7), three(8), three(9));
    assert_eq!(Nine::PREFIX_SIZE, 64 + 128);
    let bytes = encoded(&sent);
    let mut pieces = Vec::new();
    sent.for_each_part(|part| pieces.extend_from_slice(part));
    assert_eq!(pieces, bytes);
    let aligned = Aligned::new(&bytes, 0);
    let seen = Nine::view(aligned.bytes(0, bytes.len())).unwrap();
    assert_eq!((seen.2.0, seen.2.1, seen.2.2), (&[9][..], &[2, 2][..], &[3; 9][..]));
}

#[test]
fn the_format_is_pinned() {
    for (file, bytes) in [("mlp", encoded(&mlp(1))), ("wide", encoded(&wide(65, 9)))] {
        let path = format!("{}/derive/golden/{file}.bin", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("GRADWIRE_BLESS").is_some() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(
            std::fs::read(&path).unwrap(),
            bytes,
            "{file}: a change of the format changes its version"
        );
    }
}

#[test]
fn every_misalignment_is_an_error() {
    let bytes = encoded(&wide(3, 3));
    for shift in 0..64 {
        let aligned = Aligned::new(&bytes, shift);
        let seen = Wide::view(aligned.bytes(shift, bytes.len())).map(|_| ());
        assert_eq!(
            seen,
            if shift % 8 == 0 { Ok(()) } else { Err(ViewError::Misaligned) },
            "shifted by {shift}"
        );
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = encoded(&wide(3, 3));
    for length in 0..bytes.len() {
        let expected = if length < Wide::PREFIX_SIZE { Wide::PREFIX_SIZE } else { bytes.len() } as u64;
        let error = ViewError::Length { expected, found: length as u64 };
        assert_eq!(view::<Wide>(&bytes[..length]), Err(error));
    }
    let longer = [&bytes[..], &[0]].concat();
    let error = ViewError::Length { expected: bytes.len() as u64, found: longer.len() as u64 };
    assert_eq!(view::<Wide>(&longer), Err(error));
}

#[test]
fn every_flipped_bit_of_prefix_and_padding_is_an_error() {
    let sent = wide(3, 3);
    let bytes = encoded(&sent);
    let mut numbers = vec![false; bytes.len()];
    let mut start = Wide::PREFIX_SIZE;
    for size in [3, 64, 64, 0, 24, 4, 2, 1] {
        numbers[start..start + size].fill(true);
        start += usize::next_multiple_of(size, 64);
    }
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(view::<Wide>(&damaged).is_ok(), numbers[bit / 8], "bit {bit}");
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let bytes = encoded(&mlp(1));
    assert_eq!(
        view::<Mlp<4>>(&bytes).unwrap_err(),
        ViewError::Header(HeaderError::Fingerprint {
            layout: "Mlp",
            expected: Mlp::<4>::FINGERPRINT,
            found: Mlp::<3>::FINGERPRINT,
        })
    );
    let damaged = |at: usize, byte: u8| {
        let mut damaged = bytes.clone();
        damaged[at] = byte;
        view::<Mlp<3>>(&damaged).unwrap_err()
    };
    assert_eq!(damaged(0, b'H'), ViewError::Header(HeaderError::Magic));
    assert_eq!(damaged(8, 2), ViewError::Header(HeaderError::Version { found: 2 }));
    assert_eq!(damaged(24, 9), ViewError::Header(HeaderError::Check));
    assert_eq!(damaged(64, 9), ViewError::Header(HeaderError::Check));
    assert_eq!(damaged(127, 1), ViewError::Padding { tensor: name("", "lengths") });
    assert_eq!(damaged(128 + 24, 1), ViewError::Padding { tensor: name("Mlp", "w1") });
    let last = damaged(bytes.len() - 1, 1);
    assert_eq!(last, ViewError::Padding { tensor: name("Head", "type") });
    assert_eq!(
        last.to_string(),
        "the padding after `Head.type` is not zero: the gradient was damaged on the way"
    );
}

#[test]
fn short_memory_is_an_error() {
    let sent = mlp(1);
    let error = sent.encode(&mut [0; 127], &mut [IoSlice::new(&[]); 15]).unwrap_err();
    assert_eq!(error, EncodeError::Prefix { needed: 128, found: 127 });
    let mut prefix = [0; 128];
    let error = sent.encode(&mut prefix, &mut [IoSlice::new(&[]); 14]).unwrap_err();
    assert_eq!(error, EncodeError::Parts { needed: 15, found: 14 });
}

/// A sender may write any header it likes, with a check that fits: nothing but an error comes of it.
#[test]
fn lengths_that_lie_are_errors() {
    #[derive(Gradient)]
    struct Bytes {
        a: Vec<[u64; 4]>,
        b: Vec<u8>,
    }
    let bytes = encoded(&Bytes { a: vec![[1; 4]; 2], b: vec![2; 64] });
    for lengths in
        [[3, 64], [1, 64], [2, 65], [u64::MAX, 64], [1 << 59, 64], [2, u64::MAX - 62], [2, u64::MAX]]
    {
        let lying = with_lengths(&bytes, &lengths);
        let error = view::<Bytes>(&lying).unwrap_err();
        match error {
            ViewError::Tensor { tensor } => assert_eq!(tensor.structure, "Bytes"),
            ViewError::Length { .. } | ViewError::Padding { .. } => {}
            other => panic!("{lengths:?}: {other:?}"),
        }
    }
    assert_eq!(view::<Bytes>(&with_lengths(&bytes, &[2, 64])), Ok(()));
    let seen = view::<Bytes>(&with_lengths(&bytes, &[u64::MAX, 64]));
    assert_eq!(seen, Err(ViewError::Tensor { tensor: name("Bytes", "a") }));
}

/// Writes other lengths and the check that goes with them, as the format says.
fn with_lengths(bytes: &[u8], lengths: &[u64]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let mut check = word(&bytes, 56);
    for (place, length) in lengths.iter().enumerate() {
        let at = 64 + 8 * place;
        check = check
            .wrapping_sub(term(place as u64, word(&bytes, at)))
            .wrapping_add(term(place as u64, *length));
        bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
    }
    bytes[56..64].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn term(place: u64, word: u64) -> u64 {
    let mut key = (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ word >> 32).wrapping_mul((key ^ key >> 31) | 1)
}

#[test]
fn two_contributions_reduce_in_place() {
    let (mut own, other) = (mlp(1), mlp(4));
    let bytes = encoded(&other);
    let aligned = Aligned::new(&bytes, 0);
    own.reduce_from(aligned.bytes(0, bytes.len())).unwrap();
    assert_eq!(own.b1, [1.5, 0.5, -0.5], "average");
    assert_eq!(own.w1[1], [5.5, 6.5, 7.5], "average");
    assert_eq!(own.w2[3], 7.5, "average, in bf16");
    assert_eq!(own.grad_norm, 2.0, "max");
    assert_eq!(own.samples, 2005, "sum");
    assert_eq!(own.head.weight[0][1][2], bf16::from_f32(-5.0), "sum");
    assert_eq!(own.step, 1, "skipped");
}

#[test]
fn gradients_of_other_lengths_change_nothing() {
    let (mut own, mut other) = (mlp(1), mlp(4));
    other.head.weight.clear();
    let bytes = encoded(&other);
    let aligned = Aligned::new(&bytes, 0);
    let error = own.reduce_from(aligned.bytes(0, bytes.len())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`head.weight` has 6 elements here and 0 in the received gradient: give both the same shape"
    );
    assert_eq!(own, mlp(1));
}

proptest! {
    #[test]
    fn any_lengths_return(bytes in 0_usize..300, longs in 0_usize..40) {
        let sent = wide(bytes, longs);
        let encoded = encoded(&sent);
        let aligned = Aligned::new(&encoded, 0);
        let seen = Wide::view(aligned.bytes(0, encoded.len())).unwrap();
        prop_assert_eq!(seen.bytes, &*sent.bytes);
        prop_assert_eq!(seen.longs, &*sent.longs);
        prop_assert_eq!(seen.halves, &sent.halves);
        prop_assert_eq!(seen.doubles[3][0], 6.5);
        prop_assert_eq!(*seen.flags, sent.flags);
    }

    /// Whatever is done to the bytes: a view or an error, and every tensor of a view can be read.
    #[test]
    fn damaged_bytes_never_panic(
        bytes in 0_usize..100,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        shift in 0_usize..16,
    ) {
        let mut encoded = encoded(&wide(bytes, 5));
        for (at, byte) in changes {
            let at = at.index(encoded.len());
            encoded[at] = byte;
        }
        encoded.truncate(cut.index(encoded.len() + 1));
        let aligned = Aligned::new(&encoded, shift);
        if let Ok(seen) = Wide::view(aligned.bytes(shift, encoded.len())) {
            let printed = format!("{seen:?}");
            prop_assert!(printed.starts_with("WideView"));
        }
    }
}
