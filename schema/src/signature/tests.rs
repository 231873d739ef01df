use super::*;
use crate::golden;
use proptest::prelude::*;
use std::collections::HashSet;

/// Sums of 12 floats.
fn sample() -> CallSignature {
    CallSignature {
        datatype: Some(Datatype::F32),
        operation: Some(OperationId(0x2122_2324_2526_2728)),
        root: Some(0x1112_1314),
        count: 12,
        bucket: 0x3132_3334_3536_3738,
        layout: 0x4142_4344_4546_4748,
        ..CallSignature::new(Collective::Reduce)
    }
}

fn signatures() -> impl Strategy<Value = CallSignature> {
    let collective = prop::sample::select(&Collective::ALL[..]);
    let datatype = prop::option::of(prop::sample::select(&Datatype::ALL[..]));
    let root = prop::option::of(0..u32::MAX);
    let operation = prop::option::of((1..u64::MAX).prop_map(OperationId));
    (collective, datatype, root, operation, any::<[u64; 3]>()).prop_map(
        |(collective, datatype, root, operation, [count, bucket, layout])| CallSignature {
            collective,
            datatype,
            root,
            operation,
            count,
            bucket,
            layout,
        },
    )
}

#[test]
fn golden_bytes() {
    golden::check("call_signature.bin", &sample().encode());
    golden::check("call_signature_barrier.bin", &CallSignature::new(Collective::Barrier).encode());
    let mut table = MismatchTable::new(7, sample());
    table.merge(&MismatchTable::new(2, CallSignature::new(Collective::Barrier))).unwrap();
    golden::check("mismatch_table.bin", &table.encode());
}

/// The hash is part of the format too: ranks compare hashes made by different builds.
#[test]
fn golden_hashes() {
    let hashes = [
        sample().hash(),
        CallSignature::new(Collective::Barrier).hash(),
        LayoutDigest::new(0x1234).length(10).length(64).finish(),
    ];
    golden::check("hashes.bin", hashes.map(u64::to_le_bytes).as_flattened());
}

/// Case 70.
#[test]
fn all_values_of_every_code() {
    let bytes = sample().encode();
    let read = |byte: usize, value: u8| {
        let mut bytes = bytes;
        bytes[byte] = value;
        CallSignature::decode(&bytes)
    };
    for value in 0..=u8::MAX {
        match Collective::ALL.iter().find(|collective| collective.code() == value) {
            Some(known) => assert_eq!(read(0, value).unwrap().collective, *known),
            None => assert_eq!(
                read(0, value),
                Err(UnknownCode { field: "collective", value: value.into() }.into())
            ),
        }
        match Datatype::ALL.iter().find(|datatype| datatype.code() == value) {
            Some(known) => assert_eq!(read(1, value).unwrap().datatype, Some(*known)),
            None if value == 0 => assert_eq!(read(1, value).unwrap().datatype, None),
            None => {
                assert_eq!(
                    read(1, value),
                    Err(UnknownCode { field: "datatype", value: value.into() }.into())
                );
            }
        }
        for (byte, shift) in [(2, 0), (3, 8)] {
            let expected = match u16::from(value) << shift {
                0 => Ok(sample()),
                reserved => Err(SignatureError::Reserved(reserved)),
            };
            assert_eq!(read(byte, value), expected);
        }
    }
}

/// Case 3: 8 floats and 8 integers have the same bytes, and so have 4 doubles.
#[test]
fn calls_of_equal_bytes_differ() {
    let call = |datatype, count| CallSignature {
        datatype: Some(datatype),
        count,
        operation: Some(OperationId(1)),
        ..CallSignature::new(Collective::AllReduce)
    };
    let hashes: HashSet<u64> =
        [call(Datatype::F32, 8), call(Datatype::I32, 8), call(Datatype::F64, 4), call(Datatype::Bf16, 16)]
            .iter()
            .map(CallSignature::hash)
            .collect();
    assert_eq!(hashes.len(), 4);
}

/// Small and large counts of every collective and datatype, and single bits everywhere: no two hashes alike, and not
/// in their lower halves more often than chance has it.
#[test]
fn hashes_scatter() {
    let mut hashes = HashSet::new();
    let mut halves = HashSet::new();
    let mut calls = 0_usize;
    let mut add = |call: CallSignature| {
        calls += 1;
        assert!(hashes.insert(call.hash()), "{call:?} shares its hash");
        halves.insert(call.hash() as u32);
    };
    for collective in Collective::ALL {
        for datatype in Datatype::ALL {
            for count in (1..300).chain((9..64).map(|bit| 1 << bit)) {
                add(CallSignature { datatype: Some(datatype), count, ..CallSignature::new(collective) });
            }
        }
        for a in 0..64 {
            for b in 0..64 {
                add(CallSignature { bucket: 1 << a, layout: 1 << b, ..CallSignature::new(collective) });
            }
        }
    }
    // Among n random 32-bit values about n²/2³³ pairs are alike.
    let by_chance = (calls * calls) >> 33;
    let alike = calls - halves.len();
    assert!(alike < 3 * by_chance + 5, "{alike} of {calls}");
}

