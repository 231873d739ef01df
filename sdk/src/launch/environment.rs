//! What a launcher leaves in the environment of its ranks.
#![forbid(unsafe_code)]

use crate::Rank;
use crate::bootstrap::Local;
use crate::config::{Environment, MeetingAddress};

/// The process number of the launcher. Its presence says that a launcher hosts the rendezvous.
pub(crate) const LAUNCHER_VARIABLE: &str = "GRADWIRE_LAUNCHER";

/// Whether a launcher, and not rank 0, listens where the ranks meet.
pub(crate) fn is_hosted(environment: &Environment) -> bool {
    environment.get(LAUNCHER_VARIABLE).is_some()
}

/// The variables of one rank of `size`.
pub(crate) fn of_rank(
    rank: Rank,
    size: usize,
    local: Local,
    address: &MeetingAddress,
) -> [(&'static str, String); 6] {
    [
        (LAUNCHER_VARIABLE, std::process::id().to_string()),
        ("GRADWIRE_RANK", rank.to_string()),
        ("GRADWIRE_SIZE", size.to_string()),
        ("GRADWIRE_LOCAL_RANK", local.rank.to_string()),
        ("GRADWIRE_LOCAL_SIZE", local.size.to_string()),
        ("GRADWIRE_ADDRESS", address.to_string()),
    ]
}
