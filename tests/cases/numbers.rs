//! Values and lengths at the edge.

use gradwire::{Average, Gradient, Max, Min, Sum, bf16, f16};
use gradwire_tests::ranks::{Over, run};

over! {
    Sim, Shm, Tcp:
    nothing_is_a_valid_length,
    not_a_number_wins_wherever_it_is,
    more_than_2_gib,
}

#[derive(Gradient)]
struct Nothing {
    weights: Vec<f32>,
    rows: Vec<[u8; 0]>,
}

/// Case 95.
fn nothing_is_a_valid_length(over: Over) {
    for ranks in [1, 2, 3] {
        run(over, ranks, |comm| {
            let none: &mut [f64] = &mut [];
            comm.all_reduce(none, Average).unwrap();
            comm.all_reduce_into(&[], none, Sum).unwrap();
            comm.broadcast(none, ranks - 1).unwrap();
            comm.reduce(none, 0, Max).unwrap();
            comm.all_gather_into(&[], none).unwrap();
            comm.gather_into(&[], none, 0).unwrap();
            comm.reduce_scatter_into(&[], none, Sum).unwrap();
            comm.all_reduce_gradient(&mut Nothing { weights: Vec::new(), rows: Vec::new() }).unwrap();
            comm.broadcast_gradient(&mut Nothing { weights: Vec::new(), rows: vec![[]; 3] }, 0).unwrap();
            // An empty one among a hundred.
            for call in 0..100 {
                let mut mine = vec![comm.rank() as u32 + call; if call == 50 { 0 } else { call as usize }];
                comm.all_reduce(&mut mine, Sum).unwrap();
                let expected: u32 = (0..ranks as u32).map(|rank| rank + call).sum();
                assert!(mine.iter().all(|value| *value == expected));
            }
        });
    }
}

/// Case 96: of 1, NaN, 3 and 4 neither the least nor the greatest is a number, whoever holds which.
fn not_a_number_wins_wherever_it_is(over: Over) {
    run(over, 4, |comm| {
        for count in [1, 64, 20_000] {
            for holder in 0..4 {
                let lane = (holder * 17) % count;
                let own = |index: usize| {
                    if (comm.rank(), index) == (holder, lane) {
                        f32::NAN
                    } else {
                        comm.rank() as f32 + index as f32
                    }
                };
                for least in [true, false] {
                    let mut mine: Vec<f32> = (0..count).map(own).collect();
                    if least { comm.all_reduce(&mut mine, Min) } else { comm.all_reduce(&mut mine, Max) }
                        .unwrap();
                    for (index, value) in mine.iter().enumerate() {
                        let extreme = if least { 0.0 } else { 3.0 } + index as f32;
                        assert!(
                            if index == lane { value.is_nan() } else { *value == extreme },
                            "{index}: {value}"
                        );
                    }
                }
            }
        }
    });
}

/// Case 97: a running sum in bf16 would stay at 256.
#[test]
fn halves_are_summed_in_single_precision() {
    for count in [1, 700] {
        run(Over::Sim, 65, |comm| {
            let own = if comm.rank() == 0 { 256.0 } else { 1.0 };
            let mut mine = vec![bf16::from_f32(own); count];
            comm.all_reduce(&mut mine, Sum).unwrap();
            assert!(mine.iter().all(|sum| sum.to_f32() == 320.0), "{}", mine[0]);
            // The same for f16, which has three more bits.
            let own = if comm.rank() == 0 { 2048.0 } else { 1.0 };
            let mut mine = vec![f16::from_f32(own); count];
            comm.all_reduce(&mut mine, Sum).unwrap();
            assert!(mine.iter().all(|sum| sum.to_f32() == 2112.0), "{}", mine[0]);
        });
    }
}

/// Case 93. Takes twice the size for each of two ranks: set `GRADWIRE_TEST_LARGE=1` where there are 12 GiB.
fn more_than_2_gib(over: Over) {
    if over == Over::Sim || std::env::var_os("GRADWIRE_TEST_LARGE").is_none() {
        println!("skipped: needs GRADWIRE_TEST_LARGE=1 and 12 GiB of memory");
        return;
    }
    let byte = |rank: usize, index: usize| (index % 251) as u8 ^ (index >> 20) as u8 ^ rank as u8;
    for count in [(1 << 31) - 1, (1 << 31) + 1] {
        run(over, 2, |comm| {
            let mut mine: Vec<u8> = (0..count).map(|index| byte(comm.rank(), index)).collect();
            comm.all_reduce(&mut mine, Sum).unwrap();
            let wrong = (0..count).find(|&index| mine[index] != byte(0, index).wrapping_add(byte(1, index)));
            assert_eq!(wrong, None);
        });
    }
}
