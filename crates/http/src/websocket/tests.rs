use proptest::prelude::*;

use super::*;

/// A frame in the format of a client.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = begin_frame(first & 0xF, payload.len());
    frame[0] = first;
    frame[1] |= MASKED;
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Everything read from bytes that arrive in pieces.
fn read(bytes: &[u8], piece: usize) -> (Vec<Received>, Option<BadFrame>) {
    let (mut reader, mut received) = (FrameReader::<Discarded>::default(), Vec::new());
    for mut rest in bytes.chunks(piece) {
        loop {
            match reader.read(&mut rest) {
                Ok(Some(one)) => received.push(one),
                Ok(None) => break,
                Err(bad) => return (received, Some(bad)),
            }
        }
        assert!(rest.is_empty() && reader.control.len() <= CONTROL_BYTES_MAX);
    }
    (received, None)
}

#[test]
fn a_key_is_answered_as_the_rfc_has_it() {
    let key = b"dGhlIHNhbXBsZSBub25jZQ==";
    assert_eq!(accept_key(key).as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    for bad in
        [&b""[..], b"dGhlIHNhbXBsZSBub25jZQ", b"c2hvcnQ=", b"\xff", b"dGhlIHNhbXBsZSBub25jZSE="]
    {
        assert_eq!(accept_key(bad), None);
    }
}

#[test]
fn frames_have_the_shortest_length() {
    for (length, head) in [
        (0, &[0x81, 0][..]),
        (125, &[0x81, 125]),
        (126, &[0x81, 126, 0, 126]),
        (65_535, &[0x81, 126, 255, 255]),
        (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] {
        let frame = text_frame(&[&vec![b'x'; length]]);
        assert_eq!((frame.starts_with(head), frame.len()), (true, head.len() + length));
    }
    assert!(is_ping(&ping_frame()) && !is_ping(&pong_frame(b"a")) && !is_ping(&[]));
    assert_eq!(close_frame(None, "never sent"), [0x88, 0]);
    let long = "ä".repeat(100);
    let close = close_frame(Some(4408), &long);
    assert_eq!((close[1], &close[2..4]), (124, &4408_u16.to_be_bytes()[..]));
    assert!(long.starts_with(std::str::from_utf8(&close[4..]).unwrap()));
}

#[test]
fn what_a_client_may_send_is_read_in_any_pieces() {
    let mut bytes = masked(FIN | PING, b"hello");
    bytes.extend(masked(FIN | PONG, b""));
    // A ping between the parts of a message.
    bytes.extend(masked(TEXT, b"one "));
    bytes.extend(masked(FIN | PING, &[7; CONTROL_BYTES_MAX]));
    bytes.extend(masked(FIN | CONTINUATION, b"message"));
    bytes.extend(masked(FIN | BINARY, &vec![0; 4 << 10]));
    bytes.extend(masked(FIN | CLOSE, b"\x03\xe8bye"));
    bytes.extend(masked(FIN | CLOSE, b""));
    let expected = [
        Received::Ping(b"hello".to_vec()),
        Received::Pong,
        Received::Ping(vec![7; CONTROL_BYTES_MAX]),
        Received::Message,
        Received::Message,
        Received::Close(Some(1000)),
        Received::Close(None),
    ];
    for piece in [1, 2, 3, 7, 4096, bytes.len()] {
        assert_eq!(read(&bytes, piece), (expected.to_vec(), None), "{piece} at a time");
    }
}

#[test]
fn what_a_client_must_not_send_has_its_close_code() {
    let unmasked = text_frame(&[b"hello"]);
    let not_shortest = [0x81, MASKED | 126, 0, 5, 0, 0, 0, 0];
    let endless = [0x82, MASKED | 127, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0];
    let in_parts = [masked(TEXT, &[b'x'; 4096]), masked(FIN | CONTINUATION, b"x")].concat();
    let two = [masked(TEXT, b"one"), masked(FIN | TEXT, b"two")].concat();
    for (bytes, code) in [
        (unmasked, 1002),
        (masked(FIN | 0x40 | TEXT, b""), 1002),
        (masked(FIN | 0x3, b""), 1002),
        (masked(FIN | 0xB, b""), 1002),
        (masked(PING, b""), 1002),
        (masked(FIN | PING, &[0; 126]), 1002),
        (masked(FIN | CONTINUATION, b""), 1002),
        (two, 1002),
        (not_shortest.to_vec(), 1002),
        (endless.to_vec(), 1002),
        (masked(FIN | CLOSE, b"\x03"), 1002),
        (masked(FIN | CLOSE, &1005_u16.to_be_bytes()), 1002),
        (masked(FIN | CLOSE, &999_u16.to_be_bytes()), 1002),
        (masked(FIN | CLOSE, b"\x03\xe8\xff"), 1007),
        (masked(FIN | TEXT, &[b'x'; 4097]), 1009),
        (in_parts, 1009),
    ] {
        let (_, bad) = read(&bytes, bytes.len());
        assert_eq!(bad.map(|bad| bad.code), Some(code), "{bytes:?}");
        assert_eq!(read(&bytes, 1).1, bad);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_the_same_in_any_pieces(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        piece in 1_usize..40,
    ) {
        prop_assert_eq!(read(&bytes, piece), read(&bytes, bytes.len().max(1)));
    }
}
