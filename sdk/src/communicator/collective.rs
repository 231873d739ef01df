//! Collectives on slices.

use super::Communicator;
use super::call::{Collective, Operation, misuse};
use crate::buffer::Reducer;
use crate::plan::{self, Determinism, Shape};
use crate::{Rank, Result};
use gradwire_schema::{CallSignature, Datatype, Equivalence, Reduction};

impl Operation {
    pub(super) fn new<T: Equivalence, R: Reduction<T>>(reduction: &R) -> Self {
        Self {
            reducer: Reducer::new::<T, R>(reduction),
            properties: reduction.properties(),
            exact: reduction.is_exact(),
        }
    }
}

/// What a signature says of a type.
pub(super) struct Kind<T>(std::marker::PhantomData<T>);

impl<T: Equivalence> Kind<T> {
    pub(super) const DATATYPE: Option<Datatype> = datatype_of(T::FINGERPRINT);
}

/// The number format whose fingerprint this is.
const fn datatype_of(fingerprint: u64) -> Option<Datatype> {
    let mut index = 0;
    while index < Datatype::ALL.len() {
        if Datatype::ALL[index].fingerprint() == fingerprint {
            return Some(Datatype::ALL[index]);
        }
        index += 1;
    }
    None
}

impl plan::Collective {
    /// The call that it carries out.
    pub(super) const fn call(self) -> gradwire_schema::Collective {
        match self {
            Self::AllReduce => gradwire_schema::Collective::AllReduce,
            Self::Broadcast => gradwire_schema::Collective::Broadcast,
            Self::AllGather => gradwire_schema::Collective::AllGather,
            Self::ReduceScatter => gradwire_schema::Collective::ReduceScatter,
            Self::Reduce => gradwire_schema::Collective::Reduce,
            Self::Gather => gradwire_schema::Collective::Gather,
            Self::Scatter => gradwire_schema::Collective::Scatter,
            Self::AllToAll => gradwire_schema::Collective::AllToAll,
            Self::Scan => gradwire_schema::Collective::Scan,
            Self::ExclusiveScan => gradwire_schema::Collective::ExclusiveScan,
        }
    }
}

/// What the calls are: signature, shape and operation, for whichever form of call carries them out.
impl Communicator {
    /// A collective on elements of `T`; `count` as [`Shape`] has it.
    pub(super) fn describe<T: Equivalence>(
        &self,
        collective: plan::Collective,
        count: usize,
        root: Option<Rank>,
        operation: Option<Operation>,
    ) -> Result<Collective> {
        self.check::<T>(root, operation.as_ref())?;
        let described = self.describe_checked::<T>(collective, count, root, operation);
        described.check_fits()?;
        Ok(described)
    }

    /// Whether there can be such a collective, of whatever length.
    #[inline]
    fn check<T: Equivalence>(&self, root: Option<Rank>, operation: Option<&Operation>) -> Result<()> {
        if let Some(root) = root {
            self.check_root(root)?;
        }
        if let Some(Operation { properties, exact, .. }) = operation {
            self.check_determinism(properties.name, *exact)?;
        }
        if T::PACKED_SIZE == 0 {
            return Err(misuse(format!("there is nothing in a `{}` to move", std::any::type_name::<T>())));
        }
        Ok(())
    }

    /// A collective that was found to be possible. Made where it is used: small calls notice when it is moved.
    #[inline]
    fn describe_checked<T: Equivalence>(
        &self,
        collective: plan::Collective,
        count: usize,
        root: Option<Rank>,
        operation: Option<Operation>,
    ) -> Collective {
        let datatype = Kind::<T>::DATATYPE;
        let signature = CallSignature {
            datatype,
            layout: if datatype.is_some() { 0 } else { T::FINGERPRINT },
            root: root.map(|root| root as u32),
            operation: operation.as_ref().map(|operation| operation.properties.id),
            count: count as u64,
            ..CallSignature::new(collective.call())
        };
        let shape = self.shape(collective, count, T::PACKED_SIZE, root, operation.as_ref());
        Collective { signature, shape, operation }
    }

    pub(crate) fn barrier_call(&self) -> Collective {
        Collective {
            signature: CallSignature::new(gradwire_schema::Collective::Barrier),
            shape: self.shape(plan::Collective::Broadcast, 0, 1, None, None),
            operation: None,
        }
    }

    pub(crate) fn broadcast_call<T: Equivalence>(&self, count: usize, root: Rank) -> Result<Collective> {
        self.describe::<T>(plan::Collective::Broadcast, count, Some(root), None)
    }

    pub(crate) fn all_reduce_call<T: Equivalence, R: Reduction<T>>(
        &self,
        count: usize,
        reduction: &R,
    ) -> Result<Collective> {
        self.describe::<T>(plan::Collective::AllReduce, count, None, Some(Operation::new(reduction)))
    }

