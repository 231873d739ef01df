//! Waiting for several requests.

use super::Request;
use crate::Result;
use std::sync::Arc;

/// Waits for all requests, and returns what each returns, in their order.
pub fn wait_all<M: Send + 'static, R: 'static>(
    requests: impl IntoIterator<Item = Request<M, R>>,
) -> Vec<(M, Result<R>)> {
    requests.into_iter().map(Request::wait).collect()
}

/// Waits until one of the requests has ended, removes it, and returns where it was and what it returns. `None` when there
/// are none.
pub fn wait_any<M: Send + 'static, R: 'static>(
    requests: &mut Vec<Request<M, R>>,
) -> Option<(usize, M, Result<R>)> {
    let index = wait_for_one(requests)?;
    let (memory, result) = requests.remove(index).wait();
    Some((index, memory, result))
}

/// Waits until at least one of the requests has ended, removes all that have, and returns where they were, in their
/// order, and what they return. Empty when there are none.
pub fn wait_some<M: Send + 'static, R: 'static>(
    requests: &mut Vec<Request<M, R>>,
) -> Vec<(usize, M, Result<R>)> {
    let mut ended = Vec::new();
    if wait_for_one(requests).is_some() {
        for (index, request) in std::mem::take(requests).into_iter().enumerate() {
            if request.test() {
                let (memory, result) = request.wait();
                ended.push((index, memory, result));
            } else {
                requests.push(request);
            }
        }
    }
    ended
}

/// The first request that has ended, as soon as there is one.
fn wait_for_one<M: Send + 'static, R: 'static>(requests: &[Request<M, R>]) -> Option<usize> {
    let first = requests.first()?;
    if let Some(index) = requests.iter().position(Request::test) {
        return Some(index);
    }
    // Requests of other jobs, where ranks are threads, are driven by their own; this one turns one crank.
    let here = |request: &&Request<M, R>| Arc::ptr_eq(request.job(), first.job());
    let keys: Vec<_> = requests.iter().filter(here).map(Request::key).collect();
    first.job().shared().wait_until(|core| {
        let ended = keys.iter().any(|key| key.is_none_or(|key| core.has_result(key)));
        ended.then_some(())
    });
    requests.iter().position(Request::test)
}
