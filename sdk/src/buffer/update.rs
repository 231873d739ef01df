//! What accumulates do with the bits of elements.

use super::exposed::BLOCK;
use gradwire_schema::gradient::wire::{bf16, f16};
use gradwire_schema::operation::{
    BitwiseAnd, BitwiseOr, BitwiseXor, LogicalAnd, LogicalOr, LogicalXor, Max, Min, Product, Sum,
};
use gradwire_schema::{Arithmetic, Datatype, Element, F8E4m3, F8E5m2, Integer, Reduction, WindowUpdate};

/// Replaces each of `current` by its combination with the operand beside it. The bits of an element are in the low bytes of
/// a word.
pub(super) type Combine = fn(current: &mut [u64], operand: &[u64]);

/// What an update does to elements of a format; `None` where it means nothing: floats have no bitwise operations.
pub(super) fn combine_of(datatype: Datatype, update: WindowUpdate) -> Option<Combine> {
    match datatype {
        Datatype::F64 => of_number::<f64>(update),
        Datatype::F32 => of_number::<f32>(update),
        Datatype::F16 => of_number::<f16>(update),
        Datatype::Bf16 => of_number::<bf16>(update),
        Datatype::F8E4m3 => of_number::<F8E4m3>(update),
        Datatype::F8E5m2 => of_number::<F8E5m2>(update),
        Datatype::I8 => of_integer::<i8>(update),
        Datatype::I16 => of_integer::<i16>(update),
        Datatype::I32 => of_integer::<i32>(update),
        Datatype::I64 => of_integer::<i64>(update),
        Datatype::U8 => of_integer::<u8>(update),
        Datatype::U16 => of_integer::<u16>(update),
        Datatype::U32 => of_integer::<u32>(update),
        Datatype::U64 => of_integer::<u64>(update),
        _ => None,
    }
}

fn of_integer<T: Integer>(update: WindowUpdate) -> Option<Combine> {
    Some(match update {
        WindowUpdate::BitwiseAnd => reduce::<T, BitwiseAnd>,
        WindowUpdate::BitwiseOr => reduce::<T, BitwiseOr>,
        WindowUpdate::BitwiseXor => reduce::<T, BitwiseXor>,
        WindowUpdate::LogicalAnd => reduce::<T, LogicalAnd>,
        WindowUpdate::LogicalOr => reduce::<T, LogicalOr>,
        WindowUpdate::LogicalXor => reduce::<T, LogicalXor>,
        _ => return of_number::<T>(update),
    })
}

fn of_number<T: Arithmetic>(update: WindowUpdate) -> Option<Combine> {
    Some(match update {
        WindowUpdate::Sum => reduce::<T, Sum>,
        WindowUpdate::Product => reduce::<T, Product>,
        WindowUpdate::Min => reduce::<T, Min>,
        WindowUpdate::Max => reduce::<T, Max>,
        WindowUpdate::Replace => <[u64]>::copy_from_slice,
        WindowUpdate::Keep => |_, _| {},
        _ => return None,
    })
}

fn reduce<T: Element, R: Reduction<T> + Default>(current: &mut [u64], operand: &[u64]) {
    match current.len() {
        // Counters and locks: no arrays to fill.
        1 => reduce_block::<T, R, 1>(current, operand),
        _ => {
            for (current, operand) in current.chunks_mut(BLOCK).zip(operand.chunks(BLOCK)) {
                reduce_block::<T, R, BLOCK>(current, operand);
            }
        }
    }
}

fn reduce_block<T: Element, R: Reduction<T> + Default, const N: usize>(current: &mut [u64], operand: &[u64]) {
    let count = current.len().min(operand.len()).min(N);
    let (mut values, mut operands) = ([T::default(); N], [T::default(); N]);
    let mut accumulators = [R::Accumulator::default(); N];
    for index in 0..count {
        values[index] = from_bits(current[index]);
        operands[index] = from_bits(operand[index]);
    }
    let reduction = R::default();
    reduction.lift(&values[..count], &mut accumulators[..count]);
    reduction.combine(&mut accumulators[..count], &operands[..count]);
    reduction.finish(&accumulators[..count], 2, &mut values[..count]);
    current.iter_mut().zip(&values[..count]).for_each(|(bits, value)| *bits = to_bits(*value));
}

fn from_bits<T: Element>(bits: u64) -> T {
    T::unpack(&bits.to_le_bytes()[..size_of::<T>()]).unwrap_or_default()
}

fn to_bits<T: Element>(value: T) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    value.pack(&mut bytes[..size_of::<T>()]);
    u64::from_le_bytes(bytes)
}
