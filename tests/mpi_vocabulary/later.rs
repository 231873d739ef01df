//! Calls that return before they are done.

use super::everywhere;
use gradwire::{Max, Sum, wait_all};

#[test]
fn work_goes_on_while_values_travel() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let mut sums = vec![rank as u64; 5000];
        let mut largest = [rank as i32];
        let mut all = vec![0_u32; size];
        let own = [rank as u32];
        let computed = comm
            .scope(|scope| {
                let first = scope.all_reduce(&mut sums, Sum);
                let second = scope.all_reduce(&mut largest, Max);
                let third = scope.all_gather_into(&own, &mut all);
                let computed: u64 = (0..1000).sum();
                for result in [first.wait().1, second.wait().1, third.wait().1, scope.barrier().wait().1] {
                    result.unwrap();
                }
                computed
            })
            .unwrap();
        assert_eq!(computed, 499_500);
        assert_eq!(sums, vec![(0..size as u64).sum(); 5000]);
        assert_eq!(largest, [size as i32 - 1]);
        assert_eq!(all, (0..size as u32).collect::<Vec<_>>());
    });
}

#[test]
fn many_requests_are_waited_for_at_once() {
    everywhere(|comm| {
        let requests: Vec<_> = (0..4)
            .map(|index| {
                let mut buffer = comm.allocate::<f32>(1000).unwrap();
                buffer.fill((comm.rank() + index) as f32);
                comm.start_all_reduce(buffer, Sum)
            })
            .collect();
        for (index, (buffer, result)) in wait_all(requests).into_iter().enumerate() {
            result.unwrap();
            let expected = (0..comm.size()).map(|rank| rank + index).sum::<usize>() as f32;
            assert!(buffer.iter().all(|value| *value == expected));
        }
    });
}
