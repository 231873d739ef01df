//! What needs a look inside: what the engine keeps of communicators that are gone, and every algorithm by name.

#[cfg(feature = "tcp")]
mod sharding;

#[cfg(feature = "tcp")]
mod algorithms;

use crate::Sum;
use crate::buffer::Span;
use crate::engine::Work;

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

/// Small blocks of unequal lengths travel with the signatures, as equal ones do.
#[test]
fn small_blocks_take_no_round_of_their_own() {
    crate::run(3, |comm| {
        let small = |counts: &[usize]| {
            let gather = comm.all_gather_varying_call::<f32>(counts).unwrap();
            let reduce = comm.reduce_scatter_varying_call::<f32, _>(counts, &Sum).unwrap();
            [gather, reduce].map(|call| matches!(comm.work(&call, Span::EMPTY), Work::Exchange { .. }))
        };
        assert_eq!(small(&[200, 0, 3]), [true, true]);
        assert_eq!(small(&[0, 300, 3]), [false, false]);
        assert_eq!(small(&[100, 100, 100]), [true, false]);
    })
    .unwrap();
}
