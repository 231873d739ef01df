use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
struct Sample {
    label: Option<u32>,
    twice: [Option<Option<f32>>; 2],
    outcome: (u8, Result<u32, u8>),
}

fn main() {}
