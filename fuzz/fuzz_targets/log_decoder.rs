//! Any bytes on disk are decoded or refused: frames, checkpoints, entries, images.
#![no_main]

use std::sync::{Arc, LazyLock};

use domain::Catalogue;
use libfuzzer_sys::fuzz_target;
use market::book::IMAGE_VERSION;
use market::{Book, CHANGE_VERSION, Change};

static CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::load(None).expect("ships with the crate")));

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some((frame, used))) = change_log::decode_frame(bytes) {
        assert!(used <= bytes.len() && frame.payload.len() <= used);
    }
    drop(change_log::decode_checkpoint(bytes));
    if let Ok(change) = Change::decode(CHANGE_VERSION, bytes) {
        let mut written = Vec::new();
        change.encode(&mut written);
        assert_eq!(Change::decode(CHANGE_VERSION, &written), Ok(change));
    }
    if let Ok(book) = Book::from_image(IMAGE_VERSION, bytes, Arc::clone(&CATALOGUE)) {
        drop(book.to_image());
    }
});
