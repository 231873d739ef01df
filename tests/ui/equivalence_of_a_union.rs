use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
union Word {
    integer: u32,
    float: f32,
}

fn main() {}
