//! Which atomics the provider has. What it says when it is chosen is not enough: each type and operation is asked for.

use crate::sys::{FI_CSWAP, FI_DOUBLE, FI_FLOAT, FI_INT32, FI_INT64, FI_SUM, FI_UINT32, FI_UINT64};
use crate::wire::Wire;
use gradwire_transport::{Atomic, AtomicKind, AtomicOperation};
use std::ffi::c_int;

/// The types that a provider must have for the transport to say that it has atomics.
const NEEDED: [c_int; 2] = [FI_UINT32, FI_UINT64];

/// One that the provider has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub(crate) kind: c_int,
    pub(crate) operation: c_int,
    pub(crate) compares: bool,
    /// Bytes of an element.
    pub(crate) size: usize,
}

/// Those that the provider has.
#[derive(Debug)]
pub(crate) struct Atomics(Vec<Known>);

impl Atomics {
    pub(crate) fn probe<W>(wire: &Wire<W>) -> Self {
        let kinds =
            [(FI_UINT32, 4), (FI_UINT64, 8), (FI_INT32, 4), (FI_INT64, 8), (FI_FLOAT, 4), (FI_DOUBLE, 8)];
        let all = kinds.into_iter().flat_map(|(kind, size)| {
            [(FI_SUM, false), (FI_CSWAP, true)].map(|(operation, compares)| Known {
                kind,
                operation,
                compares,
                size,
            })
        });
        Self(all.filter(|known| wire.has_atomic(known.kind, known.operation, known.compares)).collect())
    }

    /// Whether there is every operation on the unsigned integers.
    pub(crate) fn are_complete(&self) -> bool {
        let has = |kind: c_int| self.0.iter().filter(|known| known.kind == kind).count() == 2;
        NEEDED.into_iter().all(has)
    }

    pub(crate) fn find(&self, atomic: &Atomic) -> Option<Known> {
        let kind = match atomic.kind {
            AtomicKind::U32 => FI_UINT32,
            AtomicKind::U64 => FI_UINT64,
            AtomicKind::I32 => FI_INT32,
            AtomicKind::I64 => FI_INT64,
            AtomicKind::F32 => FI_FLOAT,
            AtomicKind::F64 => FI_DOUBLE,
            _ => return None,
        };
        let operation = match atomic.operation {
            AtomicOperation::FetchAdd => FI_SUM,
            AtomicOperation::CompareSwap => FI_CSWAP,
            _ => return None,
        };
        self.0.iter().find(|known| known.kind == kind && known.operation == operation).copied()
    }
}
