//! Any bytes are a message or rejected; a message can be applied, written and read back.
#![no_main]

use std::sync::{Arc, LazyLock};

use domain::{Catalogue, Timestamp};
use feeds::push;
use libfuzzer_sys::fuzz_target;
use market::{Book, Ids, Snapshot};

static CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::load(None).expect("ships with the crate")));

fuzz_target!(|body: &[u8]| {
    let now = Timestamp::from_secs(1_800_000_000);
    let mut book = Book::new(Arc::clone(&CATALOGUE), Ids::Minted { salt: 1 });
    for (_, line) in push::split_lines(body) {
        let Ok(message) = push::parse_line(line, &CATALOGUE, None) else { continue };
        let mut written = String::new();
        push::write_line(&message, &CATALOGUE, &mut written);
        let again = push::parse_line(written.trim_end().as_bytes(), &CATALOGUE, None);
        assert_eq!(again.as_ref(), Ok(&message));
        // Accepted or rejected, never a panic.
        drop(book.apply("fuzz", &message, now));
    }
    let snapshot = Snapshot::cut(
        &book,
        0,
        now,
        std::time::Duration::from_secs(90),
        api::wires(domain::World::Live),
    );
    assert_eq!(snapshot.events(), book.events().filter(|event| event.is_listed()).count());
});
