//! The executor inside of its process: how a communicator's members come to share boards, and how they wait.

use super::attach::{Attached, PROBE, Probe};
use super::shown::NEVER_SHARED;
use super::{
    BOARD_LEN, Condition, Environment, Failure, Fold, Group, Memory, Pairs, Patience as Pace, Places, Share,
    Waited,
};
use crate::buffer::{Reducer, Span};
use crate::communicator::{Communicator, Counted, mismatch};
use crate::driver::{Core, Next, Patience, Shared};
use crate::engine::{Port, Process};
use crate::plan::{Collective, Shape};
use crate::{Error, Rank, Result};
use gradwire_schema::CallSignature;
use gradwire_transport::{Activity, Allocation, Direct, ImportError, Region, RegionKey, RemoteRegion};
use std::time::Instant;

/// The calls in which the members of a new communicator tell each other of their boards.
const JOINING: CallSignature = CallSignature::new(gradwire_schema::Collective::Duplicate);

/// What a rank answers that maps all boards, and can read the memory of all.
const ATTACHES: u8 = 2;

/// What the direct executor needs, with where it came from.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) group: Group,
    carrier: usize,
    region: Region,
    /// The others' boards, to be given back.
    mapped: Vec<(Process, RemoteRegion)>,
}

impl Communicator {
    /// Lets the members map each other's boards, if all of them can. All members call it, and all get the same answer:
    /// either each has a group, or none has.
    pub(crate) fn share(&self) -> Result<Option<Membership>> {
        if self.size() == 1 {
            return Ok(None);
        }
        let own = self.allocate_board();
        let probe = Probe::new();
        let mut told = [0; 1 + RegionKey::LEN + PROBE];
        if let Some((_, _, _, key)) = &own {
            told[0] = 1;
            told[1..][..RegionKey::LEN].copy_from_slice(key.as_bytes());
        }
        if let Some(probe) = &probe {
            told[1 + RegionKey::LEN..].copy_from_slice(&probe.told());
        }
        let all = self.tell_all(JOINING, &told)?;
        let all = all.chunks_exact(told.len());
        let keys: Option<Vec<RegionKey>> = all
            .clone()
            .map(|told| {
                (told[0] == 1).then(|| told[1..].first_chunk().copied().map(RegionKey::from_bytes))?
            })
            .collect();
        let mut board = match (own, keys) {
            (Some(own), Some(keys)) => self.map_boards(own, &keys),
            _ => None,
        };
        let attached = match board {
            Some(_) => Attached::probe(all.map(|told| &told[1 + RegionKey::LEN..])),
            None => None,
        };
        // One that cannot map or read what the others can keeps all from it.
        let able = if attached.is_some() { ATTACHES } else { u8::from(board.is_some()) };
        let all = self.tell_all(JOINING, &[able])?;
        if let (Some(board), Some(attached)) = (&mut board, attached)
            && all.iter().all(|able| *able == ATTACHES)
        {
            let mut core = self.job().shared().lock();
            for (process, system) in self.members().iter().zip(attached.processes()) {
                core.wires.set_readable(*process, *system);
            }
            drop(core);
            board.group.attach(attached);
        }
        if all.contains(&0) {
            if let Some(board) = board {
                self.unshare(board);
            }
            return Ok(None);
        }
        Ok(board)
    }

    /// Gives the boards back.
    pub(crate) fn unshare(&self, board: Membership) {
        let Membership { group, carrier, region, mapped } = board;
        let counted = self.uncounted(CallSignature::new(gradwire_schema::Collective::Barrier));
        let allocation = group.close(&mut Surroundings { communicator: self, counted: &counted });
        let mut core = self.job().shared().lock();
        for (process, remote) in mapped {
            core.wires.release(process, remote);
        }
        core.wires.carriers[carrier].transport.deregister(region);
        drop(core);
        drop(allocation);
    }

