//! Any input gives reads or drift of `betfair`, and the messages can be parsed again.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use domain::{Catalogue, Timestamp};
use feeds::adapter::betfair::{Betfair, Options};
use feeds::adapter::{Settings, Translator};
use feeds::push;
use libfuzzer_sys::fuzz_target;

static CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::load(None).expect("ships with the crate")));

fuzz_target!(|input: &[u8]| {
    let settings = Settings::new(Arc::clone(&CATALOGUE));
    let mut translator =
        Betfair::new(settings, Options { min_size: 0, emit_every: Duration::ZERO });
    for (line, unit) in
        input.split(|byte| *byte == b'\n').zip(["odds/x", "scores/x", "events/x"].iter().cycle())
    {
        let Ok(read) = translator.translate(unit, line, Timestamp::from_secs(1_800_000_000)) else {
            continue;
        };
        for message in read.messages() {
            let mut line = String::new();
            push::write_line(&message, &CATALOGUE, &mut line);
            assert!(
                push::parse_line(line.trim_end().as_bytes(), &CATALOGUE, None).is_ok(),
                "{line}"
            );
        }
    }
});
