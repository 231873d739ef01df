//! Whatever key and range a peer shows, access is denied or stays inside a region, and only the true key opens it.
#![no_main]

use gradwire_transport::RegionKey;
use gradwire_transport::region::Regions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((changes, rest)) = bytes.split_first_chunk::<{ RegionKey::LEN }>() else { return };
    let Some((range, _)) = rest.split_first_chunk::<16>() else { return };
    let mut regions = Regions::new();
    let (old, _) = regions.allocate(64).unwrap();
    let stale = regions.export(old, || 1).unwrap();
    regions.remove(old);
    let (region, _) = regions.allocate(100).unwrap();
    let key = regions.export(region, || 2).unwrap();
    for good in [stale, key] {
        let mut shown = *good.as_bytes();
        shown.iter_mut().zip(changes).for_each(|(byte, change)| *byte ^= change);
        let offset = u64::from_le_bytes(*range.first_chunk().unwrap());
        let len = u64::from_le_bytes(*range.last_chunk().unwrap());
        if let Ok(span) = regions.resolve(&RegionKey::from_bytes(shown), offset, len) {
            assert_eq!(span.region, region);
            // All but the length, which is for the origin's own checks.
            assert_eq!(shown[..24], key.as_bytes()[..24]);
            assert_eq!(regions.bytes_mut(span.region, span.offset, span.len).unwrap().len() as u64, len);
        }
    }
});
