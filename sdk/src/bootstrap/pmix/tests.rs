use super::library::{BYTES, Functions, Info, Process, Value};
use super::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Barrier, Mutex};

const PLENTY: Duration = Duration::from_secs(60);
const RANKS: usize = 3;

/// What the library of each rank, which is a thread, knows about itself.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    Sound,
    Refuses,
    GivesNull,
    GivesAnotherKind,
    GivesAHugeLength,
    GivesNoMark,
}

thread_local! {
    static RANK: Cell<u32> = const { Cell::new(0) };
    static HABIT: Cell<Habit> = const { Cell::new(Habit::Sound) };
}

static VALUES: Mutex<BTreeMap<(u32, String), Vec<u8>>> = Mutex::new(BTreeMap::new());
static FENCE: Barrier = Barrier::new(RANKS);

unsafe extern "C" fn init(process: *mut Process, _: *mut Info, _: usize) -> c_int {
    // SAFETY: the caller passes a process of its own.
    let process = unsafe { &mut *process };
    process.space[..4].copy_from_slice(b"job\0");
    process.rank = RANK.get();
    if HABIT.get() == Habit::Refuses { -25 } else { 0 }
}

unsafe extern "C" fn put(_: u8, key: *const c_char, value: *mut Value) -> c_int {
    // SAFETY: the caller passes a C string.
    let key = unsafe { CStr::from_ptr(key) }.to_str().unwrap().to_owned();
    // SAFETY: the caller passes a value of its own.
    let Value { kind, bytes, len, .. } = unsafe { &*value };
    assert_eq!(*kind, BYTES);
    // SAFETY: a byte object is an address and a length.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), *len) };
    let before = VALUES.lock().unwrap().insert((RANK.get(), key), bytes.to_vec());
    assert_eq!(before, None, "put twice");
    0
}

unsafe extern "C" fn commit() -> c_int {
    0
}

unsafe extern "C" fn fence(_: *const Process, _: usize, info: *const Info, count: usize) -> c_int {
    assert_eq!(count, 1);
    // SAFETY: the caller passes one directive.
    let info = unsafe { &*info };
    assert!(info.key.starts_with(b"pmix.collect\0") && info.value.bytes.addr() as u8 == 1);
    if HABIT.get() == Habit::Sound {
        FENCE.wait();
    }
    0
}

unsafe extern "C" fn get(
    process: *const Process,
    key: *const c_char,
    _: *const Info,
    _: usize,
    value: *mut *mut Value,
) -> c_int {
    // SAFETY: the caller passes a C string.
    let key = unsafe { CStr::from_ptr(key) }.to_str().unwrap().to_owned();
    // SAFETY: the caller passes a process of its own.
    let process = unsafe { &*process };
    assert!(process.space.starts_with(b"job\0"));
    let mut bytes = VALUES.lock().unwrap().get(&(process.rank, key)).cloned().unwrap_or_default();
    let (mut kind, mut length) = (BYTES, None);
    match HABIT.get() {
        Habit::GivesNull => return 0,
        Habit::GivesAnotherKind => kind = 3,
        Habit::GivesAHugeLength => length = Some(usize::MAX),
        Habit::GivesNoMark => bytes = b"x".to_vec(),
        Habit::Sound | Habit::Refuses => {}
    }
    let len = length.unwrap_or(bytes.len());
    let bytes = bytes.leak().as_mut_ptr().cast();
    // SAFETY: the caller passes the place for a pointer.
    unsafe { *value = Box::leak(Box::new(Value { kind, bytes, len, rest: 0 })) };
    0
}

unsafe extern "C" fn finalize(_: *const Info, _: usize) -> c_int {
    0
}

/// What is given is leaked.
unsafe extern "C" fn free(_: *mut c_void) {}

const FAKE: Functions = Functions { init, put, commit, fence, get, finalize, free };

fn pmix(rank: Rank, size: usize, said: u32, habit: Habit) -> Pmix {
    let open = move || {
        RANK.set(said);
        HABIT.set(habit);
        Session::open(FAKE)
    };
    Pmix::new(open, rank, size, None).unwrap()
}

#[test]
fn ranks_exchange_contributions_of_any_length() {
    std::thread::scope(|scope| {
        for rank in 0..RANKS {
            scope.spawn(move || {
                let mut pmix = pmix(rank, RANKS, rank as u32, Habit::Sound);
                for round in 0..3 {
                    let bytes = |rank| vec![rank as u8; 10_000 * rank * round + round];
                    let all = pmix.all_gather(&bytes(rank), Instant::now() + PLENTY).unwrap();
                    assert_eq!(all, [0, 1, 2].map(bytes));
                }
            });
        }
    });
}

#[track_caller]
fn reason(said: u32, habit: Habit) -> String {
    let error = pmix(7, 8, said, habit).all_gather(b"abc", Instant::now() + PLENTY).unwrap_err();
    let reason = error.to_string();
    assert!(reason.contains("GRADWIRE_PMIX") && reason.contains("GRADWIRE_ADDRESS=HOST:PORT"), "{reason}");
    // Each test has a job of its own.
    VALUES.lock().unwrap().retain(|(rank, _), _| *rank != said);
    reason
}

#[test]
fn a_library_that_misbehaves_is_an_error_with_the_remedy() {
    assert!(reason(7, Habit::Refuses).contains("PMIx_Init failed with status -25"));
    assert!(reason(9, Habit::GivesNull).contains("this is rank 9, the environment 7"));
    assert!(reason(7, Habit::GivesNull).contains("PMIx_Get gave nothing, for rank 0"));
    for habit in [Habit::GivesAnotherKind, Habit::GivesAHugeLength, Habit::GivesNoMark] {
        assert!(reason(7, habit).contains("rank 0 has put something"));
    }
}

#[test]
fn a_library_that_does_not_come_back_is_an_error_in_time() {
    let (hold, held) = channel::<()>();
    let open = move || {
        let _ = held.recv();
        Err("released".to_owned())
    };
    let mut pmix = Pmix::new(open, 0, 2, None).unwrap();
    let error = pmix.all_gather(b"", Instant::now() + Duration::from_millis(50)).unwrap_err().to_string();
    assert!(error.contains("did not answer in time"), "{error}");
    drop(hold);
    let error = pmix.all_gather(b"", Instant::now() + PLENTY).unwrap_err().to_string();
    assert!(error.contains("released"), "{error}");
}
