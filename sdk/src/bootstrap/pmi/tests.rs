use super::*;
use crate::bootstrap::stream::Stream;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Barrier, Mutex};
use std::thread;

const PLENTY: Duration = Duration::from_secs(60);

/// A process manager for `size` ranks, as strict about its limits as the real ones.
#[derive(Debug)]
struct Manager {
    size: usize,
    max_key: usize,
    max_value: usize,
    space: String,
    values: Mutex<BTreeMap<String, String>>,
    barrier: Barrier,
}

impl Manager {
    fn new(size: usize) -> Self {
        let (values, barrier) = (Mutex::default(), Barrier::new(size));
        Self { size, max_key: 64, max_value: 1024, space: "kvs_4711_0".into(), values, barrier }
    }

    /// Answers one rank until it says goodbye or hangs up. Returns whether it said goodbye.
    fn serve(&self, stream: UnixStream) -> bool {
        let mut writer = stream.try_clone().unwrap();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            assert!(line.len() < 1024, "a line of {} bytes is too long", line.len());
            let pairs: BTreeMap<&str, &str> =
                line.split(' ').map(|pair| pair.split_once('=').unwrap()).collect();
            let value = |key| pairs.get(key).copied().unwrap();
            let answer = match value("cmd") {
                "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
                "get_maxes" => {
                    let Self { max_key, max_value, .. } = self;
                    format!("cmd=maxes kvsname_max=256 keylen_max={max_key} vallen_max={max_value} rc=0")
                }
                "get_my_kvsname" => format!("kvsname={} cmd=my_kvsname rc=0", self.space),
                "put" => {
                    assert!(value("key").len() < self.max_key && value("value").len() < self.max_value);
                    assert_eq!(value("kvsname"), self.space);
                    let mut values = self.values.lock().unwrap();
                    let earlier = values.insert(value("key").to_owned(), value("value").to_owned());
                    assert_eq!(earlier, None, "the key {} was put twice", value("key"));
                    "cmd=put_result rc=0 msg=success".to_owned()
                }
                "barrier_in" => {
                    self.barrier.wait();
                    "cmd=barrier_out rc=0".to_owned()
                }
                "get" => match self.values.lock().unwrap().get(value("key")) {
                    Some(found) => format!("cmd=get_result rc=0 msg=success value={found}"),
                    None => format!("cmd=get_result rc=-1 msg=key_{}_not found value=unknown", value("key")),
                },
                "finalize" => {
                    writer.write_all(b"cmd=finalize_ack rc=0\n").unwrap();
                    return true;
                }
                other => panic!("an unknown command: {other}"),
            };
            writer.write_all(format!("cmd=set debug=0\n{answer}\n").as_bytes()).unwrap();
        }
        false
    }

    /// Runs a job of ranks that do this once they have a connection.
    fn job<T: Send>(&self, rank: impl Fn(Session) -> T + Sync) -> Vec<T> {
        let rank = &rank;
        thread::scope(|scope| {
            let start = |number| {
                let (ours, theirs) = UnixStream::pair().unwrap();
                scope.spawn(move || assert!(self.serve(theirs), "rank {number} did not say goodbye"));
                scope.spawn(move || rank(Session::new(Stream::new(ours.into()), number, self.size)))
            };
            let threads: Vec<_> = (0..self.size).map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }
}

fn place(session: Session, key: Option<JobSecret>) -> Result<Placement> {
    let deadline = Instant::now() + PLENTY;
    join(session.start(deadline)?, None, key, deadline, "PMI")
}

fn contribution(rank: Rank, round: usize) -> Vec<u8> {
    (0..900 * rank * round + round)
        .map(|index| u8::try_from((31 * rank + 7 * round + index) % 251).unwrap())
        .collect()
}

fn exchange(manager: &Manager, key: Option<&JobSecret>) {
    let common = manager.job(|session| {
        let mut placement = place(session, key.cloned()).unwrap();
        let rank = placement.bootstrap.rank();
        for round in 0..3 {
            let deadline = Instant::now() + PLENTY;
            let all = placement.bootstrap.all_gather(&contribution(rank, round), deadline).unwrap();
            let expected: Vec<_> = (0..manager.size).map(|rank| contribution(rank, round)).collect();
            assert_eq!(all, expected, "rank {rank}, round {round}");
            placement.bootstrap.barrier(deadline).unwrap();
        }
        (placement.epoch, placement.secret.clone().unwrap())
    });
    assert!(common.iter().all(|other| *other == common[0]));
}

#[test]
fn ranks_exchange_contributions_of_any_length() {
    for size in [1, 2, 5] {
        exchange(&Manager::new(size), None);
    }
    exchange(&Manager::new(3), Some(&JobSecret::from_bytes([5; 32])));
}

#[test]
fn limits_of_the_process_manager_are_kept() {
    exchange(&Manager { max_value: 40, ..Manager::new(2) }, None);
    exchange(&Manager { space: "k".repeat(255), ..Manager::new(2) }, None);
}

#[test]
fn limits_that_are_too_narrow_are_an_error() {
    for manager in [Manager { max_value: 8, ..Manager::new(1) }, Manager { max_key: 10, ..Manager::new(1) }] {
        let outcomes = manager.job(|session| place(session, None));
        let reason = outcomes[0].as_ref().unwrap_err().to_string();
        assert!(reason.contains("too few"), "{reason}");
    }
}

#[test]
fn secrets_that_differ_are_named_on_all_ranks() {
    let keys = [Some(1), Some(1), Some(2)];
    let no_keys = [None, Some(1), Some(1)];
    for keys in [keys, no_keys] {
        let outcomes = Manager::new(3).job(|session| {
            let key = keys[session.rank()].map(|byte| JobSecret::from_bytes([byte; 32]));
            place(session, key).unwrap_err().to_string()
        });
        for reason in outcomes {
            assert!(reason.contains("does not have the same secret"), "{reason}");
        }
    }
}

/// What a rank says that hears these answers, one for each question, and then nothing.
fn hear(answers: &'static [&'static str], hangs_up: bool) -> String {
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut reader = BufReader::new(theirs.try_clone().unwrap());
            for answer in answers {
                reader.read_line(&mut String::new()).unwrap();
                (&theirs).write_all(answer.as_bytes()).unwrap();
            }
            if !hangs_up {
                // Until the rank has had enough.
                while reader.read_line(&mut String::new()).is_ok_and(|count| count > 0) {}
            }
        });
        let deadline = Instant::now() + if hangs_up { PLENTY } else { Duration::from_secs(2) };
        let session = Session::new(Stream::new(ours.into()), 0, 2);
        let outcome = session.start(deadline).and_then(|session| join(session, None, None, deadline, "PMI"));
        outcome.unwrap_err().to_string()
    })
}

