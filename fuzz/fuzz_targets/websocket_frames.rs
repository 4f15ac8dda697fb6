//! Any frames of a WebSocket client, split anywhere, are read the same or refused with a close code.
#![no_main]

use http::websocket::{BadFrame, Discarded, FrameReader, Received};
use libfuzzer_sys::fuzz_target;

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Received>, Option<BadFrame>) {
    let (mut reader, mut received) = (FrameReader::<Discarded>::default(), Vec::new());
    for mut rest in pieces {
        loop {
            match reader.read(&mut rest) {
                Ok(Some(one)) => received.push(one),
                Ok(None) => break,
                Err(bad) => return (received, Some(bad)),
            }
        }
        assert!(rest.is_empty());
    }
    (received, None)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let whole = read(std::iter::once(bytes));
    assert_eq!(whole, read(bytes.chunks(usize::from(piece).max(1))));
    if let (_, Some(bad)) = whole {
        assert!(matches!(bad.code, 1002 | 1007 | 1009), "{bad:?}");
    }
});
