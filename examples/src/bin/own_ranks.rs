//! A program that starts its own ranks: `cargo run --bin own_ranks`.

use gradwire::launch::{Launcher, is_launched};
use gradwire::{Result, Sum};

// ANCHOR: main
fn main() -> Result<()> {
    if !is_launched()? {
        let report = Launcher::this_program()?.ranks(2).run()?;
        println!("{report}");
        std::process::exit(report.exit_code());
    }
    let comm = gradwire::init()?;
    let mut values = [1.0_f32, 10.0].map(|value| value * (comm.rank() + 1) as f32);
    comm.all_reduce(&mut values, Sum)?;
    println!("rank {} of {} has {values:?}", comm.rank(), comm.size());
    Ok(())
}
// ANCHOR_END: main
