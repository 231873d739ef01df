//! Ranks on a grid, which is arithmetic and a split for each direction.

use super::everywhere;
use gradwire::Sum;

/// Two columns; rows go around, columns end. With an odd number of ranks the last one has no place.
struct Grid {
    rows: usize,
}

impl Grid {
    const COLUMNS: usize = 2;

    fn place(rank: usize) -> (usize, usize) {
        (rank / Self::COLUMNS, rank % Self::COLUMNS)
    }

    fn rank(row: usize, column: usize) -> usize {
        row * Self::COLUMNS + column
    }

    /// The ranks above and below, where there are any.
    fn column_neighbours(&self, rank: usize) -> impl Iterator<Item = usize> {
        let (row, column) = Self::place(rank);
        let rows = [row.checked_sub(1), (row + 1 < self.rows).then_some(row + 1)];
        rows.into_iter().flatten().map(move |row| Self::rank(row, column))
    }
}

#[test]
fn rows_and_columns_are_communicators() {
    everywhere(|world| {
        let grid = Grid { rows: world.size() / Grid::COLUMNS };
        let has_place = world.rank() < Grid::rank(grid.rows, 0);
        let comm = world.split(has_place.then_some(0), 0).unwrap();
        assert_eq!(comm.is_some(), has_place);
        let Some(comm) = comm else { return };
        let (row, column) = Grid::place(comm.rank());
        let in_row = comm.split(Some(row as u32), 0).unwrap().unwrap();
        let in_column = comm.split(Some(column as u32), 0).unwrap().unwrap();
        assert_eq!((in_row.rank(), in_row.size()), (column, Grid::COLUMNS));
        assert_eq!((in_column.rank(), in_column.size()), (row, grid.rows));
        let mut sum = [comm.rank() as u64];
        in_row.all_reduce(&mut sum, Sum).unwrap();
        assert_eq!(sum, [(2 * Grid::rank(row, 0) + 1) as u64]);
        // Along the row, around its end.
        let next = Grid::rank(row, (column + 1) % Grid::COLUMNS);
        let mut place = [comm.rank() as u64];
        comm.send_receive_replace(&mut place, next, 0, next, 0).unwrap();
        assert_eq!(place, [next as u64]);
    });
}

#[test]
fn neighbours_on_a_grid_exchange_their_edges() {
    everywhere(|comm| {
        let grid = Grid { rows: comm.size() / Grid::COLUMNS };
        let has_place = comm.rank() < Grid::rank(grid.rows, 0);
        let neighbours: Vec<usize> = grid.column_neighbours(comm.rank()).filter(|_| has_place).collect();
        let edge = |from: usize, to: usize| [from as f32, to as f32, (from * to) as f32];
        let edges: Vec<_> = neighbours.iter().map(|to| edge(comm.rank(), *to)).collect();
        let sent: Vec<_> = neighbours.iter().copied().zip(edges.iter().map(|edge| &edge[..])).collect();
        let mut halo = vec![[-1.0; 3]; neighbours.len()];
        let mut received: Vec<_> =
            neighbours.iter().copied().zip(halo.iter_mut().map(|edge| &mut edge[..])).collect();
        comm.neighbour_exchange(&sent, &mut received).unwrap();
        assert!(neighbours.iter().zip(&halo).all(|(from, found)| *found == edge(*from, comm.rank())));
    });
}
