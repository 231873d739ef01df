//! The number formats both sides have: how values are drawn, reduced by Gradwire, and compared.

use crate::domain::Domain;
use crate::operation::Operation;
use crate::reducing::Reducing;
use fastrand::Rng;
use gradwire::{
    BitwiseAnd, BitwiseOr, BitwiseXor, Element, LogicalAnd, LogicalOr, LogicalXor, Max, Min, Product, Result,
    Sum, Window,
};
use std::fmt::Debug;

pub(crate) trait Value: Element + mpi::traits::Equivalence + PartialEq + Debug {
    fn draw(random: &mut Rng, domain: Domain) -> Self;

    /// 1 for what is not 0.
    fn truth(self) -> Self;

    /// Another value, far from this one.
    fn corrupted(self) -> Self;

    /// Lets Gradwire reduce by the operation.
    fn reduce(operation: Operation, reducing: Reducing<'_, Self>) -> Result<()>;

    /// Swaps one element of a window by Gradwire; `None` for types that neither side compares.
    fn compare_and_swap(
        window: &Window<Self>,
        rank: usize,
        offset: usize,
        comparand: Self,
        value: Self,
    ) -> Option<Result<Self>>;

    /// How far apart two results of the same contributions may be, if at all: one rounding for each addition or
    /// multiplication.
    fn tolerance(operation: Operation, contributions: &[Self]) -> f64;

    fn distance(self, other: Self) -> f64;
}

macro_rules! floats {
    ($($float:ty: $exponent:literal),*) => {$(
        impl Value for $float {
            fn draw(random: &mut Rng, _: Domain) -> Self {
                let magnitude = 0.5 + 1.5 * random.f64();
                (if random.bool() { magnitude } else { -magnitude }) as Self
            }

            fn truth(self) -> Self {
                Self::from(u8::from(self != 0.0))
            }

            fn corrupted(self) -> Self {
                Self::from_bits(self.to_bits() ^ 1 << $exponent)
            }

            fn reduce(operation: Operation, reducing: Reducing<'_, Self>) -> Result<()> {
                match operation.of_floats() {
                    Operation::Product => reducing.by(Product),
                    Operation::Min => reducing.by(Min),
                    Operation::Max => reducing.by(Max),
                    _ => reducing.by(Sum),
                }
            }

            fn compare_and_swap(_: &Window<Self>, _: usize, _: usize, _: Self, _: Self) -> Option<Result<Self>> {
                None
            }

            fn tolerance(operation: Operation, contributions: &[Self]) -> f64 {
                let magnitudes = contributions.iter().map(|value| f64::from(value.abs()));
                let magnitude: f64 = match operation.of_floats() {
                    Operation::Product => magnitudes.product(),
                    Operation::Sum => magnitudes.sum(),
                    _ => return 0.0,
                };
                magnitude * f64::from(Self::EPSILON) * contributions.len().saturating_sub(1) as f64
            }

            fn distance(self, other: Self) -> f64 {
                (f64::from(self) - f64::from(other)).abs()
            }
        }
    )*};
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Value for $integer {
            /// Zero so often that the logical operations show something.
            fn draw(random: &mut Rng, domain: Domain) -> Self {
                let any = if random.u8(..4) == 0 { 0 } else { random.u64(..) as Self };
                match domain {
                    Domain::All => any,
                    Domain::Small => any / 16,
                    Domain::LowerHalf => any & !(1 << (Self::BITS - 1)),
                }
            }

            fn truth(self) -> Self {
                Self::from(self != 0)
            }

            fn corrupted(self) -> Self {
                self ^ 1
            }

            fn reduce(operation: Operation, reducing: Reducing<'_, Self>) -> Result<()> {
                match operation {
                    Operation::Sum => reducing.by(Sum),
                    Operation::Product => reducing.by(Product),
                    Operation::Min => reducing.by(Min),
                    Operation::Max => reducing.by(Max),
                    Operation::BitwiseAnd => reducing.by(BitwiseAnd),
                    Operation::BitwiseOr => reducing.by(BitwiseOr),
                    Operation::BitwiseXor => reducing.by(BitwiseXor),
                    Operation::LogicalAnd => reducing.by(LogicalAnd),
                    Operation::LogicalOr => reducing.by(LogicalOr),
                    Operation::LogicalXor => reducing.by(LogicalXor),
                }
            }

            fn compare_and_swap(
                window: &Window<Self>,
                rank: usize,
                offset: usize,
                comparand: Self,
                value: Self,
            ) -> Option<Result<Self>> {
                Some(window.compare_and_swap(rank, offset, comparand, value))
            }

            fn tolerance(_: Operation, _: &[Self]) -> f64 {
                0.0
            }

            fn distance(self, other: Self) -> f64 {
                if self == other { 0.0 } else { f64::INFINITY }
            }
        }
    )*};
}

floats!(f32: 30, f64: 62);
integers!(i8, i16, i32, i64, u8, u16, u32, u64);
