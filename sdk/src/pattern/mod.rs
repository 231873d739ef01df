//! Rank arithmetic: who is whose neighbour, parent or partner.
#![forbid(unsafe_code)]

pub(crate) mod binomial;
pub(crate) mod dissemination;
pub(crate) mod hypercube;
pub(crate) mod ring;
