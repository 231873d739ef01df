use super::*;
use crate::{ImportError, Peer, RemoteRegion};

/// A source of numbers that are all different.
fn counter() -> impl FnMut() -> u64 {
    let mut next = 0x9e37_79b9_0000_0000;
    move || {
        next += 1;
        next
    }
}

fn allocated(regions: &mut Regions, len: usize) -> Region {
    regions.allocate(len).unwrap().0
}

fn out_of_range(offset: usize, len: usize, region_len: usize) -> TransportError {
    TransportError::OutOfRange { offset, len, region_len }
}

#[test]
fn memory_of_the_caller_is_read_and_written_in_place() {
    let mut memory: Vec<u8> = (0..100).collect();
    let mut regions = Regions::new();
    // SAFETY: the vector outlives the region and is not touched before it is removed.
    let host = unsafe { Memory::host(NonNull::from(memory.as_mut_slice()).cast(), memory.len()) };
    let region = regions.insert(&host).unwrap();
    assert_eq!(regions.bytes(region, 10, 3).unwrap(), [10, 11, 12]);
    regions.bytes_mut(region, 98, 2).unwrap().copy_from_slice(&[7, 8]);
    assert!(regions.remove(region));
    assert_eq!(memory[97..], [97, 7, 8]);
}

#[test]
fn allocated_memory_is_zeroed_aligned_and_outlives_both_the_region_and_the_registry() {
    let mut regions = Regions::new();
    for len in [0, 1, 4095, 4096, 100_000] {
        let (region, allocation) = regions.allocate(len).unwrap();
        assert_eq!(allocation.len(), len);
        assert_eq!(allocation.address().as_ptr().addr() % 4096, 0);
        assert!(regions.bytes(region, 0, len).unwrap().iter().all(|&byte| byte == 0));
    }
    let (region, allocation) = regions.allocate(5).unwrap();
    regions.bytes_mut(region, 0, 5).unwrap().copy_from_slice(b"alive");
    drop(regions);
    // SAFETY: the allocation is valid for its five bytes, and the registry that shared it is gone.
    let bytes = unsafe { std::slice::from_raw_parts(allocation.address().as_ptr(), allocation.len()) };
    assert_eq!(bytes, b"alive");
}

#[test]
fn a_region_outlives_the_allocation_that_its_owner_dropped() {
    let mut regions = Regions::new();
    let (region, allocation) = regions.allocate(3).unwrap();
    drop(allocation);
    regions.bytes_mut(region, 0, 3).unwrap().fill(9);
    assert_eq!(regions.bytes(region, 0, 3).unwrap(), [9, 9, 9]);
}

#[test]
fn impossible_sizes_are_refused() {
    let mut regions = Regions::new();
    for len in [isize::MAX as usize, usize::MAX - 4096, usize::MAX] {
        assert!(regions.allocate(len).is_err(), "{len}");
    }
    // SAFETY: a lie, but the registry refuses such memory before it looks at it.
    let host = unsafe { Memory::host(NonNull::dangling(), usize::MAX) };
    assert_eq!(regions.insert(&host), Err(RegisterError::Limit { limit: isize::MAX as usize }));
}

#[test]
fn ranges_are_checked_without_overflow() {
    let mut regions = Regions::new();
    let region = allocated(&mut regions, 10);
    for (offset, len) in [(0, 0), (0, 10), (10, 0), (9, 1)] {
        assert_eq!(regions.bytes(region, offset, len).unwrap().len(), len);
        assert_eq!(regions.bytes_mut(region, offset, len).unwrap().len(), len);
        assert_eq!(regions.check(region, offset, len), Ok(()));
    }
    for (offset, len) in
        [(0, 11), (10, 1), (11, 0), (1, usize::MAX), (usize::MAX, 1), (usize::MAX, usize::MAX)]
    {
        let error = out_of_range(offset, len, 10);
        assert_eq!(regions.bytes(region, offset, len), Err(error.clone()));
        assert_eq!(regions.bytes_mut(region, offset, len), Err(error.clone()));
        assert_eq!(regions.check(region, offset, len), Err(error));
    }
}

