//! An operation with its types erased: what the executors call on raw memory.

use super::Span;
use gradwire_schema::reduce::Partials;
use gradwire_schema::{Equivalence, Kernel, Reduction};
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

/// The reduction of one call.
#[derive(Clone, Debug)]
pub(crate) enum Reducer {
    /// A built-in operation: reads raw memory.
    Kernel(Kernel),
    /// A user's operation: sees copies only.
    Staged(Arc<dyn StagedFold>),
}

impl Reducer {
    pub(crate) fn new<T: Equivalence, R: Reduction<T>>(reduction: &R) -> Self {
        match reduction.kernel() {
            Some(kernel) => Self::Kernel(kernel),
            None => Self::Staged(Arc::new(Staged {
                reduction: reduction.clone(),
                element: std::marker::PhantomData::<fn(T)>,
            })),
        }
    }

    /// Whether partial results may be written to memory as elements.
    pub(crate) fn exact_partials(&self) -> bool {
        match self {
            Self::Kernel(kernel) => kernel.partials() == Partials::Exact,
            Self::Staged(_) => false,
        }
    }

    /// Folds `sources` from left to right into `destination`. All spans have the same length, a multiple of the
    /// element's size; the destination may be one of the sources. With `contributions` the result is final.
    pub(crate) fn fold(&self, sources: &[Span], destination: Span, contributions: Option<NonZeroU64>) {
        self.fold_to_all(sources, &[destination], contributions);
    }

    /// Folds equal blocks, one of each contribution, into `destination`; of each block only `part`. The result is
    /// final.
    pub(crate) fn fold_blocks(
        &self,
        blocks: &mut [u8],
        contributions: usize,
        part: Range<usize>,
        destination: Span,
    ) {
        let len = blocks.len() / contributions.max(1);
        // SAFETY: the blocks are borrowed for this call, and read through the span only.
        let all = unsafe { Span::of_slice(blocks) };
        let block = |index: usize| all.part(index * len..(index + 1) * len)?.part(part.clone());
        let sources: Vec<Span> = (0..contributions).filter_map(block).collect();
        if destination.len() == part.len() && !sources.is_empty() {
            self.fold(&sources, destination, NonZeroU64::new(contributions as u64));
        }
    }

    /// As [`fold`](Self::fold), into every destination.
    pub(crate) fn fold_to_all(
        &self,
        sources: &[Span],
        destinations: &[Span],
        contributions: Option<NonZeroU64>,
    ) {
        let Some((first, others)) = destinations.split_first() else { return };
        debug_assert!(sources.iter().chain(others).all(|span| span.len() == first.len()));
        match self {
            Self::Kernel(kernel) => with_pointers(sources, const_pointer, |sources| {
                with_pointers(destinations, mut_pointer, |destinations| {
                    let count = first.len() / kernel.element_size();
                    // SAFETY: the spans are valid by their own contract and `count` elements fit into each; a
                    // destination is a source exactly or distinct memory of the operation.
                    unsafe { kernel.fold(sources, destinations, count, contributions) };
                });
            }),
            Self::Staged(staged) => {
                staged.fold(sources, *first, contributions);
                others.iter().for_each(|other| other.copy_from(*first));
            }
        }
    }
}

/// The pointers of spans: few in nearly every call; the spill keeps any number right.
fn with_pointers<P: Copy, R>(spans: &[Span], pointer: fn(&Span) -> P, use_them: impl FnOnce(&[P]) -> R) -> R {
    let mut few = [pointer(&Span::EMPTY); 8];
    match few.get_mut(..spans.len()) {
        Some(few) => {
            few.iter_mut().zip(spans).for_each(|(to, span)| *to = pointer(span));
            use_them(few)
        }
        None => use_them(&spans.iter().map(pointer).collect::<Vec<_>>()),
    }
}

fn const_pointer(span: &Span) -> *const u8 {
    span.address().as_ptr().cast_const()
}

fn mut_pointer(span: &Span) -> *mut u8 {
    span.address().as_ptr()
}

/// A fold that copies its sources to private memory first.
pub(crate) trait StagedFold: fmt::Debug + Send + Sync {
    fn fold(&self, sources: &[Span], destination: Span, contributions: Option<NonZeroU64>);
}

struct Staged<T, R> {
    reduction: R,
    element: std::marker::PhantomData<fn(T)>,
}

impl<T: Equivalence, R: Reduction<T>> fmt::Debug for Staged<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reduction.fmt(f)
    }
}

/// Elements that a user's operation sees at once: enough to amortise the call, few enough for the first-level cache.
const BLOCK: usize = 512;

impl<T: Equivalence, R: Reduction<T>> StagedFold for Staged<T, R> {
    /// Operations without a kernel are never left partial: all contributions of an element meet in one fold.
    fn fold(&self, sources: &[Span], destination: Span, contributions: Option<NonZeroU64>) {
        let size = T::PACKED_SIZE.max(1);
        let count = destination.len() / size;
        let mut bytes = Vec::with_capacity(BLOCK * size);
        for start in (0..count).step_by(BLOCK) {
            let range = start * size..(start + BLOCK).min(count) * size;
            let mut load = |source: &Span| -> Result<Vec<T>, Span> {
                let part = source.part(range.clone()).unwrap_or(Span::EMPTY);
                bytes.clear();
                part.append_to(&mut bytes);
                bytes.chunks_exact(size).map(|value| T::unpack(value).map_err(|_| part)).collect()
            };
            let values = match sources.iter().map(&mut load).collect::<Result<Vec<_>, _>>() {
                Ok(values) => values,
                // What is no value is no value in the result either: every rank that gets it will refuse it.
                Err(invalid) => {
                    destination.part(range).inspect(|part| part.copy_from(invalid));
                    continue;
                }
            };
            let Some((first, rest)) = values.split_first() else { return };
            let mut accumulators = vec![R::Accumulator::default(); first.len()];
            self.reduction.lift(first, &mut accumulators);
            rest.iter().for_each(|source| self.reduction.combine(&mut accumulators, source));
            let mut result = first.clone();
            let contributions = contributions.map_or(sources.len() as u64, NonZeroU64::get);
            self.reduction.finish(&accumulators, contributions, &mut result);
            bytes.clear();
            bytes.resize(result.len() * size, 0);
            result.iter().zip(bytes.chunks_exact_mut(size)).for_each(|(value, to)| value.pack(to));
            if let Some(part) = destination.part(range.clone()) {
                part.write(&bytes);
            }
        }
    }
}
