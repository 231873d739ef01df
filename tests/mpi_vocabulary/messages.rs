//! Messages between two ranks.

use super::everywhere;
use gradwire::{Source, Tag};

#[test]
fn a_ring_passes_on_what_it_gets() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let mut token = [rank as u64];
        for _ in 0..size {
            let mut received = [0];
            comm.send_receive(&token, next, 3, &mut received, previous, 3).unwrap();
            token = received;
        }
        assert_eq!(token, [rank as u64], "once around");
        let mut long = vec![rank as f32; 100_000];
        comm.send_receive_replace(&mut long, next, 4, previous, 4).unwrap();
        assert!(long.iter().all(|value| *value == previous as f32));
    });
}

#[test]
fn whoever_comes_first_is_served_first() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        if rank > 0 {
            comm.send(&vec![rank as u16; rank], 0, rank as u32).unwrap();
            return;
        }
        let mut seen = vec![false; size];
        for _ in 1..size {
            let (values, received) = comm.recv_vec::<u16>(Source::Any, Tag::Any).unwrap();
            assert_eq!((received.tag, received.count), (received.source as u32, received.source));
            assert_eq!(values, vec![received.source as u16; received.source]);
            assert!(!std::mem::replace(&mut seen[received.source], true));
        }
    });
}

#[test]
fn a_message_may_be_looked_at_before() {
    everywhere(|comm| {
        if comm.rank() == 1 {
            comm.send(&[1.5_f64, 2.5], 0, 7).unwrap();
            comm.send(&[3.5_f64], 0, 7).unwrap();
        } else if comm.rank() == 0 {
            assert_eq!(comm.probe::<f64>(1, 7).unwrap().count, 2);
            let message = comm.matched_probe(1, 7).unwrap();
            let mut later = [0.0];
            comm.recv(&mut later, 1, 7).unwrap();
            let (first, _) = message.recv_vec::<f64>().unwrap();
            assert_eq!((first, later), (vec![1.5, 2.5], [3.5]));
        }
    });
}

/// A ready send promises that the receive is there: a plain send, which needs no such promise. A synchronous one has been
/// received when it returns, a buffered one not even sent.
#[test]
fn ways_of_sending() {
    everywhere(|comm| match comm.rank() {
        0 => {
            comm.buffered_send(&[1_u8], 1, 1).unwrap();
            comm.synchronous_send(&[2_u8], 1, 2).unwrap();
            comm.send(&[3_u8], 1, 3).unwrap();
        }
        1 => {
            for tag in [1, 2, 3] {
                let mut value = [0];
                comm.recv(&mut value, 0, tag).unwrap();
                assert_eq!(value, [tag as u8]);
            }
        }
        _ => {}
    });
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    everywhere(|comm| {
        let others = comm.size() - 1;
        if comm.rank() > 0 {
            comm.send(&[1_u64], 0, 0).unwrap();
            comm.barrier().unwrap();
            comm.send(&[2_u64], 0, 0).unwrap();
            return;
        }
        for said in [1, 2] {
            for _ in 0..others {
                let mut value = [0_u64];
                comm.recv(&mut value, Source::Any, 0).unwrap();
                assert_eq!(value, [said]);
            }
            if said == 1 {
                comm.barrier().unwrap();
            }
        }
    });
}

#[test]
fn a_buffered_message_to_oneself_waits_until_it_is_received() {
    everywhere(|comm| {
        comm.set_send_buffer(1 << 20);
        let values: Vec<f32> = (0..1024).map(|index| (comm.rank() * 1024 + index) as f32).collect();
        comm.buffered_send(&values, comm.rank(), 5).unwrap();
        let (received, from) = comm.recv_vec::<f32>(Source::Any, Tag::Any).unwrap();
        assert_eq!((from.source, from.tag, received), (comm.rank(), 5, values));
    });
}
