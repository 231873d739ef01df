//! A parameter server over every transport.

use gradwire::parameters::{Parameters, Push, Role, Served, Server, Staleness, Worker};
use gradwire::{Communicator, Error, Gradient};
use gradwire_tests::ranks::{Over, run, value, values};
use std::sync::Barrier;
use std::time::Duration;

/// Adds the gradients up: sums of [`values`] are exact.
fn add(parameters: &mut [f32], push: Push<'_, f32>) {
    parameters.iter_mut().zip(push.gradient).for_each(|(parameter, gradient)| *parameter += gradient);
}

/// Serves from zeros; the parameters at the end, and how it went.
fn serve(server: Server<f32>) -> (Vec<f32>, Served) {
    let mut shard = vec![0.0; server.shard().len()];
    let served = server.serve(&mut shard, add).unwrap();
    (shard, served)
}

fn worker(role: Role<f32>) -> Worker<f32> {
    match role {
        Role::Worker(worker) => worker,
        Role::Server(_) => panic!("this rank is no server"),
    }
}

fn pull(worker: &mut Worker<f32>) -> Vec<f32> {
    let mut parameters = vec![f32::NAN; worker.count()];
    worker.pull(&mut parameters).unwrap();
    parameters
}

/// What `times` pushes of each of `workers` make of zeros.
fn sum(workers: impl Iterator<Item = usize> + Clone, times: usize, count: usize) -> Vec<f32> {
    let of = |index| workers.clone().map(|rank| value(rank, index)).sum::<f32>() * times as f32;
    (0..count).map(of).collect()
}

const STEPS: usize = 5;

fn workers_in_step(over: Over) {
    for (ranks, servers) in [(2, vec![0]), (3, vec![2]), (4, vec![0]), (4, vec![3, 1]), (5, vec![1, 2, 4])] {
        for count in [0, 1, 2, 7, 1000, 30_011] {
            let workers = (0..ranks).filter(|rank| !servers.contains(rank));
            let parts = run(over, ranks, |comm| {
                match Parameters::new(count).servers(&servers).open(&comm).unwrap() {
                    Role::Server(server) => {
                        assert_eq!(
                            server.shard().len(),
                            count.div_ceil(servers.len()).min(server.shard().len())
                        );
                        let (shard, served) = serve(server);
                        assert_eq!(served.steps, STEPS as u64);
                        assert_eq!(served.lost, []);
                        Some((comm.rank(), shard))
                    }
                    Role::Worker(mut worker) => {
                        for step in 0..STEPS {
                            assert!(pull(&mut worker) == sum(workers.clone(), step, count), "step {step}");
                            let mut gradient = values(comm.rank(), count);
                            worker.push(&gradient).unwrap();
                            gradient.fill(f32::NAN);
                        }
                        assert_eq!(worker.pushes(), STEPS as u64);
                        worker.finish().unwrap();
                        None
                    }
                }
            });
            let shards = servers
                .iter()
                .map(|server| &parts.iter().flatten().find(|(rank, _)| rank == server).unwrap().1[..]);
            assert!(shards.collect::<Vec<_>>().concat() == sum(workers, STEPS, count));
        }
    }
}

/// One worker pushes all of a vector, another every third element and one of them twice.
fn sparse_and_dense(over: Over) {
    const COUNT: usize = 1000;
    run(over, 4, |comm| {
        let parameters = Parameters::new(COUNT).servers(&[1, 2]).sparse(200);
        let mut worker = match parameters.open(&comm).unwrap() {
            Role::Server(server) => return drop(serve(server)),
            Role::Worker(worker) => worker,
        };
        for step in 1..=3 {
            if comm.rank() == 0 {
                worker.push(&values(0, COUNT)).unwrap();
            } else {
                let mut indices: Vec<usize> = (0..COUNT).step_by(3).rev().collect();
                indices.push(999);
                let sparse: Vec<f32> = indices.iter().map(|index| value(3, *index)).collect();
                worker.push_sparse(&indices, &sparse).unwrap();
            }
            let times = |index| if index == 999 { 2.0 } else { f32::from(u8::from(index % 3 == 0)) };
            let expected = (0..COUNT).map(|index| value(0, index) + times(index) * value(3, index));
            let expected: Vec<f32> = expected.map(|value| step as f32 * value).collect();
            assert!(pull(&mut worker) == expected, "step {step}");
        }
        worker.finish().unwrap();
    });
}

