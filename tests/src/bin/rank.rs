//! A rank, for tests that start, stop and kill real processes. `rank PART [ARGUMENTS]`; each part is a function.
//!
//! It reports to the test through the Unix socket that `RANK_REPORTS` names: one line per event, and reads from there
//! when to go on.

use gradwire::parameters::{Parameters, Role};
use gradwire::window::Lock;
use gradwire::{Communicator, Error, Gradient, Max, Result, Sum};
use gradwire_tests::clock::{now, processor_time};
use gradwire_tests::ranks::{Over, any_bits, hash, run, sums, value, values};
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let part = arguments.next().expect("a part to play");
    let argument = arguments.next();
    match &*part {
        "loop" => all_reduces(argument.as_deref()),
        "windows" => accesses(),
        "serve" => serve(argument.as_deref()),
        "leave" => leave(argument.as_deref()),
        "finish" => finish(argument.as_deref(), arguments.next().as_deref()),
        "panic" => panics(),
        "absent" => absent(argument.as_deref()),
        "crowd" => crowd(),
        "idle" => idle(),
        "train" => train(),
        "leaks" => leaks(),
        "grows" => grows(argument.as_deref()),
        other => panic!("no such part: {other}"),
    }
}

/// Elements of the calls of a loop: 8 bytes, 4 KiB, 1 MiB, and one between that takes no segment twice.
const COUNTS: [usize; 4] = [2, 1 << 10, 1 << 18, 30_000];

/// All-reduces until an error, which it reports with the time; then says what the buffers hold, now and when it is asked
/// again. `kind`: one size for all calls, or `mixed`.
fn all_reduces(kind: Option<&str>) {
    let comm = gradwire::init().expect("a place in the job");
    let (rank, size) = (comm.rank(), comm.size());
    let mut reports = Reports::new(rank);
    let sizes: Vec<usize> = match kind {
        None | Some("mixed") => COUNTS.to_vec(),
        Some(count) => vec![count.parse().expect("a count")],
    };
    let sources: Vec<_> = sizes.iter().map(|count| (values(rank, *count), sums(size, *count))).collect();
    let mut buffers: Vec<Vec<f32>> = sizes.iter().map(|count| vec![0.0; *count]).collect();
    reports.say(format_args!("ready {}", std::process::id()));
    reports.await_line();
    for call in 0_u64.. {
        let index = call as usize % sizes.len();
        let (source, expected) = &sources[index];
        buffers[index].copy_from_slice(source);
        if let Err(error) = comm.all_reduce(&mut buffers[index], Sum) {
            let at = now();
            reports.say(format_args!("failed {at} {}", describe(&error)));
            break;
        }
        assert!(buffers[index] == *expected, "rank {rank}: call {call} has a wrong sum");
    }
    // What comes late must change nothing that this rank owns.
    while reports.await_line() {
        reports.say(format_args!("holds {:016x}", all_of(&buffers)));
    }
    // Nothing of ours is a file.
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings of a process");
    // But for the program itself, wherever it was built.
    let program = std::env::current_exe().expect("the path of this program");
    let program = program.to_string_lossy().into_owned();
    let named = |line: &&str| {
        let is_temporary = ["/dev/shm", "/tmp/", "/run/"].iter().any(|place| line.contains(place));
        is_temporary && !line.contains(&*program)
    };
    assert_eq!(maps.lines().find(named), None);
}

