//! Messages that are looked at before they are received.

use gradwire::{Error, Source, Tag};
use gradwire_tests::ranks::{Over, run, values};

pub(crate) fn what_waits(over: Over) {
    run(over, 3, |comm| {
        for count in [3, 50_000] {
            if comm.rank() == 1 {
                comm.recv(&mut [0_u8; 0], 0, 1).unwrap();
                comm.send(&values(1, count), 0, 5).unwrap();
            }
            if comm.rank() == 0 {
                assert_eq!(comm.test_probe::<f32>(1, Tag::Any).unwrap(), None);
                assert!(comm.test_matched_probe(Source::Any, 5).unwrap().is_none());
                comm.send::<u8>(&[], 1, 1).unwrap();
                let found = comm.probe::<f32>(Source::Any, Tag::Any).unwrap();
                assert_eq!((found.source, found.tag, found.count), (1, 5, count));
                let error = comm.probe::<u32>(1, 5).unwrap_err();
                assert!(matches!(&error, Error::Misuse(text) if text.contains("another type")), "{error}");
                assert!(comm.test_probe::<u32>(1, 5).is_err());
                assert_eq!(comm.test_probe::<f32>(Source::Any, 5).unwrap(), Some(found));
                assert_eq!(comm.test_probe::<f32>(Source::Any, 6).unwrap(), None);
                assert_eq!(comm.test_probe::<f32>(2, 5).unwrap(), None);
                let mut buffer = vec![0.0_f32; count];
                assert_eq!(comm.recv(&mut buffer, found.source, found.tag).unwrap(), found);
                assert!(buffer == values(1, count));
                assert_eq!(comm.test_probe::<f32>(1, 5).unwrap(), None);
            }
        }
        comm.barrier().unwrap();
    });
}

/// A held message is nobody else's; what is dropped goes back to its place.
pub(crate) fn held_messages(over: Over) {
    run(over, 2, |comm| {
        const COUNT: usize = 20_000;
        if comm.rank() == 1 {
            for index in 0..4 {
                comm.buffered_send(&values(index, COUNT), 0, 1).unwrap();
            }
            comm.barrier().unwrap();
            return;
        }
        let first = comm.matched_probe(1, 1).unwrap();
        let second = comm.matched_probe(Source::Any, Tag::Any).unwrap();
        assert_eq!((first.source(), first.tag(), first.count::<f32>().unwrap()), (1, 1, COUNT));
        assert!(matches!(first.count::<u8>(), Err(Error::Misuse(_))));
        let mut buffer = vec![0.0_f32; COUNT];
        // The third overtakes those that are held, and a receive in another thread may have the second.
        comm.recv(&mut buffer, 1, 1).unwrap();
        assert!(buffer == values(2, COUNT));
        let thread = std::thread::spawn(move || second.recv_vec::<f32>().unwrap());
        let (all, received) = thread.join().unwrap();
        assert_eq!(received.count, COUNT);
        assert!(all == values(1, COUNT));
        // Neither a short buffer nor another type loses it.
        assert!(matches!(first.recv(&mut buffer[1..]).unwrap_err(), Error::Misuse(_)));
        assert!(matches!(comm.matched_probe(1, 1).unwrap().recv_vec::<u8>().unwrap_err(), Error::Misuse(_)));
        drop(comm.matched_probe(1, 1).unwrap());
        for index in [0, 3] {
            comm.matched_probe(1, 1).unwrap().recv(&mut buffer).unwrap();
            assert!(buffer == values(index, COUNT));
        }
        assert!(comm.test_matched_probe(1, 1).unwrap().is_none());
        // A message may outlive its communicator, but not be received any more.
        comm.send(&[1_u8], 0, 2).unwrap();
        let message = comm.matched_probe(0, 2).unwrap();
        comm.barrier().unwrap();
        drop(comm);
        assert!(matches!(message.recv_vec::<u8>().unwrap_err(), Error::Misuse(_)));
    });
}

/// What a rank has sent before it left can be found; nothing more will come.
pub(crate) fn whoever_has_left(over: Over) {
    run(over, 2, |comm| {
        if comm.rank() == 1 {
            comm.send(&[5_u32], 0, 1).unwrap();
            return;
        }
        let error = loop {
            match comm.test_probe::<u32>(1, 2) {
                Ok(found) => assert_eq!(found, None),
                Err(error) => break error,
            }
            std::thread::yield_now();
        };
        assert!(matches!(error, Error::PeerLost { rank: 1, .. }), "{error}");
        assert_eq!(comm.test_probe::<u32>(1, 1).unwrap().map(|found| found.count), Some(1));
        let mut value = [0_u32];
        comm.recv(&mut value, 1, 1).unwrap();
        assert_eq!(value, [5]);
    });
}
