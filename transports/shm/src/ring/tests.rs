use super::{Consumer, HEAD, HEADER, Label, Producer, Pushed, Storage, TAIL, Violation};
use crate::sync::{AtomicU64, Ordering};

#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

#[derive(Clone)]
struct Heap(Arc<Vec<AtomicU64>>);

impl Storage for Heap {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

fn ring(capacity: usize) -> (Heap, Producer<Heap>, Consumer<Heap>) {
    let heap = Heap(Arc::new((0..HEADER + capacity).map(|_| AtomicU64::new(0)).collect()));
    (heap.clone(), Producer::new(heap.clone()), Consumer::new(heap))
}

fn label(argument: u32) -> Label {
    Label { kind: 7, argument }
}

#[cfg(not(loom))]
mod plain {
    use super::*;

    #[test]
    fn records_of_every_length_come_out_as_they_went_in_at_every_position() {
        let (_, mut producer, mut consumer) = ring(16);
        let mut scratch = [0; 64];
        for round in 0..200_u32 {
            let len = (round as usize * 13) % 65;
            let payload: Vec<u8> = (0..len).map(|index| (index as u32 * 31 + round) as u8).collect();
            assert_eq!(producer.push(label(round), &payload), Ok(Pushed::Yes { wake: false }));
            assert_eq!(consumer.pop(&mut scratch), Ok(Some((label(round), len))));
            assert_eq!(scratch[..len], payload);
            assert_eq!(consumer.pop(&mut scratch), Ok(None));
            assert!(!consumer.release());
        }
    }

    #[test]
    fn a_full_ring_takes_nothing_and_says_when_there_is_room_again() {
        let (_, mut producer, mut consumer) = ring(16);
        let mut taken = 0;
        while producer.push(label(taken), &[1; 8]) == Ok(Pushed::Yes { wake: false }) {
            taken += 1;
        }
        assert_eq!(taken, 5);
        assert_eq!(producer.has_room_again(), Ok(false));
        let mut scratch = [0; 8];
        for expected in 0..taken {
            assert_eq!(consumer.pop(&mut scratch), Ok(Some((label(expected), 8))));
        }
        assert!(consumer.release());
        assert_eq!(producer.has_room_again(), Ok(true));
        assert_eq!(producer.has_room_again(), Ok(false), "said once");
    }

    #[test]
    fn a_sleeper_is_rung_for_and_does_not_sleep_over_a_record() {
        let (_, mut producer, mut consumer) = ring(16);
        assert!(consumer.fall_asleep());
        assert_eq!(producer.push(label(0), &[]), Ok(Pushed::Yes { wake: true }));
        consumer.wake_up();
        assert!(!consumer.fall_asleep());
    }

    #[test]
    fn no_word_of_a_hostile_producer_is_believed() {
        for tail in [17, u64::MAX, 1 << 63] {
            let (heap, _, mut consumer) = ring(16);
            heap.words()[TAIL].store(tail, Ordering::Relaxed);
            assert!(matches!(consumer.pop(&mut [0; 64]), Err(Violation(_))), "tail {tail}");
        }
        for (tail, len) in [(1, 0), (2, 1), (4, 17), (16, 65), (16, u64::MAX), (16, 1 << 32)] {
            let (heap, _, mut consumer) = ring(16);
            heap.words()[HEADER + 1].store(len, Ordering::Relaxed);
            heap.words()[TAIL].store(tail, Ordering::Relaxed);
            assert!(matches!(consumer.pop(&mut [0; 64]), Err(Violation(_))), "tail {tail}, len {len}");
        }
    }

    #[test]
    fn no_word_of_a_hostile_consumer_is_believed() {
        for head in [11, u64::MAX, 1 << 63] {
            let (heap, mut producer, _) = ring(16);
            assert_eq!(producer.push(label(0), &[0; 64]), Ok(Pushed::Yes { wake: false }));
            heap.words()[HEAD].store(head, Ordering::Relaxed);
            assert!(matches!(producer.push(label(0), &[0; 64]), Err(Violation(_))), "head {head}");
        }
    }

