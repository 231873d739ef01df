//! Structs of tensors: every field reduced by its own operation, small fields fused.
//!
//! Long tensors whose format on the wire is that in memory are reduced in place. The others are converted and
//! gathered into one bucket per wire format and operation, so that a struct of many small tensors costs a few calls. All
//! ranks visit the same layout, so all make the same calls in the same order; the digest of the layout and its
//! run-time lengths is part of the first signature, so that no byte is written where structs differ.

mod buckets;
mod fused;

use super::Communicator;
use super::call::{Collective, Operation, misuse};
use crate::{Error, Rank, Result, plan};
use buckets::{Bucket, Gather, Scatter};
pub(crate) use fused::Fused;
use gradwire_schema::control::{self, TensorManifest};
use gradwire_schema::layout::{CheckError, Checked, Field, Tensor};
use gradwire_schema::{CallSignature, ConvertTo, Element, FieldVisitor, Gradient, LayoutDigest, Reduction};

impl Communicator {
    /// Reduces the gradients of all ranks, each field by its own operation; every rank gets the result in place.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when a hand-written `Gradient` does not keep to its layout;
    /// [`Mismatch`](Error::Mismatch) when the ranks' structs differ, naming the first field that does; and those of
    /// every collective.
    pub fn all_reduce_gradient<G: Gradient>(&self, gradient: &mut G) -> Result<()> {
        self.visit_all(gradient, Way::AllReduce)
    }

    /// Reduces the gradients of all ranks, each field by its own operation, into those of `root`. Other ranks' are
    /// unchanged.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank, and those of
    /// [`all_reduce_gradient`](Self::all_reduce_gradient).
    pub fn reduce_gradient<G: Gradient>(&self, gradient: &mut G, root: Rank) -> Result<()> {
        self.check_root(root)?;
        self.visit_all(gradient, Way::Reduce(root))
    }

    /// Overwrites every rank's gradients with those of `root`: all values as they are in memory, without conversion.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank, and those of
    /// [`all_reduce_gradient`](Self::all_reduce_gradient).
    pub fn broadcast_gradient<G: Gradient>(&self, gradient: &mut G, root: Rank) -> Result<()> {
        self.check_root(root)?;
        self.visit_all(gradient, Way::Broadcast(root))
    }

    /// The signature of a call on a struct, before its buckets are numbered.
    fn describe_struct<G: Gradient>(
        &self,
        gradient: &mut G,
        way: Way,
        collective: gradwire_schema::Collective,
    ) -> Result<CallSignature> {
        let mut measure = Checked::new(
            G::LAYOUT,
            Measure { digest: LayoutDigest::new(G::FINGERPRINT), elements: 0, inexact: None },
        );
        gradient.visit(&mut measure).and_then(|()| measure.finish()).map_err(layout_error)?;
        let Measure { digest, elements, inexact } = measure.into_inner();
        if let Some((field, operation)) = inexact.filter(|_| !matches!(way, Way::Broadcast(_))) {
            self.check_determinism(&format!("{operation}, by which field `{field}` is reduced,"), false)?;
        }
        Ok(CallSignature {
            root: way.root().map(|root| root as u32),
            count: elements,
            layout: digest.finish(),
            ..CallSignature::new(collective)
        })
    }

    fn visit_all<G: Gradient>(&self, gradient: &mut G, way: Way) -> Result<()> {
        let base = self.describe_struct(gradient, way, way.call())?;
        let spare = self.fused.take();
        let mut gather = Checked::new(
            G::LAYOUT,
            Gather { communicator: self, way, base, in_place: Some(0), buckets: Vec::new(), spare },
        );
        let gathered = gradient.visit(&mut gather).map_err(layout_error);
        let Gather { mut buckets, mut spare, in_place, .. } = gather.into_inner();
        let calls = in_place.unwrap_or(0);
        let result =
            gathered.and_then(|()| self.run_buckets(&mut buckets, calls, way, base)).and_then(|()| {
                if matches!(way, Way::Reduce(root) if root != self.rank) {
                    return Ok(());
                }
                let mut scatter =
                    Checked::new(G::LAYOUT, Scatter { way, in_place: true, buckets: &mut buckets });
                gradient.visit(&mut scatter).map_err(layout_error)
            });
        spare.extend(buckets.into_iter().map(|bucket| bucket.bytes));
        self.fused.replace(spare);
        result.map_err(|error| self.name_field(error, gradient))
    }

    /// Where structs differ, finds the first field that does: the first rank of the most common call and the first of
    /// the next most common one show everybody their manifests. All ranks have the same error here, so all of them come.
    fn name_field<G: Gradient>(&self, error: Error, gradient: &mut G) -> Error {
        let Error::Mismatch { calls, field: None } = &error else { return error };
        let [(_, usual), (_, odd), ..] = &calls[..] else { return error };
        let collectives = [
            gradwire_schema::Collective::AllReduceGradient,
            gradwire_schema::Collective::ReduceGradient,
            gradwire_schema::Collective::BroadcastGradient,
        ];
        let of_structs = collectives
            .iter()
            .any(|collective| calls.iter().all(|(call, _)| *call.name == *collective.name()));
        let (true, Some(usual), Some(odd)) = (of_structs, usual.first(), odd.first()) else { return error };
        match self.first_difference(*usual, *odd, gradient) {
            Ok(field) => Error::Mismatch { calls: calls.clone(), field: field.map(Into::into) },
            Err(later) => later,
        }
    }

