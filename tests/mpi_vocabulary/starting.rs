//! What a program has from the start: its place, its host, its threads.

use super::everywhere;
use gradwire::{Communicator, Equivalence, Sum};

#[test]
fn each_rank_knows_its_place_and_host() {
    everywhere(|comm| {
        let mut places = vec![0; comm.size()];
        comm.all_gather_into(&[comm.rank() as u32], &mut places).unwrap();
        assert_eq!(places, (0..comm.size() as u32).collect::<Vec<_>>());
        let host = comm.host(comm.rank()).unwrap();
        assert!(!host.is_empty());
        assert!(
            (0..comm.size()).all(|rank| comm.host(rank) == Some(host)),
            "they are threads of one process"
        );
        assert_eq!(comm.host(comm.size()), None);
    });
}

#[test]
fn communicators_have_names() {
    everywhere(|comm| {
        assert_eq!(comm.name().as_deref(), None);
        comm.set_name("the world");
        assert_eq!(comm.name().as_deref(), Some("the world"));
    });
}

/// A communicator with data that a library wants to find again, and its duplicate with data of its own.
struct Attributed {
    comm: Communicator,
    generation: u32,
}

impl Attributed {
    fn duplicate(&self) -> gradwire::Result<Self> {
        Ok(Self { comm: self.comm.duplicate()?, generation: self.generation + 1 })
    }
}

#[test]
fn a_struct_holds_a_communicator_and_what_belongs_to_it() {
    everywhere(|comm| {
        let world = Attributed { comm, generation: 10 };
        let other = world.duplicate().unwrap();
        drop(world);
        let mut sum = [other.generation + other.comm.rank() as u32];
        other.comm.all_reduce(&mut sum, Sum).unwrap();
        let size = other.comm.size() as u32;
        assert_eq!(sum, [11 * size + size * (size - 1) / 2]);
    });
}

#[test]
fn threads_call_at_the_same_time_on_duplicates() {
    everywhere(|comm| {
        let duplicates: Vec<_> = (0..3).map(|_| comm.duplicate().unwrap()).collect();
        std::thread::scope(|scope| {
            for (thread, comm) in duplicates.into_iter().enumerate() {
                scope.spawn(move || {
                    for round in 0..20 {
                        let mut sum = [(100 * comm.rank() + thread) as u64, round];
                        comm.all_reduce(&mut sum, Sum).unwrap();
                        let size = comm.size() as u64;
                        let ranks = size * (size - 1) / 2;
                        assert_eq!(sum, [100 * ranks + size * thread as u64, size * round]);
                    }
                });
            }
        });
    });
}

/// On any thread, before anything has started and after all has ended.
#[test]
fn datatypes_need_no_start_and_no_end() {
    #[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
    struct Late {
        number: i32,
        flag: bool,
    }
    let packed_size = || <Late as Equivalence>::PACKED_SIZE;
    let before = std::thread::spawn(packed_size).join().unwrap();
    everywhere(|comm| {
        let own = |rank: usize| Late { number: -(rank as i32), flag: rank > 0 };
        let all = std::thread::scope(|scope| {
            scope.spawn(move || comm.all_gather(&[own(comm.rank())]).map(|all| (all, comm.size()))).join()
        });
        let (all, size) = all.unwrap().unwrap();
        assert_eq!(all, (0..size).map(own).collect::<Vec<_>>());
    });
    assert_eq!((before, packed_size()), (5, 5));
}