    /// Carries out a collective, if the members share memory. After a failure that peers may not know of yet nobody but
    /// this rank can reach the memory any more.
    pub(crate) fn run_direct(&self, call: &Call<'_>, operands: Operands<'_>) -> Option<Result<()>> {
        let mut board = self.board().borrow_mut();
        let Membership { group, .. } = board.as_mut()?;
        // After a fault the peers must see no call that will not be made; the engine says what it was.
        // Behind calls that are under way in the engine peers expect this one there.
        if self.has_ended(call.counted.sequence) || self.has_calls_under_way() || !call.is_served(self.size())
        {
            return None;
        }
        // SAFETY: what the operands borrow is borrowed for this call and used through the spans only. The call has ended when
        // this function returns: the executor runs on this thread, and what peers may still do after a failure is revoked
        // below.
        let (source, destination) = unsafe { operands.spans() };
        let memory = self.memory(source);
        let mut surroundings = Surroundings { communicator: self, counted: call.counted };
        match call.run(&mut *group, memory, destination, self.rank(), &mut surroundings) {
            Ok(()) => Some(Ok(())),
            Err(Failure::Elsewhere) => None,
            Err(failure) => {
                // Of a source that stays what it is peers only read.
                let written = memory.share.filter(|_| destination.is_none());
                Some(Err(self.explain_failure(failure, written, call.counted)))
            }
        }
    }

    /// Where memory lies among what peers can map.
    fn memory(&self, span: Span) -> Memory {
        if span.len() <= NEVER_SHARED {
            return Memory { span, share: None };
        }
        let found = self.job().ledger().find(span.address().as_ptr().addr(), span.len());
        Memory { span, share: found.map(|(key, offset)| Share { key, offset }) }
    }

    fn explain_failure(&self, failure: Failure<Error>, written: Option<Share>, call: &Counted) -> Error {
        if let Failure::Mismatch(calls) = failure {
            return mismatch(&calls, self.number(call.sequence)).on(self.name());
        }
        let mut core = self.job().shared().lock();
        if let Some(share) = written
            && let Some((carrier, region)) = self.job().ledger().strike(&share.key)
        {
            core.wires.carriers[carrier].transport.deregister(region);
        }
        if let Failure::Corrupt(rank, what) = failure {
            let Core { engine, wires, .. } = &mut *core;
            engine.breach(self.members()[rank], what, wires);
            engine.check_presence(self.id(), call.sequence, &[rank], wires);
            core.collect();
            self.job().shared().hand_on(&mut core);
        }
        match (core.engine.fault(self.id(), call.sequence), failure) {
            (Some(first_cause), _) => first_cause,
            (None, Failure::Environment(error)) => error,
            (None, _) => Error::Bug("a collective failed without a cause".into()),
        }
    }

    fn allocate_board(&self) -> Option<(Allocation, usize, Region, RegionKey)> {
        let mut core = self.job().shared().lock();
        let carrier = core.wires.direct_carrier()?;
        let own = self.members()[self.rank()];
        let direct =
            |process: &Process| core.wires.route(*process).is_some_and(|route| route.carrier == carrier);
        if !self.members().iter().filter(|process| **process != own).all(direct) {
            return None;
        }
        let transport = &mut core.wires.carriers[carrier].transport;
        let (region, allocation) = transport.allocate(BOARD_LEN).ok()?;
        let Some(key) = transport.export(region) else {
            transport.deregister(region);
            return None;
        };
        Some((allocation, carrier, region, key))
    }

    fn map_boards(
        &self,
        own: (Allocation, usize, Region, RegionKey),
        keys: &[RegionKey],
    ) -> Option<Membership> {
        let (allocation, carrier, region, _) = own;
        let counted = self.uncounted(CallSignature::new(gradwire_schema::Collective::Barrier));
        let mut surroundings = Surroundings { communicator: self, counted: &counted };
        let mut boards = Vec::with_capacity(keys.len());
        let mut mapped = Vec::with_capacity(keys.len());
        for (rank, key) in keys.iter().enumerate() {
            if rank == self.rank() {
                boards.push(Direct { address: allocation.address(), len: allocation.len() });
                continue;
            }
            let Ok((remote, board)) = surroundings.import(rank, key) else { break };
            mapped.push((self.members()[rank], remote));
            boards.push(board);
        }
        let pace = if self.job().shared().is_crowded() { Pace::Yield } else { Pace::Spin };
        if boards.len() == keys.len() {
            // SAFETY: each board was allocated by its owner for this group alone, zeroed, in a call of `share` that all
            // members make once; the transport checked its size when it mapped it. `mapped` is given back, and the
            // allocation freed, after the group is closed.
            let group = unsafe { Group::new(self.rank(), allocation, boards, pace) };
            if let Some(group) = group {
                return Some(Membership { group, carrier, region, mapped });
            }
        }
        let mut core = self.job().shared().lock();
        mapped.into_iter().for_each(|(process, remote)| core.wires.release(process, remote));
        core.wires.carriers[carrier].transport.deregister(region);
        None
    }
}