/// The second worker does not push before the first has found that it may not go on alone.
fn a_bound_holds_the_fast_back(over: Over) {
    const AHEAD: usize = 3;
    let met = Barrier::new(2);
    run(over, 3, |comm| {
        let role = Parameters::new(10).staleness(Staleness::Bounded(AHEAD)).open(&comm).unwrap();
        if let Role::Server(server) = role {
            let (parameters, served) = serve(server);
            assert_eq!(served.steps, 2 * (AHEAD as u64 + 1));
            assert_eq!(parameters, sum(1..3, AHEAD + 1, 10));
            return;
        }
        let mut worker = worker(role);
        let gradient = values(comm.rank(), 10);
        if comm.rank() == 1 {
            for done in 0..=AHEAD {
                pull(&mut worker);
                assert_eq!(worker.pushes(), done as u64);
                worker.push(&gradient).unwrap();
            }
            worker.set_timeout(Some(Duration::from_millis(50)));
            let error = worker.pull(&mut [0.0; 10]).unwrap_err();
            assert!(
                matches!(&error, Error::TimedOut { waiting_for, .. } if waiting_for[..] == [0]),
                "{error}"
            );
            worker.set_timeout(Some(Duration::from_secs(60)));
            met.wait();
            pull(&mut worker);
        } else {
            met.wait();
            for _ in 0..=AHEAD {
                worker.push(&gradient).unwrap();
            }
        }
        worker.finish().unwrap();
    });
}

/// Three workers push, then one leaves without a word: what it pushed counts, and the others go on.
fn a_worker_that_is_lost(over: Over) {
    for leaves_the_job in [false, true] {
        run(over, 4, |comm| {
            let role = Parameters::new(100).open(&comm).unwrap();
            let rank = comm.rank();
            if let Role::Server(server) = role {
                let (parameters, served) = serve(server);
                assert_eq!((served.steps, &served.lost[..]), (3, &[2][..]));
                let expected: Vec<f32> = sum(1..4, 1, 100)
                    .into_iter()
                    .zip(sum([1, 3].into_iter(), 2, 100))
                    .map(|(a, b)| a + b)
                    .collect();
                assert!(parameters == expected);
                return;
            }
            let mut worker = worker(role);
            worker.push(&values(rank, 100)).unwrap();
            assert!(pull(&mut worker) == sum(1..4, 1, 100));
            if rank == 2 {
                if leaves_the_job {
                    return;
                }
                drop(worker);
            } else {
                worker.push(&values(rank, 100)).unwrap();
                pull(&mut worker);
                worker.push(&values(rank, 100)).unwrap();
                worker.finish().unwrap();
            }
        });
    }
}

/// A rank that ends takes leave of its windows, then of the job.
fn is_gone(error: &Error, rank: usize) -> bool {
    matches!(error, Error::Misuse(_) | Error::PeerLost { .. })
        && error.to_string().contains(&format!("rank {rank}"))
}

fn a_server_that_is_lost(over: Over) {
    run(over, 3, |comm| {
        let Role::Worker(mut worker) = Parameters::new(100).servers(&[1]).open::<f32>(&comm).unwrap() else {
            return;
        };
        let error = worker.pull(&mut [0.0; 100]).unwrap_err();
        assert!(is_gone(&error, 1), "{error}");
    });
}

#[derive(Gradient, Clone, PartialEq, Debug)]
#[gradient(reduce = Sum)]
struct Model {
    weights: Vec<[f32; 3]>,
    #[gradient(wire = bf16)]
    bias: [f32; 5],
    scale: f32,
}

impl Model {
    fn of(rank: usize) -> Self {
        let all = values(rank, 36);
        Self {
            weights: all[..30].as_chunks().0.to_vec(),
            bias: *all[30..].first_chunk().unwrap(),
            scale: all[35],
        }
    }
}

#[derive(Gradient, Debug)]
#[gradient(reduce = Sum)]
struct Mixed {
    weights: Vec<f32>,
    seen: u64,
}

