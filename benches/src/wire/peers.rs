//! The peers, each with its own struct of the same fields and with buffers that are reused.

mod bincode;
mod flatbuffers;
mod prost;
mod rkyv;

use super::layer::{Layer, PAYLOAD};
use super::measure::{Copies, Table, time};
use std::hint::black_box;

/// A library that encodes the layer into one buffer of its own, and decodes it from there.
trait Codec {
    const PEER: &'static str;
    const WHAT: &'static str;

    /// The tensors in the struct that is encoded.
    fn tensors(&self) -> [&[u8]; 3];
    /// Encodes the struct anew.
    fn encode(&mut self);
    /// The message.
    fn message(&self) -> &[u8];
    /// Decodes the message with all checks, and shows where the tensors are now.
    fn decode<R>(&self, see: impl FnOnce([&[u8]; 3]) -> R) -> R;
}

pub(super) fn rows(table: &mut Table, layer: &Layer) {
    row(table, layer, rkyv::Archive::new(layer));
    row(table, layer, flatbuffers::Tables::new(layer));
    row(table, layer, bincode::Owned::new(layer));
    row(table, layer, bincode::Borrowed::new(layer));
    row(table, layer, prost::Floats::new(layer));
    row(table, layer, prost::Raw::new(layer));
}

fn row<C: Codec>(table: &mut Table, layer: &Layer, mut codec: C) {
    codec.encode();
    codec.decode(|tensors| assert!(tensors == layer.tensors(), "{} changed the values", C::PEER));
    let copies = Copies::of(&codec.tensors(), &[codec.message()])
        + codec.decode(|tensors| Copies::of(&tensors, &[codec.message()]));
    let encode = time(|| {
        codec.encode();
        black_box(codec.message());
    });
    let decode = time(|| {
        black_box(&codec).decode(|tensors| black_box(tensors).len());
    });
    table.row(C::PEER, C::WHAT, PAYLOAD, encode, decode, copies);
}
