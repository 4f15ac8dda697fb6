//! Any text is either a valid cursor, which is encoded to the same text, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(again) = api::v1::read_cursor(text) {
        assert_eq!(again, text);
    }
});
