//! What Gradwire's bytes mean: datatypes, operations, headers, layouts and reduce kernels. No I/O.
//!
//! The crate knows datatypes and operations; it knows no peer, no socket and no communicator.

#![deny(unsafe_code)]

pub mod control;
mod convert;
mod crc;
mod datatype;
mod element;
pub mod equivalence;
mod f8;
mod float;
pub mod frame;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod golden;
pub mod gradient;
pub mod layout;
pub mod operation;
#[allow(unsafe_code)]
pub mod reduce;
pub mod signature;
pub mod window;

pub use convert::ConvertTo;
pub use crc::crc32c;
pub use datatype::{Datatype, UnknownCode};
pub use element::{Arithmetic, Element, Float, Integer};
pub use equivalence::{Equivalence, InvalidValue};
pub use f8::{F8E4m3, F8E5m2};
pub use frame::{FrameError, FrameFlags, FrameHeader, FrameKind};
pub use gradient::{FieldVisitor, Gradient};
pub use layout::Layout;
pub use operation::{OperationId, Properties, Reduction};
pub use reduce::Kernel;
pub use signature::{CallSignature, Collective, LayoutDigest, MismatchTable, SignatureError, TableError};
pub use window::{WindowReply, WindowRequest, WindowUpdate};
