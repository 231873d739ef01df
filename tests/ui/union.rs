use gradwire::Gradient;

#[derive(Gradient)]
union Bits {
    float: f32,
    integer: u32,
}

fn main() {}
