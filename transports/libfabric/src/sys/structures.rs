//! The structures of the headers, in their order of fields.

#![allow(non_camel_case_types, reason = "the headers' names")]

use std::ffi::{c_char, c_int, c_void};

/// The structures below are those of 64 bits.
const _: () = assert!(size_of::<usize>() == 8, "libfabric is bound for 64 bits");

/// An entry of a table that nobody here calls.
pub(crate) type Unused = *const c_void;
pub(crate) type fi_addr_t = u64;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct fid {
    pub(crate) fclass: usize,
    pub(crate) context: *mut c_void,
    pub(crate) ops: *mut fi_ops,
}

#[repr(C)]
pub(crate) struct fi_ops {
    pub(crate) size: usize,
    pub(crate) close: unsafe extern "C" fn(*mut fid) -> c_int,
    pub(crate) bind: unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int,
    pub(crate) control: unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int,
    pub(crate) ops_open: Unused,
    pub(crate) tostr: Unused,
    pub(crate) ops_set: Unused,
}

#[repr(C)]
pub(crate) struct fi_tx_attr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) inject_size: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
    pub(crate) rma_iov_limit: usize,
    pub(crate) tclass: u32,
}

#[repr(C)]
pub(crate) struct fi_rx_attr {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) total_buffered_recv: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
}

#[repr(C)]
pub(crate) struct fi_ep_attr {
    pub(crate) r#type: c_int,
    pub(crate) protocol: u32,
    pub(crate) protocol_version: u32,
    pub(crate) max_msg_size: usize,
    pub(crate) msg_prefix_size: usize,
    pub(crate) max_order_raw_size: usize,
    pub(crate) max_order_war_size: usize,
    pub(crate) max_order_waw_size: usize,
    pub(crate) mem_tag_format: u64,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) auth_key_size: usize,
    pub(crate) auth_key: *mut u8,
}

#[repr(C)]
pub(crate) struct fi_domain_attr {
    pub(crate) domain: *mut fid_domain,
    pub(crate) name: *mut c_char,
    pub(crate) threading: c_int,
    pub(crate) control_progress: c_int,
    pub(crate) data_progress: c_int,
    pub(crate) resource_mgmt: c_int,
    pub(crate) av_type: c_int,
    pub(crate) mr_mode: c_int,
    pub(crate) mr_key_size: usize,
    pub(crate) cq_data_size: usize,
    pub(crate) cq_cnt: usize,
    pub(crate) ep_cnt: usize,
    pub(crate) tx_ctx_cnt: usize,
    pub(crate) rx_ctx_cnt: usize,
    pub(crate) max_ep_tx_ctx: usize,
    pub(crate) max_ep_rx_ctx: usize,
    pub(crate) max_ep_stx_ctx: usize,
    pub(crate) max_ep_srx_ctx: usize,
    pub(crate) cntr_cnt: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) auth_key: *mut u8,
    pub(crate) auth_key_size: usize,
    pub(crate) max_err_data: usize,
    pub(crate) mr_cnt: usize,
    pub(crate) tclass: u32,
}

#[repr(C)]
pub(crate) struct fi_fabric_attr {
    pub(crate) fabric: *mut fid_fabric,
    pub(crate) name: *mut c_char,
    pub(crate) prov_name: *mut c_char,
    pub(crate) prov_version: u32,
    pub(crate) api_version: u32,
}

#[repr(C)]
pub(crate) struct fi_info {
    pub(crate) next: *mut Self,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) addr_format: u32,
    pub(crate) src_addrlen: usize,
    pub(crate) dest_addrlen: usize,
    pub(crate) src_addr: *mut c_void,
    pub(crate) dest_addr: *mut c_void,
    pub(crate) handle: *mut fid,
    pub(crate) tx_attr: *mut fi_tx_attr,
    pub(crate) rx_attr: *mut fi_rx_attr,
    pub(crate) ep_attr: *mut fi_ep_attr,
    pub(crate) domain_attr: *mut fi_domain_attr,
    pub(crate) fabric_attr: *mut fi_fabric_attr,
    pub(crate) nic: *mut c_void,
}

