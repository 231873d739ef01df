//! The one matrix product that everything here is made of. Matrices are slices, row after row.

use rayon::prelude::*;

/// Rows of the result that one thread computes together, so that each row of `b` is read once for all of them.
const ROWS: usize = 16;

/// `result = a · b`, on the threads of the current pool.
///
/// `a(row, inner)` is an element of the left factor, which so may be transposed; `b` has as many columns as `result`, and
/// `result` has `rows` rows. The sums are taken in the same order whatever the number of threads.
pub fn multiply(result: &mut [f32], rows: usize, a: impl Fn(usize, usize) -> f32 + Sync, b: &[f32]) {
    let columns = result.len() / rows.max(1);
    if columns == 0 {
        return;
    }
    result.par_chunks_mut(ROWS * columns).enumerate().for_each(|(chunk, result)| {
        result.fill(0.0);
        for (inner, b) in (0..).step_by(4).zip(b.chunks(4 * columns)) {
            for (row, result) in (chunk * ROWS..).zip(result.chunks_exact_mut(columns)) {
                add_products(result, b, |index| a(row, inner + index));
            }
        }
    });
}

/// Adds up to four rows of `b`, each times its factor.
fn add_products(result: &mut [f32], b: &[f32], factor: impl Fn(usize) -> f32) {
    let columns = result.len();
    if b.len() == 4 * columns {
        // Four at once: the result is loaded and stored once for all of them.
        let (f0, f1, f2, f3) = (factor(0), factor(1), factor(2), factor(3));
        let (b01, b23) = b.split_at(2 * columns);
        let ((b0, b1), (b2, b3)) = (b01.split_at(columns), b23.split_at(columns));
        for ((((sum, x0), x1), x2), x3) in result.iter_mut().zip(b0).zip(b1).zip(b2).zip(b3) {
            *sum += f0 * x0 + f1 * x1 + (f2 * x2 + f3 * x3);
        }
    } else {
        for (index, b) in b.chunks_exact(columns).enumerate() {
            let factor = factor(index);
            result.iter_mut().zip(b).for_each(|(sum, x)| *sum += factor * x);
        }
    }
}

/// The transposed of a matrix with this many columns.
#[must_use]
pub fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
    let rows = matrix.len() / columns.max(1);
    (0..columns).flat_map(|column| (0..rows).map(move |row| matrix[row * columns + column])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_every_shape_are_those_of_the_definition() {
        for (rows, inner, columns) in [(1, 1, 1), (3, 5, 2), (17, 4, 9), (33, 7, 10), (2, 64, 3)] {
            // Small integers: every order of summation gives the same bits.
            let a: Vec<f32> = (0..rows * inner).map(|index| (index % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..inner * columns).map(|index| (index % 5) as f32 - 1.0).collect();
            let mut result = vec![f32::NAN; rows * columns];
            multiply(&mut result, rows, |row, index| a[row * inner + index], &b);
            for (place, value) in result.iter().enumerate() {
                let (row, column) = (place / columns, place % columns);
                let expected: f32 =
                    (0..inner).map(|index| a[row * inner + index] * b[index * columns + column]).sum();
                assert_eq!(*value, expected, "{rows}x{inner} times {inner}x{columns} at {row},{column}");
            }
        }
    }

    #[test]
    fn transposing_exchanges_rows_and_columns() {
        assert_eq!(transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }
}
