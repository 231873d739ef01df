//! Messages that travel while the program does something else.

use super::{Request, Scope, ScopedRequest};
use crate::buffer::{Buffer, lend_to_scope};
use crate::communicator::{Communicator, Received, Source, Tag};
use crate::{Element, Equivalence, Rank};

/// The forms of messages that take their memory along. Nothing is said to other ranks by dropping a request: what is sent
/// is still received, and what is received is forgotten.
impl Communicator {
    /// Starts a [`send`](Self::send).
    pub fn start_send<T: Element>(&self, mut buffer: Buffer<T>, to: Rank, tag: u32) -> Request<Buffer<T>> {
        let span = buffer.target().bytes();
        let start = self.start_sending(&buffer, span, (to, tag), false);
        Request::new(self, buffer, start)
    }

    /// Starts a [`synchronous_send`](Self::synchronous_send).
    pub fn start_synchronous_send<T: Element>(
        &self,
        mut buffer: Buffer<T>,
        to: Rank,
        tag: u32,
    ) -> Request<Buffer<T>> {
        let span = buffer.target().bytes();
        let start = self.start_sending(&buffer, span, (to, tag), true);
        Request::new(self, buffer, start)
    }

    /// Starts a [`recv`](Self::recv).
    pub fn start_recv<T: Element>(
        &self,
        mut buffer: Buffer<T>,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Request<Buffer<T>, Received> {
        let start = self.start_receiving(buffer.target(), from.into(), tag.into());
        Request::new(self, buffer, start)
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a [`send`](Communicator::send).
    pub fn send<T: Equivalence>(
        &'scope self,
        values: &'scope [T],
        to: Rank,
        tag: u32,
    ) -> ScopedRequest<'scope, &'scope [T]> {
        let start = self.communicator.start_sending(values, lend_to_scope(values), (to, tag), false);
        self.open(move || values, start)
    }

    /// Starts a [`synchronous_send`](Communicator::synchronous_send).
    pub fn synchronous_send<T: Equivalence>(
        &'scope self,
        values: &'scope [T],
        to: Rank,
        tag: u32,
    ) -> ScopedRequest<'scope, &'scope [T]> {
        let start = self.communicator.start_sending(values, lend_to_scope(values), (to, tag), true);
        self.open(move || values, start)
    }

    /// Starts a [`recv`](Communicator::recv).
    pub fn recv<T: Equivalence>(
        &'scope self,
        values: &'scope mut [T],
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> ScopedRequest<'scope, &'scope mut [T], Received> {
        let (source, tag) = (from.into(), tag.into());
        self.lend(values, |communicator, values| communicator.start_receiving(values, source, tag))
    }
}
