//! Non-blocking operations: owned buffers as futures, borrowed slices in scopes.

use gradwire::{Average, Buffer, Communicator, Sum};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

const COUNT: usize = 200_000;

fn fill(comm: &Communicator, buffer: &mut [f32], salt: usize) {
    for (index, value) in buffer.iter_mut().enumerate() {
        *value = ((comm.rank() * 31 + index * 7 + salt) % 101) as f32;
    }
}

fn expected(ranks: usize, index: usize, salt: usize) -> f32 {
    (0..ranks).map(|rank| ((rank * 31 + index * 7 + salt) % 101) as f32).sum()
}

fn check(ranks: usize, buffer: &[f32], salt: usize) {
    assert_eq!(buffer.len(), COUNT);
    assert!(buffer.iter().enumerate().all(|(index, value)| *value == expected(ranks, index, salt)));
}

/// The smallest executor there is.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn buffer(comm: &Communicator, salt: usize) -> Buffer<f32> {
    let mut buffer = comm.allocate(COUNT).unwrap();
    fill(comm, &mut buffer, salt);
    buffer
}

#[test]
fn a_request_is_a_future_that_any_thread_may_run() {
    for ranks in [1, 2, 3] {
        gradwire::run(ranks, |comm| {
            let first = comm.start_all_reduce(buffer(&comm, 1), Sum);
            let second = comm.start_all_reduce(buffer(&comm, 2), Sum);
            let other = std::thread::spawn(move || block_on(second));
            let (reduced, result) = block_on(first);
            result.unwrap();
            check(ranks, &reduced, 1);
            let (reduced, result) = other.join().unwrap();
            result.unwrap();
            check(ranks, &reduced, 2);
        })
        .unwrap();
    }
}

#[test]
fn a_dropped_request_completes_for_the_others() {
    gradwire::run(3, |comm| {
        let request = comm.start_all_reduce(buffer(&comm, 3), Sum);
        if comm.rank() == 1 {
            drop(request);
        } else {
            let (reduced, result) = request.wait();
            result.unwrap();
            check(3, &reduced, 3);
        }
        comm.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn a_scope_waits_for_what_was_started_in_it() {
    gradwire::run(2, |comm| {
        let (mut a, mut b, mut c) = (vec![0.0; COUNT], vec![0.0; COUNT], vec![0.0_f32; 5]);
        fill(&comm, &mut a, 4);
        fill(&comm, &mut b, 5);
        c.fill(comm.rank() as f32);
        comm.scope(|scope| {
            let first = scope.all_reduce(&mut a, Sum);
            std::mem::forget(scope.all_reduce(&mut b, Sum));
            let third = scope.all_reduce(&mut c, Average);
            let (back, result) = third.wait();
            result.unwrap();
            assert_eq!(back, [0.5; 5]);
            let (back, result) = first.wait();
            result.unwrap();
            check(2, back, 4);
        })
        .unwrap();
        check(2, &a, 4);
        check(2, &b, 5);
    })
    .unwrap();
}
