//! Structs of tensors between ranks.

use gradwire::{Communicator, Error, Gradient, bf16};

#[derive(Gradient, Clone, PartialEq, Debug, Default)]
#[gradient(reduce = Average)]
struct Layer {
    weight: Vec<[f32; 3]>,
    bias: [f32; 3],
}

#[derive(Gradient, Clone, PartialEq, Debug, Default)]
#[gradient(reduce = Average)]
struct Model {
    long: Vec<f32>,
    #[gradient(wire = bf16)]
    rounded: Vec<f32>,
    first: Layer,
    second: Layer,
    #[gradient(reduce = Max)]
    norm: f32,
    #[gradient(reduce = Sum)]
    samples: u64,
    #[gradient(skip)]
    step: usize,
}

fn layer(rank: usize, rows: usize, salt: usize) -> Layer {
    let value = |index: usize| (rank * 8 + index + salt) as f32;
    Layer {
        weight: (0..rows).map(|row| [value(3 * row), value(3 * row + 1), value(3 * row + 2)]).collect(),
        bias: [value(100), value(101), value(102)],
    }
}

fn model(rank: usize, rows: usize) -> Model {
    Model {
        long: (0..40_000).map(|index| (rank * 4 + index % 977) as f32).collect(),
        rounded: (0..300).map(|index| (rank * 2 + index % 60) as f32).collect(),
        first: layer(rank, rows, 1),
        second: layer(rank, 5, 2),
        norm: [3.0, 9.0, 5.0, 7.0][rank % 4],
        samples: 10 + rank as u64,
        step: rank,
    }
}

/// All values are linear in the rank and small integers: averages are exact, also in bf16.
fn expected(ranks: usize, rank: usize) -> Model {
    let models: Vec<Model> = (0..ranks).map(|rank| model(rank, 4)).collect();
    let mean = |value: &dyn Fn(&Model) -> f32| models.iter().map(value).sum::<f32>() / ranks as f32;
    let mean_layer = |of: &dyn Fn(&Model) -> &Layer| Layer {
        weight: (0..of(&models[0]).weight.len())
            .map(|row| [0, 1, 2].map(|column| mean(&|model| of(model).weight[row][column])))
            .collect(),
        bias: [0, 1, 2].map(|column| mean(&|model| of(model).bias[column])),
    };
    Model {
        long: (0..40_000).map(|index| mean(&|model| model.long[index])).collect(),
        rounded: (0..300).map(|index| bf16::from_f32(mean(&|model| model.rounded[index])).to_f32()).collect(),
        first: mean_layer(&|model| &model.first),
        second: mean_layer(&|model| &model.second),
        norm: models.iter().map(|model| model.norm).fold(0.0, f32::max),
        samples: models.iter().map(|model| model.samples).sum(),
        step: rank,
    }
}

#[test]
fn every_field_is_reduced_by_its_own_operation() {
    for ranks in [1, 2, 4] {
        gradwire::run(ranks, |comm| {
            for _ in 0..3 {
                let mut mine = model(comm.rank(), 4);
                comm.all_reduce_gradient(&mut mine).unwrap();
                assert!(mine == expected(ranks, comm.rank()));
            }
        })
        .unwrap();
    }
}

#[test]
fn the_root_alone_gets_what_is_reduced_to_it() {
    for ranks in [1, 2, 4] {
        gradwire::run(ranks, |comm| {
            for root in [0, ranks - 1] {
                let mut mine = model(comm.rank(), 4);
                comm.reduce_gradient(&mut mine, root).unwrap();
                let is_root = comm.rank() == root;
                assert!(mine == if is_root { expected(ranks, root) } else { model(comm.rank(), 4) });
            }
            let mut mine = model(comm.rank(), 4);
            assert!(matches!(comm.reduce_gradient(&mut mine, ranks), Err(Error::Misuse(_))));
            // Other lengths: nothing is touched.
            let mut mine = model(comm.rank(), 4 + usize::from(comm.rank() == 1));
            let before = mine.clone();
            let result = comm.reduce_gradient(&mut mine, 0);
            let Err(Error::Mismatch { field, .. }) = result else {
                return assert!(ranks == 1 && result.is_ok());
            };
            assert!(field.is_some_and(|field| field.starts_with("field first.weight")));
            assert!(mine == before);
        })
        .unwrap();
    }
}

#[test]
fn a_broadcast_copies_every_field_as_it_is() {
    gradwire::run(3, |comm| {
        let mut mine = model(comm.rank(), 4);
        mine.rounded[7] = 1.000_1 + comm.rank() as f32;
        comm.broadcast_gradient(&mut mine, 2).unwrap();
        let mut expected = model(2, 4);
        expected.rounded[7] = 1.000_1 + 2.0;
        expected.step = comm.rank();
        assert!(mine == expected);
    })
    .unwrap();
}

#[test]
fn the_first_field_that_differs_is_named_on_every_rank() {
    gradwire::run(3, |comm: Communicator| {
        let mut mine = model(comm.rank(), if comm.rank() == 1 { 6 } else { 4 });
        let before = mine.clone();
        let error = comm.all_reduce_gradient(&mut mine).unwrap_err();
        let Error::Mismatch { calls, field } = &error else { panic!("{error}") };
        assert_eq!(calls.iter().map(|(_, ranks)| ranks.clone()).collect::<Vec<_>>(), [vec![0, 2], vec![1]]);
        assert_eq!(field.as_deref(), Some("field first.weight: extents [4, 3] against [6, 3]"));
        assert!(mine == before);
        let mut mine = model(comm.rank(), 4);
        comm.all_reduce_gradient(&mut mine).unwrap();
        assert!(mine == expected(3, comm.rank()));
    })
    .unwrap();
}