/// Accesses to the windows of all ranks until an error, which it reports with the time.
fn accesses() {
    let comm = gradwire::init().expect("a place in the job");
    let (rank, size) = (comm.rank(), comm.size());
    let window = comm.create_window::<f32>(COUNTS[3]).expect("a window");
    let mut reports = Reports::new(rank);
    reports.say(format_args!("ready {}", std::process::id()));
    reports.await_line();
    let (mine, mut theirs) = (values(rank, COUNTS[3]), vec![0.0; COUNTS[3]]);
    let step = |call: usize, theirs: &mut [f32]| -> Result<()> {
        let target = (rank + call) % size;
        let lock =
            window.lock(target, if call.is_multiple_of(3) { Lock::Exclusive } else { Lock::Shared })?;
        window.put(target, 0, &mine)?;
        window.accumulate(target, 0, &mine, Sum)?;
        window.get(target, 0, theirs)?;
        window.put_notify(target, 0, &mine[..1], rank)?;
        lock.unlock()?;
        if call.is_multiple_of(5) { window.fence() } else { Ok(()) }
    };
    let error = (0..).find_map(|call| step(call, &mut theirs).err());
    if let Some(error) = error {
        reports.say(format_args!("failed {} {}", now(), describe(&error)));
    }
    reports.await_line();
}

/// Rank 0 serves parameters, the others push ones, 100 times; `victim`, and all where that is the server, without end. A worker
/// reports an error with the time, the server whom it lost.
fn serve(victim: Option<&str>) {
    let victim: usize = victim.and_then(|rank| rank.parse().ok()).expect("who is to be killed");
    let comm = gradwire::init().expect("a place in the job");
    let role = Parameters::new(COUNTS[3]).open::<f32>(&comm).expect("a role");
    let mut reports = Reports::new(comm.rank());
    reports.say(format_args!("ready {}", std::process::id()));
    reports.await_line();
    match role {
        Role::Server(server) => {
            let mut parameters = vec![0.0; COUNTS[3]];
            let served = server.serve(&mut parameters, |parameters, push| {
                // Whole pushes, or none.
                assert!(push.gradient.iter().all(|sum| *sum == push.workers as f32));
                parameters.iter_mut().for_each(|parameter| *parameter += 1.0);
            });
            let served = served.expect("workers that go or stay");
            assert!(parameters.iter().all(|parameter| *parameter == served.steps as f32));
            reports.say(format_args!("served {:?}", served.lost));
        }
        Role::Worker(mut worker) => {
            let (ones, mut parameters) = (vec![1.0; COUNTS[3]], vec![0.0; COUNTS[3]]);
            let mut step = || worker.push(&ones).and_then(|()| worker.pull(&mut parameters));
            let steps = if [0, comm.rank()].contains(&victim) { usize::MAX } else { 100 };
            let error = (0..steps).find_map(|_| step().err());
            if let Some(error) = error {
                reports.say(format_args!("failed {} {}", now(), describe(&error)));
            } else {
                worker.finish().expect("a server");
            }
        }
    }
    reports.await_line();
}

fn all_of(buffers: &[Vec<f32>]) -> u64 {
    buffers.iter().fold(0, |all, buffer| all.rotate_left(7) ^ hash(buffer))
}

/// `lost R`, `timed-out R R`, `aborted R`, and the message.
fn describe(error: &Error) -> String {
    match error {
        Error::PeerLost { rank, .. } => format!("lost {rank}: {error}"),
        Error::TimedOut { waiting_for, .. } => {
            let ranks: Vec<String> = waiting_for.iter().map(ToString::to_string).collect();
            format!("timed-out {}: {error}", ranks.join(" "))
        }
        Error::Aborted { rank, .. } => format!("aborted {rank}: {error}"),
        other => format!("other: {other}"),
    }
}

/// Ten steps, then an end of some kind: `return`, `exit`, `forget`.
fn leave(how: Option<&str>) {
    let comm = gradwire::init().expect("a place in the job");
    for call in 0..10 {
        let count = COUNTS[call % COUNTS.len()];
        let mut mine = values(comm.rank(), count);
        comm.all_reduce(&mut mine, Sum).expect("all ranks make ten calls");
        assert!(mine == sums(comm.size(), count));
    }
    // Without a farewell nobody knows that a rank has not died: all calls have ended everywhere before.
    let mut reports = Reports::new(comm.rank());
    reports.say(format_args!("ready {}", std::process::id()));
    reports.await_line();
    match how {
        Some("return") => {}
        Some("exit") => std::process::exit(0),
        Some("forget") => std::mem::forget(comm),
        _ => panic!("how to leave?"),
    }
}

