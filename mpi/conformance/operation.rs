//! The operations both sides have.

use mpi::collective::SystemOperation;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Sum,
    Product,
    Min,
    Max,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
}

impl Operation {
    pub(crate) const ALL: [Self; 10] = [
        Self::Sum,
        Self::Product,
        Self::Min,
        Self::Max,
        Self::BitwiseAnd,
        Self::BitwiseOr,
        Self::BitwiseXor,
        Self::LogicalAnd,
        Self::LogicalOr,
        Self::LogicalXor,
    ];

    /// Itself, or one that floats have.
    pub(crate) fn of_floats(self) -> Self {
        match self {
            Self::Product | Self::Min | Self::Max => self,
            _ => Self::Sum,
        }
    }

    pub(crate) fn is_logical(self) -> bool {
        matches!(self, Self::LogicalAnd | Self::LogicalOr | Self::LogicalXor)
    }

    /// MPI's.
    pub(crate) fn theirs(self) -> SystemOperation {
        match self {
            Self::Sum => SystemOperation::sum(),
            Self::Product => SystemOperation::product(),
            Self::Min => SystemOperation::min(),
            Self::Max => SystemOperation::max(),
            Self::BitwiseAnd => SystemOperation::bitwise_and(),
            Self::BitwiseOr => SystemOperation::bitwise_or(),
            Self::BitwiseXor => SystemOperation::bitwise_xor(),
            Self::LogicalAnd => SystemOperation::logical_and(),
            Self::LogicalOr => SystemOperation::logical_or(),
            Self::LogicalXor => SystemOperation::logical_xor(),
        }
    }
}
