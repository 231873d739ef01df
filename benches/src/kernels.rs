//! The speed of reduce kernels and conversions on one core, beside memcpy and a plain `a += b`.
//!
//! A rate counts the bytes that a kernel touches: those of all sources and of all destinations, a destination that is
//! also a source twice.

use gradwire_schema::operation::{Average, Max, Min, Product, ReproducibleSum, Sum, WideSum};
use gradwire_schema::{ConvertTo, Element, F8E4m3, F8E5m2, Float, Reduction};
use half::{bf16, f16};
use std::hint::black_box;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Bytes of one source.
const SIZES: [usize; 4] = [16 << 10, 256 << 10, 4 << 20, 64 << 20];
/// How long one row is measured.
const BUDGET: Duration = Duration::from_millis(60);

/// Prints a row for each kernel and size.
///
/// # Errors
///
/// Those of writing to the standard output.
pub fn run(csv: bool) -> io::Result<()> {
    let mut table = Table::new(csv)?;
    for bytes in SIZES {
        controls(&mut table, bytes)?;
        floats(&mut table, bytes, 1.0_f32)?;
        floats(&mut table, bytes, 1.0_f64)?;
        floats(&mut table, bytes, bf16::ONE)?;
        floats(&mut table, bytes, f16::ONE)?;
        eight_bits(&mut table, bytes, F8E4m3::from_f32(1.0))?;
        eight_bits(&mut table, bytes, F8E5m2::from_f32(1.0))?;
        reduction(&mut table, bytes, 1.0_f32, WideSum, 2, 1)?;
        reduction(&mut table, bytes, 1.0_f32, WideSum, 4, 1)?;
        reduction(&mut table, bytes, bf16::ONE, WideSum, 4, 1)?;
        reduction(&mut table, bytes, 1_i32, Sum, 2, 1)?;
        reduction(&mut table, bytes, 1_i32, Min, 2, 1)?;
        reduction(&mut table, bytes, 1_i8, Sum, 2, 1)?;
        conversion(&mut table, bytes, bf16::ONE)?;
        conversion(&mut table, bytes, f16::ONE)?;
        conversion(&mut table, bytes, F8E4m3::from_f32(1.0))?;
        conversion(&mut table, bytes, F8E5m2::from_f32(1.0))?;
    }
    Ok(())
}

fn controls(table: &mut Table, bytes: usize) -> io::Result<()> {
    let mut left = vec![1.0_f32; bytes / 4];
    let right = vec![1.0_f32; bytes / 4];
    table.row("memcpy", "f32", "1>1", bytes, 2 * bytes, || {
        black_box(&mut left[..]).copy_from_slice(black_box(&right));
    })?;
    table.row("plain a += b", "f32", "2>1", bytes, 3 * bytes, || {
        for (left, right) in black_box(&mut left[..]).iter_mut().zip(black_box(&right[..])) {
            *left += right;
        }
    })
}

fn floats<T: Float>(table: &mut Table, bytes: usize, one: T) -> io::Result<()> {
    for (sources, destinations) in [(2, 1), (2, 2), (4, 1), (8, 8)] {
        reduction(table, bytes, one, Sum, sources, destinations)?;
        reduction(table, bytes, one, ReproducibleSum, sources, destinations)?;
    }
    reduction(table, bytes, one, Average, 2, 1)?;
    reduction(table, bytes, one, Product, 2, 1)?;
    reduction(table, bytes, one, Min, 2, 1)?;
    reduction(table, bytes, one, Max, 2, 1)
}

fn eight_bits<T: Float>(table: &mut Table, bytes: usize, one: T) -> io::Result<()> {
    reduction(table, bytes, one, Sum, 2, 1)?;
    reduction(table, bytes, one, Sum, 8, 8)?;
    reduction(table, bytes, one, Average, 2, 1)?;
    reduction(table, bytes, one, Product, 2, 1)?;
    reduction(table, bytes, one, Min, 2, 1)
}

