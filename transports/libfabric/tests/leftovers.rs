//! What is left in the file system of endpoints that were dropped in the middle of something. A binary of its own: files
//! tell by their names which process made them, not which test.

use gradwire_transport::{Event, EventRef, Events, Peer, Transport};
use gradwire_transport_libfabric::{Libfabric, LibfabricConfig, OpenError};
use std::time::Instant;

#[test]
fn the_provider_over_shared_memory_leaves_no_file() {
    let (mut one, mut other) = match (open(), open()) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(error @ (OpenError::NotPresent { .. } | OpenError::NoProvider { .. })), _) => {
            return eprintln!("skipped: {error}");
        }
        (one, other) => panic!("{one:?} {other:?}"),
    };
    assert_eq!(files(), 2, "as the provider works now: look for what it leaves elsewhere");
    let (address, peer) = (one.address(), Peer::new(0, 1));
    one.connect(peer, &other.address()).unwrap();
    other.connect(peer, &address).unwrap();
    while !has_connected(&mut one) {
        has_connected(&mut other);
    }
    drop(one);
    drop(other);
    assert_eq!(files(), 0);
}

fn open() -> Result<Libfabric, OpenError> {
    let mut config = LibfabricConfig::default();
    config.provider = Some("shm".to_owned());
    config.control.interface = Some("127.0.0.1".parse().unwrap());
    Libfabric::new(config)
}

fn has_connected(endpoint: &mut Libfabric) -> bool {
    let mut events = Events::new();
    endpoint.progress(Instant::now(), &mut events).unwrap();
    events.iter().any(|event| matches!(event, EventRef::Other(Event::Connected(_))))
}

/// The provider's files of this process.
fn files() -> usize {
    let own = format!("{}:", std::process::id());
    let entries = std::fs::read_dir("/dev/shm").unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count()
}
