//! Communicators made of communicators, and groups, over every transport, against models of plain lists.

use gradwire::{Communicator, Error, Group, Max, Min, Rank, Relation, Sum};
use gradwire_tests::ranks::{Over, Random, run, sums, values};
use std::time::Duration;

/// The ranks of the group, as the communicator of all numbers them.
fn listed(group: &Group, world: &Group) -> Vec<Rank> {
    (0..group.size()).map(|rank| group.translate(rank, world).unwrap()).collect()
}

/// Every member shows itself and takes part in a sum: `expected` are the members' ranks in the world.
fn is_made_of(comm: &Communicator, world: &Communicator, expected: &[Rank]) {
    assert_eq!(listed(&comm.group(), &world.group()), expected);
    assert_eq!(expected[comm.rank()], world.rank());
    let mut all = vec![0_u64; comm.size()];
    comm.all_gather_into(&[world.rank() as u64], &mut all).unwrap();
    assert_eq!(all.iter().map(|rank| *rank as Rank).collect::<Vec<_>>(), expected);
    for count in [3, 3000] {
        let mut mine = values(world.rank(), count);
        comm.all_reduce(&mut mine, Max).unwrap();
        let all: Vec<Vec<f32>> = expected.iter().map(|rank| values(*rank, count)).collect();
        let model: Vec<f32> =
            (0..count).map(|index| all.iter().map(|values| values[index]).fold(f32::MIN, f32::max)).collect();
        assert!(mine == model, "{comm:?} of {expected:?}");
    }
}

/// A random selection of `0..size`, in random order.
fn selection(random: &mut Random, size: usize) -> Vec<Rank> {
    let mut left: Vec<Rank> = (0..size).collect();
    let count = random.below(size as u64 + 1);
    (0..count).map(|_| left.swap_remove(random.below(left.len() as u64) as usize)).collect()
}

#[test]
fn operations_on_groups_are_those_on_lists() {
    run(Over::Sim, 5, |comm| {
        let world = comm.group();
        let other = comm.split(Some(0), -(comm.rank() as i64)).unwrap().unwrap();
        let mut random = Random::new(11);
        for _ in 0..500 {
            // One selection by the ranks of the world, one by those of a communicator in reverse.
            let (a, b) = (selection(&mut random, 5), selection(&mut random, 5));
            let left = world.include(a.iter().copied()).unwrap();
            let right = other.group().include(b.iter().map(|rank| 4 - rank)).unwrap();
            assert_eq!((listed(&left, &world), listed(&right, &world)), (a.clone(), b.clone()));
            assert_eq!(left.rank(), a.iter().position(|rank| *rank == comm.rank()));
            let in_a = |rank: &Rank| a.contains(rank);
            let in_b = |rank: &Rank| b.contains(rank);
            let only_a: Vec<Rank> = a.iter().copied().filter(|rank| !in_b(rank)).collect();
            let both: Vec<Rank> = a.iter().copied().filter(in_b).collect();
            let either: Vec<Rank> = a.iter().chain(b.iter().filter(|rank| !in_a(rank))).copied().collect();
            assert_eq!(listed(&left.union(&right).unwrap(), &world), either);
            assert_eq!(listed(&left.intersection(&right).unwrap(), &world), both);
            assert_eq!(listed(&left.difference(&right).unwrap(), &world), only_a);
            let left_out: Vec<Rank> = (0..5).filter(|rank| !in_a(rank)).collect();
            assert_eq!(listed(&world.exclude(a.iter().copied()).unwrap(), &world), left_out);
            for (rank, process) in a.iter().enumerate() {
                assert_eq!(left.translate(rank, &right), b.iter().position(|other| other == process));
            }
            assert_eq!(left.translate(a.len(), &right), None);
            let sorted = |list: &[Rank]| {
                let mut list = list.to_vec();
                list.sort_unstable();
                list
            };
            let relation = match (a == b, sorted(&a) == sorted(&b)) {
                (true, _) => Relation::Identical,
                (false, true) => Relation::Similar,
                (false, false) => Relation::Different,
            };
            assert_eq!(left.compare(&right), relation, "{a:?} and {b:?}");
        }
        assert_eq!(comm.compare(&other), Relation::Similar);
        assert_eq!(comm.compare(&comm.duplicate().unwrap()), Relation::Identical);
        assert_eq!(comm.compare(&Communicator::single().unwrap()), Relation::Different);
        assert_eq!(format!("{:?}", other.group()), "Group([4, 3, 2, 1, 0])");
    });
}

