//! Why no endpoint could be opened.

use crate::handle::Code;
use crate::sys::Functions;

/// Why no endpoint could be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no libfabric on this machine, or it is too old.
    #[error("libfabric is not present: {reason}; install the package libfabric1 (1.17 or later)")]
    NotPresent {
        /// The loader's words.
        reason: String,
    },
    /// The library has no such provider for reliable datagrams with RMA.
    #[error(
        "libfabric has no provider {wanted} that can do messages and RMA over reliable datagrams; \
         it has: {available} (`fi_info -t FI_EP_RDM` lists them)"
    )]
    NoProvider {
        /// What was asked for.
        wanted: String,
        /// The names there are.
        available: String,
    },
    /// A call of the library failed.
    #[error("{context}: {text} (libfabric error {code}){}", remedy(*code))]
    Library {
        /// The call.
        context: &'static str,
        /// The raw code, positive.
        code: i32,
        /// The library's words.
        text: String,
    },
    /// The connections that watch over the peers could not be opened.
    #[error("the connections that watch over the peers: {0}")]
    Control(#[from] gradwire_transport_tcp::BindError),
    /// The system refused.
    #[error("{context}: system error {code}")]
    System {
        /// What was tried.
        context: &'static str,
        /// The raw code.
        code: i32,
    },
}

impl OpenError {
    pub(crate) fn library(context: &'static str, code: Code, functions: &Functions) -> Self {
        Self::Library { context, code: code.0, text: code.text(functions) }
    }
}

/// What to do about the codes that a setting of the system causes.
fn remedy(code: i32) -> &'static str {
    match code {
        crate::sys::FI_ENOMEM => ": raise the limit of locked memory with `ulimit -l unlimited`",
        _ => "",
    }
}
