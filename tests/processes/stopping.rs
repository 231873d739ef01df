//! SIGSTOP past the deadline, then SIGCONT.

use crate::job::{Job, some_time};
use gradwire::launch::Ending;
use gradwire_tests::ranks::Random;
use rustix::process::Signal;

const RANKS: usize = 4;

/// Case 13: the others name exactly the stopped rank, it gets an error, too, and what it still does when it wakes up
/// changes nothing that the others own.
fn one_rank_is_stopped(transport: &str) {
    for (seed, sizes) in ["2", "262144", "mixed"].into_iter().enumerate() {
        let mut random = Random::new(seed as u64 + 1);
        let variables = [("GRADWIRE_TRANSPORT", transport), ("GRADWIRE_TIMEOUT", "1500ms")];
        let mut job = Job::start(RANKS, &["loop", sizes], &variables);
        job.set_off(RANKS);
        let stopped = random.below(RANKS as u64) as usize;
        let others: Vec<usize> = (0..RANKS).filter(|rank| *rank != stopped).collect();
        some_time(&mut random);
        job.signal(stopped, Signal::STOP);
        let what = format!("{transport}, {sizes} elements, rank {stopped} stopped");
        for failure in job.await_all("failed", others.len()) {
            let (_, error) = failure.text.split_once(' ').unwrap();
            assert!(
                error.starts_with(&format!("timed-out {stopped}: ")),
                "{what}; rank {}: {error}",
                failure.rank
            );
        }
        job.say_go(others.clone());
        let before = job.await_all("holds", others.len());

        job.signal(stopped, Signal::CONT);
        let failure = job.await_all("failed", 1).remove(0);
        assert_eq!(failure.rank, stopped);
        let (_, error) = failure.text.split_once(' ').unwrap();
        assert!(error.starts_with("aborted ") || error.starts_with("timed-out "), "{what}: {error}");
        // It has had its say: whatever it would still write, it has.
        job.say_go([stopped]);
        job.await_all("holds", 1);
        job.say_go(others.clone());
        assert_eq!(job.await_all("holds", others.len()), before, "{what}");
        assert_eq!(job.end().endings, [Ending::Code(0); RANKS], "{what}");
    }
}

#[test]
fn one_rank_is_stopped_over_shm() {
    one_rank_is_stopped("shm");
}

#[test]
fn one_rank_is_stopped_over_tcp() {
    one_rank_is_stopped("tcp");
}
