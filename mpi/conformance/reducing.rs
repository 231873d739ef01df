//! Gradwire's reducing calls, for an operation that is chosen while the program runs.

use gradwire::window::WindowOperation;
use gradwire::{Buffer, Communicator, Rank, Reduction, Result, Window};

/// A call that waits for its operation.
pub(crate) struct Reducing<'a, T: gradwire::Element> {
    pub(crate) communicator: &'a Communicator,
    pub(crate) how: How<'a, T>,
}

/// Which call, on what.
pub(crate) enum How<'a, T: gradwire::Element> {
    InPlace(&'a mut [T]),
    Into(&'a [T], &'a mut [T]),
    /// In memory that the library allocates.
    Shared(&'a mut [T]),
    /// Each for itself, all at once, the last one waited for first.
    Scope(&'a mut [Vec<T>]),
    /// The same with buffers that move.
    Owned(&'a mut [Vec<T>]),
    Root(&'a mut [T], Rank),
    RootInto(&'a [T], &'a mut [T], Rank),
    Scatter(&'a [T], &'a mut [T]),
    Scan(&'a mut [T]),
    ExclusiveScan(&'a [T], &'a mut [T]),
    /// On the part of a rank, from an offset on.
    Accumulate(&'a Window<T>, Rank, usize, &'a [T]),
    /// The same with one element; what was there comes back.
    FetchAndOp(&'a Window<T>, Rank, usize, T, &'a mut [T]),
}

impl<T: gradwire::Element> Reducing<'_, T> {
    pub(crate) fn by<R: Reduction<T> + WindowOperation<T> + Copy>(self, reduction: R) -> Result<()> {
        let Self { communicator, how } = self;
        match how {
            How::InPlace(values) => communicator.all_reduce(values, reduction),
            How::Into(source, destination) => communicator.all_reduce_into(source, destination, reduction),
            How::Root(values, root) => communicator.reduce(values, root, reduction),
            How::RootInto(source, destination, root) => {
                communicator.reduce_into(source, destination, root, reduction)
            }
            How::Accumulate(window, rank, offset, values) => {
                window.accumulate(rank, offset, values, reduction)
            }
            How::FetchAndOp(window, rank, offset, value, before) => {
                before[0] = window.fetch_and_op(rank, offset, value, reduction)?;
                Ok(())
            }
            How::Scan(values) => communicator.scan(values, reduction),
            How::ExclusiveScan(source, destination) => {
                communicator.exclusive_scan_into(source, destination, reduction)
            }
            How::Scatter(source, destination) => {
                communicator.reduce_scatter_into(source, destination, reduction)
            }
            How::Shared(values) => {
                let mut buffer = filled(communicator, values)?;
                communicator.all_reduce(&mut buffer[..], reduction)?;
                values.copy_from_slice(&buffer);
                Ok(())
            }
            How::Scope(all) => communicator.scope(|scope| {
                let requests: Vec<_> =
                    all.iter_mut().map(|values| scope.all_reduce(values, reduction)).collect();
                // Another collective, while they are under way.
                communicator.barrier()?;
                requests.into_iter().rev().try_for_each(|request| request.wait().1)
            })?,
            How::Owned(all) => {
                let start = |values: &Vec<T>| {
                    Ok(communicator.start_all_reduce(filled(communicator, values)?, reduction))
                };
                let requests = all.iter().map(start).collect::<Result<Vec<_>>>()?;
                for (request, values) in requests.into_iter().zip(all).rev() {
                    let (buffer, result) = request.wait();
                    result?;
                    values.copy_from_slice(&buffer);
                }
                Ok(())
            }
        }
    }
}

fn filled<T: gradwire::Element>(communicator: &Communicator, values: &[T]) -> Result<Buffer<T>> {
    let mut buffer = communicator.allocate(values.len())?;
    buffer.copy_from_slice(values);
    Ok(buffer)
}
