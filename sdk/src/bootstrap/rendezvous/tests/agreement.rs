//! Jobs that form, and jobs whose ranks do not agree.

use super::*;
use crate::bootstrap::rendezvous::frame::MAX_CONTRIBUTION;

/// Long enough that all threads of a test get to run on a busy machine, short enough to wait for.
const ENOUGH: Duration = Duration::from_secs(4);

/// All ranks exchange two rounds; returns what each has in common with the others.
fn exchange(address: &MeetingAddress, size: usize, key: Option<&JobSecret>) -> Option<JobSecret> {
    let _host = host(address, size, key);
    let common = job(size, |rank| {
        let mut client = join(address, rank, size, key, PLENTY).unwrap();
        for round in 0..2 {
            let all = client.all_gather(&contribution(rank, round), Instant::now() + PLENTY).unwrap();
            let expected: Vec<_> = (0..size).map(|rank| contribution(rank, round)).collect();
            assert_eq!(all, expected, "rank {rank}, round {round}");
        }
        (client.epoch(), client.secret().cloned())
    });
    assert!(common.iter().all(|other| *other == common[0]), "the ranks have different epochs or secrets");
    common[0].1.clone()
}

#[test]
fn ranks_meet_over_a_unix_socket_and_are_given_a_secret() {
    let secrets: Vec<_> = [1, 2, 3, 64].map(|size| exchange(&unix(), size, None).unwrap()).into();
    assert_ne!(secrets[0], secrets[1], "each incarnation has a secret of its own");
}

#[test]
fn ranks_meet_over_tcp_with_and_without_a_secret() {
    assert_eq!(exchange(&tcp(), 3, None), None, "over TCP nothing secret is handed out");
    let (first, second) = (exchange(&tcp(), 3, Some(&key(1))), exchange(&tcp(), 3, Some(&key(1))));
    assert!(first.is_some() && first != Some(key(1)) && first != second);
}

#[test]
fn two_hundred_and_fifty_six_ranks_meet_at_once() {
    exchange(&unix(), 256, None);
    exchange(&tcp(), 256, Some(&key(1)));
}

#[test]
fn ranks_may_come_before_the_host() {
    let address = tcp();
    thread::scope(|scope| {
        let early = scope.spawn(|| join(&address, 1, 2, None, PLENTY));
        let _host = host(&address, 2, None);
        join(&address, 0, 2, None, PLENTY).unwrap();
        early.join().unwrap().unwrap();
    });
}

#[test]
fn a_name_is_looked_up_and_listened_on() {
    let port = loopback().port() + 1 + u16::from(std::process::id().to_le_bytes()[0]);
    let address = MeetingAddress::Tcp { host: "localhost".into(), port };
    exchange(&address, 2, Some(&key(3)));
    let nowhere = MeetingAddress::Tcp { host: "no-such-host.invalid".into(), port };
    let outcome = join(&nowhere, 1, 2, None, Duration::from_millis(200));
    let reason = reason(&outcome);
    assert!(reason.contains("no-such-host.invalid") && reason.contains("resolve"), "{reason}");
}

#[test]
fn a_launcher_lets_its_ranks_meet_again_and_again() {
    let address = unix();
    let _host = Host::start(&address, Rules { size: 3, key: None, repeats: true }).unwrap();
    let epochs = job(3, |rank| {
        let mut epochs = Vec::new();
        for round in 0..20 {
            let mut client = join(&address, rank, 3, None, PLENTY).unwrap();
            let all = client.all_gather(&contribution(rank, round), Instant::now() + PLENTY).unwrap();
            assert_eq!(all, [0, 1, 2].map(|rank| contribution(rank, round)));
            epochs.push(client.epoch());
        }
        epochs
    });
    assert!(epochs.iter().all(|other| *other == epochs[0]));
    assert_eq!(epochs[0].iter().collect::<std::collections::HashSet<_>>().len(), 20);
}

#[test]
fn ranks_meet_again_where_rank_0_hosts_anew() {
    for address in [unix(), tcp()] {
        job(3, |rank| {
            for round in 0..20 {
                let host = (rank == 0).then(|| host(&address, 3, None));
                let mut client = join(&address, rank, 3, None, PLENTY).unwrap();
                let all = client.all_gather(&contribution(rank, round), Instant::now() + PLENTY).unwrap();
                assert_eq!(
                    all,
                    [0, 1, 2].map(|rank| contribution(rank, round)),
                    "rank {rank}, round {round}"
                );
                drop((client, host));
            }
        });
    }
}