const INIT: &str = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
const MAXES: &str = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
const SPACE: &str = "cmd=my_kvsname kvsname=k\n";
const PUT: &str = "cmd=put_result rc=0\n";
const BARRIER: &str = "cmd=barrier_out\n";

#[test]
fn a_process_manager_that_refuses_is_quoted() {
    let reason = hear(&["cmd=response_to_init rc=-1 msg=wrong version of this\n"], true);
    assert!(reason.contains("code -1: wrong version of this"), "{reason}");
    let reason = hear(&[INIT, MAXES, SPACE, PUT, BARRIER, "cmd=get_result rc=-1 msg=no such key\n"], true);
    assert!(reason.contains("no such key"), "{reason}");
}

#[test]
fn a_process_manager_that_says_something_else_is_quoted() {
    for nonsense in ["cmd=maxes\n", "hello\n", "\n", "cmd=\n", "=\n"] {
        let answers: &'static [&'static str] = Box::leak(Box::new([nonsense]));
        let reason = hear(answers, true);
        assert!(reason.contains("when asked for response_to_init"), "{nonsense:?}: {reason}");
    }
    for value in ["", "!00", "+", ".0", ".zz", ".00", "+00"] {
        let answer = format!("cmd=get_result rc=0 value={value}\n").leak();
        let answers: &'static [&'static str] =
            Box::leak(Box::new([INIT, MAXES, SPACE, PUT, BARRIER, answer]));
        hear(answers, true);
    }
}

#[test]
fn a_process_manager_that_is_gone_or_silent_is_an_error_in_time() {
    assert!(hear(&[INIT, MAXES], true).contains("my_kvsname"));
    assert!(hear(&[], true).contains("process manager"));
    assert!(hear(&[INIT, MAXES, SPACE, PUT], false).contains("did not answer in time (barrier_out)"));
}

#[test]
fn a_line_without_an_end_is_refused() {
    let line: &'static str = "x".repeat(200_000).leak();
    let answers: &'static [&'static str] = Box::leak(Box::new([line]));
    assert!(hear(answers, true).contains("does not end"));
}
