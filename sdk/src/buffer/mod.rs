//! Memory: raw memory of operations, and reductions on it.

mod birth;
mod exposed;
mod lend;
mod owned;
mod private;
mod reducer;
mod span;
mod update;

pub(crate) use birth::{is_child, mark};
pub(crate) use exposed::{Exposed, NOTICES};
pub(crate) use lend::{Lent, Target, lend, lend_briefly, lend_during, lend_shared, lend_to_scope};
pub use owned::Buffer;
pub(crate) use private::Private;
pub(crate) use reducer::Reducer;
pub(crate) use span::Span;
