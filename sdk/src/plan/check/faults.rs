//! The proof must fail when anything about a plan is wrong: every step of every algorithm is damaged in every
//! way, one at a time.

use super::check;
use super::grid::{shapes, uneven};
use crate::Rank;
use crate::plan::{Action, Algorithm, Association, Collective, Cost, Peers, Shape, Step, algorithms};

/// A way to damage a plan.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Dropped,
    ShorterRange,
    ShiftedRange,
    OtherChannel,
    OtherPeer,
    MissingAfter(usize),
    OtherFinish,
    OverwriteForFold,
    OtherSource,
}

const FAULTS: [Fault; 10] = [
    Fault::Dropped,
    Fault::ShorterRange,
    Fault::ShiftedRange,
    Fault::OtherChannel,
    Fault::OtherPeer,
    Fault::MissingAfter(0),
    Fault::MissingAfter(1),
    Fault::OtherFinish,
    Fault::OverwriteForFold,
    Fault::OtherSource,
];

impl Fault {
    /// Damages a step; `false` if this fault cannot be in it.
    fn damage(self, shape: &Shape, rank: Rank, steps: &mut Vec<Step>, index: usize) -> bool {
        if matches!(self, Self::Dropped) {
            steps.remove(index);
            for after in steps.iter_mut().flat_map(|step| &mut step.after) {
                // What waited for the dropped step waits for nothing.
                *after = after.filter(|&other| other as usize != index);
                *after = after.map(|other| if other as usize > index { other - 1 } else { other });
            }
            return true;
        }
        let step = &mut steps[index];
        let before = step.clone();
        match self {
            Self::Dropped => {}
            Self::ShorterRange => step.range.end -= 1,
            Self::ShiftedRange if step.range.end < shape.len_of(rank) => {
                step.range = step.range.start + 1..step.range.end + 1;
            }
            Self::ShiftedRange if step.range.start > 0 => {
                step.range = step.range.start - 1..step.range.end - 1;
            }
            Self::ShiftedRange => {}
            // What stays on the rank has no channel.
            Self::OtherChannel if matches!(step.action, Action::Finish | Action::Copy { .. }) => {}
            Self::OtherChannel => step.channel += 1,
            Self::OtherPeer => {
                if let Action::Send { to: peer }
                | Action::Receive { from: peer }
                | Action::ReceiveReduce { from: Peers::One(peer), .. } = &mut step.action
                {
                    *peer = (0..shape.ranks).find(|other| other != peer && *other != rank).unwrap_or(*peer);
                }
            }
            Self::MissingAfter(which) => step.after[which] = None,
            Self::OtherFinish => {
                if let Action::ReceiveReduce { last, .. } = &mut step.action {
                    *last = !*last;
                }
            }
            Self::OverwriteForFold => {
                if let Action::ReceiveReduce { from: Peers::One(from), .. } = step.action {
                    step.action = Action::Receive { from };
                }
            }
            Self::OtherSource => {
                if let Action::Copy { from } = &mut step.action {
                    *from = if *from == 0 { 1 } else { *from - 1 };
                } else if let Action::ReceiveReduce { from: Peers::LowerFrom(first), .. } = &mut step.action {
                    *first = if *first == 0 { 1 } else { 0 };
                }
            }
        }
        *step != before
    }
}

/// An algorithm with a fault in one step of one rank.
#[derive(Debug)]
struct Faulty {
    inner: &'static dyn Algorithm,
    rank: Rank,
    steps: Vec<Step>,
}

impl Algorithm for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        self.inner.excluded(shape)
    }

    fn cost(&self, shape: &Shape) -> Cost {
        self.inner.cost(shape)
    }

    fn association(&self) -> Association {
        self.inner.association()
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        if rank == self.rank { self.steps.len() } else { self.inner.len(shape, rank) }
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        if rank == self.rank { self.steps[index].clone() } else { self.inner.step(shape, rank, index) }
    }
}

#[test]
fn every_fault_is_found() {
    let mut found = 0;
    for collective in Collective::ALL {
        for ranks in [3, 4, 6] {
            found += faults_found(&shapes(collective, ranks, 3 * ranks + 1).swap_remove(0));
            // The last root, so that trees go around the end; no block is empty, so that every step matters.
            let counts: Vec<usize> = (0..ranks * ranks).map(|index| 1 + index * 7 % 5).collect();
            if collective.has_blocks() {
                found += uneven(collective, ranks, &counts).last().map_or(0, faults_found);
            }
        }
    }
    assert!(found > 1000, "only {found} faults were tried");
}

/// Tries every fault in every step of every algorithm, and returns how many there were.
fn faults_found(shape: &Shape) -> usize {
    let mut found = 0;
    for &inner in algorithms(shape.collective) {
        if inner.excluded(shape).is_some() {
            continue;
        }
        for rank in 0..shape.ranks {
            let steps: Vec<_> = (0..inner.len(shape, rank)).map(|i| inner.step(shape, rank, i)).collect();
            for index in 0..steps.len() {
                for fault in FAULTS {
                    let mut steps = steps.clone();
                    if fault.damage(shape, rank, &mut steps, index) {
                        let faulty = Faulty { inner, rank, steps };
                        assert!(
                            check(&faulty, shape).is_err(),
                            "{fault:?} in step {index} of rank {rank}: {}, {shape:?}",
                            inner.name(),
                        );
                        found += 1;
                    }
                }
            }
        }
    }
    found
}

/// Steps that all wait for one another in a circle of ranks get stuck, and only because sends wait for receivers.
#[test]
fn a_circle_of_waiting_is_found() {
    #[derive(Debug)]
    struct Circle;
    impl Algorithm for Circle {
        fn name(&self) -> &'static str {
            "circle"
        }
        fn excluded(&self, _: &Shape) -> Option<&'static str> {
            None
        }
        fn cost(&self, _: &Shape) -> Cost {
            Cost::default()
        }
        fn association(&self) -> Association {
            Association::Nothing
        }
        fn len(&self, _: &Shape, _: Rank) -> usize {
            2
        }
        fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
            match index {
                0 => Step::send(1 - rank, shape.block(rank)),
                _ => Step::receive(1 - rank, shape.block(1 - rank)).after(0),
            }
        }
    }
    let shape = shapes(Collective::AllGather, 2, 3).swap_remove(0);
    let mistake = check(&Circle, &shape).expect_err("nobody is ready to receive");
    assert!(mistake.starts_with("stuck"), "{mistake}");
}

#[test]
fn a_wrong_declaration_is_found() {
    #[derive(Debug)]
    struct Undeclared(&'static dyn Algorithm);
    impl Algorithm for Undeclared {
        fn name(&self) -> &'static str {
            "undeclared"
        }
        fn excluded(&self, _: &Shape) -> Option<&'static str> {
            None
        }
        fn cost(&self, shape: &Shape) -> Cost {
            self.0.cost(shape)
        }
        fn association(&self) -> Association {
            match self.0.association() {
                Association::RankOrder => Association::Butterfly,
                _ => Association::RankOrder,
            }
        }
        fn len(&self, shape: &Shape, rank: Rank) -> usize {
            self.0.len(shape, rank)
        }
        fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
            self.0.step(shape, rank, index)
        }
    }
    let shape = shapes(Collective::AllReduce, 4, 9).swap_remove(0);
    for &algorithm in algorithms(Collective::AllReduce) {
        let mistake = check(&Undeclared(algorithm), &shape).expect_err("another association");
        assert!(mistake.contains("not [("), "{mistake}");
    }
}
