//! Any text is either a price, which can be written in every format and read back, or refused.
#![no_main]

use domain::{Format, Line, Quote};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for format in Format::ALL {
        if let Ok(quote) = Quote::parse(text, format) {
            let own = quote.to_json(format);
            let again = Quote::parse(own.trim_matches('"'), format).expect("what we write we read");
            assert_eq!(again.price, quote.price);
            for other in Format::ALL {
                assert!(!quote.to_json(other).is_empty());
            }
        }
    }
    if let Ok(line) = Line::parse(text) {
        let mut written = String::new();
        line.write_json(&mut written);
        assert_eq!(Line::parse(&written), Ok(line));
    }
});
