//! The numbers of the headers.

use std::ffi::c_int;

pub(crate) const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// The interface this crate was written for. Libraries of this version and later ones provide it.
pub(crate) const API: u32 = version(1, 17);

// Capabilities, and flags of completions.
pub(crate) const FI_MSG: u64 = 1 << 1;
pub(crate) const FI_RMA: u64 = 1 << 2;
pub(crate) const FI_ATOMIC: u64 = 1 << 4;
pub(crate) const FI_READ: u64 = 1 << 8;
pub(crate) const FI_WRITE: u64 = 1 << 9;
pub(crate) const FI_RECV: u64 = 1 << 10;
pub(crate) const FI_SEND: u64 = 1 << 11;
pub(crate) const FI_TRANSMIT: u64 = FI_SEND;
pub(crate) const FI_REMOTE_READ: u64 = 1 << 12;
pub(crate) const FI_REMOTE_WRITE: u64 = 1 << 13;
pub(crate) const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
pub(crate) const FI_DELIVERY_COMPLETE: u64 = 1 << 28;

// Modes.
pub(crate) const FI_CONTEXT: u64 = 1 << 59;
pub(crate) const FI_CONTEXT2: u64 = 1 << 52;

// Modes of memory registration.
pub(crate) const FI_MR_LOCAL: c_int = 1 << 2;
pub(crate) const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub(crate) const FI_MR_ALLOCATED: c_int = 1 << 5;
pub(crate) const FI_MR_PROV_KEY: c_int = 1 << 6;
pub(crate) const FI_MR_ENDPOINT: c_int = 1 << 9;

pub(crate) const FI_ORDER_SAS: u64 = 1 << 8;

pub(crate) const FI_THREAD_DOMAIN: c_int = 3;
pub(crate) const FI_RM_ENABLED: c_int = 2;
pub(crate) const FI_EP_RDM: c_int = 3;
pub(crate) const FI_CQ_FORMAT_DATA: c_int = 3;
pub(crate) const FI_WAIT_NONE: c_int = 0;
pub(crate) const FI_WAIT_FD: c_int = 3;

/// `fi_sockaddr_in`: the address of an interface of IPv4.
pub(crate) const FI_SOCKADDR_IN: u32 = 2;

// Commands of `fi_control`.
pub(crate) const FI_GETWAIT: c_int = 5;
pub(crate) const FI_ENABLE: c_int = 6;

pub(crate) const FI_ADDR_UNSPEC: u64 = u64::MAX;

// Types and operations of atomics.
pub(crate) const FI_INT32: c_int = 4;
pub(crate) const FI_UINT32: c_int = 5;
pub(crate) const FI_INT64: c_int = 6;
pub(crate) const FI_UINT64: c_int = 7;
pub(crate) const FI_FLOAT: c_int = 8;
pub(crate) const FI_DOUBLE: c_int = 9;
pub(crate) const FI_SUM: c_int = 2;
pub(crate) const FI_CSWAP: c_int = 12;

// Error codes; the library returns them negated. Those below 256 are the system's.
pub(crate) const FI_EAGAIN: c_int = 11;
pub(crate) const FI_ENOMEM: c_int = 12;
pub(crate) const FI_ENODATA: c_int = 61;
pub(crate) const FI_EAVAIL: c_int = 259;
