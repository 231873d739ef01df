//! What needs a look inside: what the engine keeps of communicators that are gone, and every algorithm by name.

#[cfg(feature = "tcp")]
mod sharding;

#[cfg(feature = "tcp")]
mod algorithms;

use crate::Sum;

#[test]
fn nothing_is_kept_of_communicators_that_were_dropped() {
    crate::run(3, |comm| {
        let all = comm.group();
        for cycle in 0..200 {
            let copy = comm.duplicate().unwrap();
            let halves = comm.split(Some(u32::from(comm.rank() == cycle % 3)), 0).unwrap();
            let pair = comm.create(&all.exclude([cycle % 3]).unwrap()).unwrap();
            if let Some(pair) = &pair {
                // Nobody receives it.
                pair.send(&[1_u8], 1 - pair.rank(), 0).unwrap();
                pair.all_reduce(&mut [1_u64], Sum).unwrap();
            }
            if comm.rank() == 1 {
                drop((copy, pair, halves));
            } else {
                drop((halves, copy, pair));
            }
        }
        comm.barrier().unwrap();
        assert_eq!(comm.job().shared().lock().engine.kept(), [1, 0, 0, 0]);
        comm.barrier().unwrap();
    })
    .unwrap();
}
