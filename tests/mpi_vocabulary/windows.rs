//! Memory that others reach into.

use super::everywhere;
use gradwire::Sum;
use gradwire::window::Lock;

#[test]
fn neighbours_are_written_between_fences() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let window = comm.create_window::<u32>(2).unwrap();
        window.fence().unwrap();
        window.put((rank + 1) % size, 0, &[rank as u32, 100 + rank as u32]).unwrap();
        window.fence().unwrap();
        let previous = ((rank + size - 1) % size) as u32;
        let mut own = [0; 2];
        window.load(0, &mut own).unwrap();
        assert_eq!(own, [previous, 100 + previous]);
        let mut other = [0];
        window.get((rank + 2) % size, 1, &mut other).unwrap();
        assert_eq!(other, [100 + ((rank + 1) % size) as u32]);
        window.fence().unwrap();
    });
}

#[test]
fn a_counter_gives_each_number_once() {
    everywhere(|comm| {
        let window = comm.create_window::<u64>(usize::from(comm.rank() == 0)).unwrap();
        let tickets: Vec<u64> = (0..5).map(|_| window.fetch_and_op(0, 0, 1, Sum).unwrap()).collect();
        let mut all = vec![0; 5 * comm.size()];
        comm.all_gather_into(&tickets, &mut all).unwrap();
        all.sort_unstable();
        assert_eq!(all, (0..all.len() as u64).collect::<Vec<_>>());
        window.fence().unwrap();
    });
}

#[test]
fn a_lock_makes_two_accesses_one() {
    everywhere(|comm| {
        let window = comm.create_window::<i64>(1).unwrap();
        for _ in 0..10 {
            let lock = window.lock(0, Lock::Exclusive).unwrap();
            let mut value = [0];
            window.get(0, 0, &mut value).unwrap();
            window.put(0, 0, &[value[0] + 1]).unwrap();
            lock.unlock().unwrap();
        }
        window.fence().unwrap();
        let mut value = [0];
        window.get(0, 0, &mut value).unwrap();
        assert_eq!(value, [10 * comm.size() as i64]);
        window.fence().unwrap();
    });
}