fn structs(over: Over) {
    run(over, 4, |comm| {
        let mut worker = match Parameters::new(36).servers(&[0, 1]).open(&comm).unwrap() {
            Role::Server(server) => return drop(serve(server)),
            Role::Worker(worker) => worker,
        };
        let mut own = Model::of(comm.rank());
        worker.push_gradient(&mut own).unwrap();
        assert_eq!(own, Model::of(comm.rank()));
        let mut model = Model::of(9);
        worker.pull_gradient(&mut model).unwrap();
        let (two, three) = (Model::of(2), Model::of(3));
        assert_eq!(model.scale, two.scale + three.scale);
        assert_eq!(model.bias[4], two.bias[4] + three.bias[4]);
        assert_eq!(model.weights[9][2], two.weights[9][2] + three.weights[9][2]);
        assert_eq!(pull(&mut worker), sum(2..4, 1, 36));

        let mut mixed = Mixed { weights: vec![1.0; 35], seen: 1 };
        let text = misuse(worker.push_gradient(&mut mixed));
        assert!(text.contains("`seen` is of u64") && text.contains("f32"), "{text}");
        misuse(worker.pull_gradient(&mut Mixed { weights: vec![1.0; 36], seen: 1 }));
        misuse(worker.pull_gradient(&mut Model { weights: Vec::new(), ..model }));
        worker.finish().unwrap();
    });
}

fn misuse<T: std::fmt::Debug>(result: gradwire::Result<T>) -> String {
    match result.unwrap_err() {
        Error::Misuse(text) => text.to_string(),
        other => panic!("{other}"),
    }
}

/// Nothing comes of what makes no sense, on any rank, and the next call works.
fn misuses(over: Over) {
    run(over, 3, |comm: Communicator| {
        let odd = |parameters: Parameters| misuse(parameters.open::<f32>(&comm));
        for (servers, words) in [
            (&[][..], "there is no server"),
            (&[3], "no rank 3"),
            (&[0, 0], "rank 0 stands twice"),
            (&[0, 1, 2], "leave at least one"),
        ] {
            let text = odd(Parameters::new(10).servers(servers));
            assert!(text.contains(words), "{text}");
        }
        for differing in [
            Parameters::new(10 + usize::from(comm.rank() == 2)),
            Parameters::new(10).servers(&[comm.rank() / 2]),
            Parameters::new(10).servers(&[0, 1][..2 - comm.rank() / 2]),
            Parameters::new(10).sparse(comm.rank() / 2),
            Parameters::new(10).staleness(Staleness::Bounded(comm.rank() / 2)),
        ] {
            let text = odd(differing);
            assert!(text.contains("rank 2 asks for other parameters than rank 0"), "{text}");
        }
        match Parameters::new(10).sparse(2).open::<f32>(&comm).unwrap() {
            Role::Server(server) => assert_eq!(serve(server).1.steps, 1),
            Role::Worker(mut worker) => {
                misuse(worker.push(&[1.0; 9]));
                misuse(worker.pull(&mut [1.0; 11]));
                misuse(worker.push_sparse(&[1, 2], &[1.0]));
                misuse(worker.push_sparse(&[10], &[1.0]));
                assert!(misuse(worker.push_sparse(&[1, 2, 3], &[1.0; 3])).contains("sparse(3)"));
                worker.push_sparse(&[], &[]).unwrap();
                assert_eq!(pull(&mut worker), [0.0; 10]);
                worker.finish().unwrap();
            }
        }
        match Parameters::new(10).open::<f32>(&comm).unwrap() {
            Role::Server(server) => drop(misuse(server.serve(&mut [0.0; 9], add))),
            Role::Worker(mut worker) => assert!(is_gone(&worker.pull(&mut [0.0; 10]).unwrap_err(), 0)),
        }
    });
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name { over!(@tests $over: workers_in_step, sparse_and_dense, a_bound_holds_the_fast_back,
            a_worker_that_is_lost, a_server_that_is_lost, structs, misuses,
        ); }
    )*};
    (@tests $over:ident: $($test:ident,)*) => {$(
        #[test]
        fn $test() { gradwire_tests::ranks::Over::$over.try_out(super::$test); }
    )*};
}

over! { sim: Sim, hostile_sim: HostileSim, shm: Shm, libfabric: Libfabric, tcp: Tcp, }