/// The memory of a blocking call.
#[derive(Debug)]
pub(crate) enum Operands<'a> {
    /// A working vector (see [`Shape`]).
    Working(&'a mut [u8]),
    /// What the rank holds at the start, and where its result goes; of collectives that
    /// [work apart](Call::works_apart).
    Apart(&'a [u8], &'a mut [u8]),
}

impl Operands<'_> {
    /// The source, and the destination if it is another.
    ///
    /// # Safety
    ///
    /// The spans are used while the operands are borrowed only, and what is borrowed is not used otherwise meanwhile.
    unsafe fn spans(self) -> (Span, Option<Span>) {
        match self {
            // SAFETY: the caller keeps the contract.
            Self::Working(working) => (unsafe { Span::of_slice(working) }, None),
            Self::Apart(source, destination) => {
                // SAFETY: as above; executors write to destinations only, and peers only to sources that are destinations, too.
                let source = unsafe { Span::of_shared(source) };
                // SAFETY: as above.
                (source, Some(unsafe { Span::of_slice(destination) }))
            }
        }
    }
}

/// A blocking collective on a working vector (see [`Shape`]), or on parts of it that lie apart.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) counted: &'a Counted,
    pub(crate) shape: &'a Shape,
    pub(crate) reducer: Option<&'a Reducer>,
}

impl Call<'_> {
    /// Whether the source need not lie where the result goes.
    pub(crate) fn works_apart(collective: Collective) -> bool {
        matches!(
            collective,
            Collective::AllReduce
                | Collective::AllGather
                | Collective::Gather
                | Collective::ReduceScatter
                | Collective::AllToAll
        )
    }

    /// Whether the executor knows how to carry it out in a group of `size` ranks.
    fn is_served(&self, size: usize) -> bool {
        self.shape.element_size <= Group::largest_element(size)
    }

    fn run(
        &self,
        group: &mut Group,
        memory: Memory,
        destination: Option<Span>,
        rank: Rank,
        surroundings: &mut Surroundings<'_>,
    ) -> Result<(), Failure<Error>> {
        let Self { counted, shape, reducer } = *self;
        let (call, root, span) = (&counted.signature, shape.root, memory.span);
        let bug = || Failure::Environment(Error::Bug("a collective that contradicts its shape".into()));
        let fold =
            || reducer.map(|reducer| Fold { reducer, element_size: shape.element_size }).ok_or_else(bug);
        let input = || {
            if destination.is_some() {
                return Ok(memory);
            }
            let own = shape.byte_range(&shape.input(rank));
            let share = memory.share.map(|share| Share { offset: share.offset + own.start, ..share });
            span.part(own).map(|span| Memory { span, share }).ok_or_else(bug)
        };
        let part = || span.part(shape.byte_range(&shape.result(rank)));
        let result = || destination.or_else(part).ok_or_else(bug);
        let all = destination.unwrap_or(span);
        let block = |rank: Rank| shape.byte_range(&shape.block(rank));
        let places = Places { block: &block, longest: shape.longest_block() };
        match shape.collective {
            Collective::AllReduce => group.all_reduce(call, memory, all, fold()?, surroundings),
            Collective::Broadcast => group.broadcast(call, memory, root, surroundings),
            Collective::AllGather => group.all_gather(call, input()?, all, &places, surroundings),
            Collective::Gather => group.gather(call, input()?, Some(all), &places, root, surroundings),
            Collective::Reduce => group.reduce(call, memory, Some(span), root, fold()?, surroundings),
            Collective::ReduceScatter => {
                group.reduce_scatter(call, memory, result()?, &places, fold()?, surroundings)
            }
            Collective::Scatter => group.scatter(call, memory, block(rank), root, surroundings),
            Collective::AllToAll => {
                let sent = |from: Rank, to: Rank| shape.byte_range(&shape.outgoing(from, to));
                let start = shape.byte_range(&shape.result(rank)).start;
                let received = |from: Rank| {
                    let block = shape.byte_range(&shape.incoming(rank, from));
                    block.start - start..block.end - start
                };
                let pairs = Pairs { sent: &sent, received: &received, longest: places.longest };
                group.all_to_all(call, input()?, result()?, &pairs, surroundings)
            }
            Collective::Scan => group.scan(call, span, rank + 1, fold()?, surroundings),
            Collective::ExclusiveScan => group.scan(call, span, rank, fold()?, surroundings),
        }
    }
}