#[test]
fn two_processes_with_one_rank_end_the_start_of_all() {
    let address = unix();
    let _host = host(&address, 3, None);
    // Threads 1 and 2 both say that they are rank 1.
    let outcomes = job(3, |thread| join(&address, thread.min(1), 3, None, PLENTY));
    for outcome in &outcomes {
        assert!(reason(outcome).contains("two processes say that they are rank 1"), "{outcome:?}");
    }
}

#[test]
fn ranks_that_believe_in_different_sizes_all_hear_of_it() {
    let address = unix();
    let _host = host(&address, 3, None);
    let outcomes = job(3, |rank| join(&address, rank, if rank == 2 { 4 } else { 3 }, None, PLENTY));
    for outcome in &outcomes {
        let reason = reason(outcome);
        assert!(reason.contains("has 3 ranks") && reason.contains("rank 2 of 4"), "{reason}");
    }
}

#[test]
fn those_who_do_not_come_are_named() {
    let address = unix();
    let _host = host(&address, 8, None);
    let outcomes = job(5, |index| join(&address, [0, 1, 2, 4, 6][index], 8, None, ENOUGH));
    for outcome in &outcomes {
        assert!(reason(outcome).contains("ranks 3, 5, 7 of 8 did not come in time"), "{outcome:?}");
    }
}

#[test]
fn a_rank_with_another_secret_is_refused_and_the_others_hear_of_it() {
    let address = tcp();
    let _host = host(&address, 2, Some(&key(1)));
    let outcomes = job(2, |rank| {
        let key = if rank == 0 { key(1) } else { key(2) };
        join(&address, rank, 2, Some(&key), ENOUGH)
    });
    let [right, wrong] = [0, 1].map(|rank| reason(&outcomes[rank]));
    assert!(right.contains("rank 1 of 2 did not come in time; 1 attempts with another secret"), "{right}");
    assert!(wrong.contains("the secret of this process is not that of the job"), "{wrong}");
}

#[test]
fn a_secret_on_one_side_only_is_an_error_at_once() {
    let address = tcp();
    let _host = host(&address, 2, Some(&key(1)));
    assert!(reason(&join(&address, 1, 2, None, PLENTY)).contains("set GRADWIRE_SECRET_FILE for all ranks"));
    let address = tcp();
    let _host = host(&address, 2, None);
    assert!(reason(&join(&address, 1, 2, Some(&key(1)), PLENTY)).contains("but the rendezvous has none"));
}

#[test]
fn a_rank_that_ends_early_is_named() {
    let address = unix();
    let _host = host(&address, 3, None);
    let outcomes = job(3, |rank| {
        let mut client = join(&address, rank, 3, None, PLENTY)?;
        match rank {
            2 => Ok(Vec::new()),
            _ => client.all_gather(&[7], Instant::now() + PLENTY),
        }
    });
    for outcome in &outcomes[..2] {
        let reason = reason(outcome);
        assert!(reason.contains("rank 2 (") && reason.contains("ended during the start"), "{reason}");
    }
}

#[test]
fn a_rank_that_is_late_in_a_round_is_named() {
    let address = unix();
    let _host = host(&address, 3, None);
    let gathered = std::sync::Barrier::new(3);
    let outcomes = job(3, |rank| {
        let mut client = join(&address, rank, 3, None, PLENTY).unwrap();
        let outcome = match rank {
            1 => Ok(Vec::new()),
            _ => client.all_gather(&[7], Instant::now() + ENOUGH),
        };
        // Rank 1 stays connected until the others have given up.
        gathered.wait();
        outcome
    });
    for rank in [0, 2] {
        assert!(reason(&outcomes[rank]).contains("rank 1 did not take part in the start in time"));
    }
}

#[test]
fn contributions_have_a_limit() {
    let address = unix();
    let _host = host(&address, 2, None);
    job(2, |rank| {
        let mut client = join(&address, rank, 2, None, PLENTY).unwrap();
        let deadline = Instant::now() + PLENTY;
        let error = client.all_gather(&vec![1; MAX_CONTRIBUTION + 1], deadline).unwrap_err();
        assert!(matches!(error, Error::Misuse(_)), "{error}");
        let longest = |rank| vec![u8::try_from(rank).unwrap() + 1; MAX_CONTRIBUTION];
        assert_eq!(client.all_gather(&longest(rank), deadline).unwrap(), [longest(0), longest(1)]);
    });
}

#[test]
fn a_host_that_ends_leaves_nothing_behind() {
    let address = unix();
    drop(host(&address, 2, None));
    drop(host(&address, 2, None));
    let outcome = join(&address, 1, 2, None, Duration::from_millis(50));
    assert!(reason(&outcome).contains("refused"), "{outcome:?}");
}
