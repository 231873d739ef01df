use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
enum State {
    Ready,
    Done,
}

fn main() {}