#[test]
fn digests_tell_lengths_apart() {
    let mut digests = HashSet::new();
    for fingerprint in 0..50 {
        let digest = LayoutDigest::new(fingerprint);
        assert!(digests.insert(digest.finish()));
        assert!(digests.insert(digest.length(0).finish()), "one length of 0 is not no length");
        for a in 1..20 {
            for b in 0..20 {
                assert!(digests.insert(digest.length(a).length(b).finish()));
            }
        }
    }
}

#[test]
fn descriptions() {
    let sum = OperationId(1);
    let describe = |call: CallSignature| (call.collective.name(), call.describe().to_string());
    let f32s = CallSignature {
        datatype: Some(Datatype::F32),
        count: 12,
        ..CallSignature::new(Collective::Broadcast)
    };
    assert_eq!(describe(CallSignature::new(Collective::Barrier)), ("barrier", String::new()));
    assert_eq!(
        describe(CallSignature { root: Some(3), ..f32s }),
        ("broadcast", "f32 x 12, root 3".to_owned())
    );
    assert_eq!(
        describe(CallSignature {
            bucket: 0xb,
            layout: 0xa,
            ..CallSignature::new(Collective::AllReduceGradient)
        }),
        ("all_reduce_gradient", "layout 000000000000000a x 0, bucket 000000000000000b".to_owned())
    );
    assert_eq!(
        describe(CallSignature { operation: Some(sum), collective: Collective::AllReduce, ..f32s }),
        ("all_reduce", "sum, f32 x 12".to_owned())
    );
}

mod table {
    use super::*;

    fn call(count: u64) -> CallSignature {
        CallSignature { count, datatype: Some(Datatype::F32), ..CallSignature::new(Collective::AllReduce) }
    }

    fn table(entries: &[(u32, u64)]) -> MismatchTable {
        let mut table = MismatchTable::default();
        for (rank, count) in entries {
            table.merge(&MismatchTable::new(*rank, call(*count))).unwrap();
        }
        table
    }

    #[test]
    fn merging_sorts_and_keeps_one_of_each() {
        let mut merged = table(&[(5, 12), (1, 12), (3, 10)]);
        merged.merge(&table(&[(0, 12), (3, 10), (9, 12)])).unwrap();
        assert_eq!(merged, table(&[(0, 12), (1, 12), (3, 10), (5, 12), (9, 12)]));
        assert!(!merged.agrees());
        assert_eq!(merged.calls(), [(call(12), vec![0, 1, 5, 9]), (call(10), vec![3])]);

        let before = merged.clone();
        let error = merged.merge(&table(&[(2, 12), (3, 11)])).unwrap_err();
        assert_eq!(error, TableError::Contradiction { rank: 3 });
        assert_eq!(merged, before);
        assert!(table(&[(0, 1), (1, 1)]).agrees());
    }

    #[test]
    fn refuses_what_cannot_be() {
        let good = table(&[(0, 12), (1, 10), (3, 12)]).encode();
        assert_eq!(good.len(), 3 * 48);
        assert_eq!(MismatchTable::decode(&good, 4), Ok(table(&[(0, 12), (1, 10), (3, 12)])));
        assert_eq!(MismatchTable::decode(&good, 3), Err(TableError::Rank { rank: 3 }));
        assert_eq!(MismatchTable::decode(&good, 2), Err(TableError::TooLong { entries: 3, size: 2 }));
        assert_eq!(MismatchTable::decode(&[], 0), Ok(MismatchTable::default()));
        for len in (0..good.len()).filter(|len| len % 48 != 0) {
            assert_eq!(MismatchTable::decode(&good[..len], 4), Err(TableError::Length { len }));
        }
        let change = |byte: usize, value| {
            let mut bytes = good.clone();
            bytes[byte] = value;
            MismatchTable::decode(&bytes, 4).unwrap_err()
        };
        assert_eq!(change(48, 0), TableError::Rank { rank: 0 });
        assert_eq!(change(48 + 4, 1), TableError::Reserved { rank: 1 });
        let error = UnknownCode { field: "collective", value: 200 }.into();
        assert_eq!(change(48 + 8, 200), TableError::Signature { rank: 1, error });
        assert_eq!(MismatchTable::decode(&[0xff; 48], u32::MAX), Err(TableError::Rank { rank: u32::MAX }));
    }

    #[test]
    fn reads_at_every_alignment() {
        let table = table(&[(0, 12), (1, 10)]);
        for offset in 0..16 {
            let mut bytes = vec![0xee; offset];
            bytes.extend(table.encode());
            assert_eq!(MismatchTable::decode(&bytes[offset..], 2), Ok(table.clone()));
        }
    }
}

proptest! {
    #[test]
    fn round_trip(signature in signatures()) {
        prop_assert_eq!(CallSignature::decode(&signature.encode()), Ok(signature));
    }

    #[test]
    fn equal_hashes_mean_equal_signatures(a in signatures(), b in signatures()) {
        prop_assert_eq!(a.hash() == b.hash(), a == b);
    }

    #[test]
    fn tables_round_trip(entries in prop::collection::btree_map(0..100_u32, signatures(), 0..100)) {
        let mut table = MismatchTable::default();
        for (rank, signature) in &entries {
            table.merge(&MismatchTable::new(*rank, *signature)).unwrap();
        }
        prop_assert_eq!(MismatchTable::decode(&table.encode(), 100), Ok(table));
    }
}
