//! One endpoint with its queue and its address vector, as safe calls: whatever the provider is given to read or write is
//! kept until it says that it is done, or is closed.

use crate::domain::Domain;
use crate::error::OpenError;
use crate::flight::Flights;
use crate::handle::{Code, Handle, owned};
use crate::memory::{Block, Memory, Piece};
use crate::sys::{
    FI_ADDR_UNSPEC, FI_CQ_FORMAT_DATA, FI_DELIVERY_COMPLETE, FI_EAVAIL, FI_ENABLE, FI_GETWAIT, FI_RECV,
    FI_REMOTE_CQ_DATA, FI_TRANSMIT, FI_WAIT_FD, FI_WAIT_NONE, FI_WRITE, fi_addr_t, fi_av_attr, fi_cq_attr,
    fi_cq_data_entry, fi_cq_err_entry, fi_msg_rma, fi_ops_atomic, fi_ops_cq, fi_ops_msg, fi_ops_rma,
    fi_rma_iov, fid_av, fid_cq, fid_ep, iovec,
};
use gradwire_transport::RegisterError;
use std::ffi::{c_int, c_void};
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;
use std::sync::Arc;

/// Operations that the provider may have at a time. The queue is longer, by what peers' notices need.
const OPERATIONS: usize = 1 << 13;
const QUEUE: usize = 1 << 14;
/// Completions read at a time.
const BATCH: usize = 32;

/// `FI_COMPLETION`: the end of the operation is to be told.
const COMPLETION: u64 = 1 << 24;

/// The endpoint. Fields are dropped in their order: the endpoint is closed before the memory of its operations is freed.
#[derive(Debug)]
pub(crate) struct Wire<W> {
    /// There until dropped.
    objects: Option<Objects>,
    flights: Flights<Flight<W>>,
    domain: Arc<Domain>,
    /// What to sleep on, where the provider has it.
    wait: Option<RawFd>,
}

/// What `libfabric` made; the endpoint is closed first.
#[derive(Debug)]
struct Objects {
    endpoint: Handle<fid_ep>,
    queue: Handle<fid_cq>,
    vector: Handle<fid_av>,
}

#[derive(Debug)]
struct Flight<W> {
    work: W,
    _memory: Pieces,
}

/// The memory of an operation.
type Pieces = [Option<Piece>; 3];

/// An operation to post.
#[derive(Debug)]
pub(crate) enum Call {
    Receive(Piece),
    Send(Piece),
    Write {
        from: Piece,
        to: Target,
        data: Option<u64>,
        is_delivered: bool,
    },
    Read {
        into: Piece,
        from: Target,
    },
    Atomic {
        operand: Piece,
        compare: Option<Piece>,
        result: Piece,
        at: Target,
        kind: c_int,
        operation: c_int,
    },
}

/// Where a one-sided operation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) peer: fi_addr_t,
    pub(crate) address: u64,
    pub(crate) key: u64,
}

/// What the queue told.
#[derive(Debug)]
pub(crate) enum Completion<W> {
    Done(W, usize),
    Failed(W, Code),
    /// A write of a peer with this number.
    Arrived(u64),
}