#[test]
fn mistakes_with_groups_are_named() {
    run(Over::Sim, 3, |comm| {
        let world = comm.group();
        let said = |result: gradwire::Result<Group>| match result.unwrap_err() {
            Error::Misuse(text) => text.to_string(),
            other => panic!("{other}"),
        };
        assert_eq!(said(world.include([1, 3])), "the group has no rank 3: its ranks are below 3");
        assert_eq!(said(world.exclude([1, 1])), "rank 1 is given twice: a group holds each rank once");
        let elsewhere = Communicator::single().unwrap().group();
        for result in [world.union(&elsewhere), world.intersection(&elsewhere), world.difference(&elsewhere)]
        {
            assert!(said(result).starts_with("the groups are of different jobs"));
        }
        assert_eq!((world.compare(&elsewhere), world.translate(0, &elsewhere)), (Relation::Different, None));
        // Neither is sent anywhere: the next call works.
        let pair = comm.split(Some(u32::from(comm.rank() == 2)), 0).unwrap().unwrap();
        if pair.size() == 2 {
            let error = pair.create(&world).unwrap_err().to_string();
            assert!(error.starts_with("rank 2 of the group is not in the communicator"), "{error}");
        }
        assert!(matches!(comm.create(&elsewhere), Err(Error::Misuse(_))));
        let others = world.exclude([comm.rank()]).unwrap();
        assert!(matches!(comm.create_from_group(&others), Err(Error::Misuse(_))));
        comm.barrier().unwrap();
    });
}

fn groups_in_any_order(over: Over) {
    run(over, 5, |comm| {
        let mut random = Random::new(5);
        let fixed = [vec![], vec![2], vec![4, 3, 2, 1, 0], vec![0, 1, 2, 3, 4]];
        for members in fixed.into_iter().chain((0..12).map(|_| selection(&mut random, 5))) {
            let group = comm.group().include(members.iter().copied()).unwrap();
            let made = comm.create(&group).unwrap();
            assert_eq!(made.is_some(), members.contains(&comm.rank()), "{members:?}");
            if let Some(made) = made {
                is_made_of(&made, &comm, &members);
            }
        }
    });
}

/// Only the members call, as often as each pair likes, while the others are elsewhere.
fn members_alone(over: Over) {
    run(over, 4, |comm| {
        let world = comm.group();
        for first in 0..4 {
            for second in first + 1..4 {
                for _ in 0..=second {
                    let pair = world.include([second, first]).unwrap();
                    if pair.rank().is_some() {
                        is_made_of(&comm.create_from_group(&pair).unwrap(), &comm, &[second, first]);
                    }
                }
            }
        }
        comm.barrier().unwrap();
    });
}

fn different_groups_are_refused_on_all_ranks(over: Over) {
    run(over, 4, |comm| {
        let world = comm.group();
        // Another size; the same size; the same ranks in another order; another call.
        for odd in [vec![0, 1], vec![0, 1, 3], vec![0, 2, 1], vec![]] {
            let group = world.include(if comm.rank() == 2 { odd.clone() } else { vec![0, 1, 2] }).unwrap();
            let error = if odd.is_empty() && comm.rank() == 2 {
                comm.duplicate().map(|_| ()).unwrap_err()
            } else {
                comm.create(&group).map(|_| ()).unwrap_err()
            };
            let Error::Mismatch { calls, .. } = &error else { panic!("{error}") };
            let named: Vec<_> = calls.iter().map(|(call, ranks)| (&*call.name, &**ranks)).collect();
            let other = if odd.is_empty() { "duplicate" } else { "create" };
            assert_eq!(named, [("create", &[0, 1, 3][..]), (other, &[2][..])]);
            assert!(error.to_string().contains("of 3 ranks) as call"), "{error}");
        }
        let made = comm.create(&world.include([3, 0]).unwrap()).unwrap();
        assert_eq!(made.map(|made| made.rank()), [Some(1), None, None, Some(0)][comm.rank()]);
    });
}

fn a_member_that_stays_away_is_named(over: Over) {
    run(over, 3, |comm| {
        let parents = [(); 4].map(|()| comm.duplicate().unwrap());
        let group = comm.group().include([2, 1, 0]).unwrap();
        for (which, parent) in parents.iter().enumerate() {
            parent.set_timeout(Some(Duration::from_millis(400)));
            if comm.rank() != 1 {
                let error = match which {
                    0 => parent.create(&group).map(|_| ()),
                    1 => parent.split(Some(1), 0).map(|_| ()),
                    2 => parent.split_by_host(0).map(|_| ()),
                    _ => parent.create_from_group(&group).map(|_| ()),
                };
                let error = error.unwrap_err();
                let Error::TimedOut { call, waiting_for, .. } = &error else { panic!("{error}") };
                assert_eq!(**waiting_for, [1], "{error}");
                let name = ["create", "split", "split_by_host", "duplicate"][which];
                assert_eq!(&*call.name, name);
            }
            comm.barrier().unwrap();
        }
        comm.barrier().unwrap();
    });
}

