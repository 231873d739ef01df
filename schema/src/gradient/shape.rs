//! The types that are tensors, and their shapes.

use super::{Field, Gradient, Item, Nested, Numbers, Parts, Reader, TensorField, TensorName, ViewError};
use crate::{F8E4m3, F8E5m2};
use half::{bf16, f16};
use zerocopy::IntoBytes;

/// How many dimensions known at compile time a tensor may have.
const MAX_DIMENSIONS: usize = 8;

/// Extents of a constant shape, outermost first.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    extents: [usize; MAX_DIMENSIONS],
    dimensions: usize,
}

impl Extents {
    /// Those of a number.
    const NUMBER: Self = Self { extents: [0; MAX_DIMENSIONS], dimensions: 0 };

    /// Those of an array of `length` such items.
    const fn array(&self, length: usize) -> Self {
        assert!(
            self.dimensions < MAX_DIMENSIONS,
            "a tensor has at most eight dimensions known at compile time"
        );
        let mut extents = [0; MAX_DIMENSIONS];
        extents[0] = length;
        let mut index = 0;
        while index < self.dimensions {
            extents[index + 1] = self.extents[index];
            index += 1;
        }
        Self { extents, dimensions: self.dimensions + 1 }
    }

    const fn as_slice(&self) -> &[usize] {
        self.extents.split_at(self.dimensions).0
    }
}

#[diagnostic::do_not_recommend]
impl<G: Gradient> Field for G {
    type Kind = Nested;
    type View<'a> = G::View<'a>;

    #[inline]
    fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P) {
        Gradient::parts(self, parts);
    }

    #[inline]
    fn read<'a>(reader: &mut Reader<'a>, _: TensorName) -> Result<G::View<'a>, ViewError> {
        G::read(reader)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            type Kind = Numbers;
            type View<'a> = &'a Self;

            #[inline]
            fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P) {
                parts.tensor(self.as_bytes(), None);
            }

            #[inline]
            fn read<'a>(reader: &mut Reader<'a>, name: TensorName) -> Result<&'a Self, ViewError> {
                reader.item(name)
            }
        }

        impl TensorField for $number {
            type Element = Self;
            const SHAPE: &'static [usize] = &[];
            const RUN_TIME_LENGTH: bool = false;

            fn values_mut(&mut self) -> &mut [Self] {
                std::slice::from_mut(self)
            }
        }

        impl Item for $number {
            const EXTENTS: &'static Extents = &Extents::NUMBER;

            fn flatten(items: &[Self]) -> &[Self] {
                items
            }

            fn flatten_mut(items: &mut [Self]) -> &mut [Self] {
                items
            }
        }
    )*};
}

numbers!(f64, f32, f16, bf16, F8E4m3, F8E5m2, i8, i16, i32, i64, u8, u16, u32, u64);

impl<X: Item, const N: usize> Field for [X; N] {
    type Kind = Numbers;
    type View<'a> = &'a Self;

    #[inline]
    fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P) {
        parts.tensor(self.as_bytes(), None);
    }

    #[inline]
    fn read<'a>(reader: &mut Reader<'a>, name: TensorName) -> Result<&'a Self, ViewError> {
        reader.item(name)
    }
}

impl<X: Item, const N: usize> TensorField for [X; N] {
    type Element = X::Element;
    const SHAPE: &'static [usize] = Self::EXTENTS.as_slice();
    const RUN_TIME_LENGTH: bool = false;

    fn values_mut(&mut self) -> &mut [X::Element] {
        X::flatten_mut(self)
    }
}

impl<X: Item, const N: usize> Item for [X; N] {
    const EXTENTS: &'static Extents = &X::EXTENTS.array(N);

    fn flatten(items: &[Self]) -> &[X::Element] {
        X::flatten(items.as_flattened())
    }

    fn flatten_mut(items: &mut [Self]) -> &mut [X::Element] {
        X::flatten_mut(items.as_flattened_mut())
    }
}

impl<X: Item, const N: usize> Field for Box<[X; N]> {
    type Kind = Numbers;
    type View<'a> = &'a [X; N];

    #[inline]
    fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P) {
        parts.tensor(self.as_slice().as_bytes(), None);
    }

    #[inline]
    fn read<'a>(reader: &mut Reader<'a>, name: TensorName) -> Result<&'a [X; N], ViewError> {
        reader.item(name)
    }
}

impl<X: Item, const N: usize> TensorField for Box<[X; N]> {
    type Element = X::Element;
    const SHAPE: &'static [usize] = <[X; N]>::SHAPE;
    const RUN_TIME_LENGTH: bool = false;

    fn values_mut(&mut self) -> &mut [X::Element] {
        X::flatten_mut(self.as_mut_slice())
    }
}

macro_rules! run_time_length {
    ($($list:ty),*) => {$(
        impl<X: Item> Field for $list {
            type Kind = Numbers;
            type View<'a> = &'a [X];

            #[inline]
            fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P) {
                parts.tensor(self[..].as_bytes(), Some(self.len()));
            }

            #[inline]
            fn read<'a>(reader: &mut Reader<'a>, name: TensorName) -> Result<&'a [X], ViewError> {
                reader.items(name)
            }
        }

        impl<X: Item> TensorField for $list {
            type Element = X::Element;
            const SHAPE: &'static [usize] = X::SHAPE;
            const RUN_TIME_LENGTH: bool = true;

            fn values_mut(&mut self) -> &mut [X::Element] {
                X::flatten_mut(self)
            }
        }
    )*};
}

run_time_length!(Vec<X>, Box<[X]>);
