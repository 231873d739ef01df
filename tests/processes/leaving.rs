//! Ranks that end by themselves, well or not, and what a process keeps of jobs that are over.

use crate::job::{Job, RANK};
use gradwire::launch::Ending;
use std::process::Command;

/// Case 22.
#[test]
fn ranks_that_end_without_a_farewell_end_well() {
    for how in ["return", "exit", "forget"] {
        for transport in ["shm", "tcp"] {
            let mut job = Job::start(4, &["leave", how], &[("GRADWIRE_TRANSPORT", transport)]);
            job.set_off(4);
            assert_eq!(job.end().endings, [Ending::Code(0); 4], "{how} over {transport}");
        }
    }
}

/// Case 22: nobody is lost who ends without a farewell while others are still in the last call, as long as it has done its
/// part in it.
#[test]
fn ranks_that_end_within_the_last_call_of_others_end_well() {
    for last in ["all_reduce", "barrier", "gather"] {
        for count in ["1", "262144"] {
            for transport in ["shm", "tcp"] {
                let part = ["finish", last, count];
                let job = Job::start(4, &part, &[("GRADWIRE_TRANSPORT", transport)]);
                let what = format!("{last} of {count} elements over {transport}");
                assert_eq!(job.end().endings, [Ending::Code(0); 4], "{what}");
            }
        }
    }
}

/// Cases 20 and 21: the others learn of it, and all processes end.
#[test]
fn a_rank_that_panics_is_named_by_the_others() {
    for transport in ["shm", "tcp"] {
        let mut job = Job::start(4, &["panic"], &[("GRADWIRE_TRANSPORT", transport)]);
        job.connect(3);
        for failure in job.await_all("failed", 3) {
            let (_, error) = failure.text.split_once(' ').unwrap();
            assert!(error.starts_with("lost 1: "), "rank {} over {transport}: {error}", failure.rank);
        }
        let [three, panicked] = [3, 101].map(Ending::Code);
        let report = job.end();
        assert_eq!(report.endings, [three, panicked, three, three]);
    }
}

/// Descriptors, threads and mappings, before and after 50 jobs and 2,000 calls: in a process of its own, where no other
/// test opens any.
#[test]
fn nothing_is_kept_of_jobs_and_calls() {
    let output = Command::new(RANK).arg("leaks").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Case 92: memory, too, whatever the form of the calls and on which side of a threshold they are. `GRADWIRE_TEST_ROUNDS=10000` for
/// a long run.
#[test]
fn nothing_grows_with_the_number_of_calls() {
    let rounds = std::env::var("GRADWIRE_TEST_ROUNDS").unwrap_or_else(|_| "20".into());
    for transport in ["shm", "tcp"] {
        let output = Command::new(RANK)
            .args(["grows", &rounds])
            .env("GRADWIRE_TRANSPORT", transport)
            .output()
            .unwrap();
        assert!(output.status.success(), "{transport}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
