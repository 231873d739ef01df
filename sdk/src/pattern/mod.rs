//! Rank arithmetic: who is whose neighbour, parent or partner.
#![forbid(unsafe_code)]

pub(crate) mod ring;