/// Folds `sources` buffers into the first `destinations` of them.
fn reduction<T: Element, R: Reduction<T>>(
    table: &mut Table,
    bytes: usize,
    one: T,
    reduction: R,
    sources: usize,
    destinations: usize,
) -> io::Result<()> {
    let Some(kernel) = reduction.kernel() else { return Ok(()) };
    let count = bytes / size_of::<T>();
    let mut buffers = vec![vec![one; count]; sources];
    let destination_pointers: Vec<*mut u8> =
        buffers.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
    let source_pointers: Vec<*const u8> =
        destination_pointers.iter().map(|pointer| pointer.cast_const()).collect();
    let contributions = NonZeroU64::new(sources as u64);
    let touched = (sources + destinations) * bytes;
    let shape = format!("{sources}>{destinations}");
    table.row(reduction.properties().name, T::DATATYPE.name(), &shape, bytes, touched, || {
        // SAFETY: every pointer is a buffer of `count` elements, alive and borrowed by nobody; destinations are sources.
        unsafe { kernel.fold(&source_pointers, &destination_pointers[..destinations], count, contributions) };
    })
}

/// From f32 to `W` and back; `bytes` are those of the f32 side.
fn conversion<W: Element>(table: &mut Table, bytes: usize, one: W) -> io::Result<()>
where
    f32: ConvertTo<W>,
{
    let count = bytes / size_of::<f32>();
    let (mut memory, mut wire) = (vec![1.0_f32; count], vec![one; count]);
    let touched = bytes + count * size_of::<W>();
    table.row("to wire", W::DATATYPE.name(), "1>1", bytes, touched, || {
        f32::convert_to(black_box(&memory), black_box(&mut wire));
    })?;
    table.row("from wire", W::DATATYPE.name(), "1>1", bytes, touched, || {
        f32::convert_from(black_box(&wire), black_box(&mut memory));
    })
}

/// Prints rows as they are measured.
struct Table {
    csv: bool,
    output: io::Stdout,
}

impl Table {
    fn new(csv: bool) -> io::Result<Self> {
        let mut output = io::stdout();
        if csv {
            writeln!(output, "operation,datatype,sources>destinations,bytes,median_us,gigabytes_per_s")?;
        } else {
            let [operation, datatype, shape, bytes] = ["operation", "datatype", "in>out", "bytes"];
            let [micros, rate] = ["median us", "GB/s"];
            writeln!(output, "{operation:<16} {datatype:<8} {shape:>6} {bytes:>10} {micros:>12} {rate:>8}")?;
        }
        Ok(Self { csv, output })
    }

    fn row(
        &mut self,
        operation: &str,
        datatype: &str,
        shape: &str,
        bytes: usize,
        touched: usize,
        work: impl FnMut(),
    ) -> io::Result<()> {
        let seconds = median_seconds(work);
        let (micros, rate) = (seconds * 1e6, touched as f64 / seconds / 1e9);
        if self.csv {
            writeln!(self.output, "{operation},{datatype},{shape},{bytes},{micros:.3},{rate:.2}")
        } else {
            let output = &mut self.output;
            writeln!(
                output,
                "{operation:<16} {datatype:<8} {shape:>6} {bytes:>10} {micros:>12.2} {rate:>8.1}"
            )
        }
    }
}

/// The median time of one call, over batches long enough for the clock.
fn median_seconds(mut work: impl FnMut()) -> f64 {
    work();
    let once = seconds_of(1, &mut work);
    let batch = (20e-6 / once).ceil().max(1.0) as u32;
    let mut batches = Vec::new();
    let start = Instant::now();
    while batches.len() < 5 || start.elapsed() < BUDGET {
        batches.push(seconds_of(batch, &mut work) / f64::from(batch));
    }
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 2]
}

fn seconds_of(calls: u32, work: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        work();
    }
    start.elapsed().as_secs_f64()
}
