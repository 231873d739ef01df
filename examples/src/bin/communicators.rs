//! Communicators made of communicators: splits, groups, names, and one for each thread.

use gradwire::{
    Communicator, Determinism, Error, PartialSum, Reduction, ReproducibleAverage, ReproducibleSum, Sum,
};

fn main() -> gradwire::Result<()> {
    let comm = gradwire::init()?;
    rows_and_columns(&comm)?;
    hosts(&comm)?;
    groups(&comm)?;
    names(&comm)?;
    threads(&comm)?;
    reproducible(&comm)?;
    println!("rank {} of {} is done", comm.rank(), comm.size());
    Ok(())
}

// ANCHOR: split
/// Ranks as a grid of two columns: one communicator for each row, one for each column.
fn rows_and_columns(comm: &Communicator) -> gradwire::Result<()> {
    let (row, column) = (comm.rank() / 2, comm.rank() % 2);
    let in_row = comm.split(Some(row as u32), column as i64)?.expect("every rank has a row");
    let in_column = comm.split(Some(column as u32), row as i64)?.expect("every rank has a column");
    assert_eq!((in_row.rank(), in_column.rank()), (column, row));

    let mut sum = [row as u64];
    in_row.all_reduce(&mut sum, Sum)?;
    assert_eq!(sum, [(row * in_row.size()) as u64]);
    Ok(())
}
// ANCHOR_END: split

// ANCHOR: host
/// First within the host, then between one rank of each host.
fn hosts(comm: &Communicator) -> gradwire::Result<()> {
    let here = comm.split_by_host(0)?;
    let mut sum = [1_u64];
    here.reduce(&mut sum, 0, Sum)?;
    let leader = (here.rank() == 0).then_some(0);
    if let Some(leaders) = comm.split(leader, 0)? {
        leaders.all_reduce(&mut sum, Sum)?;
    }
    here.broadcast(&mut sum, 0)?;
    assert_eq!(sum, [comm.size() as u64]);
    Ok(())
}
// ANCHOR_END: host

// ANCHOR: group
/// The odd ranks, the last one first.
fn groups(comm: &Communicator) -> gradwire::Result<()> {
    let all = comm.group();
    let odd = all.include((1..all.size()).step_by(2).rev())?;
    let even = all.difference(&odd)?;
    assert_eq!(even.union(&odd)?.size(), comm.size());
    assert_eq!(odd.rank().is_some(), comm.rank() % 2 == 1);

    // All ranks call it; those outside of the group get none.
    let made = comm.create(&odd)?;
    assert_eq!(made.map(|made| made.rank()), odd.rank());

    // Only the members call it.
    if even.rank().is_some() {
        let made = comm.create_from_group(&even)?;
        assert_eq!(even.translate(made.rank(), &all), Some(comm.rank()));
    }
    Ok(())
}
// ANCHOR_END: group

// ANCHOR: name
/// A name stands in the errors of calls.
fn names(comm: &Communicator) -> gradwire::Result<()> {
    let pipeline = comm.duplicate()?;
    pipeline.set_name("pipeline");
    let mut values = vec![1.0_f32; if comm.rank() == 0 { 3 } else { 4 }];
    match pipeline.all_reduce(&mut values, Sum) {
        Err(error @ Error::Mismatch { .. }) => assert!(error.to_string().contains("on \"pipeline\"")),
        other => assert!(comm.size() == 1 && other.is_ok()),
    }
    Ok(())
}
// ANCHOR_END: name

// ANCHOR: threads
/// A duplicate for each thread: their calls are independent.
fn threads(comm: &Communicator) -> gradwire::Result<()> {
    let duplicates = (0..4).map(|_| comm.duplicate()).collect::<gradwire::Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..)
            .zip(duplicates)
            .map(|(thread, own)| {
                scope.spawn(move || {
                    let mut sum = [thread];
                    own.all_reduce(&mut sum, Sum)?;
                    assert_eq!(sum, [thread * own.size() as u64]);
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}
// ANCHOR_END: threads

// ANCHOR: reproducible
/// Twelve samples, dealt out to however many ranks there are: the same bits with one rank and with five.
fn reproducible(comm: &Communicator) -> gradwire::Result<()> {
    comm.set_determinism(Determinism::Contributions);
    let sample = |number: usize| [0.1_f32 * number as f32, 1.0e7 / (number + 1) as f32];
    let own: Vec<[f32; 2]> = (comm.rank()..12).step_by(comm.size()).map(sample).collect();
    let mut average = [0.0; 2];
    comm.all_reduce_many(own.iter().map(|sample| &sample[..]), &mut average, ReproducibleAverage)?;

    // The same by hand: partial sums may be kept, moved and merged.
    let (mut all, mut expected) = ([PartialSum::default(); 2], [0.0; 2]);
    (0..12).for_each(|number| ReproducibleAverage.combine(&mut all, &sample(number)));
    ReproducibleAverage.finish(&all, 12, &mut expected);
    assert_eq!(average.map(f32::to_bits), expected.map(f32::to_bits));

    // One contribution of each rank, in place: whichever rank has which.
    let mut sum = sample(comm.rank());
    comm.all_reduce(&mut sum, ReproducibleSum)?;
    // What shows how contributions were spread is refused.
    assert!(matches!(comm.all_reduce(&mut sum, Sum), Err(Error::Misuse(_))));
    comm.set_determinism(Determinism::default());
    Ok(())
}
// ANCHOR_END: reproducible
