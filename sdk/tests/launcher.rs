//! `gradwire run` as users start it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const GRADWIRE: &str = env!("CARGO_BIN_EXE_gradwire");

fn gradwire(arguments: &[&str]) -> Command {
    command(GRADWIRE, arguments)
}

/// A program that does not hear of the launcher that may have started the tests.
fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["GRADWIRE_", "PMI", "MPI", "OMPI_", "SLURM_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (i32, Vec<String>, String) {
    outcome(gradwire(arguments).output().unwrap())
}

/// The exit code, the lines of standard output in their order by text, standard error.
fn outcome(output: Output) -> (i32, Vec<String>, String) {
    let mut lines: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    (output.status.code().unwrap(), lines, String::from_utf8(output.stderr).unwrap())
}

/// A pipe with a name. It can be read to its end when all who have it open for writing are gone.
struct Fifo(PathBuf);

impl Fifo {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gradwire-launcher-{}-{name}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self(path)
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A running launcher, which does not outlive its test.
struct Running(Child);

impl Running {
    fn code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running launcher whose ranks hold a fifo open and have all said that they are ready.
fn start_and_wait(ranks: usize, script: &str, fifo: &Fifo) -> (Running, BufReader<ChildStdout>, File) {
    let script = format!("exec 9>{}; {script}", fifo.0.display());
    let mut child = gradwire(&["run", "-n", &ranks.to_string(), "--grace", "1h", "--", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let fifo = File::open(&fifo.0).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ready = 0;
    while ready < ranks {
        let mut line = String::new();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the launcher ended");
        ready += usize::from(line.ends_with("ready\n"));
    }
    (Running(child), output, fifo)
}

/// Waits until nobody has the fifo open for writing any more.
#[track_caller]
fn wait_for_the_end(mut fifo: File) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(fifo.read_to_end(&mut Vec::new()).unwrap()));
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(0), "a rank goes on");
}

fn kill(process: &Running, signal: &str) {
    assert!(Command::new("kill").args([signal, &process.0.id().to_string()]).status().unwrap().success());
}

#[test]
fn lines_have_the_rank_in_front() {
    let (code, lines, errors) = run(&["run", "-n", "2", "--", "sh", "-c", "echo a; printf b; echo c >&2"]);
    assert_eq!(code, 0);
    assert_eq!(lines, ["[0] a", "[0] b", "[1] a", "[1] b"]);
    let mut errors: Vec<&str> = errors.lines().collect();
    errors.sort_unstable();
    assert_eq!(errors, ["[0] c", "[1] c"]);
}

#[test]
fn much_output_passes_whole() {
    let (code, lines, _) = run(&["run", "-n", "3", "--", "seq", "100000"]);
    assert_eq!((code, lines.len()), (0, 300_000));
    let mut expected: Vec<String> =
        (0..3).flat_map(|rank| (1..=100_000).map(move |number| format!("[{rank}] {number}"))).collect();
    expected.sort();
    assert!(lines == expected, "lines were lost or mixed");
}

#[test]
fn a_failure_gives_the_exit_code_and_a_last_line() {
    let script = "[ $GRADWIRE_RANK = 1 ] && exit 3; exit 0";
    let (code, _, errors) = run(&["run", "-n", "2", "--", "sh", "-c", script]);
    assert_eq!(code, 3);
    assert!(
        errors.ends_with("gradwire: rank 1 failed first: exit code 3; 1 of 2 ranks ended well\n"),
        "{errors}"
    );
    let (code, _, errors) = run(&["run", "-n", "2", "--", "no-such-program"]);
    assert_eq!(code, 127);
    assert!(errors.contains("the program no-such-program cannot be started"), "{errors}");
}

#[test]
fn wrong_settings_are_refused_before_anything_starts() {
    for (arguments, words) in [
        (["--transport", "rdma"], "GRADWIRE_TRANSPORT is \"rdma\", but must be auto, shm, libfabric or tcp"),
        (["--timeout", "5"], "GRADWIRE_TIMEOUT is \"5\", but must be a duration"),
        (["--grace", "soon"], "a duration such as"),
        (["--on-failure", "panic"], "stop"),
    ] {
        let (code, lines, errors) =
            run(&["run", "-n", "2", arguments[0], arguments[1], "--", "echo", "started"]);
        assert!(code != 0 && lines.is_empty() && errors.contains(words), "{code} {lines:?} {errors}");
    }
    let (code, lines, errors) = run(&["run", "-n", "0", "--", "echo", "started"]);
    assert!(code != 0 && lines.is_empty() && errors.contains("number of ranks"), "{errors}");
}

#[test]
fn ranks_meet_through_the_launcher() {
    let (code, lines, errors) = run(&["run", "-n", "5", "--", GRADWIRE, "doctor"]);
    assert_eq!((code, lines.len()), (0, 5), "{errors}");
    for (rank, line) in lines.iter().enumerate() {
        let beginning =
            format!("[{rank}] rank {rank} of 5, local {rank} of 5, according to gradwire's launcher");
        assert!(line.starts_with(&beginning) && line.ends_with(", 4 by shm; authenticated"), "{line}");
    }
}

#[test]
fn the_doctor_speaks_of_the_machine() {
    let (code, lines, errors) = run(&["doctor"]);
    assert_eq!(code, 0, "{errors}");
    for beginning in ["processors: ", "huge pages: ", "shared memory: works", "tcp: works", "launcher: none"]
    {
        assert!(lines.iter().any(|line| line.starts_with(beginning)), "{beginning}: {lines:?}");
    }
}

#[test]
fn the_doctor_speaks_to_programs() {
    let ranks = ["run", "-n", "2", "--transport", "tcp", "--", GRADWIRE, "doctor", "--json", "--machine"];
    let (code, lines, errors) = run(&ranks);
    assert_eq!((code, lines.len()), (0, 2), "{errors}");
    for (rank, line) in lines.iter().enumerate() {
        let json = line.strip_prefix(&format!("[{rank}] ")).unwrap();
        let said: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!((&said["rank"], &said["size"]), (&rank.into(), &2.into()), "{line}");
        assert_eq!(said["paths"][0]["path"], "tcp", "{line}");
        assert_eq!(said["paths"][0]["rank"], 1 - rank, "{line}");
        let topics = said["findings"].as_array().unwrap().iter().map(|finding| &finding["topic"]);
        assert!(topics.clone().any(|topic| topic == "processors"), "{line}");
        assert!(topics.clone().any(|topic| topic == "launcher"), "{line}");
    }
}

#[test]
fn a_rank_that_never_comes_is_named_by_the_others() {
    let script = format!("[ $GRADWIRE_RANK = 1 ] && exec sleep 100; exec {GRADWIRE} doctor");
    let mut command = gradwire(&["run", "-n", "3", "--grace", "100ms", "--", "sh", "-c", &script]);
    let output = command.env("GRADWIRE_START_TIMEOUT", "4s").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    for rank in [0, 2] {
        assert!(errors.contains(&format!("[{rank}] gradwire: rank 1 of 3 did not come in time")), "{errors}");
    }
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn no_rank_outlives_a_launcher_that_is_killed() {
    let fifo = Fifo::new("orphan");
    let (mut launcher, _output, held) = start_and_wait(3, "echo ready; exec sleep 1000", &fifo);
    kill(&launcher, "-9");
    launcher.code();
    wait_for_the_end(held);
}

#[test]
fn what_a_rank_leaves_running_ends_with_it() {
    let fifo = Fifo::new("left");
    let (mut launcher, _output, held) = start_and_wait(2, "sleep 1000 & echo ready", &fifo);
    assert_eq!(launcher.code(), Some(0));
    wait_for_the_end(held);
}

#[test]
fn ctrl_c_reaches_the_ranks_once_and_ends_the_job() {
    let fifo = Fifo::new("interrupt");
    let script = "trap 'echo told; exit 0' INT; echo ready; while :; do sleep 0.05; done";
    let (mut launcher, output, held) = start_and_wait(2, script, &fifo);
    kill(&launcher, "-INT");
    let lines: Vec<String> = output.lines().map_while(Result::ok).collect();
    assert_eq!(lines.iter().filter(|line| line.ends_with("told")).count(), 2, "{lines:?}");
    assert_eq!(launcher.code(), Some(130));
    wait_for_the_end(held);
}

#[test]
fn the_second_interrupt_kills_ranks_that_do_not_listen() {
    let fifo = Fifo::new("deaf");
    let script = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done";
    let (mut launcher, _output, held) = start_and_wait(2, script, &fifo);
    kill(&launcher, "-INT");
    kill(&launcher, "-TERM");
    wait_for_the_end(held);
    assert!([130, 143].contains(&launcher.code().unwrap()));
}

#[test]
fn ranks_end_when_nobody_reads_the_output() {
    let fifo = Fifo::new("output");
    let (mut launcher, output, held) = start_and_wait(2, "echo ready; exec yes", &fifo);
    drop(output);
    wait_for_the_end(held);
    assert_eq!(launcher.code(), Some(141));
}

#[test]
fn a_job_ends_quietly_when_nobody_hears_it_at_all() {
    let fifo = Fifo::new("deaf-and-dumb");
    let script = format!("exec 9>{}; echo ready; yes >&2", fifo.0.display());
    let mut command = gradwire(&["run", "-n", "2", "sh", "-c", &script]);
    let mut launcher = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let held = File::open(&fifo.0).unwrap();
    drop(launcher.0.stderr.take());
    wait_for_the_end(held);
    assert_eq!(launcher.code(), Some(141));
}

#[test]
fn standard_input_is_that_of_rank_0() {
    let mut command = gradwire(&["run", "-n", "2", "--", "cat"]);
    let output = command.stdin(File::open("/proc/self/comm").unwrap()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("[0] ") && text.lines().count() == 1, "{text:?}");
}

/// Starts ranks with a launcher that is not ours, if it is installed.
fn foreign(launcher: &str, arguments: &[&str], rest: &[&str]) -> Option<(i32, Vec<String>, String)> {
    let mut command = command(launcher, arguments);
    command.args(rest).envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    match command.output() {
        Ok(output) => Some(outcome(output)),
        Err(error) => {
            eprintln!("skipped: {launcher} cannot be started: {error}");
            None
        }
    }
}

const FOREIGN: [(&str, &[&str], &str); 3] = [
    ("mpiexec.hydra", &["-n", "3"], "PMI"),
    ("mpiexec.hydra", &["-pmi-port", "-n", "3"], "PMI"),
    ("mpirun.openmpi", &["--oversubscribe", "-n", "3"], "Open MPI"),
];

#[test]
fn ranks_of_mpi_launchers_find_each_other() {
    for (launcher, arguments, source) in FOREIGN {
        let Some((code, lines, errors)) = foreign(launcher, arguments, &[GRADWIRE, "doctor"]) else {
            continue;
        };
        assert_eq!((code, lines.len()), (0, 3), "{launcher} {arguments:?}: {lines:?} {errors}");
        for (rank, line) in lines.iter().enumerate() {
            let beginning =
                format!("rank {rank} of 3, local {rank} of 3, according to {source}; met all on 1 host(s)");
            assert!(line.starts_with(&beginning) && line.ends_with("; authenticated"), "{line}");
        }
    }
}

#[test]
fn a_rank_of_an_mpi_launcher_that_never_comes_ends_the_others_in_time() {
    for (launcher, arguments, _) in FOREIGN {
        let script = format!(
            "export GRADWIRE_START_TIMEOUT=1s; [ \"$OMPI_COMM_WORLD_RANK$PMI_RANK$PMI_ID\" = 1 ] && exec sleep 2; \
             {GRADWIRE} doctor; echo ended with $?"
        );
        let Some((_, lines, errors)) = foreign(launcher, arguments, &["sh", "-c", &script]) else { continue };
        assert_eq!(lines.iter().filter(|line| **line == "ended with 127").count(), 2, "{lines:?} {errors}");
        assert!(errors.contains("in time"), "{launcher}: {errors}");
    }
}

#[test]
fn the_log_goes_to_standard_error_and_warns_of_misspelt_settings() {
    let mut command = gradwire(&["doctor"]);
    let output = command.env("GRADWIRE_LOG", "debug").env("GRADWIRE_TIMOUT", "5s").output().unwrap();
    let (code, lines, errors) = outcome(output);
    assert_eq!(code, 0);
    let is_place = |line: &String| line.starts_with("rank 0 of 1, ") && line.contains("according to nothing");
    assert!(lines.iter().any(is_place), "{lines:?}");
    assert!(
        errors.contains("WARN") && errors.contains("GRADWIRE_TIMOUT is set, but there is no such setting")
    );
    assert!(errors.contains("DEBUG") && errors.contains("a process on its own"), "{errors}");
    let output = gradwire(&["doctor"]).env("GRADWIRE_TIMOUT", "5s").output().unwrap();
    assert_eq!(outcome(output).2, "");
}

/// Case 29: four processes that Slurm has started, as far as they can tell, and nothing to meet by.
#[test]
fn ranks_without_wiring_are_no_jobs_of_one() {
    for rank in ["0", "1", "2", "3"] {
        let variables = [("SLURM_NTASKS", "4"), ("SLURM_PROCID", rank)];
        let (code, lines, errors) = outcome(gradwire(&["doctor"]).envs(variables).output().unwrap());
        assert_eq!((code, &lines[..]), (127, &[][..]), "{errors}");
        for words in
            ["SLURM_NTASKS=4", &format!("SLURM_PROCID={rank}"), "missing: SLURM_JOB_ID", "GRADWIRE_RANK"]
        {
            assert!(errors.contains(words), "{words}: {errors}");
        }
    }
}

/// A file with the secret of a job.
fn secret(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("gradwire-launcher-{}-{name}", std::process::id()));
    std::fs::write(&path, "not easy to guess at all").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    path
}

#[test]
fn a_secret_file_counts_under_the_launcher_too() {
    let secret = secret("launched");
    let script = format!("[ $GRADWIRE_RANK = 1 ] && unset GRADWIRE_SECRET_FILE; exec {GRADWIRE} doctor");
    for (arguments, expected) in
        [(&["-n", "2", "--", GRADWIRE, "doctor"][..], 0), (&["-n", "2", "sh", "-c", &script], 127)]
    {
        let mut command = gradwire(&["run"]);
        let output = command.args(arguments).env("GRADWIRE_SECRET_FILE", &secret).output().unwrap();
        let (code, lines, errors) = outcome(output);
        assert_eq!(code, expected, "{lines:?} {errors}");
        assert!(
            code == 0 || errors.contains("[1] gradwire: the rendezvous asks for the secret of the job"),
            "{errors}"
        );
    }
    std::fs::remove_file(secret).unwrap();
}

#[test]
fn ranks_started_by_hand_meet_over_tcp_with_a_secret() {
    let [low, high, ..] = std::process::id().to_le_bytes();
    let address = format!("127.{}.{low}.250:4711", high | 1);
    let secret = secret("by-hand");
    let start = |rank: usize| {
        let mut command = gradwire(&["doctor"]);
        command
            .env("GRADWIRE_RANK", rank.to_string())
            .env("GRADWIRE_SIZE", "3")
            .env("GRADWIRE_ADDRESS", &address);
        command.env("GRADWIRE_SECRET_FILE", &secret).stdout(Stdio::piped()).spawn().unwrap()
    };
    let ranks = [2, 1, 0].map(start);
    for (rank, child) in [2, 1, 0].into_iter().zip(ranks) {
        let (code, lines, _) = outcome(child.wait_with_output().unwrap());
        assert!(
            code == 0 && lines[0].starts_with(&format!("rank {rank} of 3, according to the settings")),
            "{lines:?}"
        );
        assert!(lines[0].ends_with("; authenticated"), "{lines:?}");
    }
    std::fs::remove_file(secret).unwrap();
}