    fn first_difference<G: Gradient>(
        &self,
        usual: Rank,
        odd: Rank,
        gradient: &mut G,
    ) -> Result<Option<String>> {
        let own = TensorManifest::of(gradient).map_err(|error| misuse(error.to_string()))?.encode();
        let usual = TensorManifest::decode(&self.show(usual, &own)?);
        let odd = TensorManifest::decode(&self.show(odd, &own)?);
        Ok(usual.ok().zip(odd.ok()).and_then(|(usual, odd)| usual.first_difference(&odd)))
    }

    /// The bytes of `root`, on every rank.
    fn show(&self, root: Rank, own: &[u8]) -> Result<Vec<u8>> {
        let mut len = [own.len() as u64];
        self.broadcast(&mut len, root)?;
        if len[0] > control::MAX_MESSAGE as u64 {
            return Err(Error::Bug("a manifest is longer than any can be".into()));
        }
        let mut bytes = own.to_vec();
        bytes.resize(len[0] as usize, 0);
        self.broadcast(&mut bytes, root)?;
        Ok(bytes)
    }

    /// One collective per bucket, after `calls` others. A struct without a tensor still agrees.
    fn run_buckets(&self, buckets: &mut [Bucket], calls: u64, way: Way, base: CallSignature) -> Result<()> {
        if buckets.is_empty() && calls == 0 {
            return self.run(&mut [], 1, base, way, None);
        }
        for (bucket, number) in buckets.iter_mut().zip(calls + 1..) {
            let signature = CallSignature { bucket: number, ..base };
            self.run(&mut bucket.bytes, bucket.element_size, signature, way, Some(&bucket.operation))?;
        }
        Ok(())
    }

    fn run(
        &self,
        bytes: &mut [u8],
        element_size: usize,
        signature: CallSignature,
        way: Way,
        operation: Option<&Operation>,
    ) -> Result<()> {
        let count = bytes.len() / element_size;
        self.collect(&self.struct_call(signature, way, count, element_size, operation), bytes)
    }

    /// The collective on one bucket.
    fn struct_call(
        &self,
        signature: CallSignature,
        way: Way,
        count: usize,
        element_size: usize,
        operation: Option<&Operation>,
    ) -> Collective {
        let collective = match way {
            Way::AllReduce => plan::Collective::AllReduce,
            Way::Reduce(_) => plan::Collective::Reduce,
            Way::Broadcast(_) => plan::Collective::Broadcast,
        };
        let operation = operation.filter(|_| collective.reduces());
        let shape = self.shape(collective, count, element_size, way.root(), operation);
        Collective { signature, shape, operation: operation.cloned() }
    }
}

/// What is done with a struct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    AllReduce,
    Reduce(Rank),
    Broadcast(Rank),
}

impl Way {
    const fn call(self) -> gradwire_schema::Collective {
        match self {
            Self::AllReduce => gradwire_schema::Collective::AllReduceGradient,
            Self::Reduce(_) => gradwire_schema::Collective::ReduceGradient,
            Self::Broadcast(_) => gradwire_schema::Collective::BroadcastGradient,
        }
    }

    /// The call of those who do not wait.
    pub(crate) const fn started(self) -> gradwire_schema::Collective {
        match self {
            Self::AllReduce => gradwire_schema::Collective::StartAllReduceGradient,
            Self::Reduce(_) => gradwire_schema::Collective::StartReduceGradient,
            Self::Broadcast(_) => gradwire_schema::Collective::StartBroadcastGradient,
        }
    }

    const fn root(self) -> Option<Rank> {
        match self {
            Self::AllReduce => None,
            Self::Reduce(root) | Self::Broadcast(root) => Some(root),
        }
    }
}

fn layout_error(error: CheckError<Error>) -> Error {
    match error {
        CheckError::Layout(error) => misuse(format!("the `Gradient` does not keep to its layout: {error}")),
        CheckError::Visitor(error) => error,
    }
}

/// The lengths known at run time only.
struct Measure {
    digest: LayoutDigest,
    elements: u64,
    /// The first field whose results show the order of contributions, and its operation.
    inexact: Option<(&'static str, &'static str)>,
}

impl FieldVisitor for Measure {
    type Error = Error;

    fn tensor<T, W, R>(
        &mut self,
        field: &'static Field,
        tensor: &'static Tensor,
        values: &mut [T],
        reduction: &R,
    ) -> Result<()>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        if !reduction.is_exact() {
            self.inexact.get_or_insert((field.name, reduction.properties().name));
        }
        if tensor.run_time_length {
            self.digest = self.digest.length(values.len() as u64);
        }
        self.elements += values.len() as u64;
        Ok(())
    }
}
