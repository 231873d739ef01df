use super::*;
use crate::layout::{Field, FieldKind, Tensor};
use crate::{Datatype, Layout, OperationId, crc32c, golden};

mod generated_code;
mod hostile;
mod manifest;

fn hello(rank: u32, size: u32) -> Hello {
    Hello {
        job: "job-4f2a".to_owned(),
        proof: vec![0xa5; 32],
        version: "0.1.0".to_owned(),
        rank,
        size,
        epoch: 0x0102_0304,
        host: format!("node{rank}"),
        pid: 4000 + rank,
        processors: vec![0b1011, 1 << 63],
        addresses: vec![
            TransportAddress { transport: "shm".to_owned(), address: vec![1, 2, 3, rank as u8] },
            TransportAddress { transport: "tcp".to_owned(), address: b"192.0.2.7:4711".to_vec() },
        ],
    }
}

fn peer_table(size: u32) -> PeerTable {
    PeerTable { hellos: (0..size).map(|rank| hello(rank, size)).collect() }
}

fn report() -> AbortReport {
    AbortReport {
        rank: 3,
        cause: AbortCause::TimedOut,
        ranks: vec![1, 4],
        text: "all_reduce(sum, f32 x 12) gave up after 30s: waiting for ranks 1, 4".to_owned(),
        communicator: 2,
        sequence: 0x1122_3344_5566_7788,
    }
}

const fn tensor(shape: &'static [usize], run_time_length: bool) -> Tensor {
    Tensor {
        datatype: Datatype::F32,
        wire: Datatype::Bf16,
        operation: OperationId(2),
        operation_name: "average",
        shape,
        run_time_length,
    }
}

static HEAD: Layout =
    Layout::new("Head", &[Field { name: "weight", kind: FieldKind::Tensor(tensor(&[10, 4], false)) }]);
static MODEL: Layout = Layout::new(
    "Model",
    &[
        Field { name: "embedding", kind: FieldKind::Tensor(tensor(&[8], true)) },
        Field { name: "head", kind: FieldKind::Nested(&HEAD) },
        Field { name: "bias", kind: FieldKind::Tensor(tensor(&[], true)) },
    ],
);

fn manifest() -> TensorManifest {
    TensorManifest::from_layout(&MODEL, &[100, 7]).unwrap()
}

/// Each kind: its name, golden bytes, and whether bytes are read as one.
type Kind = (&'static str, Vec<u8>, fn(&[u8]) -> Result<(), ControlError>);

fn kinds() -> [Kind; 4] {
    [
        ("hello.bin", hello(1, 2).encode(), |bytes| Hello::decode(bytes).map(drop)),
        ("peer_table.bin", peer_table(2).encode(), |bytes| PeerTable::decode(bytes).map(drop)),
        ("abort_report.bin", report().encode(), |bytes| AbortReport::decode(bytes).map(drop)),
        ("tensor_manifest.bin", manifest().encode(), |bytes| TensorManifest::decode(bytes).map(drop)),
    ]
}

#[test]
fn golden_bytes() {
    for (name, bytes, _) in kinds() {
        golden::check(name, &bytes);
    }
}

/// Case 69, and every field comes back.
#[test]
fn reads_at_every_alignment() {
    for offset in 0..16 {
        let shifted = |bytes: Vec<u8>| [vec![0xee; offset], bytes].concat();
        assert_eq!(Hello::decode(&shifted(hello(1, 2).encode())[offset..]), Ok(hello(1, 2)));
        assert_eq!(PeerTable::decode(&shifted(peer_table(3).encode())[offset..]), Ok(peer_table(3)));
        assert_eq!(AbortReport::decode(&shifted(report().encode())[offset..]), Ok(report()));
        assert_eq!(TensorManifest::decode(&shifted(manifest().encode())[offset..]), Ok(manifest()));
    }
}

#[test]
fn a_large_job_fits() {
    let table = peer_table(5000);
    assert_eq!(PeerTable::decode(&table.encode()), Ok(table));
    let empty = PeerTable::default();
    assert_eq!(PeerTable::decode(&empty.encode()), Ok(empty));
    let blank = Hello::default();
    assert_eq!(Hello::decode(&blank.encode()), Ok(blank));
}

#[test]
fn refuses_every_prefix_and_every_flipped_bit() {
    for (_, bytes, decode) in kinds() {
        for len in 0..bytes.len() {
            let error = decode(&bytes[..len]).unwrap_err();
            assert!(matches!(error, ControlError::Length { .. }), "{error}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(matches!(decode(&longer), Err(ControlError::Length { .. })));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = decode(&damaged).unwrap_err();
            match bit / 8 {
                0..4 => {
                    assert!(
                        matches!(error, ControlError::Length { .. } | ControlError::TooLong { .. }),
                        "{error}"
                    );
                }
                _ => assert!(matches!(error, ControlError::Checksum { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn kinds_are_not_mixed_up() {
    let (_, bytes, _) = &kinds()[2];
    let error = Hello::decode(bytes).unwrap_err();
    assert_eq!(error.to_string(), "a control message is a AbortReport and not a Hello");
    for (made, bytes, _) in kinds() {
        for (read, _, decode) in kinds() {
            assert_eq!(decode(&bytes).is_ok(), made == read, "{made} read as {read}");
        }
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = report().encode();
    bytes[PREFIX + 4..][..4].copy_from_slice(b"GWC2");
    let crc = crc32c(&bytes[PREFIX..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(AbortReport::decode(&bytes), Err(ControlError::Identifier(*b"GWC2")));
}

#[test]
fn limits_are_kept() {
    let refused = |hello: Hello, field, count, max| {
        assert_eq!(Hello::decode(&hello.encode()), Err(ControlError::TooMany { field, count, max }));
    };
    let good = hello(0, 1);
    refused(Hello { host: "h".repeat(257), ..good.clone() }, "host", 257, 256);
    refused(Hello { proof: vec![0; 65], ..good.clone() }, "proof", 65, 64);
    refused(Hello { processors: vec![0; 257], ..good.clone() }, "processors", 257, 256);
    let address = TransportAddress { transport: "tcp".to_owned(), address: vec![7; 1025] };
    refused(Hello { addresses: vec![address], ..good.clone() }, "address", 1025, 1024);
    let addresses = vec![TransportAddress::default(); 17];
    refused(Hello { addresses, ..good }, "addresses", 17, 16);
}

#[test]
fn long_reports_are_cut_between_characters() {
    let long = AbortReport { text: "é".repeat(3000), ..report() };
    assert_eq!(AbortReport::decode(&long.encode()).unwrap().text, "é".repeat(2048));
    let long = AbortReport { text: format!("x{}", "é".repeat(3000)), ..report() };
    assert_eq!(AbortReport::decode(&long.encode()).unwrap().text.len(), 4095);
}

/// Case 35: ranks out of place, and ranks that believe in different sizes.
#[test]
fn peer_tables_are_complete_and_in_order() {
    let mut table = peer_table(3);
    table.hellos[2].rank = 1;
    let error = ControlError::Rank { index: 2, rank: 1, size: 3, entries: 3 };
    assert_eq!(PeerTable::decode(&table.encode()), Err(error));
    let mut table = peer_table(3);
    table.hellos[1].size = 4;
    let error = ControlError::Rank { index: 1, rank: 1, size: 4, entries: 3 };
    assert_eq!(PeerTable::decode(&table.encode()), Err(error));
}
