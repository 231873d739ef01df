//! Arithmetic of remote atomics.

use gradwire_transport::{Atomic, AtomicKind, AtomicOperation};

/// Bytes of one element.
pub(crate) const fn size(kind: AtomicKind) -> usize {
    match kind {
        AtomicKind::U64 | AtomicKind::I64 | AtomicKind::F64 => 8,
        _ => 4,
    }
}

/// Changes the element and returns the old one. Both are little endian. `None` for an operation that is not known.
pub(crate) fn apply(atomic: &Atomic, element: &mut [u8]) -> Option<Vec<u8>> {
    let old = element.to_vec();
    let new = match atomic.operation {
        AtomicOperation::FetchAdd => add(atomic.kind, &old, atomic.operand)?,
        AtomicOperation::CompareSwap if old == atomic.compare.to_le_bytes()[..old.len()] => atomic.operand,
        AtomicOperation::CompareSwap => return Some(old),
        _ => return None,
    };
    element.copy_from_slice(&new.to_le_bytes()[..old.len()]);
    Some(old)
}

fn add(kind: AtomicKind, old: &[u8], operand: u64) -> Option<u64> {
    if size(kind) == 8 {
        let old = u64::from_le_bytes(old.try_into().ok()?);
        return Some(match kind {
            AtomicKind::F64 => (f64::from_bits(old) + f64::from_bits(operand)).to_bits(),
            _ => old.wrapping_add(operand),
        });
    }
    // The operand lies in the low bytes.
    let (old, operand) = (u32::from_le_bytes(old.try_into().ok()?), operand as u32);
    Some(u64::from(match kind {
        AtomicKind::F32 => (f32::from_bits(old) + f32::from_bits(operand)).to_bits(),
        _ => old.wrapping_add(operand),
    }))
}

#[cfg(test)]
mod tests {
    use super::size;
    use AtomicKind::{F32, F64, I32, I64, U32, U64};
    use AtomicOperation::{CompareSwap, FetchAdd};
    use gradwire_transport::{Atomic, AtomicKind, AtomicOperation, Region, RemoteRegion, Token};

    fn apply(
        operation: AtomicOperation,
        kind: AtomicKind,
        operand: u64,
        compare: u64,
        element: &mut [u8],
    ) -> Vec<u8> {
        let (target, fetched) = (RemoteRegion::new(0, 0), Region::new(0, 0));
        let token = Token(0);
        let (target_offset, fetched_offset) = (0, 0);
        let atomic = Atomic {
            token,
            operation,
            kind,
            operand,
            compare,
            target,
            target_offset,
            fetched,
            fetched_offset,
        };
        super::apply(&atomic, element).unwrap()
    }

    #[test]
    fn sums_are_those_of_the_format() {
        let cases: [(AtomicKind, u64, u64, u64); 8] = [
            (U32, 5, 7, 12),
            (U32, u64::from(u32::MAX), 2, 1),
            (I32, 5, u64::from(-7_i32 as u32), u64::from(-2_i32 as u32)),
            (U64, u64::MAX, 3, 2),
            (I64, 5, -7_i64 as u64, -2_i64 as u64),
            (F32, 1.5_f32.to_bits().into(), 2.25_f32.to_bits().into(), 3.75_f32.to_bits().into()),
            (F64, 1.5_f64.to_bits(), (-2.25_f64).to_bits(), (-0.75_f64).to_bits()),
            (F64, 0, 0, 0),
        ];
        for (kind, before, operand, after) in cases {
            let mut element = before.to_le_bytes()[..size(kind)].to_vec();
            let old = apply(FetchAdd, kind, operand, 0, &mut element);
            assert_eq!(old, before.to_le_bytes()[..size(kind)], "{kind:?}");
            assert_eq!(element, after.to_le_bytes()[..size(kind)], "{kind:?}");
        }
    }

    #[test]
    fn a_swap_needs_an_equal_comparand() {
        let mut element = 5_u32.to_le_bytes();
        assert_eq!(apply(CompareSwap, U32, 9, 4, &mut element), 5_u32.to_le_bytes());
        assert_eq!(element, 5_u32.to_le_bytes());
        assert_eq!(apply(CompareSwap, U32, 9, 5, &mut element), 5_u32.to_le_bytes());
        assert_eq!(element, 9_u32.to_le_bytes());
    }
}
