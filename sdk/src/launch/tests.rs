use super::*;
use crate::Error;
use std::process::Command;
use std::time::{Duration, Instant};

/// A job of ranks that run this script. `$R` is the rank.
fn job(ranks: usize, script: &str) -> Launcher {
    Launcher::new("sh").argument("-c").argument(format!("R=$GRADWIRE_RANK; {script}")).ranks(ranks)
}

/// A job of which one rank ends like this once all others have told that they are ready, which is part of `first`.
fn job_with_a_failure(name: &str, ranks: usize, failing: usize, end: &str, first: &str) -> Launcher {
    let gate = std::env::temp_dir().join(format!("gradwire-launch-{}-{name}", std::process::id()));
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let gate = gate.display();
    let wait = "read line <&3; ".repeat(ranks - 1);
    let script = format!("exec 3<>{gate}; [ $R = {failing} ] && {{ {wait} rm {gate}; {end}; }}; {first}");
    job(ranks, &script)
}

const TELL: &str = "echo ready >&3";

#[test]
fn ranks_that_end_well_make_a_success() {
    let report = job(3, "exit 0").run().unwrap();
    assert_eq!(report.endings, [Ending::Code(0); 3]);
    assert_eq!((report.first_failure, report.exit_code()), (None, 0));
    assert_eq!(report.to_string(), "3 of 3 ranks ended well");
}

#[test]
fn ranks_are_told_their_place() {
    let script = r#"[ $GRADWIRE_SIZE = 4 ] && [ $GRADWIRE_LOCAL_SIZE = 4 ] && [ $GRADWIRE_LOCAL_RANK = $R ] &&
        [ $GRADWIRE_LAUNCHER = $PPID ] && [ "$EXTRA" = "a b" ] && exit $((10 + R))"#;
    let report = job(4, script).variable("EXTRA", "a b").on_failure(OnFailure::Continue).run().unwrap();
    assert_eq!(report.endings, [10, 11, 12, 13].map(Ending::Code));
}

#[test]
fn the_first_failure_is_named_with_its_code() {
    let first = format!("trap 'exit $R' TERM; {TELL}; sleep 100 & wait");
    let job = job_with_a_failure("code", 3, 1, "exit 42", &first).grace(Duration::from_millis(10));
    let report = job.run().unwrap();
    assert_eq!(report.endings, [Ending::Code(0), Ending::Code(42), Ending::Code(2)]);
    assert_eq!((report.first_failure, report.exit_code()), (Some(1), 42));
    assert_eq!(report.to_string(), "rank 1 failed first: exit code 42; 1 of 3 ranks ended well");
}

#[test]
fn a_rank_that_a_signal_killed_is_named_with_it() {
    let first = format!("{TELL}; exec sleep 100");
    let job = job_with_a_failure("signal", 3, 2, "kill -9 $$", &first).grace(Duration::from_millis(10));
    let report = job.run().unwrap();
    assert_eq!(report.endings, [Ending::Stopped, Ending::Stopped, Ending::Signal(9)]);
    assert_eq!((report.first_failure, report.exit_code()), (Some(2), 137));
    assert!(report.to_string().starts_with("rank 2 failed first: killed by signal 9 (SIGKILL);"), "{report}");
}

#[test]
fn survivors_have_time_to_report() {
    let first = format!("{TELL}; while kill -0 $PPID && [ -e $GATE ]; do sleep 0.05; done; exit 7");
    let job = job_with_a_failure("grace", 2, 0, "exit 5", &first).grace(Duration::from_secs(3600));
    let gate = std::env::temp_dir().join(format!("gradwire-launch-{}-grace", std::process::id()));
    let report = job.variable("GATE", gate).run().unwrap();
    assert_eq!(report.endings, [5, 7].map(Ending::Code));
}

#[test]
fn with_continue_the_others_go_on() {
    let start = Instant::now();
    let script = "[ $R = 0 ] && exit 5; sleep 0.5; exit 0";
    let job = job(2, script).on_failure(OnFailure::Continue).grace(Duration::ZERO);
    let report = job.run().unwrap();
    assert_eq!(report.endings, [Ending::Code(5), Ending::Code(0)]);
    assert!(start.elapsed() >= Duration::from_millis(500));
}

#[test]
fn survivors_that_do_not_listen_are_killed() {
    let first = format!("trap '' TERM; {TELL}; while :; do sleep 1; done");
    let job = job_with_a_failure("deaf", 2, 0, "exit 5", &first).grace(Duration::from_millis(10));
    let report = job.run().unwrap();
    assert_eq!(report.endings, [Ending::Code(5), Ending::Stopped]);
    let line = "rank 0 failed first: exit code 5; 0 of 2 ranks ended well, 1 were ended by the launcher";
    assert_eq!(report.to_string(), line);
}

#[test]
fn an_interrupt_ends_the_job_and_is_no_failure_of_a_rank() {
    let mut job = job(2, "exec sleep 100");
    job.interrupter().unwrap().interrupt(Signal::Interrupt);
    let report = job.run().unwrap();
    assert_eq!(report.endings, [Ending::Stopped; 2]);
    assert_eq!((report.first_failure, report.exit_code()), (None, 130));
    assert!(report.to_string().starts_with("interrupted by SIGINT;"), "{report}");
}

#[test]
fn what_cannot_be_started_is_named() {
    let error = Launcher::new("no-such-program-here").ranks(2).run().unwrap_err();
    assert!(matches!(&error, Error::System(reason) if reason.contains("no-such-program-here")), "{error}");
    for ranks in [0, 65537] {
        let error = job(ranks, "exit 0").run().unwrap_err();
        assert!(matches!(error, Error::Setting { .. }), "{error}");
    }
    let secret = job(1, "exit 0").variable("GRADWIRE_SECRET_FILE", "/nonexistent/secret").run();
    assert!(secret.unwrap_err().to_string().contains("/nonexistent/secret"));
}

#[test]
fn codes_that_a_parent_would_not_see_still_fail() {
    let report = |endings: &[Ending], first_failure| Report {
        endings: endings.to_vec(),
        first_failure,
        interrupted_by: None,
        output_is_lost: false,
    };
    assert_eq!(report(&[Ending::Code(256)], Some(0)).exit_code(), 1);
    assert_eq!(report(&[Ending::Code(-1)], Some(0)).exit_code(), 255);
    assert_eq!(report(&[Ending::Code(0), Ending::Stopped], None).exit_code(), 1);
}