#[repr(C)]
pub(crate) struct fi_ops_fabric {
    pub(crate) size: usize,
    pub(crate) domain:
        unsafe extern "C" fn(*mut fid_fabric, *mut fi_info, *mut *mut fid_domain, *mut c_void) -> c_int,
    pub(crate) passive_ep: Unused,
    pub(crate) eq_open: Unused,
    pub(crate) wait_open: Unused,
    pub(crate) trywait: unsafe extern "C" fn(*mut fid_fabric, *mut *mut fid, c_int) -> c_int,
    pub(crate) domain2: Unused,
}

#[repr(C)]
pub(crate) struct fid_fabric {
    pub(crate) fid: fid,
    pub(crate) ops: *mut fi_ops_fabric,
    pub(crate) api_version: u32,
}

#[repr(C)]
pub(crate) struct fi_av_attr {
    pub(crate) r#type: c_int,
    pub(crate) rx_ctx_bits: c_int,
    pub(crate) count: usize,
    pub(crate) ep_per_node: usize,
    pub(crate) name: *const c_char,
    pub(crate) map_addr: *mut c_void,
    pub(crate) flags: u64,
}

#[repr(C)]
pub(crate) struct fi_ops_av {
    pub(crate) size: usize,
    pub(crate) insert:
        unsafe extern "C" fn(*mut fid_av, *const c_void, usize, *mut fi_addr_t, u64, *mut c_void) -> c_int,
    pub(crate) insertsvc: Unused,
    pub(crate) insertsym: Unused,
    pub(crate) remove: unsafe extern "C" fn(*mut fid_av, *mut fi_addr_t, usize, u64) -> c_int,
    pub(crate) lookup: Unused,
    pub(crate) straddr: Unused,
    pub(crate) av_set: Unused,
}

#[repr(C)]
pub(crate) struct fid_av {
    pub(crate) fid: fid,
    pub(crate) ops: *mut fi_ops_av,
}

#[repr(C)]
pub(crate) struct fid_mr {
    pub(crate) fid: fid,
    pub(crate) mem_desc: *mut c_void,
    pub(crate) key: u64,
}

#[repr(C)]
pub(crate) struct fi_ops_mr {
    pub(crate) size: usize,
    pub(crate) reg: unsafe extern "C" fn(
        *mut fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut fid_mr,
        *mut c_void,
    ) -> c_int,
    pub(crate) regv: Unused,
    pub(crate) regattr: Unused,
}

#[repr(C)]
pub(crate) struct fi_ops_domain {
    pub(crate) size: usize,
    pub(crate) av_open:
        unsafe extern "C" fn(*mut fid_domain, *mut fi_av_attr, *mut *mut fid_av, *mut c_void) -> c_int,
    pub(crate) cq_open:
        unsafe extern "C" fn(*mut fid_domain, *mut fi_cq_attr, *mut *mut fid_cq, *mut c_void) -> c_int,
    pub(crate) endpoint:
        unsafe extern "C" fn(*mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void) -> c_int,
    pub(crate) scalable_ep: Unused,
    pub(crate) cntr_open: Unused,
    pub(crate) poll_open: Unused,
    pub(crate) stx_ctx: Unused,
    pub(crate) srx_ctx: Unused,
    pub(crate) query_atomic: Unused,
    pub(crate) query_collective: Unused,
    pub(crate) endpoint2: Unused,
}

#[repr(C)]
pub(crate) struct fid_domain {
    pub(crate) fid: fid,
    pub(crate) ops: *mut fi_ops_domain,
    pub(crate) mr: *mut fi_ops_mr,
}

