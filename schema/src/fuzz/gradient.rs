//! A gradient written by hand, as the derive would write it, to be read from any bytes.

use super::looked_at;
use crate::gradient::{
    Field as _, Header, Parts, Reader, StaticReduction, TensorField as _, TensorName, ViewError,
};
use crate::layout::{Field, FieldKind, Tensor};
use crate::operation::{Max, Sum};
use crate::{Datatype, FieldVisitor, Gradient, Layout};
use zerocopy::IntoBytes;

/// A gradient on the wire; as it is, then with a header that fits.
pub fn gradient(bytes: &[u8]) {
    read(bytes);
    let mut forged = bytes.to_vec();
    Header::forge(Sample::LAYOUT, &mut forged);
    read(&forged);
}

fn read(bytes: &[u8]) {
    // Memory as a receiver has it: at a multiple of 8.
    let mut memory = vec![0_u64; bytes.len().div_ceil(8)];
    let memory = &mut memory.as_mut_bytes()[..bytes.len()];
    memory.copy_from_slice(bytes);

    let mut reduced = Sample { rows: vec![[1.0; 3]; 2], ..Sample::default() };
    let before = reduced.clone();
    let outcome = reduced.reduce_from(memory);
    let Some(view) = looked_at(Sample::view(memory)) else {
        assert!(outcome.is_err());
        assert_eq!(reduced, before);
        return;
    };
    assert_eq!(outcome.is_ok(), view.0.len() == 2 && view.1.is_empty());
    let sample = Sample { rows: view.0.to_vec(), words: view.1.to_vec(), tail: *view.2, scale: *view.3 };
    assert_eq!(encoded(&sample), bytes);
}

/// The bytes that fuzzing begins with.
#[cfg(test)]
pub(super) fn sample() -> Vec<u8> {
    let rows = vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    encoded(&Sample { rows, words: vec![7; 9], tail: [1, 2, 3, 4, 5], scale: 0.5 })
}

fn encoded(sample: &Sample) -> Vec<u8> {
    let mut bytes = Vec::new();
    sample.for_each_part(|part| bytes.extend_from_slice(part));
    bytes
}

#[derive(Clone, PartialEq, Default, Debug)]
struct Sample {
    rows: Vec<[f32; 3]>,
    words: Vec<u64>,
    tail: [u8; 5],
    scale: f32,
}

const fn field<R: StaticReduction>(
    name: &'static str,
    datatype: Datatype,
    shape: &'static [usize],
    run_time_length: bool,
) -> Field {
    let tensor = Tensor {
        datatype,
        wire: datatype,
        operation: R::ID,
        operation_name: R::NAME,
        shape,
        run_time_length,
    };
    Field { name, kind: FieldKind::Tensor(tensor) }
}

static FIELDS: [Field; 4] = [
    field::<Sum>("rows", Datatype::F32, &[3], true),
    field::<Sum>("words", Datatype::U64, &[], true),
    field::<Max>("tail", Datatype::U8, &[5], false),
    field::<Sum>("scale", Datatype::F32, &[], false),
];

impl Gradient for Sample {
    const LAYOUT: &'static Layout = &Layout::new("Sample", &FIELDS);

    type View<'a> = (&'a [[f32; 3]], &'a [u64], &'a [u8; 5], &'a f32);

    fn visit<V: FieldVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        let [rows, words, tail, scale] = &FIELDS;
        visit::<_, _, Sum>(visitor, rows, self.rows.as_flattened_mut(), &Sum)?;
        visit::<_, _, Sum>(visitor, words, &mut self.words, &Sum)?;
        visit::<_, _, Max>(visitor, tail, &mut self.tail, &Max)?;
        visit::<_, _, Sum>(visitor, scale, self.scale.values_mut(), &Sum)
    }

    fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P) {
        self.rows.parts(parts);
        self.words.parts(parts);
        self.tail.parts(parts);
        self.scale.parts(parts);
    }

    fn read<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, ViewError> {
        let name = |field| TensorName { structure: "Sample", field };
        Ok((
            Vec::<[f32; 3]>::read(reader, name("rows"))?,
            Vec::<u64>::read(reader, name("words"))?,
            <[u8; 5]>::read(reader, name("tail"))?,
            f32::read(reader, name("scale"))?,
        ))
    }
}

fn visit<T, V, R>(
    visitor: &mut V,
    field: &'static Field,
    values: &mut [T],
    reduction: &R,
) -> Result<(), V::Error>
where
    T: crate::Element,
    V: FieldVisitor,
    R: crate::Reduction<T>,
{
    match &field.kind {
        FieldKind::Tensor(tensor) => visitor.tensor::<T, T, R>(field, tensor, values, reduction),
        FieldKind::Nested(_) => Ok(()),
    }
}
