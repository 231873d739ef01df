//! Structured types, with nothing to declare but a derive.

use super::everywhere;
use gradwire::{Equivalence, Laws, Operation};

/// What would be displacements and block lengths.
#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Particle {
    kind: Kind,
    charged: bool,
    position: [f64; 3],
    spin: (i8, f32),
    label: [char; 4],
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
#[repr(u8)]
enum Kind {
    Electron = 1,
    Proton = 7,
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Cell<const N: usize> {
    particles: [Particle; N],
    used: u32,
}

const EMPTY: Cell<3> = Cell {
    particles: [Particle {
        kind: Kind::Electron,
        charged: false,
        position: [0.0; 3],
        spin: (0, 0.0),
        label: ['\0'; 4],
    }; 3],
    used: 0,
};

fn cell(seed: usize) -> Cell<3> {
    let particle = |index: usize| Particle {
        kind: if (seed + index).is_multiple_of(2) { Kind::Proton } else { Kind::Electron },
        charged: index == 1,
        position: [seed as f64, index as f64, 0.5],
        spin: (-(index as i8), 1.5),
        label: ['p', 'ä', char::from(b'0' + seed as u8), '\0'],
    };
    Cell { particles: std::array::from_fn(particle), used: seed as u32 }
}

#[test]
fn a_structure_is_broadcast() {
    everywhere(|comm| {
        let root = comm.size() - 1;
        let mut cells = if comm.rank() == root { [cell(1), cell(2)] } else { [EMPTY; 2] };
        comm.broadcast(&mut cells, root).unwrap();
        assert_eq!(cells, [cell(1), cell(2)]);
    });
}

#[test]
fn structures_and_flags_are_gathered() {
    everywhere(|comm| {
        let size = comm.size();
        let mut cells = vec![EMPTY; size];
        comm.all_gather_into(&[cell(comm.rank())], &mut cells).unwrap();
        assert_eq!(cells, (0..size).map(cell).collect::<Vec<_>>());
        let mut flags = vec![false; 2 * size];
        comm.all_gather_into(&[comm.rank().is_multiple_of(2), true], &mut flags).unwrap();
        assert!((0..size).all(|rank| flags[2 * rank..][..2] == [rank.is_multiple_of(2), true]));
    });
}

/// A column of a matrix, which in memory has gaps, is an iterator and a vector.
#[test]
fn a_column_is_sent_as_a_vector() {
    everywhere(|comm| {
        if comm.rank() == 0 {
            let matrix: [[u16; 4]; 3] =
                std::array::from_fn(|row| std::array::from_fn(|column| (10 * row + column) as u16));
            let column: Vec<u16> = matrix.iter().map(|row| row[2]).collect();
            comm.send(&column, 1, 0).unwrap();
        } else if comm.rank() == 1 {
            let mut column = [0; 3];
            comm.recv(&mut column, 0, 0).unwrap();
            assert_eq!(column, [2_u16, 12, 22]);
        }
    });
}

/// Which parts of a vector go where: two of every three elements, and the third stays.
#[test]
fn parts_of_a_vector_go_around_a_ring() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let own = |rank: usize| (1..=9).map(|index| (rank * index) as i32).collect::<Vec<_>>();
        let pairs =
            |values: &[i32]| values.chunks(3).flat_map(|three| [three[0], three[1]]).collect::<Vec<_>>();
        let mut received = [0; 6];
        comm.send_receive(&pairs(&own(rank)), next, 0, &mut received, previous, 0).unwrap();
        let mut values = [-1; 9];
        for (three, pair) in values.chunks_mut(3).zip(received.chunks(2)) {
            three[..2].copy_from_slice(pair);
        }
        assert_eq!(pairs(&values), pairs(&own(previous)));
        assert!(values.chunks(3).all(|three| three[2] == -1));
    });
}

#[derive(Equivalence, Clone, Copy, Default, PartialEq, Debug)]
struct Complex {
    re: f64,
    im: f64,
}

#[test]
fn complex_numbers_are_broadcast_and_multiplied() {
    let times = Operation::new(
        "complex product",
        Laws::none().associative(),
        |left: &mut [Complex], right: &[Complex]| {
            for (a, b) in left.iter_mut().zip(right) {
                *a = Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re };
            }
        },
    );
    everywhere(|comm| {
        let numbers = [1.0, 2.0, 3.0].map(|re| Complex { re, im: re + 1.0 });
        let mut values = if comm.rank() == 0 { numbers } else { [Complex { re: 0.0, im: 0.0 }; 3] };
        comm.broadcast(&mut values, 0).unwrap();
        assert_eq!(values, numbers);
        // (1 + 2i) (2 + 2i) (3 + 2i) ..., in whole numbers.
        let mut product = [Complex { re: comm.rank() as f64 + 1.0, im: 2.0 }];
        comm.all_reduce(&mut product, times.clone()).unwrap();
        let (re, im) =
            (1..=comm.size() as i32).fold((1, 0), |(re, im), next| (re * next - 2 * im, 2 * re + im * next));
        assert_eq!(product, [Complex { re: re.into(), im: im.into() }]);
    });
}

/// As bytes, of whose layout nothing but the type must be known.
#[test]
fn values_are_packed_sent_as_bytes_and_unpacked() {
    everywhere(|comm| {
        let root = comm.size() - 1;
        let mut bytes = [0; <Cell<3> as Equivalence>::PACKED_SIZE];
        if comm.rank() == root {
            cell(4).pack(&mut bytes);
        }
        comm.broadcast(&mut bytes, root).unwrap();
        assert_eq!(Cell::<3>::unpack(&bytes).unwrap(), cell(4));
        // What no value has is refused: the kind of the first particle.
        bytes[0] = 2;
        assert!(Cell::<3>::unpack(&bytes).is_err());
    });
}
