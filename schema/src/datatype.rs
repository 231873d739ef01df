//! The number formats that travel, with their codes on the wire.

/// A number format. The code is part of the wire format and never changes meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum Datatype {
    F64 = 1,
    F32 = 2,
    F16 = 3,
    Bf16 = 4,
    F8E4m3 = 5,
    F8E5m2 = 6,
    I8 = 7,
    I16 = 8,
    I32 = 9,
    I64 = 10,
    U8 = 11,
    U16 = 12,
    U32 = 13,
    U64 = 14,
}

/// A code that this version knows no meaning for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field} has the value {value}, which this version does not know")]
pub struct UnknownCode {
    /// Which field.
    pub field: &'static str,
    /// What it held.
    pub value: u64,
}

impl Datatype {
    /// All of them, by code.
    pub const ALL: [Self; 14] = [
        Self::F64,
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::F8E4m3,
        Self::F8E5m2,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
    ];

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The datatype of a code.
    ///
    /// # Errors
    ///
    /// [`UnknownCode`] for every code not listed above.
    pub const fn from_code(code: u8) -> Result<Self, UnknownCode> {
        if code >= 1 && code as usize <= Self::ALL.len() {
            Ok(Self::ALL[code as usize - 1])
        } else {
            Err(UnknownCode { field: "datatype", value: code as u64 })
        }
    }

    /// Whether its numbers are floats.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::Bf16 | Self::F8E4m3 | Self::F8E5m2)
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F8E4m3 | Self::F8E5m2 | Self::I8 | Self::U8 => 1,
        }
    }

    /// The fingerprint of the element type with this format.
    #[must_use]
    pub const fn fingerprint(self) -> u64 {
        crate::layout::fingerprint_of_name(match self {
            Self::F8E4m3 => "F8E4m3",
            Self::F8E5m2 => "F8E5m2",
            other => other.name(),
        })
    }

    /// Its name in Rust's spelling.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F8E4m3 => "f8e4m3",
            Self::F8E5m2 => "f8e5m2",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
        }
    }
}