/// The process around a call of the direct executor.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(super) communicator: &'a Communicator,
    pub(super) counted: &'a Counted,
}

impl Surroundings<'_> {
    fn shared(&self) -> &Shared {
        self.communicator.job().shared()
    }

    /// Looks for a reason to give up. `needed`: the ranks without which this one waits in vain; `missing`: those to
    /// blame when time is up.
    fn give_up(
        &self,
        core: &mut Core,
        needed: impl FnOnce() -> Vec<Rank>,
        missing: impl FnOnce() -> Vec<Rank>,
    ) -> Result<()> {
        self.fault(core)?;
        let now = Instant::now();
        let late = self.counted.deadline().is_some_and(|deadline| deadline <= now);
        if !late && !core.engine.anybody_left() {
            return Ok(());
        }
        let Core { engine, wires, .. } = &mut *core;
        engine.check_presence(self.communicator.id(), self.counted.sequence, &needed(), wires);
        if late {
            let missing = missing();
            if !missing.is_empty() {
                engine.report_time_out(&self.counted.begin(), &missing, now, wires);
            }
        }
        core.collect();
        self.shared().hand_on(core);
        self.fault(core)
    }

    /// Why the call fails, if it does.
    fn fault(&self, core: &Core) -> Result<()> {
        core.engine.fault(self.communicator.id(), self.counted.sequence).map_or(Ok(()), Err)
    }
}

impl Environment for Surroundings<'_> {
    type Error = Error;

    fn wait(&mut self, condition: &Condition<'_>) -> Result<Waited> {
        let shared = self.shared();
        let _caller = shared.enter();
        let mut patience = Patience::new(shared.is_crowded());
        let mut core = shared.lock();
        loop {
            if condition.is_ready() {
                return Ok(Waited::Ready);
            }
            if core.turn(Instant::now()) == Activity::Busy {
                patience.reset();
            }
            // A wake-up call may have been meant for another thread, which it does not reach any more.
            shared.hand_on(&mut core);
            // What a peer wrote before it left, or before its time was up, counts.
            if condition.is_ready() {
                return Ok(Waited::Ready);
            }
            if condition.begins() && core.engine.expects(self.communicator.id(), self.counted.sequence) {
                return Ok(Waited::Elsewhere);
            }
            self.give_up(&mut core, || condition.needed(), || condition.missing())?;
            match patience.next() {
                Next::Spin => std::hint::spin_loop(),
                Next::Yield => {
                    drop(core);
                    std::thread::yield_now();
                    core = shared.lock();
                }
                Next::Sleep => {
                    if condition.park() {
                        core = shared.sleep(core, self.counted.deadline());
                    }
                    condition.unpark();
                }
            }
        }
    }

    fn wake(&mut self, rank: Rank) {
        self.shared().ring(self.communicator.members()[rank]);
    }

    fn import(&mut self, rank: Rank, key: &RegionKey) -> Result<(RemoteRegion, Direct)> {
        let process = self.communicator.members()[rank];
        let shared = self.shared();
        let mut core = shared.lock();
        loop {
            match core.wires.import(process, key) {
                Ok(remote) => {
                    let mapped = core.wires.direct(process, remote);
                    let bug = || Error::Bug("imported memory has no mapping".into());
                    return mapped.map(|mapped| (remote, mapped)).ok_or_else(bug);
                }
                Err(ImportError::NotYet) => {
                    core.turn(Instant::now());
                    shared.hand_on(&mut core);
                    self.give_up(&mut core, || vec![rank], || vec![rank])?;
                    drop(core);
                    std::thread::yield_now();
                    core = shared.lock();
                }
                Err(error) => {
                    self.fault(&core)?;
                    return Err(Error::System(
                        format!("memory of rank {rank} cannot be mapped: {error}").into(),
                    ));
                }
            }
        }
    }

    fn release(&mut self, rank: Rank, region: RemoteRegion) {
        let process = self.communicator.members()[rank];
        self.shared().lock().wires.release(process, region);
    }
}