#[test]
fn a_removed_region_gives_no_access_even_when_its_slot_is_used_again() {
    let mut regions = Regions::new();
    let old = allocated(&mut regions, 10);
    let key = regions.export(old, counter()).unwrap();
    assert!(regions.remove(old));
    assert!(!regions.remove(old));
    let new = allocated(&mut regions, 10);
    assert_eq!(old.index(), new.index());
    assert_ne!(old, new);
    assert_eq!(regions.bytes(old, 0, 1), Err(out_of_range(0, 1, 0)));
    assert_eq!(regions.bytes_mut(old, 0, 1), Err(out_of_range(0, 1, 0)));
    assert_eq!(regions.size(old), None);
    assert_eq!(regions.export(old, counter()), None);
    assert_eq!(regions.resolve(&key, 0, 1), Err(Denied::Revoked));
    assert_eq!(Denied::Revoked.offence(), None);
}

#[test]
fn a_key_opens_its_own_region_within_its_bounds() {
    let mut regions = Regions::new();
    let mut random = counter();
    let (first, second) = (allocated(&mut regions, 10), allocated(&mut regions, 20));
    let key = regions.export(first, &mut random).unwrap();
    assert_eq!(regions.export(first, &mut random), Some(key));
    let other = regions.export(second, &mut random).unwrap();
    assert_ne!(key, other);
    assert_eq!(regions.resolve(&key, 4, 6), Ok(Span { region: first, offset: 4, len: 6 }));
    assert_eq!(regions.resolve(&other, 20, 0), Ok(Span { region: second, offset: 20, len: 0 }));
    for (offset, len) in
        [(0, 11), (10, 1), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX), (1 << 63, 1 << 63)]
    {
        assert_eq!(regions.resolve(&key, offset, len), Err(Denied::OutOfRange));
    }
}

#[test]
fn no_other_key_opens_anything() {
    let mut regions = Regions::new();
    let region = allocated(&mut regions, 10);
    assert_eq!(
        regions.resolve(&KeyFields { region, len: 10, nonce: 0 }.encode(), 0, 1),
        Err(Denied::UnknownKey),
        "a region that was not exported"
    );
    let key = regions.export(region, counter()).unwrap();
    for bit in 0..8 * RegionKey::LEN {
        let mut bytes = *key.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // The length is for the peer's own checks; here the region's own counts.
        let is_length = (24..31).contains(&(bit / 8)) || (bit / 8 == 31 && bit % 8 != 7);
        let verdict = regions.resolve(&RegionKey::from_bytes(bytes), 0, 1);
        if is_length {
            assert!(verdict.is_ok(), "bit {bit}");
        } else {
            assert_eq!(verdict, Err(Denied::UnknownKey), "bit {bit}");
        }
    }
}

#[test]
fn a_key_is_not_printed() {
    let mut regions = Regions::new();
    let region = allocated(&mut regions, 1);
    regions.export(region, || 0x00de_ad00).unwrap();
    assert!(!format!("{regions:?}").contains(&0x00de_ad00.to_string()));
}

#[test]
fn a_peers_regions_are_checked_at_the_origin_and_go_with_the_peer() {
    let (mine, theirs) = (Peer::new(0, 0), Peer::new(1, 0));
    let key = KeyFields { region: Region::new(3, 1), len: 10, nonce: 5 }.encode();
    let mut remotes = RemoteRegions::new();
    let kept = remotes.import(mine, &key).unwrap();
    let lost = remotes.import(theirs, &key).unwrap();
    assert_eq!(remotes.locate(kept, 1, 9), Ok(&Remote { peer: mine, key, len: 10 }));
    assert_eq!(remotes.locate(kept, 1, 10), Err(out_of_range(1, 10, 10)));
    remotes.release_peer(theirs);
    assert_eq!(remotes.locate(lost, 0, 0), Err(out_of_range(0, 0, 0)));
    assert!(remotes.locate(kept, 0, 0).is_ok());
    remotes.release(kept);
    assert!(remotes.locate(kept, 0, 0).is_err());
    assert_eq!(remotes.import(mine, &RegionKey::from_bytes([0xff; 32])), Err(ImportError::BadKey));
    assert!(remotes.locate(RemoteRegion::new(77, 0), 0, 0).is_err());
}
