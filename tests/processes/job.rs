//! A job of real processes, started as users start theirs, that report to the test.

use gradwire::launch::{Launcher, OnFailure, Output, Report};
use gradwire_tests::ranks::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The program of the ranks.
pub(crate) const RANK: &str = env!("CARGO_BIN_EXE_rank");

/// Longer than any test may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a rank said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Event {
    pub(crate) rank: usize,
    /// `ready`, `failed`, `holds`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A running job.
pub(crate) struct Job {
    launcher: Option<JoinHandle<gradwire::Result<Report>>>,
    directory: PathBuf,
    listener: UnixListener,
    events: Receiver<Event>,
    sender: Sender<Event>,
    /// By rank, once they are ready.
    pub(crate) lines: BTreeMap<usize, UnixStream>,
    pub(crate) processes: BTreeMap<usize, Pid>,
    before: Vec<OsString>,
}

impl Job {
    /// Starts `ranks` ranks that play a part.
    pub(crate) fn start(ranks: usize, part: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_program(RANK, ranks, part, variables)
    }

    /// Starts `ranks` processes of a program that becomes [`RANK`].
    pub(crate) fn start_program(
        program: &str,
        ranks: usize,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("job-{}-{number}", std::process::id());
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let reports = directory.join("reports");
        let listener = UnixListener::bind(&reports).unwrap();
        let temporary = directory.join("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        let mut launcher = Launcher::new(program)
            .arguments(arguments)
            .ranks(ranks)
            .output(Output::Inherited)
            .on_failure(OnFailure::Continue)
            .variable("RANK_REPORTS", &reports)
            .variable("TMPDIR", &temporary)
            .variable("GRADWIRE_LOG", "off");
        for (name, value) in variables {
            launcher = launcher.variable(name, value);
        }
        let before = shared_memory_files();
        let launcher = std::thread::spawn(|| launcher.run());
        let (sender, events) = channel();
        let (lines, processes) = Default::default();
        Self { launcher: Some(launcher), directory, listener, events, sender, lines, processes, before }
    }

    /// Waits until all ranks are connected with each other, and lets them go.
    pub(crate) fn set_off(&mut self, ranks: usize) {
        self.connect(ranks);
        for event in self.await_all("ready", ranks) {
            self.processes.insert(event.rank, Pid::from_raw(event.text.parse().unwrap()).unwrap());
        }
        self.say_go(0..ranks);
    }

    /// Takes the lines of that many ranks.
    pub(crate) fn connect(&mut self, ranks: usize) {
        let mut unknown: Vec<UnixStream> = (0..ranks).map(|_| self.listener.accept().unwrap().0).collect();
        for stream in unknown.drain(..) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            let event = parse(&first);
            self.lines.insert(event.rank, stream);
            self.sender.send(event).unwrap();
            let sender = self.sender.clone();
            std::thread::spawn(move || {
                for line in reader.lines().map_while(Result::ok) {
                    // The test may have failed meanwhile.
                    let _ = sender.send(parse(&line));
                }
            });
        }
    }

    /// Lets ranks that wait go on.
    pub(crate) fn say_go(&mut self, ranks: impl IntoIterator<Item = usize>) {
        for rank in ranks {
            // It may have been killed.
            let _ = self.lines.get_mut(&rank).unwrap().write_all(b"go\n");
        }
    }

    /// The next events with this name of `count` ranks, by rank.
    pub(crate) fn await_all(&mut self, name: &str, count: usize) -> Vec<Event> {
        let mut found: Vec<Event> = Vec::new();
        while found.len() < count {
            let event = self.events.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                panic!("only these of {count} ranks said {name:?}: {found:?}");
            });
            assert_eq!(event.name, name, "{event:?}");
            found.push(event);
        }
        found.sort_by_key(|event| event.rank);
        found
    }

    pub(crate) fn signal(&self, rank: usize, signal: Signal) {
        kill_process(self.processes[&rank], signal).unwrap();
    }

    /// Hangs up, waits for the end of all ranks, and sees that they left nothing behind.
    pub(crate) fn end(mut self) -> Report {
        self.lines.values().for_each(|line| line.shutdown(std::net::Shutdown::Write).unwrap());
        let report = self.launcher.take().unwrap().join().unwrap().unwrap();
        for (rank, process) in &self.processes {
            let left = std::fs::exists(format!("/proc/{}", process.as_raw_nonzero())).unwrap();
            assert!(!left, "the process of rank {rank} is still there");
        }
        let new: Vec<OsString> =
            shared_memory_files().into_iter().filter(|file| !self.before.contains(file)).collect();
        assert_eq!(new, [""; 0], "left in /dev/shm");
        let temporary: Vec<_> = std::fs::read_dir(self.directory.join("tmp")).unwrap().collect();
        assert!(temporary.is_empty(), "left in TMPDIR: {temporary:?}");
        report
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A test that failed must not leave ranks behind. Their launcher's thread goes on until they have ended.
        self.processes.values().filter(|_| self.launcher.is_some()).for_each(|process| {
            let _ = kill_process(*process, Signal::KILL);
        });
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn parse(line: &str) -> Event {
    let mut words = line.trim_end().splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    Event { rank: word().parse().unwrap(), name: word(), text: word() }
}

/// Files that look like ours: other programs use the place, too.
fn shared_memory_files() -> Vec<OsString> {
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains("gradwire"))
        .collect()
}

/// Lets a random time pass, below 30 ms: whatever the ranks are doing then is what they are killed in.
pub(crate) fn some_time(random: &mut Random) {
    std::thread::sleep(Duration::from_micros(random.below(30_000)));
}
