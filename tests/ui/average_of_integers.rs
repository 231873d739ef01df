use gradwire::Gradient;

#[derive(Gradient)]
#[gradient(reduce = Average)]
struct Counts {
    loss: f32,
    samples: u64,
    #[gradient(reduce = Average)]
    classes: Vec<[i32; 10]>,
}

fn main() {}
