//! What a peer that means harm could send: lengths, counts and codes that cannot be.

use super::kinds;
use crate::control::envelope::{Body, Builder, seal};
use crate::control::{
    AbortCause, AbortReport, ControlError, MAX_MESSAGE, PREFIX, PeerTable, TensorManifest, announced_len,
    wire,
};
use crate::{Datatype, UnknownCode, fuzz};
use flatbuffers::{FlatBufferBuilder, WIPOffset};

/// Case 59: what a prefix may announce.
#[test]
fn announced_lengths() {
    let max = 4096_u32;
    for len in [0, 1, max - 1, max, max + 1, 1 << 31, u32::MAX] {
        let mut prefix = [0; PREFIX];
        prefix[..4].copy_from_slice(&len.to_le_bytes());
        let expected = if len <= max {
            Ok(len as usize)
        } else {
            Err(ControlError::TooLong { len: len.into(), max: max.into() })
        };
        assert_eq!(announced_len(&prefix, max as usize), expected);
        assert_eq!(announced_len(&prefix, usize::MAX).is_ok(), len as usize <= MAX_MESSAGE);
        for (_, _, decode) in kinds() {
            let error = decode(&prefix).unwrap_err();
            assert!(matches!(error, ControlError::Length { .. } | ControlError::TooLong { .. }), "{error}");
        }
    }
}

/// Cases 60 and 62: each 32-bit word of each message, one of which is each count, length and offset, holds each of
/// these values in turn, with a checksum that fits.
#[test]
fn announced_counts() {
    for (_, bytes, decode) in kinds() {
        let message = &bytes[PREFIX..];
        let mut refused = 0;
        for at in (0..message.len() - 3).step_by(4) {
            for value in [0, 1, 8, 0xffff, 1 << 20, 1 << 24, i32::MAX as u32, 1 << 31, u32::MAX - 7, u32::MAX]
            {
                let mut changed = message.to_vec();
                changed[at..][..4].copy_from_slice(&value.to_le_bytes());
                let changed = fuzz::sealed(&changed);
                refused += usize::from(decode(&changed).is_err());
                fuzz::control(&changed);
            }
        }
        assert!(refused > message.len() / 4, "only {refused} were refused");
    }
}

/// Case 60: entries that all point to the same bytes. Many are refused with the structure, few when they are read.
#[test]
fn shared_entries_do_not_multiply() {
    let shared = |entries: usize, name: &str| {
        seal(|builder| {
            let name = builder.create_string(name);
            let args = wire::TensorFieldArgs {
                name: Some(name),
                operation_name: Some(name),
                extents: Some(builder.create_vector::<u64>(&[])),
                datatype: Datatype::F32.code(),
                wire: Datatype::F32.code(),
                ..Default::default()
            };
            let field = wire::TensorField::create(builder, &args);
            manifest_of(builder, &vec![field; entries])
        })
    };
    let error = TensorManifest::decode(&shared(10_000, "weight")).unwrap_err();
    assert!(matches!(error, ControlError::Malformed(_)), "{error}");
    let error = TensorManifest::decode(&shared(2, &"w".repeat(500))).unwrap_err();
    assert_eq!(error, ControlError::Shared { field: "operation_name" });
}

fn manifest_of(builder: &mut Builder, fields: &[WIPOffset<wire::TensorField<'static>>]) -> Body {
    let args = wire::TensorManifestArgs {
        name: Some(builder.create_string("Model")),
        fingerprint: 1,
        fields: Some(builder.create_vector(fields)),
    };
    (wire::Body::TensorManifest, wire::TensorManifest::create(builder, &args).as_union_value())
}

/// Case 70: all values of each code, in messages that are right otherwise.
#[test]
fn all_values_of_every_code() {
    for value in 0..=u8::MAX {
        let bytes = seal(|builder| {
            let args = wire::AbortReportArgs {
                cause: wire::Cause(value),
                ranks: Some(builder.create_vector::<u32>(&[])),
                text: Some(builder.create_string("")),
                ..Default::default()
            };
            (wire::Body::AbortReport, wire::AbortReport::create(builder, &args).as_union_value())
        });
        let unknown = |field| ControlError::Unknown(UnknownCode { field, value: value.into() });
        let cause = AbortReport::decode(&bytes).map(|report| report.cause);
        match AbortCause::ALL.iter().find(|cause| cause.code() == value) {
            Some(known) => assert_eq!(cause, Ok(*known)),
            None => assert_eq!(cause, Err(unknown("cause"))),
        }

        for (datatype, wire_type) in [(value, 1), (1, value)] {
            let bytes = seal(|builder| {
                let args = wire::TensorFieldArgs {
                    name: Some(builder.create_string("weight")),
                    datatype,
                    wire: wire_type,
                    operation_name: Some(builder.create_string("sum")),
                    extents: Some(builder.create_vector::<u64>(&[])),
                    ..Default::default()
                };
                let field = wire::TensorField::create(builder, &args);
                manifest_of(builder, &[field])
            });
            let known = Datatype::ALL.iter().any(|datatype| datatype.code() == value);
            match TensorManifest::decode(&bytes) {
                Ok(manifest) => {
                    assert!(known);
                    assert_eq!(manifest.fields[0].datatype.code(), datatype);
                    assert_eq!(manifest.fields[0].wire.code(), wire_type);
                }
                Err(error) => assert_eq!((known, error), (false, unknown("datatype"))),
            }
        }

        // The kind of message.
        let mut builder = FlatBufferBuilder::new();
        let args =
            wire::PeerTableArgs { hellos: Some(builder.create_vector::<WIPOffset<wire::Hello<'_>>>(&[])) };
        let table = wire::PeerTable::create(&mut builder, &args);
        let args = wire::MessageArgs { body_type: wire::Body(value), body: Some(table.as_union_value()) };
        let message = wire::Message::create(&mut builder, &args);
        wire::finish_message_buffer(&mut builder, message);
        let read = PeerTable::decode(&fuzz::sealed(builder.finished_data()));
        assert_eq!(read.is_ok(), value == wire::Body::PeerTable.0, "{read:?}");
    }
}