/// Some calls, and the end of the process as soon as the last one has ended here: `all_reduce`, `barrier` or `gather` of
/// `count` elements.
fn finish(last: Option<&str>, count: Option<&str>) {
    let comm = gradwire::init().expect("a place in the job");
    let (rank, size) = (comm.rank(), comm.size());
    let count = count.map_or(1, |text| text.parse().expect("a count"));
    let mut mine = values(rank, count);
    comm.all_reduce(&mut mine, Sum).expect("all ranks make the first call");
    let own = values(rank, count);
    let mut all = vec![0.0; if last == Some("gather") { size * count } else { count }];
    all[..count].copy_from_slice(&own);
    let result = match last {
        Some("all_reduce") => comm.all_reduce(&mut all, Sum),
        Some("barrier") => comm.barrier(),
        Some("gather") => comm.gather_into(&own, &mut all, 2),
        _ => panic!("which call is the last?"),
    };
    if let Err(error) = result {
        eprintln!("rank {rank}: {error}");
        std::process::exit(3);
    }
    let right = match last {
        Some("all_reduce") => all == sums(size, count),
        Some("gather") if rank == 2 => {
            (0..size).all(|rank| all[rank * count..][..count] == values(rank, count))
        }
        _ => true,
    };
    std::process::exit(if right { 0 } else { 4 });
}

/// Rank 1 panics before its fifth call; the others say what they saw and end with code 3.
fn panics() {
    let comm = gradwire::init().expect("a place in the job");
    for call in 0.. {
        assert!((comm.rank(), call) != (1, 4), "on purpose");
        if let Err(error) = comm.all_reduce(&mut values(comm.rank(), 1000), Sum) {
            Reports::new(comm.rank()).say(format_args!("failed {} {}", now(), describe(&error)));
            std::process::exit(3);
        }
    }
}

/// Rank 0 comes when it is told to; the others wait for it in a call: `all_reduce`, `barrier`, or `handled`, where an interrupt
/// aborts the job.
fn absent(call: Option<&str>) {
    let comm = gradwire::init().expect("a place in the job");
    let mut reports = Reports::new(comm.rank());
    if call == Some("handled") {
        let handle = comm.abort_handle();
        let mut signals =
            signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT]).expect("a handler");
        std::thread::spawn(move || signals.forever().for_each(|_| handle.abort("interrupted")));
    }
    reports.say(format_args!("ready {}", std::process::id()));
    reports.await_line();
    if comm.rank() == 0 {
        reports.await_line();
    }
    let make =
        || if call == Some("barrier") { comm.barrier() } else { comm.all_reduce(&mut [1.0_f32; 100], Sum) };
    // Who comes late may find that all the others had done their part in the first call before it failed for them.
    if let Err(error) = make().and_then(|()| make()) {
        reports.say(format_args!("failed {} {}", now(), describe(&error)));
    }
}

/// A thousand small calls of ranks that share one processor; says how much time of it this rank took, in nanoseconds.
fn crowd() {
    let mine = rustix::thread::sched_getaffinity(None).expect("the processors of this process");
    let first = (0..).find(|processor| mine.is_set(*processor)).expect("a processor");
    let mut one = rustix::thread::CpuSet::new();
    one.set(first);
    rustix::thread::sched_setaffinity(None, &one).expect("the first of them");
    let comm = gradwire::init().expect("a place in the job");
    let mut reports = Reports::new(comm.rank());
    reports.say(format_args!("ready {}", std::process::id()));
    reports.await_line();
    let before = processor_time();
    for call in 0..1000 {
        let mut mine = [(comm.rank() + call) as u64];
        comm.all_reduce(&mut mine, Sum).expect("all ranks call");
        assert_eq!(mine[0], (0..comm.size()).map(|rank| (rank + call) as u64).sum::<u64>());
    }
    reports.say(format_args!("took {}", processor_time() - before));
}

