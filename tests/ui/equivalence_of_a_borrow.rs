use gradwire::Equivalence;
use std::marker::PhantomData;

#[derive(Equivalence, Clone, Copy)]
struct Slot<'owner> {
    index: u32,
    owner: PhantomData<&'owner ()>,
}

fn main() {}
