use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
#[repr(u8)]
enum Event {
    Started,
    Moved { x: f32, y: f32 },
    Stopped(u32),
    Ended(),
}

fn main() {}
