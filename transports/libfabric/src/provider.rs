//! What the library offers on this machine, and which of it is used.

use crate::error::OpenError;
use crate::handle::{Code, owned};
use crate::sys::{
    API, FI_ATOMIC, FI_CONTEXT, FI_CONTEXT2, FI_ENODATA, FI_EP_RDM, FI_MR_ALLOCATED, FI_MR_ENDPOINT,
    FI_MR_LOCAL, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, FI_MSG, FI_ORDER_SAS, FI_RM_ENABLED, FI_RMA,
    FI_SOCKADDR_IN, FI_THREAD_DOMAIN, Functions, fi_info,
};
use std::ffi::{CString, c_char};
use std::ptr::{self, NonNull};

/// Providers that work everywhere, best first. Shared memory is not among them: those providers let any process of the
/// user write here unchecked, and the project has its own.
const SOFTWARE: [&str; 4] = ["tcp;ofi_rxm", "sockets", "net;ofi_rxm", "udp;ofi_rxd"];

unsafe extern "C" {
    /// Of the C library: a copy of a string, to be freed by its `free`.
    fn strdup(text: *const c_char) -> *mut c_char;
}

/// One entry of what `fi_getinfo` lists.
pub(crate) struct Info {
    raw: NonNull<fi_info>,
    functions: Functions,
    pub(crate) traits: Traits,
}

/// What an entry says, read once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Traits {
    pub(crate) provider: String,
    pub(crate) domain: String,
    pub(crate) caps: u64,
    pub(crate) mr_mode: i32,
    pub(crate) mr_key_size: usize,
    pub(crate) cq_data_size: usize,
    pub(crate) inject_size: usize,
    pub(crate) max_msg_size: usize,
    pub(crate) av_type: i32,
    pub(crate) is_ipv4: bool,
    /// A network card places the bytes.
    pub(crate) is_hardware: bool,
}

/// The entry to use: of the provider asked for, else of the best one; on the domain asked for, else on any but loopback.
pub(crate) fn choose(
    functions: Functions,
    provider: Option<&str>,
    domains: &[String],
) -> Result<Info, OpenError> {
    let mut offers = offers(functions, FI_ATOMIC, provider)?;
    // A provider without atomics is better than none.
    if provider.is_none() || offers.is_empty() {
        offers.extend(self::offers(functions, 0, provider)?);
    }
    if offers.is_empty() {
        // To say what there is.
        offers = self::offers(functions, 0, None)?;
    }
    let mut names: Vec<String> = offers.iter().map(|info| info.traits.provider.clone()).collect();
    names.sort();
    names.dedup();
    offers
        .into_iter()
        .enumerate()
        .filter_map(|(place, info)| Some((rank(&info.traits, provider, domains)?, place, info)))
        .min_by_key(|(rank, place, _)| (*rank, *place))
        .map(|(_, _, info)| info)
        .ok_or_else(|| OpenError::NoProvider {
            wanted: provider.unwrap_or("any").to_owned(),
            available: names.join(", "),
        })
}

/// The lower the better; `None`: not to be used.
fn rank(traits: &Traits, provider: Option<&str>, domains: &[String]) -> Option<(usize, usize, bool)> {
    let by_provider = match provider {
        // "tcp" lists "tcp;ofi_rxm" as well: only the exact name counts.
        Some(name) if name == traits.provider => 0,
        Some(_) => return None,
        None if traits.is_hardware => 0,
        None => 1 + SOFTWARE.iter().position(|name| *name == traits.provider)?,
    };
    let by_domain = match domains.iter().position(|domain| *domain == traits.domain) {
        Some(position) => position,
        None if domains.is_empty() => usize::from(traits.domain == "lo"),
        None => domains.len(),
    };
    Some((by_provider, by_domain, !traits.is_ipv4))
}

/// All reliable-datagram offers with messages, RMA and `more`; of one provider only, so that the others need not look
/// for their cards, when it is named.
fn offers(functions: Functions, more: u64, provider: Option<&str>) -> Result<Vec<Info>, OpenError> {
    let failed = |code: Code| OpenError::library("fi_getinfo", code, &functions);
    // SAFETY: null asks for an empty structure (fi_getinfo(3), fi_allocinfo).
    let hints = unsafe { (functions.dupinfo)(ptr::null()) };
    let hints = Owned(NonNull::new(hints).ok_or_else(|| failed(Code(crate::sys::FI_ENOMEM)))?, functions);
    fill(&hints, FI_MSG | FI_RMA | more, provider);
    let mut list = ptr::null_mut();
    // SAFETY: node and service may be null, the hints are a structure of the library's own (fi_getinfo(3)).
    let code =
        unsafe { (functions.getinfo)(API, ptr::null(), ptr::null(), 0, hints.0.as_ptr(), &raw mut list) };
    match Code::check(code as isize) {
        Ok(_) => {}
        Err(Code(FI_ENODATA)) => return Ok(Vec::new()),
        Err(code) => return Err(failed(code)),
    }
    let list = NonNull::new(list).map(|first| Owned(first, functions));
    let mut offers = Vec::new();
    let mut next = list.as_ref().map_or(ptr::null_mut(), |list| list.0.as_ptr());
    while let Some(entry) = NonNull::new(next) {
        offers.extend(Info::copy_of(entry, functions));
        // SAFETY: the entry belongs to `list`, which lives.
        next = unsafe { entry.as_ref() }.next;
    }
    Ok(offers)
}

