//! Derived types in collectives: what arrives is what was sent, and what is no value is refused.

use gradwire::{Communicator, Equivalence, Error, InvalidValue, Laws, Operation, Rank};
use gradwire_tests::ranks::{Over, run};

#[derive(Equivalence, Clone, Copy, PartialEq, Debug, Default)]
#[repr(u16)]
enum State {
    #[default]
    Idle = 3,
    Busy = 700,
}

/// With padding, and with bytes that are not all values.
#[derive(Equivalence, Clone, Copy, PartialEq, Debug, Default)]
struct Report<T: Equivalence, const N: usize>
where
    [T; N]: Default,
{
    letter: char,
    state: State,
    loads: [T; N],
    place: (u8, f64),
    finished: bool,
}

type Usual = Report<f32, 3>;

/// Says that it is a [`Usual`], and is any bytes.
#[derive(Clone, Copy, Default)]
struct Forged([u8; Usual::PACKED_SIZE]);

impl Equivalence for Forged {
    const PACKED_SIZE: usize = Usual::PACKED_SIZE;
    const FINGERPRINT: u64 = Usual::FINGERPRINT;

    fn pack(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }

    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
        let invalid = InvalidValue { type_name: "Forged", offset: bytes.len() };
        bytes.try_into().map(Self).map_err(|_| invalid)
    }
}

impl Forged {
    /// A value whose state is none.
    fn of(value: Usual) -> Self {
        let mut bytes = [0; Usual::PACKED_SIZE];
        value.pack(&mut bytes);
        bytes[4..6].copy_from_slice(&4_u16.to_le_bytes());
        Self(bytes)
    }
}

const INVALID: InvalidValue = InvalidValue { type_name: "State", offset: 4 };

fn value(rank: Rank, index: usize) -> Usual {
    Report {
        letter: char::from(b'a' + (rank * 5 + index) as u8 % 26),
        state: if (rank + index).is_multiple_of(2) { State::Idle } else { State::Busy },
        loads: [rank as f32, index as f32, -0.5],
        place: (rank as u8, index as f64),
        finished: index.is_multiple_of(3),
    }
}

fn values(rank: Rank, count: usize) -> Vec<Usual> {
    (0..count).map(|index| value(rank, index)).collect()
}

/// Small ones travel otherwise than long ones.
const COUNTS: [usize; 3] = [1, 40, 20_000];

fn arrive(over: Over) {
    run(over, 3, |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        for count in COUNTS {
            let mut mine = values(rank, count);
            comm.broadcast(&mut mine, 1).unwrap();
            assert_eq!(mine, values(1, count));
            let mut all = vec![Usual::default(); count * size];
            comm.all_gather_into(&values(rank, count), &mut all).unwrap();
            assert_eq!(all, (0..size).flat_map(|rank| values(rank, count)).collect::<Vec<_>>());
        }
    });
}

/// Rank 2 sends something else than it says.
fn forged(comm: &Communicator, count: usize) -> Vec<Forged> {
    let mut forged: Vec<_> = values(comm.rank(), count)
        .into_iter()
        .map(|value| {
            let mut bytes = [0; Usual::PACKED_SIZE];
            value.pack(&mut bytes);
            Forged(bytes)
        })
        .collect();
    let last = count - 1;
    forged[last] = Forged::of(value(comm.rank(), last));
    forged
}

fn refused(over: Over) {
    run(over, 3, |comm| {
        let rank = comm.rank();
        for count in COUNTS {
            if rank == 2 {
                comm.broadcast(&mut forged(&comm, count), 2).unwrap();
                let mut all = vec![Forged::of(Usual::default()); 3 * count];
                comm.all_gather_into(&forged(&comm, count), &mut all).unwrap();
                comm.all_reduce(&mut forged(&comm, count), later::<Forged>()).unwrap();
                comm.send(&forged(&comm, count), 0, 9).unwrap();
                comm.gather_into(&forged(&comm, count), &mut [], 0).unwrap();
                comm.reduce(&mut forged(&comm, count), 0, later::<Forged>()).unwrap();
                let mut lent = forged(&comm, count);
                comm.scope(|scope| scope.broadcast(&mut lent, 2).wait().1).unwrap().unwrap();
                comm.all_reduce(&mut values(rank, count), later::<Usual>()).unwrap();
                continue;
            }
            let before = values(rank, count);
            let mut mine = before.clone();
            is_refused(comm.broadcast(&mut mine, 2), count - 1);
            assert_eq!(mine, before);
            let mut all = [values(8, count), values(9, count), values(rank, count)].concat();
            let before = all.clone();
            is_refused(comm.all_gather_into(&mine, &mut all), 3 * count - 1);
            assert_eq!(all, before);
            is_refused(comm.all_reduce(&mut mine, later::<Usual>()), count - 1);
            assert_eq!(mine, values(rank, count));
            if rank == 0 {
                is_refused(comm.recv(&mut mine, 2, 9), count - 1);
                assert_eq!(mine, values(rank, count));
            }
            let mut gathered = if rank == 0 { before.clone() } else { Vec::new() };
            let results = [
                comm.gather_into(&mine, &mut gathered, 0),
                comm.reduce(&mut mine, 0, later::<Usual>()),
                comm.scope(|scope| scope.broadcast(&mut mine, 2).wait().1).unwrap(),
            ];
            for (result, at) in results.into_iter().zip([3 * count - 1, count - 1, count - 1]) {
                // Only the root gets what is gathered and reduced; all get what is broadcast.
                if rank == 0 || result.is_err() {
                    is_refused(result, at);
                }
            }
            assert_eq!((mine, gathered), (values(rank, count), if rank == 0 { before } else { Vec::new() }));
            let mut mine = values(rank, count);
            // The communicator goes on.
            comm.all_reduce(&mut mine, later::<Usual>()).unwrap();
            assert_eq!(mine, values(2, count));
        }
    });
}

/// The later rank's value.
fn later<T: Equivalence>() -> Operation<impl Fn(&mut [T], &[T]) + Clone + Send + Sync + 'static> {
    Operation::new("later", Laws::none().associative(), |values: &mut [T], later: &[T]| {
        values.copy_from_slice(later);
    })
}

fn is_refused<R: std::fmt::Debug>(result: gradwire::Result<R>, at: usize) {
    match result {
        Err(Error::InvalidValue { index, invalid }) => assert_eq!((index, invalid), (at, INVALID)),
        other => panic!("{other:?}"),
    }
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug, Default)]
struct Nothing;

/// Values of no bytes are a mistake that is told, on every rank.
fn nothing(over: Over) {
    run(over, 3, |comm| {
        for count in [1, 5000] {
            let mut all = vec![Nothing; count];
            let told = [
                comm.broadcast(&mut all, 1),
                comm.all_reduce(&mut all, later::<Nothing>()),
                comm.all_gather_into(&all, &mut vec![Nothing; 3 * count]),
            ];
            for result in told {
                assert!(matches!(result, Err(Error::Misuse(_))), "{result:?}");
            }
        }
        comm.barrier().unwrap();
    });
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name {
            use gradwire_tests::ranks::Over::$over;

            #[test]
            fn values_arrive() { super::arrive($over); }
            #[test]
            fn nothing_is_refused() { super::nothing($over); }
            #[test]
            fn what_is_no_value_is_refused() { super::refused($over); }
        }
    )*};
}

over! {
    sim: Sim,
    shm: Shm,
    tcp: Tcp,
}
