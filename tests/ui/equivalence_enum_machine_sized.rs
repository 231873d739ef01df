use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
#[repr(usize)]
enum State {
    #[equivalence(rename = "idle")]
    Idle,
    Busy,
}

fn main() {}