/// Rank 0 comes to a call three seconds late; the others say how much processor time they took meanwhile, and how many threads
/// they have.
fn idle() {
    let comm = gradwire::init().expect("a place in the job");
    let second = comm.duplicate().expect("another communicator");
    let mut reports = Reports::new(comm.rank());
    reports.say(format_args!("ready {}", std::process::id()));
    reports.await_line();
    if comm.rank() == 0 {
        std::thread::sleep(Duration::from_secs(3));
    }
    let before = processor_time();
    comm.all_reduce(&mut [1.0_f32], Sum).expect("all ranks call");
    let took = processor_time() - before;
    second.barrier().expect("all ranks call");
    reports.say(format_args!("took {took} {}", Held::now().threads));
}

#[derive(Gradient)]
struct Layer {
    weights: Vec<[f32; 8]>,
    #[gradient(wire = bf16)]
    bias: Vec<f32>,
    #[gradient(reduce = Max)]
    norm: f32,
    samples: u64,
}

/// A few steps as a training program makes them; prints what it found.
fn train() {
    let comm = gradwire::init().expect("a place in the job");
    let (rank, size) = (comm.rank(), comm.size());
    for count in COUNTS {
        let mut mine = values(rank, count);
        comm.all_reduce(&mut mine, Sum).expect("an all_reduce");
        assert!(mine == sums(size, count));
    }
    for _ in 0..3 {
        let mut layer = Layer {
            weights: (0..40_000)
                .map(|row| std::array::from_fn(|column| value(rank, row * 8 + column)))
                .collect(),
            bias: (0..10).map(|index| (rank * 10 + index) as f32).collect(),
            norm: rank as f32,
            samples: 7 + rank as u64,
        };
        comm.all_reduce_gradient(&mut layer).expect("an all_reduce of a gradient");
        assert!(layer.weights.as_flattened() == sums(size, 320_000));
        let bias = |index| (0..size).map(|rank| (rank * 10 + index) as f32).sum::<f32>();
        assert!(layer.bias.iter().enumerate().all(|(index, sum)| *sum == bias(index)));
        let samples = (0..size as u64).map(|rank| 7 + rank).sum::<u64>();
        assert_eq!((layer.norm, layer.samples), ((size - 1) as f32, samples));
    }
    println!("rank {rank} of {size} trained");
}

/// Counts what this process holds before and after many jobs, and before and after many calls.
fn leaks() {
    let job = |calls: usize| {
        let sums: Result<Vec<u64>> = gradwire::run(2, |comm: Communicator| {
            let mut mine = any_bits::<u64>(comm.rank() as u64, 20_000);
            let mut reduce = |call| comm.all_reduce(&mut mine[..[1, 2000, 20_000][call % 3]], Sum).unwrap();
            let windows = |count: usize| {
                for _ in 0..count {
                    let window = comm.create_window::<u64>(5000).unwrap();
                    window.accumulate(1 - comm.rank(), 1000, &[1; 4000], Sum).unwrap();
                    window.fence().unwrap();
                }
            };
            // The first of each size fills the pool.
            (0..calls.min(9)).for_each(&mut reduce);
            windows(3);
            comm.barrier().unwrap();
            let before = Held::now();
            (0..calls).for_each(&mut reduce);
            windows(calls.min(50));
            comm.barrier().unwrap();
            let after = Held::now();
            comm.barrier().unwrap();
            after.assert_close_to(&before, "calls");
            hash(&mine)
        });
        let sums = sums.expect("two ranks");
        assert_eq!(sums[0], sums[1]);
    };
    // The first fills what is kept: allocator arenas, thread stacks.
    (0..3).for_each(|_| job(3));
    let before = Held::now();
    (0..50).for_each(|_| job(3));
    Held::now().assert_close_to(&before, "jobs");
    job(2000);
    Held::now().assert_close_to(&before, "jobs and calls");
}

