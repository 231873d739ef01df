use super::*;
use crate::{FrameKind, OperationId, golden};

const OFFSET: u64 = 0x6162_6364_6566_6768;

/// One request of each kind.
fn requests() -> Vec<WindowRequest> {
    let mut requests = vec![
        WindowRequest::Put { offset: OFFSET, notice: None },
        WindowRequest::Put { offset: OFFSET, notice: Some(0) },
        WindowRequest::Get { offset: OFFSET, count: 0x9192_9394 },
        WindowRequest::CompareAndSwap { offset: OFFSET },
        WindowRequest::Lock { exclusive: false },
        WindowRequest::Lock { exclusive: true },
        WindowRequest::Unlock,
        WindowRequest::Post,
        WindowRequest::Complete,
        WindowRequest::Close,
    ];
    for update in WindowUpdate::ALL {
        requests.push(WindowRequest::Accumulate { offset: OFFSET, update });
        requests.push(WindowRequest::GetAccumulate { offset: OFFSET, update });
    }
    requests
}

fn header(kind: FrameKind, sequence: u64) -> FrameHeader {
    let mut header = FrameHeader::new(kind);
    header.sequence = sequence;
    header
}

#[test]
fn golden_bytes() {
    let requests = requests().into_iter().map(|request| {
        let mut header = header(FrameKind::Window, 0x3132_3334);
        request.encode(&mut header);
        assert_eq!(WindowRequest::decode(&header), Ok(request));
        header.encode()
    });
    let replies = [WindowReply::Applied, WindowReply::Values, WindowReply::Granted].map(|reply| {
        let mut header = header(FrameKind::WindowReply, 0x3132_3334);
        reply.encode(&mut header);
        assert_eq!(WindowReply::decode(&header), Ok(reply));
        header.encode()
    });
    let frames: Vec<_> = requests.chain(replies).collect();
    golden::check("window_frames.bin", frames.as_flattened());
}

#[test]
fn updates_that_are_reductions_have_their_codes() {
    let names = WindowUpdate::ALL.map(|update| OperationId(update.code().into()).built_in_name());
    let expected = ["sum", "product", "min", "max", "bitwise_and", "bitwise_or", "bitwise_xor"];
    assert_eq!(names[..7], expected.map(Some));
    assert_eq!(names[7..], [Some("logical_and"), Some("logical_or"), Some("logical_xor"), None, None]);
}

#[test]
fn what_means_nothing_is_refused() {
    let header = |tag, offset, slot| {
        let mut header = header(FrameKind::Window, 0);
        (header.tag, header.offset, header.slot) = (tag, offset, slot);
        header
    };
    for known in 1..=11_u32 {
        let update = if known == 3 || known == 4 { 1 << 8 } else { 0 };
        assert!(WindowRequest::decode(&header(known | update, 0, 0)).is_ok(), "{known}");
        assert!(WindowRequest::decode(&header(known | 1 << 16, 0, 0)).is_err(), "{known}");
        assert!(WindowRequest::decode(&header(known | (update ^ 1 << 8), 0, 0)).is_err(), "{known}");
    }
    for tag in [0, 12, 255, 3 | 2 << 8, 3 | 66 << 8, u32::MAX] {
        assert!(WindowRequest::decode(&header(tag, 0, 0)).is_err(), "{tag}");
    }
    assert!(WindowRequest::decode(&header(9, 1, 0)).is_err());
    assert!(WindowRequest::decode(&header(3 | 1 << 8, 1, 1)).is_err());
    assert!(WindowReply::decode(&header(0, 0, 0)).is_err());
    assert!(WindowReply::decode(&header(4, 0, 0)).is_err());
}
