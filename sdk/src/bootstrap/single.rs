//! A job of one process.
#![forbid(unsafe_code)]

use super::{Bootstrap, Local};
use crate::{Rank, Result};
use std::time::Instant;

/// The only rank of its job.
#[derive(Debug)]
pub(super) struct Single;

impl Bootstrap for Single {
    fn rank(&self) -> Rank {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn local(&self) -> Option<Local> {
        Some(Local { rank: 0, size: 1 })
    }

    fn all_gather(&mut self, bytes: &[u8], _deadline: Instant) -> Result<Vec<Vec<u8>>> {
        Ok(vec![bytes.to_vec()])
    }
}
