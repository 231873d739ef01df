//! Sends that return at once.

use gradwire::Error;
use gradwire_tests::ranks::{Over, run, values};
use std::sync::Barrier;

pub(crate) fn both_send_first(over: Over) {
    run(over, 2, |comm| {
        let (rank, other) = (comm.rank(), 1 - comm.rank());
        for count in [0, 10, 700_000] {
            comm.buffered_send(&values(rank, count), other, 1).unwrap();
            comm.buffered_send(&values(rank + 5, count), other, 2).unwrap();
            assert!(comm.recv_vec::<f32>(other, 2).unwrap().0 == values(other + 5, count));
            assert!(comm.recv_vec::<f32>(other, 1).unwrap().0 == values(other, count));
        }
    });
}

/// What does not fit is an error, and what is kept is not harmed; once it has been received there is room again.
pub(crate) fn a_full_buffer(over: Over) {
    let full = Barrier::new(2);
    run(over, 2, |comm| {
        const COUNT: usize = 50_000;
        if comm.rank() == 1 {
            full.wait();
            for tag in 0..2 {
                assert!(comm.recv_vec::<f32>(0, tag).unwrap().0 == values(tag as usize, COUNT));
            }
            comm.send(&[0_u8], 0, 9).unwrap();
            assert!(comm.recv_vec::<f32>(0, 3).unwrap().0 == values(3, COUNT));
            return;
        }
        comm.set_send_buffer(2 * COUNT * size_of::<f32>() + 3);
        for tag in 0..2 {
            comm.buffered_send(&values(tag as usize, COUNT), 1, tag).unwrap();
        }
        let error = comm.buffered_send(&[1.0_f32], 1, 2).unwrap_err();
        assert!(
            matches!(error, Error::BufferFull { len: 4, free: 3, limit } if limit == comm.send_buffer()),
            "{error}"
        );
        full.wait();
        // Once the second has been received both have left.
        comm.recv(&mut [0_u8], 1, 9).unwrap();
        comm.buffered_send(&values(3, COUNT), 1, 3).unwrap();
    });
}

/// What is kept still leaves, also when the whole job is dropped here.
pub(crate) fn a_dropped_communicator(over: Over) {
    run(over, 2, |comm| {
        let other = comm.duplicate().unwrap();
        if comm.rank() == 0 {
            other.buffered_send(&values(3, 100_000), 1, 1).unwrap();
            drop(other);
            comm.barrier().unwrap();
            comm.buffered_send(&values(4, 100_000), 1, 1).unwrap();
        } else {
            comm.barrier().unwrap();
            assert!(other.recv_vec::<f32>(0, 1).unwrap().0 == values(3, 100_000));
            assert!(comm.recv_vec::<f32>(0, 1).unwrap().0 == values(4, 100_000));
        }
    });
}
