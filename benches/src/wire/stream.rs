//! End to end: a vectored write into a socket, a read straight into a region, a view.
//!
//! One thread plays both sides of a TCP connection over loopback, in turn, so that each side's time can be told apart.
//! `bytes_copied` is what the kernel moved: the bytes that the writes took and that the reads returned.

use super::layer::{Layer, PAYLOAD, Region, received};
use super::measure::{Cost, Table, median};
use crate::counting;
use gradwire::Gradient;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const ROUNDS: usize = 201;

/// What one message cost.
#[derive(Default)]
struct Trip {
    writing: Duration,
    reading: Duration,
    copied: usize,
}

pub(super) fn row(table: &mut Table, layer: &Layer) -> io::Result<()> {
    let (mut writer, mut reader) = connected()?;
    let mut region = Region::new(received(layer).bytes().len());
    // The first rounds grow the socket's buffers.
    for _ in 0..20 {
        send(layer, &mut writer, &mut reader, &mut region)?;
    }
    let (mut writing, mut reading) = (Vec::new(), Vec::new());
    let (trip, allocations) = counting::count(|| send(layer, &mut writer, &mut reader, &mut region));
    let copied = trip?.copied;
    for _ in 0..ROUNDS {
        let trip = send(layer, &mut writer, &mut reader, &mut region)?;
        writing.push(trip.writing.as_secs_f64() * 1e9);
        reading.push(trip.reading.as_secs_f64() * 1e9);
    }
    let encode = Cost { nanoseconds: median(&mut writing), allocations };
    let decode = Cost { nanoseconds: median(&mut reading), allocations: 0 };
    table.row("gradwire", "writev -> region over TCP; kernel copies", PAYLOAD, encode, decode, copied);
    Ok(())
}

/// Both ends of a connection, neither of which blocks.
fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    let (reader, _) = listener.accept()?;
    writer.set_nodelay(true)?;
    writer.set_nonblocking(true)?;
    reader.set_nonblocking(true)?;
    Ok((writer, reader))
}

fn send(
    layer: &Layer,
    writer: &mut TcpStream,
    reader: &mut TcpStream,
    region: &mut Region,
) -> io::Result<Trip> {
    let mut trip = Trip::default();
    let start = Instant::now();
    let mut prefix = [0; Layer::PREFIX_SIZE];
    let mut parts = [IoSlice::new(&[]); Layer::MAX_PARTS];
    let mut parts = layer.encode(&mut prefix, &mut parts).map_err(io::Error::other)?;
    trip.writing += start.elapsed();
    let mut filled = 0;
    while filled < region.bytes().len() {
        let start = Instant::now();
        while !parts.is_empty() {
            let Some(written) = unless_blocked(writer.write_vectored(parts))? else { break };
            IoSlice::advance_slices(&mut parts, written);
            trip.copied += written;
        }
        let turn = Instant::now();
        trip.writing += turn - start;
        while let Some(rest @ [_, ..]) = region.bytes_mut().get_mut(filled..) {
            let Some(read) = unless_blocked(reader.read(rest))? else { break };
            filled += read;
            trip.copied += read;
        }
        trip.reading += turn.elapsed();
    }
    let start = Instant::now();
    let view = Layer::view(region.bytes()).map_err(io::Error::other)?;
    trip.reading += start.elapsed();
    assert_eq!(*view.samples, layer.samples);
    Ok(trip)
}

fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrives_with_two_copies_by_the_kernel() {
        let layer = Layer::new();
        let sent = received(&layer);
        let (mut writer, mut reader) = connected().unwrap();
        let mut region = Region::new(sent.bytes().len());
        let trip = send(&layer, &mut writer, &mut reader, &mut region).unwrap();
        assert!(region.bytes() == sent.bytes());
        assert_eq!(trip.copied, 2 * sent.bytes().len());
    }
}
