//! Messages that are started in the engine and concluded later.

use super::Communicator;
use super::memory::{packed, unpack};
use super::point_to_point::{Received, Source, Tag, count_of, no_message};
use super::start::Start;
use crate::buffer::{Private, Span, Target};
use crate::engine::{Outcome, Payload, Work};
use crate::{Error, Rank, Result};
use gradwire_schema::Equivalence;

impl Communicator {
    /// A send of values. `lent`: their memory, where it is their packed form and outlasts the operation.
    pub(crate) fn start_sending<T: Equivalence>(
        &self,
        values: &[T],
        lent: Option<Span>,
        (to, tag): (Rank, u32),
        synchronous: bool,
    ) -> Result<Start> {
        self.check_root(to)?;
        let mut scratch = None;
        let span = lent.unwrap_or_else(|| scratch.insert(Private::copy_of(&packed(values))).span());
        let kind = T::FINGERPRINT;
        Ok(Start {
            begin: self.message(),
            work: Work::Send { to, tag, kind, payload: Payload::Lent(span), synchronous },
            conclude: Box::new(move |outcome| {
                // Until here the operation may have read it.
                drop(scratch);
                outcome.map(drop)
            }),
        })
    }

    /// A receive into values.
    pub(crate) fn start_receiving<T: Equivalence>(
        &self,
        mut values: Target<[T]>,
        source: Source,
        tag: Tag,
    ) -> Result<Start<Received>> {
        let pattern = self.pattern(source, tag)?;
        let mut scratch = None;
        let span = match values.bytes() {
            Some(span) => span,
            None => {
                let len = values.with(|values| values.len()) * T::PACKED_SIZE;
                scratch.insert(Private::zeroed(len)).span()
            }
        };
        let conclude = move |outcome: Result<Outcome>| {
            let Outcome::Received { source, tag, len } = outcome? else { return Err(no_message()) };
            let received = Received { source, tag, count: count_of::<T>(source, tag, len)? };
            let Some(mut scratch) = scratch else { return Ok(received) };
            let mut packed = Vec::new();
            scratch.span().part(0..len).inspect(|part| part.append_to(&mut packed));
            let too_long = || Error::Bug("a message is longer than the buffer it fits into".into());
            values.with(|values| unpack(&packed, values.get_mut(..received.count).ok_or_else(too_long)?))?;
            Ok(received)
        };
        Ok(Start {
            begin: self.message(),
            work: Work::receive::<T>(pattern, None)(span),
            conclude: Box::new(conclude),
        })
    }
}
