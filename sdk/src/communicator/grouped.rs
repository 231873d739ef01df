//! Many small all_reduces as one: what a model of many tensors needs where no derived struct holds them.

use super::Communicator;
use super::call::{Collective, IN_PLACE};
use super::memory::{packed, unpack};
use crate::{Equivalence, Reduction, Result};
use gradwire_schema::{LayoutDigest, OperationId};
use std::collections::VecDeque;
use std::fmt;

impl Communicator {
    /// Makes the all_reduces that `program` asks for, together: small tensors of one type that are reduced by one operation
    /// travel as one, long ones by themselves. All ranks ask for the same, in the same order.
    ///
    /// ```
    /// # gradwire::run(2, |comm| {
    /// let (mut weights, mut biases, mut samples) = (vec![1.0_f32; 300], vec![2.0_f32; 10], [3_u64]);
    /// comm.grouped(|calls| {
    ///     calls.all_reduce(&mut weights, gradwire::Average)?;
    ///     calls.all_reduce(&mut biases, gradwire::Average)?;
    ///     calls.all_reduce(&mut samples, gradwire::Sum)
    /// })?;
    /// assert_eq!((weights[0], biases[0], samples[0]), (1.0, 2.0, 6));
    /// # Ok::<(), gradwire::Error>(())
    /// # })?.into_iter().collect::<gradwire::Result<()>>()?;
    /// # Ok::<(), gradwire::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What `program` returns: then nothing is sent. Those of every collective: where ranks differ in any of the calls, all
    /// get [`Mismatch`](crate::Error::Mismatch), and no tensor was touched.
    pub fn grouped<'a>(&self, program: impl FnOnce(&mut Grouped<'_, 'a>) -> Result<()>) -> Result<()> {
        let mut grouped =
            Grouped { communicator: self, digest: LayoutDigest::new(GROUPED), tensors: VecDeque::new() };
        program(&mut grouped)?;
        let Grouped { mut tensors, digest, .. } = grouped;
        // Every part of the group carries what all of it is: they differ at the first, or nowhere.
        let layout = digest.finish();
        let mut number = 0;
        let mut carry_out = |call: Collective, bytes: &mut [u8]| {
            number += 1;
            let count = bytes.len() / call.shape.element_size;
            let mut part = call.with_count(count)?;
            (part.signature.bucket, part.signature.layout) = (number, layout);
            self.collect(&part, bytes)
        };
        if tensors.is_empty() {
            return carry_out(self.all_reduce_call::<u8, _>(0, &crate::Sum)?, &mut []);
        }
        let mut bytes = Vec::new();
        while let Some(mut first) = tensors.pop_front() {
            if let Some(own) = first.values.bytes().filter(|own| own.len() >= IN_PLACE) {
                carry_out(first.call, own)?;
                continue;
            }
            let (call, kind) = (first.call, first.kind);
            let mut bucket = vec![(first.len, first.values)];
            if bucket[0].0 < IN_PLACE {
                // And all that can travel with it.
                let (together, others) =
                    tensors.into_iter().partition(|tensor| tensor.kind == kind && tensor.len < IN_PLACE);
                tensors = others;
                bucket.extend(VecDeque::into_iter(together).map(|tensor| (tensor.len, tensor.values)));
            }
            bytes.clear();
            bucket.iter().for_each(|(_, values)| values.append_to(&mut bytes));
            carry_out(call, &mut bytes)?;
            let mut rest = &bytes[..];
            for (len, values) in &mut bucket {
                let (own, others) = rest.split_at(*len);
                values.take_from(own)?;
                rest = others;
            }
        }
        Ok(())
    }
}

/// Tells the digest of a group from that of a struct.
const GROUPED: u64 = gradwire_schema::layout::fingerprint_of_name("grouped");

/// Collects the calls of a group; see [`Communicator::grouped`].
pub struct Grouped<'c, 'a> {
    communicator: &'c Communicator,
    digest: LayoutDigest,
    tensors: VecDeque<Tensor<'a>>,
}

impl<'a> Grouped<'_, 'a> {
    /// Adds an [`all_reduce`](Communicator::all_reduce) of `values`, which have their result when the group has been
    /// carried out.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is more than an address space holds.
    pub fn all_reduce<T: Equivalence, R: Reduction<T>>(
        &mut self,
        values: &'a mut [T],
        reduction: R,
    ) -> Result<()> {
        let call = self.communicator.all_reduce_call(values.len(), &reduction)?;
        let kind = (T::FINGERPRINT, reduction.properties().id);
        self.digest = self.digest.length(kind.0).length(kind.1.0).length(values.len() as u64);
        let len = values.len() * T::PACKED_SIZE;
        self.tensors.push_back(Tensor { kind, call, len, values: Box::new(values) });
        Ok(())
    }
}

impl fmt::Debug for Grouped<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grouped").field("tensors", &self.tensors.len()).finish_non_exhaustive()
    }
}

struct Tensor<'a> {
    /// What can travel together: elements of one type, reduced by one operation.
    kind: (u64, OperationId),
    call: Collective,
    /// Packed bytes.
    len: usize,
    values: Box<dyn Values + 'a>,
}

/// Values of any type.
trait Values {
    /// Their memory, where it is their packed form.
    fn bytes(&mut self) -> Option<&mut [u8]>;
    fn append_to(&self, bytes: &mut Vec<u8>);
    fn take_from(&mut self, bytes: &[u8]) -> Result<()>;
}

impl<T: Equivalence> Values for &mut [T] {
    fn bytes(&mut self) -> Option<&mut [u8]> {
        let len = self.len() * T::PACKED_SIZE;
        T::as_bytes_mut(self).filter(|bytes| bytes.len() == len)
    }

    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&packed(self));
    }

    fn take_from(&mut self, bytes: &[u8]) -> Result<()> {
        unpack(bytes, self)
    }
}