/// Colours and keys at random, level below level: each rank knows from the model who else is where.
fn split_trees(over: Over) {
    run(over, 5, |comm| {
        for seed in 0..6 {
            let mut random = Random::new(seed);
            let mut levels = vec![(comm.duplicate().unwrap(), (0..5).collect::<Vec<Rank>>())];
            for _ in 0..4 {
                let choice: Vec<(Option<u32>, i64)> = (0..5)
                    .map(|_| {
                        let colour = random.below(4) as u32;
                        // Equal keys among them.
                        (Some(colour % 3).filter(|_| colour != 3), random.below(3) as i64 - 1)
                    })
                    .collect();
                let Some((parent, members)) = levels.last() else { break };
                let (colour, key) = choice[comm.rank()];
                let mut model: Vec<Rank> = members
                    .iter()
                    .copied()
                    .filter(|rank| colour.is_some() && choice[*rank].0 == colour)
                    .collect();
                model.sort_by_key(|rank| choice[*rank].1);
                let part = parent.split(colour, key).unwrap();
                assert_eq!(part.is_some(), colour.is_some());
                let Some(part) = part else { break };
                levels.push((part, model));
            }
            // All levels work beside each other, and go in another order on every rank.
            for (level, members) in &levels {
                is_made_of(level, &comm, members);
            }
            while !levels.is_empty() {
                drop(levels.swap_remove((comm.rank() * 7 + levels.len()) % levels.len()));
            }
        }
    });
}

/// All ranks of these jobs are on one host: by shared memory, or by its name.
fn by_host(over: Over) {
    run(over, 3, |comm| {
        let here = comm.split_by_host(-(comm.rank() as i64)).unwrap();
        assert_eq!((comm.local_rank(), comm.local_size()), (comm.rank(), 3));
        assert_eq!((here.local_rank(), here.local_size()), (here.rank(), 3));
        is_made_of(&here, &comm, &[2, 1, 0]);
    });
}

fn names_stand_in_errors(over: Over) {
    run(over, 3, |comm| {
        assert_eq!(comm.name(), None);
        let pipeline = comm.duplicate().unwrap();
        pipeline.set_name("pipeline");
        assert_eq!((pipeline.name().as_deref(), comm.name()), (Some("pipeline"), None));
        assert!(format!("{pipeline:?}").contains("\"pipeline\""), "{pipeline:?}");
        for count in [3, 3000] {
            let mut mine = values(comm.rank(), count + usize::from(comm.rank() == 1));
            let error = pipeline.all_reduce(&mut mine, Sum).unwrap_err().to_string();
            assert!(error.contains(&format!("(sum, f32 x {count}) as call")), "{error}");
            assert_eq!(error.matches(" on \"pipeline\"").count(), 2, "{error}");
            let error = comm.all_reduce(&mut mine, Sum).unwrap_err().to_string();
            assert!(!error.contains(" on "), "{error}");
        }
        pipeline.set_timeout(Some(Duration::from_millis(300)));
        if comm.rank() == 0 {
            let error = pipeline.recv(&mut [0_u8], 1, 4).unwrap_err().to_string();
            assert!(error.starts_with("recv(tag 4) as call 0 on \"pipeline\" gave up"), "{error}");
        }
        comm.barrier().unwrap();
        if comm.rank() != 2 {
            let error = pipeline.barrier().unwrap_err().to_string();
            assert!(
                error.contains(" on \"pipeline\" gave up") && error.ends_with("waiting for rank 2"),
                "{error}"
            );
            assert_eq!(pipeline.barrier().unwrap_err().to_string(), error);
        }
        comm.barrier().unwrap();
    });
}

/// Threads with a communicator each, at work at the same time: every result is as if it were alone.
fn threads(over: Over) {
    const THREADS: u64 = 4;
    run(over, 3, |comm| {
        let duplicates: Vec<Communicator> = (0..THREADS).map(|_| comm.duplicate().unwrap()).collect();
        std::thread::scope(|scope| {
            for (thread, own) in (0..THREADS).zip(duplicates) {
                scope.spawn(move || random_calls(&own, thread));
            }
        });
        comm.barrier().unwrap();
    });
}

