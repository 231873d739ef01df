use gradwire::Gradient;
use gradwire_schema::Element;

#[derive(Gradient)]
struct Layer<T: Element> {
    #[gradient(reduce = Average)]
    weight: Vec<T>,
}

fn main() {}