    #[test]
    fn two_threads_exchange_more_than_the_ring_holds() {
        const ROUNDS: u32 = if cfg!(miri) { 50 } else { 20_000 };
        let (_, mut producer, mut consumer) = ring(32);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let payload = vec![round as u8; round as usize % 40];
                    while producer.push(label(round), &payload) == Ok(Pushed::Full) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut scratch = [0; 64];
            for round in 0..ROUNDS {
                let (got, len) = loop {
                    match consumer.pop(&mut scratch).expect("a correct producer") {
                        Some(record) => break record,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!((got, len), (label(round), round as usize % 40));
                assert!(scratch[..len].iter().all(|&byte| byte == round as u8));
                consumer.release();
            }
        });
    }
}

#[cfg(loom)]
mod model {
    use super::*;
    use crate::sync::fence;

    /// Every interleaving of a producer that fills the ring twice with a consumer that reads it.
    #[test]
    fn records_arrive_whole_and_in_order() {
        loom::model(|| {
            let (_, mut producer, mut consumer) = ring(4);
            let writer = loom::thread::spawn(move || {
                let mut taken = 0;
                for value in 1..=2_u64 {
                    taken += u32::from(
                        producer.push(label(value as u32), &value.to_le_bytes()) != Ok(Pushed::Full),
                    );
                }
                taken
            });
            let mut next = 1;
            let mut scratch = [0; 8];
            for _ in 0..2 {
                if let Some((got, len)) = consumer.pop(&mut scratch).expect("a correct producer") {
                    assert_eq!((got.argument, len), (next, 8));
                    assert_eq!(u64::from_le_bytes(scratch), u64::from(next));
                    next += 1;
                    consumer.release();
                }
            }
            let taken = writer.join().expect("no panic");
            while let Some((got, _)) = consumer.pop(&mut scratch).expect("a correct producer") {
                assert_eq!(got.argument, next);
                assert_eq!(u64::from_le_bytes(scratch), u64::from(next));
                next += 1;
            }
            assert_eq!(next, taken + 1);
        });
    }

    /// A consumer that goes to sleep without having seen the record is rung for.
    #[test]
    fn no_wake_up_of_the_consumer_is_lost() {
        loom::model(|| {
            let (_, mut producer, mut consumer) = ring(4);
            let writer = loom::thread::spawn(move || producer.push(label(1), &[]));
            let asleep = consumer.fall_asleep();
            let rung = writer.join().expect("no panic") == Ok(Pushed::Yes { wake: true });
            assert!(!asleep || rung);
        });
    }

    /// A producer that finds the ring full, falls asleep and still finds it full is rung for. The bell is the kernel's:
    /// its changes have one order.
    #[test]
    fn no_wake_up_of_the_producer_is_lost() {
        loom::model(|| {
            let (_, mut producer, mut consumer) = ring(4);
            let bell = Arc::new(AtomicU64::new(0));
            let sleeps = Arc::new(AtomicU64::new(0));
            for argument in 1..=2 {
                assert_eq!(producer.push(label(argument), &[]), Ok(Pushed::Yes { wake: false }));
            }
            let reader = loom::thread::spawn({
                let (bell, sleeps) = (Arc::clone(&bell), Arc::clone(&sleeps));
                move || {
                    for _ in 1..=2 {
                        assert_ne!(consumer.pop(&mut []), Ok(None));
                        if consumer.release() && sleeps.load(Ordering::Relaxed) == 1 {
                            bell.swap(1, Ordering::AcqRel);
                        }
                    }
                }
            });
            let mut asleep = false;
            if producer.push(label(3), &[0; 16]) == Ok(Pushed::Full) {
                // As `fall_asleep` of the ring that runs the other way.
                sleeps.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                asleep = producer.push(label(3), &[0; 16]) == Ok(Pushed::Full);
            }
            reader.join().expect("no panic");
            assert!(!asleep || bell.load(Ordering::SeqCst) == 1);
        });
    }
}
