use super::tuning::Mistake;
use super::tuning::TuningError;
use super::{Tuning, explain, select};
use crate::plan::{Algorithm, Association, Collective, Determinism, Links, Shape, algorithms};
use std::time::Duration;

/// 5 µs and 3 GB/s: TCP inside a host.
fn links() -> Links {
    Links::new(Duration::from_micros(5), 3e9)
}

fn shape(collective: Collective, ranks: usize, bytes: usize) -> Shape {
    Shape {
        collective,
        ranks,
        count: bytes / 4,
        blocks: None,
        element_size: 4,
        root: 0,
        commutative: true,
        exact_partials: true,
        determinism: Determinism::Ranks,
    }
}

fn chosen(shape: &Shape) -> &'static str {
    select(shape, &links(), &Tuning::default()).name()
}

fn mistake(text: &str) -> TuningError {
    text.parse::<Tuning>().expect_err(text)
}

#[test]
fn short_vectors_take_few_rounds_and_long_ones_few_bytes() {
    let of = |ranks, bytes| chosen(&shape(Collective::AllReduce, ranks, bytes));
    assert_eq!(of(6, 64), "owner_computes", "folding costs two more rounds");
    assert_eq!(of(64, 64), "recursive_doubling");
    assert_eq!(of(64, 256 << 10), "rabenseifner");
    assert_eq!(of(7, 64 << 20), "ring", "folding costs two more vectors");
    let of = |bytes| chosen(&shape(Collective::Broadcast, 16, bytes));
    assert_eq!([of(64), of(1 << 20), of(64 << 20)], ["binomial", "scatter_ring", "chain"]);
    let of = |bytes| chosen(&shape(Collective::Reduce, 16, bytes));
    assert_eq!([of(64), of(64 << 10), of(64 << 20)], ["root_computes", "binomial", "chain"]);
    let of = |bytes| chosen(&shape(Collective::AllGather, 4, bytes));
    assert_eq!([of(64), of(64 << 20)], ["direct", "ring"]);
}

#[test]
fn two_ranks_exchange_whole_vectors_until_halving_saves_more_folding_than_a_round_costs() {
    // n* = 2(α + o)/γ
    let links = links();
    let crossover = 2.0 * (links.latency + links.overhead) * links.reduction;
    let of = |factor: f64| {
        let bytes = (crossover * factor) as usize;
        chosen(&shape(Collective::AllReduce, 2, bytes))
    };
    assert_eq!([of(0.9), of(1.1)], ["recursive_doubling", "owner_computes"]);
}

#[test]
fn crossovers_are_where_costs_are_equal() {
    let links = links();
    for ranks in [3, 4, 8, 16] {
        let mut bytes = 1024;
        while bytes < 1 << 28 {
            let shape = shape(Collective::AllReduce, ranks, bytes);
            let best = select(&shape, &links, &Tuning::default()).cost(&shape).seconds(&links);
            for algorithm in algorithms(Collective::AllReduce) {
                assert!(best <= algorithm.cost(&shape).seconds(&links), "{shape:?}");
            }
            bytes *= 3;
        }
    }
}

#[test]
fn restrictions_come_before_cost_and_before_tuning() {
    let tuning: Tuning = "all_reduce:0-=ring".parse().expect("valid");
    let sum = shape(Collective::AllReduce, 7, 64 << 20);
    let named = |shape: &Shape| select(shape, &links(), &tuning).name();
    assert_eq!(named(&sum), "ring");
    assert_eq!(named(&Shape { exact_partials: false, ..sum.clone() }), "owner_computes");
    assert_eq!(named(&Shape { determinism: Determinism::Algorithms, ..sum.clone() }), "owner_computes");
    assert_ne!(named(&Shape { commutative: false, ..sum.clone() }), "ring");
    assert_eq!(named(&Shape { ranks: 2, exact_partials: false, commutative: false, ..sum }), "ring");
}

