use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    weight: Vec<f32>,
}

fn main() {
    let weight = {
        let bytes = vec![0; 128];
        Model::view(&bytes).unwrap().weight
    };
    println!("{weight:?}");
}