/// Says what is needed.
fn fill(hints: &Owned, caps: u64, provider: Option<&str>) {
    // SAFETY: the structure is ours alone, and no other reference to it exists.
    let info = unsafe { &mut *hints.0.as_ptr() };
    info.caps = caps;
    info.mode = FI_CONTEXT | FI_CONTEXT2;
    // SAFETY: `fi_dupinfo(NULL)` allocates all attributes (fi_getinfo(3)); they are ours alone.
    if let Some(endpoint) = unsafe { info.ep_attr.as_mut() } {
        endpoint.r#type = FI_EP_RDM;
    }
    // SAFETY: as above.
    if let Some(transmit) = unsafe { info.tx_attr.as_mut() } {
        transmit.msg_order = FI_ORDER_SAS;
    }
    // SAFETY: as above.
    if let Some(receive) = unsafe { info.rx_attr.as_mut() } {
        receive.msg_order = FI_ORDER_SAS;
    }
    let name = provider.and_then(|name| CString::new(name).ok());
    // SAFETY: as above.
    if let (Some(fabric), Some(name)) = (unsafe { info.fabric_attr.as_mut() }, name) {
        // SAFETY: the name ends with a zero. The copy is of the C library's allocator, with which `fi_freeinfo` frees it.
        fabric.prov_name = unsafe { strdup(name.as_ptr()) };
    }
    // SAFETY: as above.
    if let Some(domain) = unsafe { info.domain_attr.as_mut() } {
        domain.threading = FI_THREAD_DOMAIN;
        domain.resource_mgmt = FI_RM_ENABLED;
        domain.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    }
}

/// A list of the library's, freed when dropped.
struct Owned(NonNull<fi_info>, Functions);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by `fi_dupinfo` or `fi_getinfo`, freed once (fi_getinfo(3)).
        unsafe { (self.1.freeinfo)(self.0.as_ptr()) };
    }
}

impl Info {
    fn copy_of(entry: NonNull<fi_info>, functions: Functions) -> Option<Self> {
        // SAFETY: an entry of a list that lives; the copy is of this entry alone (fi_getinfo(3)).
        let copy = unsafe { (functions.dupinfo)(entry.as_ptr()) };
        let raw = NonNull::new(copy)?;
        // SAFETY: nobody else has the copy.
        let traits = Traits::read(unsafe { raw.as_ref() });
        let info = Owned(raw, functions);
        let traits = traits?;
        std::mem::forget(info);
        Some(Self { raw, functions, traits })
    }

    pub(crate) fn raw(&self) -> *mut fi_info {
        self.raw.as_ptr()
    }

    pub(crate) fn get(&self) -> &fi_info {
        // SAFETY: the structure is ours, and lives as long as `self`.
        unsafe { self.raw.as_ref() }
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        drop(Owned(self.raw, self.functions));
    }
}

// SAFETY: the structure is ours alone and tied to no thread.
unsafe impl Send for Info {}
// SAFETY: it is not changed after it was made.
unsafe impl Sync for Info {}

impl Traits {
    fn read(info: &fi_info) -> Option<Self> {
        // SAFETY: an entry of `fi_getinfo` has all attributes (fi_getinfo(3)); null is refused all the same.
        let (fabric, domain) = (unsafe { info.fabric_attr.as_ref() }?, info.domain_attr);
        // SAFETY: as above.
        let domain = unsafe { domain.as_ref() }?;
        // SAFETY: as above.
        let transmit = unsafe { info.tx_attr.as_ref() }?;
        // SAFETY: as above.
        let endpoint = unsafe { info.ep_attr.as_ref() }?;
        // SAFETY: a string of the structure's, or null (fi_fabric(3)).
        let provider = unsafe { owned(fabric.prov_name) };
        // SAFETY: a string of the structure's, or null (fi_domain(3)).
        let name = unsafe { owned(domain.name) };
        Some(Self {
            provider,
            domain: name,
            caps: info.caps,
            mr_mode: domain.mr_mode,
            mr_key_size: domain.mr_key_size,
            cq_data_size: domain.cq_data_size,
            inject_size: transmit.inject_size,
            max_msg_size: endpoint.max_msg_size,
            av_type: domain.av_type,
            is_ipv4: info.addr_format == FI_SOCKADDR_IN,
            // Software needs no keys of its own making: only what a card has translated has.
            is_hardware: domain.mr_mode & FI_MR_PROV_KEY != 0,
        })
    }
}

impl std::fmt::Debug for Info {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.traits.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(provider: &str, domain: &str, is_hardware: bool) -> Traits {
        Traits {
            provider: provider.to_owned(),
            domain: domain.to_owned(),
            caps: 0,
            mr_mode: 0,
            mr_key_size: 8,
            cq_data_size: 8,
            inject_size: 64,
            max_msg_size: 1 << 30,
            av_type: 0,
            is_ipv4: true,
            is_hardware,
        }
    }

    #[test]
    fn hardware_comes_first_and_shared_memory_never() {
        let rank = |traits: &Traits| rank(traits, None, &[]);
        let card = rank(&traits("verbs;ofi_rxm", "mlx5_0", true));
        let software = rank(&traits("tcp;ofi_rxm", "eth0", false));
        assert!(card.is_some() && card < software);
        assert!(software < rank(&traits("tcp;ofi_rxm", "lo", false)));
        assert!(software < rank(&traits("sockets", "eth0", false)));
        assert_eq!(rank(&traits("shm", "shm", false)), None);
    }

    #[test]
    fn only_the_exact_name_is_the_provider_asked_for() {
        assert_eq!(rank(&traits("tcp;ofi_rxm", "eth0", false), Some("tcp"), &[]), None);
        assert!(rank(&traits("shm", "shm", false), Some("shm"), &[]).is_some());
        let domains = ["eth1".to_owned()];
        let there = rank(&traits("tcp", "eth1", false), Some("tcp"), &domains);
        assert!(there.is_some() && there < rank(&traits("tcp", "eth0", false), Some("tcp"), &domains));
    }
}
