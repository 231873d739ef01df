//! Structured types, with nothing to declare but a derive.

use super::everywhere;
use gradwire::Equivalence;

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
