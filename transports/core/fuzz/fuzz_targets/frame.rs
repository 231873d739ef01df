//! A header decodes to a frame of exactly that header, within the limits, or to an error.
#![no_main]

use gradwire_transport::Limits;
use gradwire_transport::frame::Frame;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(header) = bytes.first_chunk() else { return };
    match Frame::decode(header, &Limits::MODEST) {
        Ok(frame) => {
            assert_eq!(frame.encode(), *header);
            assert!(frame.payload() <= Limits::MODEST.put);
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.offence().is_empty()),
    }
});
