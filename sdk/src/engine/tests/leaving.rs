//! Who is blamed when processes leave, die or give up, and which calls go on.

use super::*;

const GRACE: Duration = Duration::from_millis(100);

fn receive(source: Option<Rank>, memory: &mut Private) -> Work {
    Work::Receive { pattern: Pattern { source, tag: Some(1) }, number: None, kind: 0, span: memory.span() }
}

fn send(to: Rank, memory: &mut Private) -> Work {
    Work::Send { to, tag: 1, kind: 0, payload: Payload::Lent(memory.span()), synchronous: false }
}

/// Rank 1 of four has all it needs, and ends; ranks 0 and 2 have still to hear from each other.
fn with_rank_1_ended_after_its_part() -> (Town, Vec<Key>) {
    let mut town = Town::new(4);
    let keys = town.call_all();
    // It hears from rank 2, and from rank 3, which speaks for rank 0, too.
    assert!(town.deliver(0, 3) && town.deliver(2, 1) && town.deliver(3, 1));
    town.assert_done(1, keys[1]);
    town.end(1, &[0, 2, 3]);
    (town, keys)
}

#[test]
fn a_call_goes_on_in_which_the_dead_has_done_its_part() {
    let (mut town, keys) = with_rank_1_ended_after_its_part();
    assert!(town.goes_on(0, keys[0]) && town.goes_on(2, keys[2]));
    town.deliver_among(&[0, 2, 3]);
    [0, 2, 3].iter().for_each(|rank| town.assert_done(*rank, keys[*rank]));
    // The next call fails at once, and for the others as soon as they hear of it.
    let next = [0, 2].map(|rank| town.call(rank));
    town.assert_lost(0, next[0], 1);
    town.assert_lost(2, next[1], 1);
}

#[test]
fn a_call_fails_that_needs_the_dead_and_all_hear_of_it() {
    let mut town = Town::new(4);
    let keys = town.call_all();
    // Rank 0 waits for rank 1 itself, rank 2 only for ranks 3 and 0.
    town.hang_up(1, 0);
    town.assert_lost(0, keys[0], 1);
    town.hang_up(1, 2);
    assert!(town.goes_on(2, keys[2]));
    while town.deliver(0, 2) {}
    town.assert_lost(2, keys[2], 1);
}

#[test]
fn whoever_ends_after_a_report_is_not_blamed() {
    let mut town = Town::new(4);
    let keys = town.call_all();
    town.hang_up(1, 0);
    // Rank 0 has told everyone, and ends at once. Nobody else has seen the end of rank 1 yet.
    town.end(0, &[2, 3]);
    town.assert_lost(2, keys[2], 1);
    town.assert_lost(3, keys[3], 1);
}

#[test]
fn whoever_ends_after_a_report_of_others_is_not_blamed() {
    let mut town = Town::new(4);
    let keys = town.call_all();
    town.hang_up(1, 0);
    // Rank 2 hears of it from rank 0, and ends at once; what rank 0 has said to rank 3 is still under way.
    while town.deliver(0, 2) {}
    town.end(2, &[3]);
    town.assert_lost(3, keys[3], 1);
}

#[test]
fn a_goodbye_outranks_the_end_of_those_who_failed_by_it() {
    let mut town = Town::new(4);
    town.goodbye(1);
    assert!(town.deliver(1, 3) && town.deliver(1, 0));
    let keys = [0, 2].map(|rank| town.call(rank));
    // It was called after rank 1 had left: no grace is needed.
    town.assert_lost(0, keys[0], 1);
    // Rank 3 is in the call of before, and sees the connection of rank 0 break without a word.
    let key = town.call(3);
    town.letters.remove(&(0, 3));
    town.hang_up(0, 3);
    town.assert_lost(3, key, 1);
}

#[test]
fn an_earlier_goodbye_is_the_cause_in_calls_under_way() {
    let mut town = Town::new(4);
    let key = town.call(3);
    town.goodbye(1);
    assert!(town.deliver(1, 3));
    assert!(town.goes_on(3, key), "puts may still arrive");
    // Within the grace rank 0 ends without a word.
    town.hang_up(0, 3);
    town.assert_lost(3, key, 1);
}

#[test]
fn what_comes_soon_after_a_goodbye_counts() {
    for in_time in [true, false] {
        let mut town = Town::new(2);
        let keys = town.call_all();
        assert!(town.deliver(0, 1));
        town.goodbye(1);
        // The goodbye overtakes the rest.
        let mut letters = town.letters.remove(&(1, 0)).unwrap();
        letters.rotate_right(1);
        town.letters.insert((1, 0), letters);
        assert!(town.deliver(1, 0));
        town.pass(if in_time { GRACE / 2 } else { GRACE });
        town.deliver_among(&[0, 1]);
        if in_time {
            town.assert_done(0, keys[0]);
            town.pass(GRACE);
        } else {
            town.assert_lost(0, keys[0], 1);
        }
    }
}

#[test]
fn nothing_comes_after_the_end_of_a_connection() {
    let mut town = Town::new(2);
    let key = town.call(0);
    town.goodbye(1);
    town.end(1, &[0]);
    town.assert_lost(0, key, 1);
}

#[test]
fn a_need_that_arises_late_is_seen() {
    let mut town = Town::new(3);
    let mut memory = [Private::zeroed(10_000), Private::zeroed(10_000)];
    let key = town.message(0, receive(None, &mut memory[0]));
    // Rank 1 announces a long message, leaves, and only then is heard.
    town.message(1, send(0, &mut memory[1]));
    let announcement = town.letters.remove(&(1, 0)).unwrap();
    town.goodbye(1);
    assert!(town.deliver(1, 0));
    town.pass(GRACE * 10);
    assert!(town.goes_on(0, key), "anybody may send");
    town.letters.insert((1, 0), announcement);
    assert!(town.deliver(1, 0));
    town.assert_lost(0, key, 1);
}