#[test]
fn every_level_of_determinism_excludes_what_would_break_it() {
    let links = links();
    for collective in Collective::ALL.into_iter().filter(|collective| collective.reduces()) {
        for named in algorithms(collective) {
            let tuning: Tuning = format!("{collective}:0-={}", named.name()).parse().expect("valid");
            for (ranks, bytes) in
                [3, 4, 7, 8, 33].into_iter().flat_map(|ranks| [(ranks, 64), (ranks, 1 << 24)])
            {
                let free = shape(collective, ranks, bytes);
                for determinism in [Determinism::Ranks, Determinism::Runs] {
                    // Whatever is named, the same for all: a function of nothing that is measured.
                    let shape = Shape { determinism, ..free.clone() };
                    assert_eq!(select(&shape, &links, &tuning).name(), named.name(), "{shape:?}");
                }
                for determinism in [Determinism::Algorithms, Determinism::Contributions] {
                    let shape = Shape { determinism, ..free.clone() };
                    let chosen = [&tuning, &Tuning::default()].map(|tuning| select(&shape, &links, tuning));
                    for chosen in chosen {
                        assert_eq!(chosen.association(), Association::RankOrder, "{shape:?}");
                        assert_eq!(chosen.excluded(&shape), None, "{shape:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn tuning_names_algorithms_by_size() {
    let tuning: Tuning =
        " all_reduce: 0-64k = recursive_doubling, 1M- = ring ; broadcast:8-9=chain;".parse().expect("valid");
    let named = |collective, bytes| tuning.named(&shape(collective, 4, bytes)).map(Algorithm::name);
    assert_eq!(named(Collective::AllReduce, 0), Some("recursive_doubling"));
    assert_eq!(named(Collective::AllReduce, (64 << 10) - 4), Some("recursive_doubling"));
    assert_eq!(named(Collective::AllReduce, 64 << 10), None);
    assert_eq!(named(Collective::AllReduce, 1 << 20), Some("ring"));
    assert_eq!(named(Collective::Broadcast, 8), Some("chain"));
    assert_eq!(named(Collective::Broadcast, 12), None);
    assert_eq!(named(Collective::Reduce, 8), None);
    // Sizes are those of all blocks together.
    let tuning: Tuning = "all_gather:64-=ring".parse().expect("valid");
    assert!(tuning.named(&shape(Collective::AllGather, 4, 16)).is_some());
}

#[test]
fn the_normal_form_says_the_same() {
    let tuning: Tuning =
        "broadcast:1g-=chain;all_reduce:64k-=ring,0-64k=recursive_doubling".parse().expect("valid");
    let normal = tuning.to_string();
    assert_eq!(normal, "all_reduce:0-65536=recursive_doubling,65536-=ring;broadcast:1073741824-=chain");
    assert_eq!(normal.parse::<Tuning>().expect("valid").to_string(), normal);
    assert_eq!("".parse::<Tuning>().expect("valid").to_string(), "");
}

#[test]
fn every_mistake_is_named() {
    let size = |text: &str| Mistake::Size(text.to_owned());
    for (text, entry, expected) in [
        ("all_reduce", "all_reduce", Mistake::NoColon),
        ("all_reduce:", "", Mistake::NoEquals),
        ("all_reduce:0-64k", "0-64k", Mistake::NoEquals),
        ("all_reduce:64k=ring", "64k=ring", Mistake::NoDash),
        ("all_reduce:-64k=ring", "-64k=ring", size("")),
        ("all_reduce:0-64q=ring", "0-64q=ring", size("64q")),
        ("all_reduce:+1-=ring", "+1-=ring", size("+1")),
        ("all_reduce:k-=ring", "k-=ring", size("k")),
        ("all_reduce:0-99999999999g=ring", "0-99999999999g=ring", size("99999999999g")),
        ("all_reduce:0-µ=ring", "0-µ=ring", size("µ")),
        ("all_reduce:8-8=ring", "8-8=ring", Mistake::Empty),
        ("all_reduce:0-8=ring,7-=ring", "7-=ring", Mistake::Overlap),
        ("all_reduce:0-=ring;all_reduce:9-10=ring", "9-10=ring", Mistake::Overlap),
        ("barrier:0-=x", "barrier:0-=x", Mistake::Collective { name: "barrier".to_owned() }),
        (
            "all_reduce:0-=tree",
            "0-=tree",
            Mistake::Algorithm { collective: Collective::AllReduce, name: "tree".to_owned() },
        ),
    ] {
        assert_eq!(mistake(text), TuningError { entry: entry.to_owned(), mistake: expected }, "{text}");
    }
}

#[test]
fn messages_say_what_is_allowed() {
    assert_eq!(
        mistake("all_reduce:0-=tree").to_string(),
        "GRADWIRE_TUNE: in `0-=tree`: all_reduce has no algorithm `tree`; there are owner_computes, \
         recursive_doubling, rabenseifner, ring"
    );
    assert_eq!(
        mistake("barrier:0-=x").to_string(),
        "GRADWIRE_TUNE: in `barrier:0-=x`: `barrier` is not tunable; there are all_reduce, broadcast, all_gather, \
         reduce_scatter, reduce, gather, scatter, all_to_all, scan, exclusive_scan"
    );
}

#[test]
fn the_explanation_shows_candidates_costs_and_reasons() {
    let tuning: Tuning = "all_reduce:0-=ring".parse().expect("valid");
    let sum = shape(Collective::AllReduce, 4, 1 << 20);
    let text = explain(&sum, &links(), &Tuning::default());
    assert!(text.starts_with("all_reduce of 1.00 MiB on 4 ranks\n"), "{text}");
    let chosen: Vec<_> = text.lines().filter(|line| line.starts_with('>')).collect();
    assert!(
        matches!(chosen[..], [line] if line.contains("rabenseifner") && line.ends_with("cheapest")),
        "{text}"
    );

    let text = explain(&sum, &links(), &tuning);
    assert!(
        text.lines().any(|line| line.starts_with("> ring") && line.ends_with("named by GRADWIRE_TUNE")),
        "{text}"
    );

    let text = explain(&Shape { exact_partials: false, ..sum }, &links(), &tuning);
    let excluded = "  ring                 cannot: all contributions must meet in one fold, though named by GRADWIRE_TUNE";
    assert!(text.lines().any(|line| line == excluded), "{text}");
    assert_eq!(
        explain(&shape(Collective::Gather, 1, 8), &links(), &tuning),
        "gather of 8 B on 1 rank: nothing to choose\n"
    );
}