#[repr(C)]
pub(crate) struct fi_cq_attr {
    pub(crate) size: usize,
    pub(crate) flags: u64,
    pub(crate) format: c_int,
    pub(crate) wait_obj: c_int,
    pub(crate) signaling_vector: c_int,
    pub(crate) wait_cond: c_int,
    pub(crate) wait_set: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct fi_cq_data_entry {
    pub(crate) op_context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct fi_cq_err_entry {
    pub(crate) op_context: *mut c_void,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) buf: *mut c_void,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    pub(crate) olen: usize,
    pub(crate) err: c_int,
    pub(crate) prov_errno: c_int,
    pub(crate) err_data: *mut c_void,
    pub(crate) err_data_size: usize,
    /// Of later versions, whose library may write more than the above.
    pub(crate) later: [u64; 8],
}

#[repr(C)]
pub(crate) struct fi_ops_cq {
    pub(crate) size: usize,
    pub(crate) read: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize) -> isize,
    pub(crate) readfrom: Unused,
    pub(crate) readerr: unsafe extern "C" fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> isize,
    pub(crate) sread: Unused,
    pub(crate) sreadfrom: Unused,
    pub(crate) signal: Unused,
    pub(crate) strerror:
        unsafe extern "C" fn(*mut fid_cq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

#[repr(C)]
pub(crate) struct fid_cq {
    pub(crate) fid: fid,
    pub(crate) ops: *mut fi_ops_cq,
}

#[repr(C)]
pub(crate) struct fi_ops_cm {
    pub(crate) size: usize,
    pub(crate) setname: Unused,
    pub(crate) getname: unsafe extern "C" fn(*mut fid, *mut c_void, *mut usize) -> c_int,
    pub(crate) getpeer: Unused,
    pub(crate) connect: Unused,
    pub(crate) listen: Unused,
    pub(crate) accept: Unused,
    pub(crate) reject: Unused,
    pub(crate) shutdown: Unused,
    pub(crate) join: Unused,
}

#[repr(C)]
pub(crate) struct fi_ops_msg {
    pub(crate) size: usize,
    pub(crate) recv:
        unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> isize,
    pub(crate) recvv: Unused,
    pub(crate) recvmsg: Unused,
    pub(crate) send:
        unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> isize,
    pub(crate) sendv: Unused,
    pub(crate) sendmsg: Unused,
    pub(crate) inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, fi_addr_t) -> isize,
    pub(crate) senddata: Unused,
    pub(crate) injectdata: Unused,
}

#[repr(C)]
pub(crate) struct iovec {
    pub(crate) iov_base: *mut c_void,
    pub(crate) iov_len: usize,
}

#[repr(C)]
pub(crate) struct fi_rma_iov {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    pub(crate) key: u64,
}

#[repr(C)]
pub(crate) struct fi_msg_rma {
    pub(crate) msg_iov: *const iovec,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: fi_addr_t,
    pub(crate) rma_iov: *const fi_rma_iov,
    pub(crate) rma_iov_count: usize,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct fi_ops_rma {
    pub(crate) size: usize,
    pub(crate) read: unsafe extern "C" fn(
        *mut fid_ep,
        *mut c_void,
        usize,
        *mut c_void,
        fi_addr_t,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub(crate) readv: Unused,
    pub(crate) readmsg: Unused,
    pub(crate) write: Unused,
    pub(crate) writev: Unused,
    pub(crate) writemsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize,
    pub(crate) inject: Unused,
    pub(crate) writedata: Unused,
    pub(crate) injectdata: Unused,
}

/// Tells whether a type and an operation are known, and how many elements one call takes.
pub(crate) type Valid = unsafe extern "C" fn(*mut fid_ep, c_int, c_int, *mut usize) -> c_int;

#[repr(C)]
pub(crate) struct fi_ops_atomic {
    pub(crate) size: usize,
    pub(crate) write: Unused,
    pub(crate) writev: Unused,
    pub(crate) writemsg: Unused,
    pub(crate) inject: Unused,
    pub(crate) readwrite: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        usize,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        fi_addr_t,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub(crate) readwritev: Unused,
    pub(crate) readwritemsg: Unused,
    pub(crate) compwrite: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        usize,
        *mut c_void,
        *const c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        fi_addr_t,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> isize,
    pub(crate) compwritev: Unused,
    pub(crate) compwritemsg: Unused,
    pub(crate) writevalid: Unused,
    pub(crate) readwritevalid: Valid,
    pub(crate) compwritevalid: Valid,
}

#[repr(C)]
pub(crate) struct fid_ep {
    pub(crate) fid: fid,
    pub(crate) ops: *const c_void,
    pub(crate) cm: *mut fi_ops_cm,
    pub(crate) msg: *mut fi_ops_msg,
    pub(crate) rma: *mut fi_ops_rma,
    pub(crate) tagged: *const c_void,
    pub(crate) atomic: *mut fi_ops_atomic,
    pub(crate) collective: *const c_void,
}
