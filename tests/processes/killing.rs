//! kill -9 at any moment of a loop of all_reduces.

use crate::job::{Job, some_time};
use gradwire::launch::Ending;
use gradwire_tests::clock::now;
use gradwire_tests::ranks::{Over, Random};
use rustix::process::Signal;

const RANKS: usize = 4;
const SECOND: u64 = 1_000_000_000;

/// How often each is repeated, with another seed; `GRADWIRE_TEST_KILLS=200` for more.
fn repetitions() -> u64 {
    std::env::var("GRADWIRE_TEST_KILLS").map_or(10, |text| text.parse().unwrap())
}

/// What the loops reduce, as counts of f32: 8 B, 4 KiB, 1 MiB, and all in turn.
const SIZES: [&str; 4] = ["2", "1024", "262144", "mixed"];

/// Case 14. All survivors name the rank within a second, and nothing is left behind.
fn one_rank_is_killed(transport: &str) {
    one_rank_is_killed_in(transport, |seed| vec!["loop", SIZES[seed as usize % SIZES.len()]]);
}

fn one_rank_is_killed_in(transport: &str, part: fn(u64) -> Vec<&'static str>) {
    for seed in 0..repetitions() {
        let mut random = Random::new(seed + 1);
        let part = part(seed);
        let mut job = Job::start(RANKS, &part, &[("GRADWIRE_TRANSPORT", transport)]);
        job.set_off(RANKS);
        let victim = random.below(RANKS as u64) as usize;
        some_time(&mut random);
        let killed = now();
        job.signal(victim, Signal::KILL);
        let failures = job.await_all("failed", RANKS - 1);
        let what = format!("{transport}, {part:?}, seed {seed}, rank {victim} killed");
        for failure in &failures {
            let (at, error) = failure.text.split_once(' ').unwrap();
            assert!(error.starts_with(&format!("lost {victim}: ")), "{what}; rank {}: {error}", failure.rank);
            let after = at.parse::<u64>().unwrap() - killed;
            assert!(after < SECOND, "{what}; rank {} knew after {after} ns", failure.rank);
        }
        let report = job.end();
        let expected = |rank| if rank == victim { Ending::Signal(9) } else { Ending::Code(0) };
        assert_eq!(report.endings, (0..RANKS).map(expected).collect::<Vec<_>>(), "{what}");
    }
}

#[test]
fn one_rank_is_killed_over_shm() {
    one_rank_is_killed("shm");
}

#[test]
fn one_rank_is_killed_over_libfabric() {
    Over::Libfabric.try_out(|_| one_rank_is_killed("libfabric"));
}

#[test]
fn one_rank_is_killed_over_tcp() {
    one_rank_is_killed("tcp");
}

/// In the middle of accesses to windows, whether it was the origin, the owner or the holder of a lock.
#[test]
fn one_rank_is_killed_among_accesses_over_shm() {
    one_rank_is_killed_in("shm", |_| vec!["windows"]);
}

#[test]
fn one_rank_is_killed_among_accesses_over_tcp() {
    one_rank_is_killed_in("tcp", |_| vec!["windows"]);
}

/// A worker of a parameter server: the others go on, nobody sees half a push. Then the server: all workers name it.
fn one_of_a_parameter_servers_job_is_killed(transport: &str) {
    for seed in 0..repetitions() {
        let mut random = Random::new(seed + 1);
        let victim = random.below(RANKS as u64) as usize;
        let mut job =
            Job::start(RANKS, &["serve", &victim.to_string()], &[("GRADWIRE_TRANSPORT", transport)]);
        job.set_off(RANKS);
        some_time(&mut random);
        let killed = now();
        job.signal(victim, Signal::KILL);
        let what = format!("{transport}, seed {seed}, rank {victim} killed");
        if victim == 0 {
            for failure in job.await_all("failed", RANKS - 1) {
                let (at, error) = failure.text.split_once(' ').unwrap();
                assert!(error.starts_with("lost 0: "), "{what}; rank {}: {error}", failure.rank);
                assert!(at.parse::<u64>().unwrap() - killed < SECOND, "{what}; rank {}", failure.rank);
            }
        } else {
            assert_eq!(job.await_all("served", 1)[0].text, format!("[{victim}]"), "{what}");
        }
        let report = job.end();
        let expected = |rank| if rank == victim { Ending::Signal(9) } else { Ending::Code(0) };
        assert_eq!(report.endings, (0..RANKS).map(expected).collect::<Vec<_>>(), "{what}");
    }
}

#[test]
fn one_of_a_parameter_servers_job_is_killed_over_shm() {
    one_of_a_parameter_servers_job_is_killed("shm");
}

#[test]
fn one_of_a_parameter_servers_job_is_killed_over_tcp() {
    one_of_a_parameter_servers_job_is_killed("tcp");
}

/// Case 75: all at once, so that nobody can clean up for anybody. Then the next job starts as if nothing had been.
#[test]
fn all_ranks_are_killed() {
    for seed in 0..repetitions() / 2 {
        let mut random = Random::new(seed + 100);
        let transport = ["shm", "tcp", "auto"][seed as usize % 3];
        let mut job = Job::start(RANKS, &["loop"], &[("GRADWIRE_TRANSPORT", transport)]);
        job.set_off(RANKS);
        some_time(&mut random);
        (0..RANKS).for_each(|rank| job.signal(rank, Signal::KILL));
        assert_eq!(job.end().endings, [Ending::Signal(9); RANKS]);
    }
}
