//! Reductions of any number of contributions of each rank.

use super::Communicator;
use super::memory::check_length;
use crate::Result;
use gradwire_schema::operation::PartialSum;
use gradwire_schema::{Float, Reduction};

impl Communicator {
    /// Reduces the contributions of all ranks, of which each has as many as it likes, none included, element by element;
    /// every rank gets the result. All contributions are as long as `destination`.
    ///
    /// The operation is [`ReproducibleSum`](crate::ReproducibleSum) or
    /// [`ReproducibleAverage`](crate::ReproducibleAverage): the result has the same bits however the contributions are
    /// spread over ranks, also over another number of them, and in whatever order. A [`PartialSum`] of each element
    /// travels, 32 bytes.
    ///
    /// ```
    /// use gradwire::ReproducibleAverage;
    ///
    /// let averages = gradwire::run(2, |comm| {
    ///     // Rank 0 has one sample, rank 1 has two.
    ///     let samples: &[&[f32]] = if comm.rank() == 0 { &[&[1.0]] } else { &[&[3.0], &[8.0]] };
    ///     let mut average = [0.0];
    ///     comm.all_reduce_many(samples.iter().copied(), &mut average, ReproducibleAverage).unwrap();
    ///     average
    /// }).unwrap();
    /// assert_eq!(averages, [[4.0]; 2]);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when a contribution has another length, and those of every collective. After any
    /// of them `destination` is unchanged.
    pub fn all_reduce_many<'a, T, R>(
        &self,
        contributions: impl IntoIterator<Item = &'a [T]>,
        destination: &mut [T],
        reduction: R,
    ) -> Result<()>
    where
        T: Float,
        R: Reduction<T, Accumulator = PartialSum> + Reduction<PartialSum, Accumulator = PartialSum>,
    {
        let mut sums = vec![PartialSum::default(); destination.len()];
        for contribution in contributions {
            check_length("contribution", destination.len(), contribution.len())?;
            reduction.combine(&mut sums, contribution);
        }
        self.all_reduce(&mut sums, reduction.clone())?;
        reduction.finish(&sums, self.size() as u64, destination);
        Ok(())
    }
}
