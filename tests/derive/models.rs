//! Structs of every shape that `#[derive(Gradient)]` takes.

use gradwire::Gradient;
use gradwire_schema::gradient::StaticReduction;
use gradwire_schema::{Element, F8E4m3, Float, OperationId, Properties, Reduction};
use half::{bf16, f16};
use std::marker::PhantomData;

#[derive(Gradient, Clone, PartialEq, Debug)]
#[gradient(reduce = Average)]
pub(crate) struct Mlp<const H: usize> {
    pub(crate) w1: Box<[[f32; H]]>,
    pub(crate) b1: [f32; H],
    #[gradient(wire = bf16)]
    pub(crate) w2: Vec<f32>,
    #[gradient(reduce = Max)]
    pub(crate) grad_norm: f32,
    #[gradient(reduce = Sum)]
    pub(crate) samples: u64,
    pub(crate) head: Head,
    #[gradient(skip)]
    pub(crate) step: usize,
}

#[derive(Gradient, Clone, PartialEq, Debug)]
pub(crate) struct Head {
    #[gradient(rename = "head.weight")]
    pub(crate) weight: Vec<[[bf16; 3]; 2]>,
    pub(crate) r#type: i8,
}

/// Values that differ per element, and by `seed`.
pub(crate) fn mlp(seed: u8) -> Mlp<3> {
    let number = f32::from(seed);
    Mlp {
        w1: (0..2).map(|row| [0, 1, 2].map(|column| number + (row * 3 + column) as f32)).collect(),
        b1: [number - 1.0, number - 2.0, number - 3.0],
        w2: (0..20).map(|index| number * index as f32).collect(),
        grad_norm: number / 2.0,
        samples: 1000 + u64::from(seed),
        head: Head {
            weight: vec![[[bf16::from_f32(number); 3], [bf16::from_f32(-number); 3]]],
            r#type: seed as i8,
        },
        step: usize::from(seed),
    }
}

#[derive(Gradient)]
pub(crate) struct Tuple(
    pub(crate) Vec<f64>,
    #[gradient(skip)] pub(crate) &'static str,
    pub(crate) Box<[u16; 5]>,
);

/// Aliases are no riddle: types decide, not their names.
pub(crate) type Weights<T> = Vec<T>;

#[derive(Gradient)]
pub(crate) struct Generic<T: Float, E, A, M = ()>
where
    E: Element,
    A: Gradient,
{
    #[gradient(reduce = Average)]
    pub(crate) floats: Weights<T>,
    #[gradient(reduce = self::First)]
    pub(crate) one: E,
    pub(crate) inner: A,
    pub(crate) marker: PhantomData<M>,
}

/// An operation of the user's: the first contribution stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First;

impl StaticReduction for First {
    const ID: OperationId = OperationId::of_name("first");
    const NAME: &'static str = "first";
}

impl<T: Element> Reduction<T> for First {
    type Accumulator = T;

    fn properties(&self) -> Properties {
        Properties { id: Self::ID, name: Self::NAME, commutative: false, associative: true }
    }

    fn lift(&self, source: &[T], accumulators: &mut [T]) {
        accumulators.copy_from_slice(source);
    }

    fn combine(&self, _: &mut [T], _: &[T]) {}

    fn merge(&self, _: &mut [T], _: &[T]) {}

    fn finish(&self, accumulators: &[T], _: u64, destination: &mut [T]) {
        destination.copy_from_slice(accumulators);
    }
}

/// Many number formats, wide gaps and nothing at all.
#[derive(Gradient, Clone, PartialEq, Debug)]
pub(crate) struct Wide {
    pub(crate) bytes: Vec<u8>,
    pub(crate) halves: [f16; 32],
    pub(crate) doubles: [[f64; 2]; 4],
    pub(crate) none: [f32; 0],
    pub(crate) longs: Box<[i64]>,
    #[gradient(reduce = BitwiseOr)]
    pub(crate) flags: u32,
    pub(crate) words: [i16; 1],
    pub(crate) small: F8E4m3,
}

pub(crate) fn wide(bytes: usize, longs: usize) -> Wide {
    Wide {
        bytes: (0..bytes).map(|index| index as u8).collect(),
        halves: std::array::from_fn(|index| f16::from_f32(index as f32)),
        doubles: [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5], [6.5, f64::NAN]],
        none: [],
        longs: (0..longs).map(|index| -(index as i64)).collect(),
        flags: 0xdead_beef,
        words: [-2],
        small: F8E4m3::from_f32(3.5),
    }
}
