use gradwire::{Communicator, Sum};

fn early(comm: &Communicator) -> gradwire::Result<()> {
    comm.scope(|scope| {
        let mut values = vec![1.0_f32; 10];
        let _ = scope.all_reduce(&mut values, Sum);
    })
}

fn main() {}
