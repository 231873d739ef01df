//! Small tensors in buckets: gathered on the first visit, given their results on the second.

use super::Way;
use crate::communicator::Communicator;
use crate::communicator::call::{IN_PLACE, Operation, misuse};
use crate::{Error, Result};
use gradwire_schema::layout::{Field, Tensor};
use gradwire_schema::{
    CallSignature, ConvertTo, Datatype, Element, Equivalence, FieldVisitor, OperationId, Reduction,
};

/// Small tensors that are reduced together.
#[derive(Debug)]
pub(super) struct Bucket {
    key: (Datatype, OperationId),
    pub(super) operation: Operation,
    pub(super) element_size: usize,
    pub(super) bytes: Vec<u8>,
    /// Bytes that have been scattered.
    scattered: usize,
}

/// The bucket of a tensor: by wire format and operation, or by the format in memory where nothing is reduced.
fn key(way: Way, tensor: &Tensor) -> (Datatype, OperationId) {
    match way {
        Way::AllReduce | Way::Reduce(_) => (tensor.wire, tensor.operation),
        Way::Broadcast(_) => (tensor.datatype, OperationId(0)),
    }
}

/// Whether a tensor is long enough to be reduced where it is.
fn in_place(way: Way, tensor: &Tensor, bytes: usize) -> bool {
    bytes >= IN_PLACE && (tensor.wire == tensor.datatype || matches!(way, Way::Broadcast(_)))
}

/// First visit: reduces long tensors, gathers the others.
pub(super) struct Gather<'a> {
    pub(super) communicator: &'a Communicator,
    pub(super) way: Way,
    pub(super) base: CallSignature,
    /// Long tensors are reduced where they are; how many have been so far.
    pub(super) in_place: Option<u64>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) spare: Vec<Vec<u8>>,
}

impl FieldVisitor for Gather<'_> {
    type Error = Error;

    fn tensor<T, W, R>(
        &mut self,
        _: &'static Field,
        tensor: &'static Tensor,
        values: &mut [T],
        reduction: &R,
    ) -> Result<()>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        let operation = Operation::new::<W, R>(reduction);
        if let Some(calls) = &mut self.in_place
            && in_place(self.way, tensor, size_of_val(values))
            && let Some(bytes) = <T as Equivalence>::as_bytes_mut(values)
        {
            *calls += 1;
            let signature = CallSignature { bucket: *calls, ..self.base };
            let run = |bytes: &mut [u8]| {
                self.communicator.run(bytes, size_of::<T>(), signature, self.way, Some(&operation))
            };
            return match self.way {
                // Partial results pass through the vector: the values of others than the root stay as they are.
                Way::Reduce(root) if root != self.communicator.rank => run(&mut bytes.to_vec()),
                _ => run(bytes),
            };
        }
        let key = key(self.way, tensor);
        let index = self.buckets.iter().position(|bucket| bucket.key == key).unwrap_or_else(|| {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            let element_size = key.0.size();
            self.buckets.push(Bucket { key, operation, element_size, bytes, scattered: 0 });
            self.buckets.len() - 1
        });
        let bytes = &mut self.buckets[index].bytes;
        match self.way {
            Way::AllReduce | Way::Reduce(_) => append::<T, W>(values, bytes),
            Way::Broadcast(_) => append::<T, T>(values, bytes),
        }
        Ok(())
    }
}

/// Second visit: gives the gathered tensors their results.
pub(super) struct Scatter<'a> {
    pub(super) way: Way,
    /// Long tensors have been reduced where they are.
    pub(super) in_place: bool,
    pub(super) buckets: &'a mut Vec<Bucket>,
}

impl FieldVisitor for Scatter<'_> {
    type Error = Error;

    fn tensor<T, W, R>(
        &mut self,
        _: &'static Field,
        tensor: &'static Tensor,
        values: &mut [T],
        _: &R,
    ) -> Result<()>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        if self.in_place && in_place(self.way, tensor, size_of_val(values)) {
            return Ok(());
        }
        let key = key(self.way, tensor);
        let len = values.len() * key.0.size();
        let bucket = self.buckets.iter_mut().find(|bucket| bucket.key == key);
        let bytes = bucket.and_then(|bucket| {
            let start = bucket.scattered;
            bucket.scattered += len;
            bucket.bytes.get(start..start + len)
        });
        let Some(bytes) = bytes else {
            return Err(misuse("the `Gradient` shows other tensors at every visit".to_owned()));
        };
        match self.way {
            Way::AllReduce | Way::Reduce(_) => restore::<T, W>(bytes, values),
            Way::Broadcast(_) => restore::<T, T>(bytes, values),
        }
        Ok(())
    }
}

/// Elements converted at once, on the stack.
const BLOCK: usize = 256;

fn append<T: ConvertTo<W>, W: Element>(values: &[T], bytes: &mut Vec<u8>) {
    let mut block = [W::default(); BLOCK];
    for chunk in values.chunks(BLOCK) {
        let block = &mut block[..chunk.len()];
        T::convert_to(chunk, block);
        bytes.extend_from_slice(zerocopy::IntoBytes::as_bytes(block));
    }
}

fn restore<T: ConvertTo<W>, W: Element>(bytes: &[u8], values: &mut [T]) {
    let mut block = [W::default(); BLOCK];
    for (chunk, bytes) in values.chunks_mut(BLOCK).zip(bytes.chunks(BLOCK * size_of::<W>())) {
        let block = &mut block[..chunk.len()];
        zerocopy::IntoBytes::as_mut_bytes(block).copy_from_slice(bytes);
        T::convert_from(block, chunk);
    }
}
