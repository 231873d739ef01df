//! Two ranks that call different things, and find out.

use gradwire::{Error, Sum};

fn main() -> gradwire::Result<()> {
    let comm = gradwire::init()?;
    // ANCHOR: disagree
    let mut values = vec![1.0_f32; 1000 + comm.rank()]; // A mistake: every rank has another length.
    match comm.all_reduce(&mut values, Sum) {
        Err(error @ Error::Mismatch { .. }) => println!("rank {}: {error}", comm.rank()),
        other => return other,
    }
    comm.all_reduce(&mut values[..1000], Sum)?; // Nothing was touched, and the communicator goes on.
    println!("rank {}: {} each", comm.rank(), values[0]);
    // ANCHOR_END: disagree
    Ok(())
}