impl<W> Wire<W> {
    pub(crate) fn open(domain: Arc<Domain>) -> Result<Self, OpenError> {
        let failed = |context| {
            move |code: Code, domain: &Domain| OpenError::library(context, code, domain.functions())
        };
        let vector = open_vector(&domain).map_err(|code| failed("fi_av_open")(code, &domain))?;
        let (queue, wait) = open_queue(&domain).map_err(|code| failed("fi_cq_open")(code, &domain))?;
        let endpoint = open_endpoint(&domain).map_err(|code| failed("fi_endpoint")(code, &domain))?;
        let bound = endpoint
            .bind(&vector, 0)
            .and_then(|()| endpoint.bind(&queue, FI_TRANSMIT | FI_RECV))
            // SAFETY: enabling takes no argument (fi_endpoint(3)).
            .and_then(|()| unsafe { endpoint.control(FI_ENABLE, ptr::null_mut()) });
        bound.map_err(|code| failed("fi_enable")(code, &domain))?;
        let objects = Some(Objects { endpoint, queue, vector });
        Ok(Self { objects, flights: Flights::new(OPERATIONS), domain, wait })
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Memory for operations of this side, or also of peers.
    pub(crate) fn memory(&self, len: usize, shared: Option<u64>) -> Result<Arc<Memory>, RegisterError> {
        let block = Arc::new(Block::zeroed(len)?);
        self.register(block, shared)
    }

    /// Makes a block known: to peers, under this key unless the provider has one of its own.
    pub(crate) fn register(
        &self,
        block: Arc<Block>,
        shared: Option<u64>,
    ) -> Result<Arc<Memory>, RegisterError> {
        let key = shared.unwrap_or_default();
        self.domain.register(block, shared.is_some(), key, self.endpoint()).map_err(|code| {
            let context = match code.0 {
                crate::sys::FI_ENOMEM => {
                    "fi_mr_reg (raise the limit of locked memory with `ulimit -l unlimited`)"
                }
                _ => "fi_mr_reg",
            };
            RegisterError::System { context, code: code.0 }
        })
    }

    /// Where peers find the endpoint: bytes of the provider's.
    pub(crate) fn name(&self) -> Result<Vec<u8>, Code> {
        // SAFETY: an open endpoint has this table (fi_cm(3)).
        let operations = unsafe { &*self.endpoint().get().cm };
        let mut bytes = vec![0_u8; 512];
        let mut len = bytes.len();
        // SAFETY: the vector has room for `len` bytes (fi_getname(3)).
        let code =
            unsafe { (operations.getname)(self.endpoint().fid(), bytes.as_mut_ptr().cast(), &raw mut len) };
        Code::check(code as isize)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Makes a peer's name an address. `expected` bytes long, as ours is: the provider reads so many.
    pub(crate) fn insert(&self, name: &[u8]) -> Result<fi_addr_t, Code> {
        let mut address = FI_ADDR_UNSPEC;
        // SAFETY: an open vector has this table (fi_av(3)).
        let operations = unsafe { &*self.vector().get().ops };
        let mut padded = name.to_vec();
        // Providers whose names are strings read up to a zero.
        padded.resize(name.len().max(512), 0);
        // SAFETY: one address of the provider's format, followed by zeros; one result (fi_av_insert(3)).
        let inserted = unsafe {
            (operations.insert)(
                self.vector().raw(),
                padded.as_ptr().cast(),
                1,
                &raw mut address,
                0,
                ptr::null_mut(),
            )
        };
        match Code::check(inserted as isize)? {
            1 if address != FI_ADDR_UNSPEC => Ok(address),
            _ => Err(Code(22)),
        }
    }

    /// Forgets an address on which nothing is under way.
    pub(crate) fn remove(&self, mut address: fi_addr_t) {
        // SAFETY: an open vector has this table (fi_av(3)).
        let operations = unsafe { &*self.vector().get().ops };
        // SAFETY: one address that `insert` made (fi_av_remove(3)).
        let _ = unsafe { (operations.remove)(self.vector().raw(), &raw mut address, 1, 0) };
    }

    /// Sends a few bytes that the provider copies. Its end is not told.
    pub(crate) fn inject(&self, to: fi_addr_t, bytes: &[u8]) -> Result<(), Code> {
        let endpoint = self.endpoint();
        // SAFETY: the bytes are read before the call returns; the transport keeps to the provider's limit (fi_msg(3)).
        let result =
            unsafe { (self.messages().inject)(endpoint.raw(), bytes.as_ptr().cast(), bytes.len(), to) };
        Code::check(result).map(drop)
    }

    /// Hands an operation to the provider. The operation comes back with why it was not taken.
    pub(crate) fn post(&mut self, peer: fi_addr_t, call: Call, work: W) -> Result<(), (Call, W, Code)> {
        let Some((index, context)) = self.flights.reserve() else {
            return Err((call, work, Code(crate::sys::FI_EAGAIN)));
        };
        match self.hand_over(peer, &call, context) {
            Ok(()) => {
                self.flights.settle(index, Some(Flight { work, _memory: call.pieces() }));
                Ok(())
            }
            Err(code) => {
                self.flights.settle(index, None);
                Err((call, work, code))
            }
        }
    }

    fn hand_over(&self, peer: fi_addr_t, call: &Call, context: *mut c_void) -> Result<(), Code> {
        let endpoint = self.endpoint().raw();
        let result = match call {
            // SAFETY: `post` keeps the piece and the context until the completion, or beyond the close of the endpoint
            // (fi_recv(3)). Nobody else accesses the bytes meanwhile.
            Call::Receive(into) => unsafe {
                (self.messages().recv)(
                    endpoint,
                    into.address().as_ptr().cast(),
                    into.len(),
                    into.descriptor(),
                    FI_ADDR_UNSPEC,
                    context,
                )
            },
            // SAFETY: as above (fi_send(3)).
            Call::Send(from) => unsafe {
                (self.messages().send)(
                    endpoint,
                    from.address().as_ptr().cast(),
                    from.len(),
                    from.descriptor(),
                    peer,
                    context,
                )
            },
            Call::Write { from, to, data, is_delivered } => {
                let local = iovec { iov_base: from.address().as_ptr().cast(), iov_len: from.len() };
                let remote = fi_rma_iov { addr: to.address, len: from.len(), key: to.key };
                let mut descriptor = from.descriptor();
                let message = fi_msg_rma {
                    msg_iov: &raw const local,
                    desc: &raw mut descriptor,
                    iov_count: 1,
                    addr: to.peer,
                    rma_iov: &raw const remote,
                    rma_iov_count: 1,
                    context,
                    data: data.unwrap_or_default(),
                };
                let data = if data.is_some() { FI_REMOTE_CQ_DATA } else { 0 };
                let delivered = if *is_delivered { FI_DELIVERY_COMPLETE } else { 0 };
                // SAFETY: the vectors are read before the call returns, the bytes are kept as above (fi_rma(3)).
                unsafe { (self.rma().writemsg)(endpoint, &raw const message, COMPLETION | data | delivered) }
            }
            // SAFETY: as above (fi_rma(3)).
            Call::Read { into, from } => unsafe {
                (self.rma().read)(
                    endpoint,
                    into.address().as_ptr().cast(),
                    into.len(),
                    into.descriptor(),
                    from.peer,
                    from.address,
                    from.key,
                    context,
                )
            },
            // SAFETY: as above, one element of a kind that `has_atomic` found to be known (fi_atomic(3)).
            Call::Atomic { operand, compare: None, result, at, kind, operation } => unsafe {
                (self.atomics().readwrite)(
                    endpoint,
                    operand.address().as_ptr().cast(),
                    1,
                    operand.descriptor(),
                    result.address().as_ptr().cast(),
                    result.descriptor(),
                    at.peer,
                    at.address,
                    at.key,
                    *kind,
                    *operation,
                    context,
                )
            },
            // SAFETY: as above.
            Call::Atomic { operand, compare: Some(compare), result, at, kind, operation } => unsafe {
                (self.atomics().compwrite)(
                    endpoint,
                    operand.address().as_ptr().cast(),
                    1,
                    operand.descriptor(),
                    compare.address().as_ptr().cast(),
                    compare.descriptor(),
                    result.address().as_ptr().cast(),
                    result.descriptor(),
                    at.peer,
                    at.address,
                    at.key,
                    *kind,
                    *operation,
                    context,
                )
            },
        };
        Code::check(result).map(drop)
    }

    /// Reads what has completed. Returns whether anything had.
    pub(crate) fn poll(&mut self, completions: &mut Vec<Completion<W>>) -> Result<bool, Code> {
        let mut entries = [const {
            fi_cq_data_entry { op_context: ptr::null_mut(), flags: 0, len: 0, buf: ptr::null_mut(), data: 0 }
        }; BATCH];
        // SAFETY: room for so many entries of the format the queue was opened with (fi_cq_read(3)).
        let read =
            unsafe { (self.queue_calls().read)(self.queue().raw(), entries.as_mut_ptr().cast(), BATCH) };
        match Code::check(read) {
            Ok(count) => {
                for entry in &entries[..count.min(BATCH)] {
                    self.sort(entry, completions);
                }
                Ok(count > 0)
            }
            Err(code) if code.is_again() => Ok(false),
            Err(Code(FI_EAVAIL)) => self.read_error(completions).map(|()| true),
            Err(code) => Err(code),
        }
    }

    fn sort(&mut self, entry: &fi_cq_data_entry, completions: &mut Vec<Completion<W>>) {
        // Some providers leave that flag on the completion of the write itself, at its origin.
        if entry.flags & FI_REMOTE_CQ_DATA != 0 && entry.flags & FI_WRITE == 0 {
            completions.push(Completion::Arrived(entry.data));
        } else if let Some(flight) = self.flights.end(entry.op_context) {
            completions.push(Completion::Done(flight.work, entry.len));
        }
    }

    fn read_error(&mut self, completions: &mut Vec<Completion<W>>) -> Result<(), Code> {
        let mut error = fi_cq_err_entry {
            op_context: ptr::null_mut(),
            flags: 0,
            len: 0,
            buf: ptr::null_mut(),
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: ptr::null_mut(),
            err_data_size: 0,
            later: [0; 8],
        };
        // SAFETY: one entry, longer than any version's; no room for data of the provider's is offered (fi_cq(3)).
        let read = unsafe { (self.queue_calls().readerr)(self.queue().raw(), &raw mut error, 0) };
        match Code::check(read) {
            Err(code) if code.is_again() => return Ok(()),
            other => other?,
        };
        let code = Code(error.err);
        // SAFETY: the provider's own number and data, and no buffer: the answer is a static string (fi_cq(3)).
        let text = unsafe {
            (self.queue_calls().strerror)(
                self.queue().raw(),
                error.prov_errno,
                error.err_data,
                ptr::null_mut(),
                0,
            )
        };
        // SAFETY: as above, until the queue is read again.
        let text = unsafe { owned(text) };
        let said = code.text(self.domain.functions());
        tracing::debug!(code = code.0, provider_code = error.prov_errno, provider = text, "{said}");
        if let Some(flight) = self.flights.end(error.op_context) {
            completions.push(Completion::Failed(flight.work, code));
        }
        Ok(())
    }

    /// What each operation under way is for.
    pub(crate) fn works_mut(&mut self) -> impl Iterator<Item = &mut W> {
        self.flights.iter_mut().map(|flight| &mut flight.work)
    }

    /// What becomes readable when the queue has something; `None` where the provider has nothing to sleep on.
    pub(crate) fn readiness(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor belongs to the queue, which lives as long as `self` (fi_cq(3), FI_GETWAIT).
        self.wait.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Whether one may sleep on `readiness`.
    pub(crate) fn may_sleep(&self) -> bool {
        if self.wait.is_none() {
            return true;
        }
        let fabric = self.domain.fabric();
        // SAFETY: an open fabric has this table (fi_fabric(3)).
        let operations = unsafe { &*fabric.get().ops };
        let mut queue = self.queue().fid();
        // SAFETY: one object of the fabric's that was opened with a wait object (fi_poll(3), fi_trywait).
        let code = unsafe { (operations.trywait)(fabric.raw(), &raw mut queue, 1) };
        code == 0
    }

    /// Whether the provider knows an atomic that fetches, and whether one that compares.
    pub(crate) fn has_atomic(&self, kind: c_int, operation: c_int, compares: bool) -> bool {
        let endpoint = self.endpoint();
        // SAFETY: the table, where there is one, stays as long as the endpoint (fi_atomic(3)).
        let Some(operations) = (unsafe { endpoint.get().atomic.as_ref() }) else { return false };
        let valid = if compares { operations.compwritevalid } else { operations.readwritevalid };
        let mut count = 0;
        // SAFETY: any type and operation may be asked for (fi_atomicvalid(3)).
        let code = unsafe { valid(endpoint.raw(), kind, operation, &raw mut count) };
        code == 0 && count > 0
    }

    /// Closes nothing, now or later: the provider keeps whatever it has, memory included, until the process ends.
    pub(crate) fn abandon(&mut self) {
        self.domain.mark_stuck();
        std::mem::forget(self.domain.clone());
        std::mem::forget(self.objects.take());
    }

    fn objects(&self) -> &Objects {
        self.objects.as_ref().expect("there until dropped")
    }

    fn endpoint(&self) -> &Handle<fid_ep> {
        &self.objects().endpoint
    }

    fn queue(&self) -> &Handle<fid_cq> {
        &self.objects().queue
    }

    fn vector(&self) -> &Handle<fid_av> {
        &self.objects().vector
    }

    fn messages(&self) -> &fi_ops_msg {
        // SAFETY: an endpoint with FI_MSG has this table (fi_msg(3)).
        unsafe { &*self.endpoint().get().msg }
    }

    fn rma(&self) -> &fi_ops_rma {
        // SAFETY: an endpoint with FI_RMA has this table (fi_rma(3)).
        unsafe { &*self.endpoint().get().rma }
    }

    fn atomics(&self) -> &fi_ops_atomic {
        // SAFETY: `has_atomic` found the table to be there (fi_atomic(3)).
        unsafe { &*self.endpoint().get().atomic }
    }

    fn queue_calls(&self) -> &fi_ops_cq {
        // SAFETY: an open queue has this table (fi_cq(3)).
        unsafe { &*self.queue().get().ops }
    }
}

impl<W> Drop for Wire<W> {
    fn drop(&mut self) {
        let Some(Objects { endpoint, queue, vector }) = self.objects.take() else { return };
        if let Err(code) = endpoint.close() {
            tracing::debug!(code = code.0, "the endpoint of libfabric could not be closed");
            self.abandon();
            std::mem::forget((queue, vector));
        }
    }
}

impl Call {
    fn pieces(self) -> Pieces {
        match self {
            Self::Receive(piece) | Self::Send(piece) => [Some(piece), None, None],
            Self::Write { from, .. } => [Some(from), None, None],
            Self::Read { into, .. } => [Some(into), None, None],
            Self::Atomic { operand, compare, result, .. } => [Some(operand), compare, Some(result)],
        }
    }
}

fn open_vector(domain: &Domain) -> Result<Handle<fid_av>, Code> {
    let mut attributes = fi_av_attr {
        r#type: domain.traits().av_type,
        rx_ctx_bits: 0,
        count: 64,
        ep_per_node: 0,
        name: ptr::null(),
        map_addr: ptr::null_mut(),
        flags: 0,
    };
    // SAFETY: an open domain has this table (fi_domain(3)).
    let operations = unsafe { &*domain.handle().get().ops };
    let mut made = ptr::null_mut();
    // SAFETY: the attributes are read before the call returns (fi_av(3)).
    let code = unsafe {
        (operations.av_open)(domain.handle().raw(), &raw mut attributes, &raw mut made, ptr::null_mut())
    };
    // SAFETY: `made` is what the call stored.
    unsafe { Handle::adopt(code, made) }
}

/// With a descriptor to sleep on where the provider has that.
fn open_queue(domain: &Domain) -> Result<(Handle<fid_cq>, Option<RawFd>), Code> {
    if let Ok(queue) = open_queue_with(domain, FI_WAIT_FD) {
        let mut fd: c_int = -1;
        // SAFETY: the queue was opened with a descriptor, which is what is stored (fi_cq(3)).
        if unsafe { queue.control(FI_GETWAIT, (&raw mut fd).cast()) }.is_ok() && fd >= 0 {
            return Ok((queue, Some(fd)));
        }
    }
    Ok((open_queue_with(domain, FI_WAIT_NONE)?, None))
}

fn open_queue_with(domain: &Domain, wait: c_int) -> Result<Handle<fid_cq>, Code> {
    let mut attributes = fi_cq_attr {
        size: QUEUE,
        flags: 0,
        format: FI_CQ_FORMAT_DATA,
        wait_obj: wait,
        signaling_vector: 0,
        wait_cond: 0,
        wait_set: ptr::null_mut(),
    };
    // SAFETY: an open domain has this table (fi_domain(3)).
    let operations = unsafe { &*domain.handle().get().ops };
    let mut made = ptr::null_mut();
    // SAFETY: the attributes are read before the call returns (fi_cq(3)).
    let code = unsafe {
        (operations.cq_open)(domain.handle().raw(), &raw mut attributes, &raw mut made, ptr::null_mut())
    };
    // SAFETY: `made` is what the call stored.
    unsafe { Handle::adopt(code, made) }
}

fn open_endpoint(domain: &Domain) -> Result<Handle<fid_ep>, Code> {
    // SAFETY: an open domain has this table (fi_domain(3)).
    let operations = unsafe { &*domain.handle().get().ops };
    let mut made = ptr::null_mut();
    // SAFETY: the entry is the one the domain was opened with (fi_endpoint(3)).
    let code = unsafe {
        (operations.endpoint)(domain.handle().raw(), domain.info().raw(), &raw mut made, ptr::null_mut())
    };
    // SAFETY: `made` is what the call stored.
    unsafe { Handle::adopt(code, made) }
}