fn random_calls(comm: &Communicator, seed: u64) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut random = Random::new(seed);
    for call in 0..60 {
        let count = [0, 1, 5, 300, 9000, 40_000][random.below(6) as usize];
        let salt = call + 1000 * seed as usize;
        let own = |rank: Rank| values(rank + salt, count);
        match random.below(6) {
            0 => {
                let mut mine = own(rank);
                comm.all_reduce(&mut mine, Sum).unwrap();
                let all: Vec<Vec<f32>> = (0..ranks).map(own).collect();
                let model = |index: usize| all.iter().map(|values| values[index]).sum::<f32>();
                assert!((0..count).all(|index| mine[index] == model(index)));
            }
            1 => {
                let mut mine = own(rank);
                comm.broadcast(&mut mine, salt % ranks).unwrap();
                assert!(mine == own(salt % ranks));
            }
            2 => {
                let mut all = vec![0.0; count * ranks];
                comm.all_gather_into(&own(rank), &mut all).unwrap();
                assert!(all == (0..ranks).flat_map(own).collect::<Vec<_>>());
            }
            3 => {
                let mut mine = own(rank);
                comm.reduce(&mut mine, salt % ranks, Min).unwrap();
                let all: Vec<Vec<f32>> = (0..ranks).map(own).collect();
                let least = |index: usize| all.iter().map(|values| values[index]).fold(f32::MAX, f32::min);
                let model = |index: usize| if rank == salt % ranks { least(index) } else { all[rank][index] };
                assert!((0..count).all(|index| mine[index] == model(index)));
            }
            4 => {
                let next = comm.split(Some(0), -(rank as i64)).unwrap().unwrap();
                assert_eq!(next.rank(), ranks - 1 - rank);
                next.barrier().unwrap();
            }
            _ => {
                let mut got = vec![0.0; count];
                let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
                if rank == 0 {
                    comm.send(&own(rank), to, 9).unwrap();
                    comm.recv(&mut got, from, 9).unwrap();
                } else {
                    comm.recv(&mut got, from, 9).unwrap();
                    comm.send(&own(rank), to, 9).unwrap();
                }
                assert!(got == own(from));
            }
        }
    }
}

/// Messages to a communicator that its receiver has dropped are for nobody: they neither pile up there nor are held
/// against the sender, however many there are.
fn messages_to_the_dropped(over: Over) {
    run(over, 3, |comm| {
        for _ in 0..150 {
            let child = comm.duplicate().unwrap();
            let child = (comm.rank() != 1).then_some(child);
            comm.barrier().unwrap();
            if let Some(child) = child {
                (0..30).for_each(|tag| child.send(&[7_u8; 16], 1, tag).unwrap());
            }
        }
        let mut mine = values(comm.rank(), 3000);
        comm.all_reduce(&mut mine, Sum).unwrap();
        assert!(mine == sums(3, 3000));
    });
}

/// Descriptors, mappings: made and dropped again and again, in another order on every rank.
fn nothing_is_kept(over: Over) {
    run(over, 3, |comm| {
        let cycle = |number: usize| {
            let mut made = vec![comm.duplicate().unwrap(), comm.split(Some(0), 0).unwrap().unwrap()];
            made.extend(comm.create(&comm.group().include([number % 3, (number + 1) % 3]).unwrap()).unwrap());
            if number.is_multiple_of(10) {
                made.iter().for_each(|comm| comm.barrier().unwrap());
            }
            while !made.is_empty() {
                drop(made.swap_remove((comm.rank() + number) % made.len()));
            }
        };
        let count = || {
            // Nobody drops or makes anything while one counts.
            comm.barrier().unwrap();
            let counts = (descriptors(), mappings());
            comm.barrier().unwrap();
            counts
        };
        (0..20).for_each(cycle);
        let before = count();
        (0..350).for_each(cycle);
        let after = count();
        // What peers have not given back yet, and what the allocator needs, is not one for each of the thousand.
        assert!(after.0 <= before.0 + 16, "{} descriptors, then {}", before.0, after.0);
        assert!(after.1 <= before.1 + 16, "{} mappings, then {}", before.1, after.1);
    });
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name {
            use gradwire_tests::ranks::Over::$over;

            #[test]
            fn groups_in_any_order() { super::groups_in_any_order($over); }
            #[test]
            fn members_alone() { super::members_alone($over); }
            #[test]
            fn different_groups_are_refused_on_all_ranks() { super::different_groups_are_refused_on_all_ranks($over); }
            #[test]
            fn a_member_that_stays_away_is_named() { super::a_member_that_stays_away_is_named($over); }
            #[test]
            fn split_trees() { super::split_trees($over); }
            #[test]
            fn by_host() { super::by_host($over); }
            #[test]
            fn names_stand_in_errors() { super::names_stand_in_errors($over); }
            #[test]
            fn threads() { super::threads($over); }
            #[test]
            fn messages_to_the_dropped() { super::messages_to_the_dropped($over); }
            #[test]
            fn nothing_is_kept() { super::nothing_is_kept($over); }
        }
    )*};
}

over! {
    sim: Sim,
    hostile_sim: HostileSim,
    shm: Shm,
    tcp: Tcp,
}
