use gradwire::Gradient;
use std::marker::PhantomData;

#[derive(Gradient)]
struct Model<T> {
    weight: Vec<f32>,
    #[gradient(reduce = Max)]
    marker: PhantomData<T>,
}

fn main() {}
