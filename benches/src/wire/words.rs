//! The fixed-size forms: what stands in front of every payload.

use super::measure::{Table, time};
use gradwire_schema::{CallSignature, Collective, Datatype, FrameHeader, FrameKind};
use std::hint::black_box;

pub(super) fn frame_header(table: &mut Table) {
    let mut header = FrameHeader::new(FrameKind::Eager);
    header.payload_len = 1 << 20;
    let bytes = header.encode();
    let encode = time(|| {
        header.sequence += 1;
        black_box(black_box(&header).encode());
    });
    let decode = time(|| {
        let _ = black_box(FrameHeader::read(black_box(&bytes[..])));
    });
    table.row("gradwire", "frame header with CRC32C", FrameHeader::LEN, encode, decode, 0);
}

pub(super) fn call_signature(table: &mut Table) {
    let mut call = CallSignature {
        datatype: Some(Datatype::F32),
        count: 1 << 18,
        ..CallSignature::new(Collective::AllReduce)
    };
    let bytes = call.encode();
    let encode = time(|| {
        call.count += 1;
        black_box((black_box(&call).encode(), call.hash()));
    });
    let decode = time(|| {
        let _ = black_box(CallSignature::decode(black_box(&bytes)));
    });
    table.row("gradwire", "call signature: with hash / without", CallSignature::LEN, encode, decode, 0);
}
