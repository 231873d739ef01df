//! The cost of the wire format: a derived struct with a mebibyte of gradients beside rkyv, FlatBuffers, bincode and
//! prost.
//!
//! Encoding begins with the struct in memory and ends with bytes, or slices, that can be handed to a vectored write.
//! Decoding begins with received bytes and ends with a reference to every tensor, after every check that the library
//! offers. `bytes_copied` is counted, not claimed: the tensor bytes that after encoding do not lie where they lay in
//! the struct, and after decoding not where they lay in the message. `allocations` counts calls of the allocator in
//! one encode and one decode, once buffers are warm.

mod layer;
mod measure;
mod peers;
mod stream;
mod words;

use layer::Layer;
use measure::{Copies, Table, time};

/// Prints the table, or comma-separated values.
///
/// # Errors
///
/// When the loopback connection of the last row cannot be made.
pub fn run(csv: bool) -> std::io::Result<()> {
    let layer = Layer::new();
    let mut table = Table::new(csv);
    memcpy(&mut table, &layer);
    words::frame_header(&mut table);
    words::call_signature(&mut table);
    layer::row(&mut table, &layer);
    peers::rows(&mut table, &layer);
    stream::row(&mut table, &layer)
}

/// The control: the tensors copied to a message and back.
fn memcpy(table: &mut Table, layer: &Layer) {
    let mut message = vec![0; layer::PAYLOAD];
    let mut back = vec![0; layer::PAYLOAD];
    let encode = time(|| {
        let mut rest = &mut message[..];
        for tensor in layer.tensors() {
            let (place, next) = rest.split_at_mut(tensor.len());
            place.copy_from_slice(tensor);
            rest = next;
        }
        std::hint::black_box(&message);
    });
    let decode = time(|| {
        back.copy_from_slice(&message);
        std::hint::black_box(&back);
    });
    let copies = Copies::of(&layer.tensors(), &[&message]) + Copies::of(&[&back], &[&message]);
    table.row("control", "memcpy", layer::PAYLOAD, encode, decode, copies);
}