    pub(crate) fn reduce_call<T: Equivalence, R: Reduction<T>>(
        &self,
        count: usize,
        root: Rank,
        reduction: &R,
    ) -> Result<Collective> {
        self.describe::<T>(plan::Collective::Reduce, count, Some(root), Some(Operation::new(reduction)))
    }

    pub(crate) fn all_gather_call<T: Equivalence>(&self, count: usize) -> Result<Collective> {
        self.describe::<T>(plan::Collective::AllGather, count, None, None)
    }

    pub(crate) fn gather_call<T: Equivalence>(&self, count: usize, root: Rank) -> Result<Collective> {
        self.describe::<T>(plan::Collective::Gather, count, Some(root), None)
    }

    pub(crate) fn reduce_scatter_call<T: Equivalence, R: Reduction<T>>(
        &self,
        count: usize,
        reduction: &R,
    ) -> Result<Collective> {
        self.describe::<T>(plan::Collective::ReduceScatter, count, None, Some(Operation::new(reduction)))
    }

    pub(super) fn shape(
        &self,
        collective: plan::Collective,
        count: usize,
        element_size: usize,
        root: Option<Rank>,
        operation: Option<&Operation>,
    ) -> Shape {
        Shape {
            collective,
            ranks: self.size(),
            count,
            blocks: None,
            element_size,
            root: root.unwrap_or(0),
            commutative: operation.is_none_or(|operation| operation.properties.commutative),
            exact_partials: operation.is_none_or(|operation| operation.reducer.exact_partials()),
            // Where the order does not show, any will do.
            determinism: match operation {
                Some(Operation { exact: true, .. }) => Determinism::Ranks,
                _ => self.determinism.get(),
            },
        }
    }
}

impl Communicator {
    /// Returns once all ranks have called it.
    ///
    /// # Errors
    ///
    /// Those of every collective: see [`Error`](crate::Error).
    pub fn barrier(&self) -> Result<()> {
        self.collect(&self.barrier_call(), &mut [])
    }

    /// Overwrites every rank's values with those of `root`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, and those of every collective.
    pub fn broadcast<T: Equivalence>(&self, values: &mut [T], root: Rank) -> Result<()> {
        self.call(&self.broadcast_call::<T>(values.len(), root)?, values)
    }

    /// Reduces the values of all ranks, element by element; every rank gets the result in place.
    ///
    /// # Errors
    ///
    /// Those of every collective. After [`Mismatch`](crate::Error::Mismatch) the values are untouched; after other errors of
    /// peers they are unspecified.
    pub fn all_reduce<T: Equivalence, R: Reduction<T>>(&self, values: &mut [T], reduction: R) -> Result<()> {
        let (all_reduce, operation) = (plan::Collective::AllReduce, Operation::new(&reduction));
        self.check::<T>(None, Some(&operation))?;
        let call = self.describe_checked::<T>(all_reduce, values.len(), None, Some(operation));
        call.check_fits()?;
        self.call(&call, values)
    }

    /// As [`all_reduce`](Self::all_reduce), with the result in `destination`; `source` is unchanged.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the lengths differ, and those of every collective.
    pub fn all_reduce_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        reduction: R,
    ) -> Result<()> {
        self.call_into(&self.all_reduce_call(source.len(), &reduction)?, source, destination)
    }

    /// Reduces the values of all ranks, element by element, into those of `root`. Other ranks' values are unchanged.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, and those of every collective.
    pub fn reduce<T: Equivalence, R: Reduction<T>>(
        &self,
        values: &mut [T],
        root: Rank,
        reduction: R,
    ) -> Result<()> {
        self.call(&self.reduce_call(values.len(), root, &reduction)?, values)
    }

    /// Every rank gets the values of all ranks, in rank order. `destination` is `size` times as long as `source`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, and those of every collective.
    pub fn all_gather_into<T: Equivalence>(&self, source: &[T], destination: &mut [T]) -> Result<()> {
        self.call_into(&self.all_gather_call::<T>(source.len())?, source, destination)
    }

    /// `root` gets the values of all ranks, in rank order: there `destination` is `size` times as long as `source`,
    /// elsewhere it is not used and may be empty.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, or when there is no such rank, and those of every collective.
    pub fn gather_into<T: Equivalence>(&self, source: &[T], destination: &mut [T], root: Rank) -> Result<()> {
        let destination = if self.rank == root { destination } else { &mut [] };
        self.call_into(&self.gather_call::<T>(source.len(), root)?, source, destination)
    }

    /// Reduces the values of all ranks, element by element, and gives each rank its part of the result: `source` is `size`
    /// times as long as `destination`, and rank `r` gets the `r`-th block.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, and those of every collective.
    pub fn reduce_scatter_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        reduction: R,
    ) -> Result<()> {
        self.call_into(&self.reduce_scatter_call(destination.len(), &reduction)?, source, destination)
    }
}
