//! What `#[derive(Gradient)]` makes of a struct, without any communication.

use gradwire::gradient::StaticReduction;
use gradwire::{Element, Equivalence, Gradient, OperationId, Properties, Reduction};
use std::error::Error;
use std::io::{IoSlice, Write};

// ANCHOR: model
#[derive(Gradient)]
#[gradient(reduce = Average)]
struct Mlp<const HIDDEN: usize> {
    w1: Box<[[f32; HIDDEN]]>,
    b1: [f32; HIDDEN],
    #[gradient(wire = bf16)]
    w2: Vec<f32>,
    #[gradient(reduce = Max)]
    grad_norm: f32,
    #[gradient(reduce = Sum)]
    samples: u64,
    head: Head,
    #[gradient(skip)]
    step: usize,
}

#[derive(Gradient)]
struct Head {
    #[gradient(rename = "head.weight")]
    weight: Vec<f32>,
    #[gradient(reduce = crate::Latest)]
    learning_rate: f32,
}
// ANCHOR_END: model

// ANCHOR: operation
/// The contribution of the last rank.
#[derive(Clone, Copy, Debug)]
struct Latest;

impl StaticReduction for Latest {
    const ID: OperationId = OperationId::of_name("latest");
    const NAME: &'static str = "latest";
}

impl<T: Element> Reduction<T> for Latest {
    type Accumulator = T;

    fn properties(&self) -> Properties {
        Properties { id: Self::ID, name: Self::NAME, commutative: false, associative: true }
    }

    fn lift(&self, source: &[T], accumulators: &mut [T]) {
        accumulators.copy_from_slice(source);
    }

    fn combine(&self, accumulators: &mut [T], source: &[T]) {
        accumulators.copy_from_slice(source);
    }

    fn merge(&self, accumulators: &mut [T], other: &[T]) {
        accumulators.copy_from_slice(other);
    }

    fn finish(&self, accumulators: &[T], _contributions: u64, destination: &mut [T]) {
        destination.copy_from_slice(accumulators);
    }
}
// ANCHOR_END: operation

// ANCHOR: equivalence
#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Sample {
    label: u8,
    weight: f64,
    valid: bool,
}
// ANCHOR_END: equivalence

fn main() -> Result<(), Box<dyn Error>> {
    let mut mlp = model(1.0);

    println!("{:?}", Mlp::<4>::LAYOUT.fields[0]);
    println!("{}", Mlp::<4>::schema());

    let sent = send(&mlp)?;

    // ANCHOR: view
    // A buffer of `u64`, because a gradient starts at a multiple of 8 bytes in memory.
    let mut memory = vec![0_u64; sent.len().div_ceil(8)];
    let bytes = u64::as_bytes_mut(&mut memory).ok_or("a u64 is its bytes")?;
    bytes[..sent.len()].copy_from_slice(&sent);

    let seen = Mlp::<4>::view(&bytes[..sent.len()])?;
    assert_eq!(seen.w1, &*mlp.w1);
    assert_eq!(seen.head.weight[0], 1.0);
    assert_eq!(*seen.samples, 32);
    // ANCHOR_END: view

    // ANCHOR: damaged
    bytes[64] ^= 1;
    let error = Mlp::<4>::view(&bytes[..sent.len()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the header or the lengths were damaged on the way: their check does not fit"
    );
    // ANCHOR_END: damaged
    bytes[64] ^= 1;

    // ANCHOR: reduce
    mlp = model(3.0);
    mlp.reduce_from(&bytes[..sent.len()])?;
    assert_eq!(mlp.b1, [2.0; 4]); // average
    assert_eq!(mlp.grad_norm, 3.0); // max
    assert_eq!(mlp.samples, 64); // sum
    assert_eq!(mlp.head.learning_rate, 1.0); // latest
    assert_eq!(mlp.step, 3); // skipped
    // ANCHOR_END: reduce

    // ANCHOR: pack
    let sample = Sample { label: 3, weight: 0.5, valid: true };
    let mut packed = [0; Sample::PACKED_SIZE];
    sample.pack(&mut packed);
    assert_eq!(Sample::PACKED_SIZE, 1 + 8 + 1);
    assert_eq!(Sample::unpack(&packed), Ok(sample));
    packed[9] = 7;
    assert!(Sample::unpack(&packed).is_err()); // no bool is 7
    // ANCHOR_END: pack
    println!("all as it should be");
    Ok(())
}

fn model(value: f32) -> Mlp<4> {
    Mlp {
        w1: vec![[value; 4]; 2].into(),
        b1: [value; 4],
        w2: vec![value; 10],
        grad_norm: value,
        samples: 32,
        head: Head { weight: vec![value], learning_rate: value },
        step: value as usize,
    }
}

// ANCHOR: send
fn send(mlp: &Mlp<4>) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut prefix = [0; Mlp::<4>::PREFIX_SIZE];
    let mut parts = [IoSlice::new(&[]); Mlp::<4>::MAX_PARTS];
    let mut parts = mlp.encode(&mut prefix, &mut parts)?;

    let mut socket = Vec::new(); // or anything else that writes
    while !parts.is_empty() {
        let written = socket.write_vectored(parts)?;
        IoSlice::advance_slices(&mut parts, written);
    }
    Ok(socket)
}
// ANCHOR_END: send

#[test]
fn runs() -> Result<(), Box<dyn Error>> {
    main()
}
