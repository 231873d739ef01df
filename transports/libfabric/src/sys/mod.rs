//! The binary interface of libfabric, as the headers of 1.17 declare it (`rdma/fabric.h`, `fi_domain.h`, `fi_endpoint.h`,
//! `fi_eq.h`, `fi_rma.h`, `fi_atomic.h`, `fi_cm.h`).
//!
//! Six functions are exported; all others are entries of tables that the objects carry. Structures of later versions
//! are longer at the end only, so that these are prefixes of them: none is made here that the library would have to
//! read beyond what stands here, except through the library itself (`fi_dupinfo` of nothing makes an empty `fi_info`).
//! Names are the headers'. Entries that nobody here calls have no type.

mod constants;
mod library;
mod structures;
#[cfg(test)]
mod tests;

pub(crate) use constants::*;
pub(crate) use library::{Functions, load};
pub(crate) use structures::*;