/// The forms of calls again and again, at sizes on both sides of every threshold: what a process holds must not grow. `times`: how
/// often each; after a tenth of that everything has its final size.
fn grows(times: Option<&str>) {
    const SIZES: [usize; 9] = [0, 1, 11, 12, 13, 2047, 2049, 16_385, 1 << 18];
    let times: usize = times.map_or(20, |text| text.parse().expect("how often"));
    let is_tcp = std::env::var("GRADWIRE_TRANSPORT").is_ok_and(|name| name == "tcp");
    run(if is_tcp { Over::Tcp } else { Over::Shm }, 2, |comm| {
        let other = 1 - comm.rank();
        let mut vectors = SIZES.map(|count| values(comm.rank(), count));
        let mut round = |round: usize| {
            for vector in &mut vectors {
                // As large as it was, whatever was summed up.
                let mut shared = |form: usize| match form {
                    0 => comm.all_reduce(vector, Max),
                    1 => {
                        let mut buffer = comm.allocate(vector.len())?;
                        buffer.copy_from_slice(vector);
                        let (buffer, result) = comm.start_all_reduce(buffer, Max).wait();
                        vector.copy_from_slice(&buffer);
                        result
                    }
                    2 => comm.scope(|scope| scope.all_reduce(vector, Max).wait().1)?,
                    // Dropped: it ends by itself.
                    3 => {
                        drop(comm.start_all_reduce(comm.allocate::<f32>(vector.len())?, Max));
                        comm.barrier()
                    }
                    4 => comm.send_receive(&vector.clone(), other, 1, vector, other, 1).map(drop),
                    _ => {
                        let outside = comm.broadcast(vector, 2);
                        assert!(matches!(outside, Err(Error::Misuse(_))));
                        Ok(())
                    }
                };
                (0..6).for_each(|form| shared((form + round) % 6).expect("a call"));
            }
        };
        (0..times.div_ceil(10)).for_each(&mut round);
        comm.barrier().expect("both are there");
        let before = Held::now();
        (0..times).for_each(&mut round);
        comm.barrier().expect("both are there");
        Held::now().assert_close_to(&before, "rounds of calls");
        comm.barrier().expect("both are there");
    });
}

#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    mappings: usize,
    /// Bytes of memory in use.
    resident: usize,
}

impl Held {
    fn now() -> Self {
        let entries = |path| std::fs::read_dir(path).map_or(0, Iterator::count);
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings of a process");
        let pages = std::fs::read_to_string("/proc/self/statm").expect("the memory of a process");
        let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
        Self {
            resident: pages.expect("pages that are in memory") * rustix::param::page_size(),
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            mappings: maps.lines().count(),
        }
    }

    /// As many threads, and nearly as many descriptors and mappings: a pool or the allocator may take some more, but none
    /// for each of the many jobs or calls.
    fn assert_close_to(&self, before: &Self, what: &str) {
        let grown = format!("after {what}: {self:?}, before: {before:?}");
        assert_eq!(self.threads, before.threads, "{grown}");
        assert!(self.descriptors <= before.descriptors + 4, "{grown}");
        assert!(self.mappings <= before.mappings + 12, "{grown}");
        assert!(self.resident <= before.resident + (8 << 20), "{grown}");
    }
}

/// The line to the test.
struct Reports {
    rank: usize,
    stream: BufReader<UnixStream>,
}

impl Reports {
    fn new(rank: usize) -> Self {
        let path = std::env::var_os("RANK_REPORTS").expect("RANK_REPORTS names a socket");
        let stream = UnixStream::connect(path).expect("the test listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        Self { rank, stream: BufReader::new(stream) }
    }

    fn say(&mut self, event: fmt::Arguments<'_>) {
        let line = format!("{} {event}\n", self.rank);
        self.stream.get_mut().write_all(line.as_bytes()).expect("the test reads");
    }

    /// Whether there was one before the test hung up.
    fn await_line(&mut self) -> bool {
        self.stream.read_line(&mut String::new()).is_ok_and(|len| len > 0)
    }
}
