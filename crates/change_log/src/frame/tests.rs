use proptest::prelude::*;

use super::*;

fn encoded(seq: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let frame = Frame { seq, at_ms: -5, version: 3, payload };
    encode_frame(&mut out, frame, u32::try_from(payload.len()).unwrap());
    out
}

#[test]
fn a_frame_comes_back_and_every_prefix_is_unfinished() {
    let bytes = encoded(7, b"hello");
    let (frame, used) = decode_frame(&bytes).unwrap().unwrap();
    assert_eq!((frame.seq, frame.at_ms, frame.version), (7, -5, 3));
    assert_eq!((frame.payload, used), (&b"hello"[..], bytes.len()));
    for end in 0..bytes.len() {
        assert_eq!(decode_frame(&bytes[..end]), Ok(None));
    }
}

#[test]
fn lost_frames_are_counted_where_their_lengths_are_whole() {
    let mut bytes = [encoded(7, b"hello"), encoded(8, b""), encoded(9, b"after")].concat();
    bytes[FRAME_HEAD_BYTES] ^= 1;
    assert_eq!((count_lost(&bytes), count_lost(&[])), (3, 0));
    bytes[5] ^= 1;
    assert_eq!((count_lost(&bytes), count_lost(&[1])), (3, 1), "as many as there is room for");
}

proptest! {
    #[test]
    fn any_bytes_decode_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some((frame, used))) = decode_frame(&bytes) {
            prop_assert_eq!(encoded(frame.seq, frame.payload).len(), used);
        }
    }
}
