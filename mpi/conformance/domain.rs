//! Which integers to draw: all that the MPI library reduces as it should.

use crate::call::Type;
use crate::operation::Operation;

/// MPI libraries with habits of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Library {
    /// Sums 8 and 16 bits with saturation where its vector instructions do (seen in 4.1.4); MPI does not say what a
    /// sum is that does not fit.
    OpenMpi,
    /// Compares unsigned integers as signed ones in MIN and MAX (seen in 4.0.2).
    Mpich,
    Other,
}

impl Library {
    /// The library that calls itself so.
    pub(crate) fn of(version: &str) -> Self {
        if version.contains("Open MPI") {
            Self::OpenMpi
        } else if version.contains("MPICH") {
            Self::Mpich
        } else {
            Self::Other
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Domain {
    /// Any bits.
    All,
    /// So small that the sum of those of 16 ranks fits.
    Small,
    /// The highest bit is 0.
    LowerHalf,
}

impl Domain {
    pub(crate) fn of(library: Library, datatype: Type, operation: Operation) -> Self {
        let is_narrow = matches!(datatype, Type::I8 | Type::I16 | Type::U8 | Type::U16);
        match (library, operation) {
            (Library::OpenMpi, Operation::Sum) if is_narrow => Self::Small,
            (Library::Mpich, Operation::Min | Operation::Max) => Self::LowerHalf,
            _ => Self::All,
        }
    }
}
