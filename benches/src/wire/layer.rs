//! The struct that everyone sends, and Gradwire's row.

use super::measure::{Copies, Table, time};
use gradwire::Gradient;
use std::hint::black_box;
use std::io::IoSlice;
use zerocopy::IntoBytes;

/// Bytes of the three tensors together.
pub(super) const PAYLOAD: usize = 1 << 20;
const ROWS: usize = 1020;

/// A layer of a network.
#[derive(Gradient)]
#[gradient(reduce = Average)]
pub(super) struct Layer {
    pub(super) weight: Vec<[f32; 256]>,
    pub(super) bias: [f32; 256],
    pub(super) scale: [f32; 768],
    #[gradient(reduce = Sum)]
    pub(super) samples: u64,
}

impl Layer {
    pub(super) fn new() -> Self {
        let weight = |row: usize| std::array::from_fn(|column| (row * 256 + column) as f32 * 0.5);
        Self {
            weight: (0..ROWS).map(weight).collect(),
            bias: std::array::from_fn(|index| index as f32 - 100.0),
            scale: std::array::from_fn(|index| 1.0 / (1.0 + index as f32)),
            samples: 64,
        }
    }

    /// The bytes of the tensors.
    pub(super) fn tensors(&self) -> [&[u8]; 3] {
        [self.weight.as_bytes(), self.bias.as_bytes(), self.scale.as_bytes()]
    }
}

/// Memory to receive into: aligned as page-aligned regions are.
pub(super) struct Region(Vec<Line>);

#[derive(Clone, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Region {
    pub(super) fn new(len: usize) -> Self {
        Self(vec![Line([0; 64]); len.div_ceil(64)])
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_bytes()
    }
}

/// The layer as it arrives: every byte in its place in a region.
pub(super) fn received(layer: &Layer) -> Region {
    let mut message = Vec::new();
    layer.for_each_part(|part| message.extend_from_slice(part));
    let mut region = Region::new(message.len());
    region.bytes_mut().copy_from_slice(&message);
    region
}

#[inline(never)]
fn encode(layer: &Layer) {
    let mut prefix = [0; Layer::PREFIX_SIZE];
    let mut parts = [IoSlice::new(&[]); Layer::MAX_PARTS];
    black_box(layer.encode(&mut prefix, &mut parts).is_ok());
    black_box(&parts);
}

#[inline(never)]
fn decode(bytes: &[u8]) {
    black_box(Layer::view(bytes).ok());
}

pub(super) fn row(table: &mut Table, layer: &Layer) {
    let region = received(layer);
    let mut prefix = [0; Layer::PREFIX_SIZE];
    let mut parts = [IoSlice::new(&[]); Layer::MAX_PARTS];
    let parts: Vec<&[u8]> = match layer.encode(&mut prefix, &mut parts) {
        Ok(parts) => parts.iter().map(|part| &**part).collect(),
        Err(error) => unreachable!("{error}"),
    };
    let view = match Layer::view(region.bytes()) {
        Ok(view) => view,
        Err(error) => unreachable!("{error}"),
    };
    let seen: [&[u8]; 3] = [view.weight.as_bytes(), view.bias.as_bytes(), view.scale.as_bytes()];
    assert_eq!(seen, layer.tensors());
    let copies = Copies::of(&layer.tensors(), &parts) + Copies::of(&seen, &[region.bytes()]);
    let encode = time(|| encode(black_box(layer)));
    let decode = time(|| decode(black_box(region.bytes())));
    table.row("gradwire", "derive(Gradient): slices / view", PAYLOAD, encode, decode, copies);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_mebibyte() {
        assert_eq!(Layer::new().tensors().iter().map(|tensor| tensor.len()).sum::<usize>(), PAYLOAD);
    }

    /// What flatc was given for the FlatBuffers row, but for the comments at the top.
    #[test]
    fn has_the_committed_schema() {
        assert!(Layer::schema().ends_with(include_str!("generated/layer.fbs")), "{}", Layer::schema());
    }
}
