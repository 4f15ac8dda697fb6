//! Any text is a cursor of ours, which is written again as it came, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(again) = api::v1::read_cursor(text) {
        assert_eq!(again, text);
    }
});
