use super::*;
use zerocopy::IntoBytes;

fn window<T: Element>(values: &[T]) -> Exposed {
    let memory = Exposed::private(T::DATATYPE, values.len()).unwrap();
    memory.store(0, values.as_bytes()).unwrap();
    memory
}

fn contents<T: Element>(memory: &Exposed) -> Vec<T> {
    let mut values = vec![T::default(); memory.count];
    memory.load(0, values.as_mut_bytes()).unwrap();
    values
}

/// Every update of elements of every width, over more than a block, against the operation itself.
fn updates<T: Element + From<u8> + fmt::Debug>(combine: fn(T, T) -> T, update: WindowUpdate) {
    let values: Vec<T> = (0..150).map(|index| T::from(index % 7 + 1)).collect();
    let memory = window(&values);
    let operands: Vec<T> = (0..140).map(|index| T::from(index % 5)).collect();
    let mut before = vec![T::default(); operands.len()];
    let (operand, old) = (operands.as_bytes(), before.as_mut_bytes());
    memory.update(3, update, operand, old).unwrap();
    assert_eq!(before, values[3..143]);
    let mut expected = values;
    expected[3..143]
        .iter_mut()
        .zip(&operands)
        .for_each(|(value, operand)| *value = combine(*value, *operand));
    assert_eq!(contents::<T>(&memory), expected);
}

#[test]
fn updates_combine_what_is_there_with_the_operand() {
    updates::<f64>(|a, b| a + b, WindowUpdate::Sum);
    updates::<f32>(|a, b| a * b, WindowUpdate::Product);
    updates::<i16>(i16::min, WindowUpdate::Min);
    updates::<u8>(u8::max, WindowUpdate::Max);
    updates::<u64>(|a, b| a & b, WindowUpdate::BitwiseAnd);
    updates::<u32>(|a, b| a | b, WindowUpdate::BitwiseOr);
    updates::<u16>(|a, b| a ^ b, WindowUpdate::BitwiseXor);
    updates::<u8>(|a, b| u8::from(a != 0 && b != 0), WindowUpdate::LogicalAnd);
    updates::<i32>(|a, b| i32::from(a != 0 || b != 0), WindowUpdate::LogicalOr);
    updates::<i64>(|a, b| i64::from((a != 0) != (b != 0)), WindowUpdate::LogicalXor);
    updates::<f32>(|_, b| b, WindowUpdate::Replace);
    updates::<f64>(|a, _| a, WindowUpdate::Keep);
}

#[test]
fn what_is_outside_is_refused_and_nothing_is_touched() {
    let memory = window(&[1_u32, 2, 3]);
    let mut bytes = [0; 8];
    for index in [2, 3, usize::MAX] {
        assert_eq!(memory.load(index, &mut bytes), None);
        assert_eq!(memory.store(index, &[7; 8]), None);
        assert_eq!(memory.update(index, WindowUpdate::Sum, &[7; 8], &mut []), None);
    }
    assert_eq!(memory.store(0, &[7; 3]), None, "no whole element");
    assert_eq!(memory.compare_and_swap(3, &[3; 4], &[4; 4], &mut bytes[..4]), None);
    assert_eq!(memory.compare_and_swap(0, &[3; 8], &[4; 8], &mut bytes), None);
    assert_eq!(memory.raise(NOTICES), None);
    assert_eq!((memory.load(3, &mut []), memory.store(3, &[])), (Some(()), Some(())));
    assert_eq!(contents::<u32>(&memory), [1, 2, 3]);
    assert_eq!(window(&[1.0_f32]).update(0, WindowUpdate::BitwiseAnd, &[0; 4], &mut []), None);
    assert!(Exposed::private(Datatype::F64, usize::MAX / 8).is_none());
}

#[test]
fn a_swap_happens_where_the_comparand_is() {
    let memory = window(&[5_i32, -6]);
    let mut before = [0; 4];
    for (comparand, value, there, after) in [(-6_i32, 9_i32, -6_i32, 9_i32), (-6, 1, 9, 9)] {
        memory.compare_and_swap(1, &comparand.to_le_bytes(), &value.to_le_bytes(), &mut before).unwrap();
        assert_eq!(i32::from_le_bytes(before), there);
        assert_eq!(contents::<i32>(&memory), [5, after]);
    }
}

/// Two threads add to the same elements of a size below the word's; a third replaces their neighbours.
#[test]
fn updates_of_many_threads_are_atomic() {
    const ROUNDS: u16 = 2000;
    let memory = window(&[0_u16; 200]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    memory.update(0, WindowUpdate::Sum, &1_u16.to_le_bytes().repeat(100), &mut []).unwrap();
                }
            });
        }
        for round in 0..ROUNDS {
            memory.store(100, &round.to_le_bytes().repeat(100)).unwrap();
        }
    });
    let values = contents::<u16>(&memory);
    assert_eq!(values[..100], [2 * ROUNDS; 100]);
    assert_eq!(values[100..], [ROUNDS - 1; 100]);
}

#[test]
fn notices_are_counted_until_they_are_taken() {
    let memory = window::<u8>(&[]);
    memory.raise(0).unwrap();
    memory.raise(NOTICES - 1).unwrap();
    memory.raise(NOTICES - 1).unwrap();
    assert_eq!((memory.take(0), memory.take(0), memory.take(1), memory.take(NOTICES - 1)), (1, 0, 0, 2));
    assert!(!memory.is_closed() && !memory.is_parked());
    memory.set_parked(true);
    memory.close();
    assert!(memory.is_closed() && memory.is_parked());
}
