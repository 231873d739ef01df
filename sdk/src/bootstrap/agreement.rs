//! What an incarnation of a job has in common, agreed over a channel that only its ranks can reach.
#![forbid(unsafe_code)]

use super::Bootstrap;
use super::rendezvous::{Epoch, incarnation};
use crate::secret::random;
use crate::{Error, JobSecret, Result};
use std::sync::Arc;
use std::time::Instant;

/// What all ranks have in common.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) secret: JobSecret,
    pub(crate) epoch: Epoch,
}

/// Agrees with the other ranks on the epoch and the secret: those of rank 0.
///
/// Where the ranks have a secret file, each proves that it has the same one, and nothing secret is sent.
pub(super) fn agree(
    bootstrap: &mut dyn Bootstrap,
    key: Option<JobSecret>,
    deadline: Instant,
) -> Result<Agreement> {
    let epoch: Epoch = random()?;
    let mut secret: [u8; 32] = random()?;
    if let Some(key) = &key {
        secret = key.proof(PROOF, &[&epoch]);
    }
    let mine = [&[u8::from(key.is_some())], &epoch[..], &secret].concat();
    let theirs = bootstrap.all_gather(&mine, deadline)?;
    if theirs.len() != bootstrap.size() || bootstrap.rank() >= bootstrap.size() {
        return Err(refuse(format!(
            "{} ranks answered rank {} of {}",
            theirs.len(),
            bootstrap.rank(),
            bootstrap.size()
        )));
    }
    let mut first = None;
    for (rank, bytes) in theirs.iter().enumerate() {
        let (has_key, epoch, secret) = split(bytes).ok_or_else(|| {
            refuse(format!("rank {rank} sent something that this version does not understand"))
        })?;
        let same = match &key {
            Some(key) => has_key && key.proves(secret, PROOF, &[epoch]),
            None => !has_key,
        };
        if !same {
            return Err(refuse(format!(
                "rank {rank} does not have the same secret as rank {}: GRADWIRE_SECRET_FILE must be set for all \
                 ranks, with the same content, or for none",
                bootstrap.rank()
            )));
        }
        first.get_or_insert((*epoch, *secret));
    }
    let (epoch, secret) = first.ok_or_else(|| refuse("the job has no rank".to_owned()))?;
    let secret = match key {
        Some(key) => incarnation(&key, &epoch),
        None => JobSecret::from_bytes(secret),
    };
    Ok(Agreement { secret, epoch })
}

fn split(bytes: &[u8]) -> Option<(bool, &Epoch, &[u8; 32])> {
    let (has_key, rest) = bytes.split_first()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    Some((*has_key == 1, epoch, rest.try_into().ok()?))
}

fn refuse(reason: String) -> Error {
    Error::Bootstrap(Arc::from(reason))
}

const PROOF: &str = "bootstrap";
