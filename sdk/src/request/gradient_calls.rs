//! The forms of calls on structs of tensors.

use super::{ConcludeWithin, Conclusion, Operation, Request, Scope, ScopedRequest, start_in_engine};
use crate::buffer::{Lent, Target};
use crate::communicator::{Communicator, Fused, Way};
use crate::engine::{Begin, Work};
use crate::{Rank, Result};
use gradwire_schema::Gradient;

/// The calls on structs of tensors. The tensors are copied into the buckets in which they travel before a method returns,
/// and get their results when somebody waits. A rank that does not wait meets only such that do not wait either: the blocking
/// form makes several calls, these make one. Where structs differ all ranks get [`Mismatch`](crate::Error::Mismatch), without
/// the name of the field.
impl Communicator {
    /// Starts an [`all_reduce_gradient`](Self::all_reduce_gradient).
    pub fn start_all_reduce_gradient<G: Gradient + Send + 'static>(&self, gradient: G) -> Request<G> {
        self.request_struct(gradient, Way::AllReduce)
    }

    /// Starts a [`reduce_gradient`](Self::reduce_gradient).
    pub fn start_reduce_gradient<G: Gradient + Send + 'static>(&self, gradient: G, root: Rank) -> Request<G> {
        self.request_struct(gradient, Way::Reduce(root))
    }

    /// Starts a [`broadcast_gradient`](Self::broadcast_gradient).
    pub fn start_broadcast_gradient<G: Gradient + Send + 'static>(
        &self,
        gradient: G,
        root: Rank,
    ) -> Request<G> {
        self.request_struct(gradient, Way::Broadcast(root))
    }

    fn request_struct<G: Gradient + Send + 'static>(&self, mut gradient: G, way: Way) -> Request<G> {
        let start = self.start_struct(&mut gradient, way, Vec::new());
        let conclude = |mut fused: Fused| -> ConcludeWithin<G, ()> {
            Box::new(move |gradient, outcome| fused.conclude(gradient, outcome))
        };
        Request::of(self, gradient, Operation::within(self, start, conclude))
    }
}

/// The calls on structs of tensors, as the `start_...` methods of the [`Communicator`]: they meet each other, and no blocking
/// form. The struct cannot be used before it comes back.
impl<'scope> Scope<'scope, '_> {
    /// Starts an [`all_reduce_gradient`](Communicator::all_reduce_gradient).
    pub fn all_reduce_gradient<G: Gradient + 'static>(
        &'scope self,
        gradient: &'scope mut G,
    ) -> ScopedRequest<'scope, &'scope mut G> {
        self.lend_struct(gradient, Way::AllReduce)
    }

    /// Starts a [`reduce_gradient`](Communicator::reduce_gradient).
    pub fn reduce_gradient<G: Gradient + 'static>(
        &'scope self,
        gradient: &'scope mut G,
        root: Rank,
    ) -> ScopedRequest<'scope, &'scope mut G> {
        self.lend_struct(gradient, Way::Reduce(root))
    }

    /// Starts a [`broadcast_gradient`](Communicator::broadcast_gradient).
    pub fn broadcast_gradient<G: Gradient + 'static>(
        &'scope self,
        gradient: &'scope mut G,
        root: Rank,
    ) -> ScopedRequest<'scope, &'scope mut G> {
        self.lend_struct(gradient, Way::Broadcast(root))
    }

    fn lend_struct<G: Gradient + 'static>(
        &'scope self,
        gradient: &'scope mut G,
        way: Way,
    ) -> ScopedRequest<'scope, &'scope mut G> {
        let start = self.communicator.start_struct(gradient, way, Vec::new());
        let (lent, target) = Lent::new(gradient);
        let conclude = |mut fused: Fused| -> ConcludeWithin<Target<G>, ()> {
            Box::new(move |target, outcome| target.with(|gradient| fused.conclude(gradient, outcome)))
        };
        let operation = Operation::within(self.communicator, start, conclude);
        self.keep(target, || lent.give_back(), operation)
    }
}

impl<M> Operation<M, ()> {
    fn within(
        communicator: &Communicator,
        start: Result<(Begin, Work, Fused)>,
        conclude: impl FnOnce(Fused) -> ConcludeWithin<M, ()>,
    ) -> Self {
        match start {
            Ok((begin, work, fused)) => {
                let key = start_in_engine(communicator.job(), begin, work);
                Self::UnderWay(key, Conclusion::Within(conclude(fused)))
            }
            Err(error) => Self::Refused(error),
        }
    }
}