#[test]
fn a_call_that_somebody_has_not_begun_is_lost_with_the_dead() {
    for has_begun in [false, true] {
        let mut town = Town::new(4);
        // Rank 1 ends after its last word; rank 2, which waits for rank 3, needs nothing of it.
        let keys: Vec<Key> =
            if has_begun { town.call_all() } else { (0..3).map(|rank| town.call(rank)).collect() };
        assert!(town.deliver(2, 1));
        town.end(1, &[0, 2, 3]);
        town.pass(GRACE / 2);
        assert!(
            town.goes_on(2, keys[2]) && !town.letters.contains_key(&(2, 3)),
            "it asks only after a while"
        );
        town.pass(GRACE);
        while town.deliver(2, 3) {}
        while town.deliver(3, 2) {}
        if !has_begun {
            town.assert_lost(2, keys[2], 1);
            continue;
        }
        assert!(town.goes_on(2, keys[2]));
        town.deliver_among(&[0, 2, 3]);
        [0, 2, 3].iter().for_each(|rank| town.assert_done(*rank, keys[*rank]));
    }
}

#[test]
fn an_earlier_call_goes_on_when_a_later_one_is_given_up() {
    let mut town = Town::new(4);
    let keys = town.call_all();
    assert!(town.deliver(0, 3) && town.deliver(2, 1) && town.deliver(3, 1));
    town.end(1, &[0]);
    assert!(town.deliver(3, 2) && town.deliver(2, 0));
    // Rank 0 has ended the call, and fails in the next one. Rank 3 hears of it while rank 1's last word of the first is
    // still under way.
    town.assert_done(0, keys[0]);
    let next = town.call(0);
    town.assert_lost(0, next, 1);
    while town.deliver(0, 3) {}
    assert!(town.goes_on(3, keys[3]));
    town.end(1, &[3]);
    town.assert_done(3, keys[3]);
    let next = town.call(3);
    town.assert_lost(3, next, 1);
}

#[test]
fn messages_between_others_go_on() {
    let mut town = Town::new(3);
    let mut memory = [Private::zeroed(10), Private::copy_of(&[5; 10])];
    let received = town.message(0, receive(Some(2), &mut memory[0]));
    town.end(1, &[0, 2]);
    assert!(town.goes_on(0, received));
    let sent = town.message(2, send(0, &mut memory[1]));
    town.deliver_among(&[0, 2]);
    assert!(matches!(town.result(2, sent), Ok(Outcome::Done)));
    assert!(matches!(town.result(0, received), Ok(Outcome::Received { source: 2, len: 10, .. })));
}

#[test]
fn a_message_of_a_process_that_has_gone_is_still_received() {
    let mut town = Town::new(2);
    let mut memory = [Private::zeroed(10), Private::zeroed(10), Private::zeroed(10)];
    let [first, second, third] = &mut memory;
    town.message(1, send(0, first));
    town.end(1, &[0]);
    let received = town.message(0, receive(Some(1), second));
    assert!(matches!(town.result(0, received), Ok(Outcome::Received { source: 1, .. })));
    // A second one never comes, and one back goes nowhere.
    let missed = town.message(0, receive(Some(1), third));
    town.assert_lost(0, missed, 1);
    let returned = town.message(0, send(1, third));
    town.assert_lost(0, returned, 1);
}

#[test]
fn an_abort_is_passed_on() {
    let mut town = Town::new(3);
    let keys = town.call_all();
    town.at(0, |engine, port| engine.abort("enough", port));
    // Rank 1 hears of it and ends; rank 2 has heard of rank 1 only.
    while town.deliver(0, 1) {}
    town.end(1, &[2]);
    for (rank, key) in keys.into_iter().enumerate() {
        let error = town.result(rank, key).unwrap_err();
        assert!(matches!(&error, Error::Aborted { rank: 0, reason } if &**reason == "enough"), "{error}");
    }
}

#[test]
fn a_rank_that_others_have_lost_is_told_so() {
    let mut town = Town::new(3);
    let keys = town.call_all();
    // Only the connection between ranks 0 and 1 broke, and only rank 0 has seen it.
    town.hang_up(1, 0);
    town.assert_lost(0, keys[0], 1);
    while town.deliver(0, 2) {}
    while town.deliver(2, 1) {}
    let error = town.result(1, keys[1]).unwrap_err();
    assert!(matches!(error, Error::Aborted { rank: 1, .. }), "{error}");
}

#[test]
fn a_report_outlives_the_wait_for_its_communicator() {
    let mut town = Town::new(2);
    let late = GroupId(8);
    let join = |town: &mut Town, rank| {
        let calls = Arc::default();
        town.at(rank, |engine, port| engine.add_group(late, (0..2).collect(), rank, calls, port));
    };
    join(&mut town, 1);
    let begin = Begin { group: late, timeout: Some(GRACE), ..town.begin(Collective::Barrier, 0) };
    let work = || Work::Exchange { own: Vec::new(), contribution: Contribution::NOTHING };
    let key = town.at(1, |engine, port| engine.begin(begin.clone(), work(), port));
    town.pass(GRACE);
    assert!(matches!(town.result(1, key), Err(Error::TimedOut { .. })));
    while town.deliver(1, 0) {}
    join(&mut town, 0);
    let key = town.at(0, |engine, port| engine.begin(begin, work(), port));
    assert!(matches!(town.result(0, key), Err(Error::Aborted { rank: 0, .. })));
}
