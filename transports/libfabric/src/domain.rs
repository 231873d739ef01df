//! A provider, opened: what everything else is made from.

use crate::error::OpenError;
use crate::handle::{Code, Handle};
use crate::memory::{Block, Memory};
use crate::provider::{Info, Traits};
use crate::sys::{
    FI_ENABLE, FI_MR_ENDPOINT, FI_MR_LOCAL, FI_MR_PROV_KEY, FI_READ, FI_RECV, FI_REMOTE_READ,
    FI_REMOTE_WRITE, FI_SEND, FI_WRITE, Functions, fid_domain, fid_ep, fid_fabric,
};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A domain and its fabric. All objects made from it, and all their holders, belong to one transport, whose methods
/// run one at a time: so are calls on them, as FI_THREAD_DOMAIN asks.
#[derive(Debug)]
pub(crate) struct Domain {
    domain: Handle<fid_domain>,
    fabric: Handle<fid_fabric>,
    info: Info,
    stuck: AtomicBool,
}

impl Domain {
    pub(crate) fn open(info: Info) -> Result<Arc<Self>, OpenError> {
        let functions = *info.functions();
        let mut made = ptr::null_mut();
        // SAFETY: the attributes are those of an entry of `fi_getinfo` (fi_fabric(3)).
        let code = unsafe { (functions.fabric)(info.get().fabric_attr, &raw mut made, ptr::null_mut()) };
        // SAFETY: `made` is what the call stored.
        let fabric = unsafe { Handle::adopt(code, made) };
        let fabric = fabric.map_err(|code| OpenError::library("fi_fabric", code, &functions))?;
        // SAFETY: an open fabric has this table (fi_fabric(3)).
        let operations = unsafe { &*fabric.get().ops };
        let mut made = ptr::null_mut();
        // SAFETY: the fabric was opened with the same entry (fi_domain(3)).
        let code = unsafe { (operations.domain)(fabric.raw(), info.raw(), &raw mut made, ptr::null_mut()) };
        // SAFETY: `made` is what the call stored.
        let domain = unsafe { Handle::adopt(code, made) };
        let domain = domain.map_err(|code| OpenError::library("fi_domain", code, &functions))?;
        Ok(Arc::new(Self { domain, fabric, info, stuck: AtomicBool::new(false) }))
    }

    pub(crate) fn traits(&self) -> &Traits {
        &self.info.traits
    }

    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    pub(crate) fn functions(&self) -> &Functions {
        self.info.functions()
    }

    pub(crate) fn handle(&self) -> &Handle<fid_domain> {
        &self.domain
    }

    pub(crate) fn fabric(&self) -> &Handle<fid_fabric> {
        &self.fabric
    }

    /// The endpoint could not be closed: the provider may use memory for ever.
    pub(crate) fn mark_stuck(&self) {
        self.stuck.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Makes a block known to the provider: for operations of this side, and for those of peers if `is_shared`, under
    /// `key` where the provider does not choose one.
    pub(crate) fn register(
        self: &Arc<Self>,
        block: Arc<Block>,
        is_shared: bool,
        key: u64,
        endpoint: &Handle<fid_ep>,
    ) -> Result<Arc<Memory>, Code> {
        let mode = self.traits().mr_mode;
        if !is_shared && mode & FI_MR_LOCAL == 0 {
            return Ok(Arc::new(Memory::new(block, None, self.clone())));
        }
        let remote = if is_shared { FI_REMOTE_READ | FI_REMOTE_WRITE } else { 0 };
        let access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | remote;
        let bits = (self.traits().mr_key_size * 8).min(64) as u32;
        let key = if mode & FI_MR_PROV_KEY != 0 { 0 } else { key.checked_shr(64 - bits).unwrap_or(0) };
        // SAFETY: an open domain has this table (fi_domain(3)).
        let operations = unsafe { &*self.domain.get().mr };
        let mut made = ptr::null_mut();
        // SAFETY: the range is one mapping, kept by `Memory` for longer than the registration; the flags are those of the
        // provider's mode bits (fi_mr(3)).
        let code = unsafe {
            (operations.reg)(
                self.domain.fid(),
                block.address().as_ptr().cast(),
                block.len().max(1),
                access,
                0,
                key,
                0,
                &raw mut made,
                ptr::null_mut(),
            )
        };
        // SAFETY: `made` is what the call stored.
        let registration = unsafe { Handle::adopt(code, made) }?;
        if mode & FI_MR_ENDPOINT != 0 {
            registration.bind(endpoint, 0)?;
            // SAFETY: enabling takes no argument (fi_mr(3)).
            unsafe { registration.control(FI_ENABLE, ptr::null_mut()) }?;
        }
        Ok(Arc::new(Memory::new(block, Some(registration), self.clone())))
    }
}
