//! Any mapping compiles or has faults; a compiled mapping turns any input into a read or drift, and the messages can
//! be parsed again.
#![no_main]

use std::sync::{Arc, LazyLock};

use domain::{Catalogue, Timestamp};
use feeds::adapter::mapped::{Mapped, Mapping};
use feeds::adapter::{Settings, Translator};
use feeds::push;
use libfuzzer_sys::fuzz_target;

static CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::load(None).expect("ships with the crate")));

/// Used if the input has no mapping: a NUL separates the two.
const MAPPING: &str = "[event]\neach = \"e\"\ngroup = \"g\"\nref = \"id\"\nsport = \"'tennis'\"\n\
    competition = \"c | default('c')\"\ncommence_time = [\"t | epoch_s\", \"t\"]\nhome = \"h\"\naway = \"a\"\n\
    [[market]]\neach = \"/e.m\"\njoin = \"^.id\"\nkey = \"spread\"\nformat = \"auto\"\n\
    [[market.outcome]]\neach = \"o[s!={x}]\"\nname = \"n | regex('(.*)')\"\nprice = [\"p | json[0]\", \"p\"]\npoint = \"l | div(4)\"\n";

fuzz_target!(|input: &[u8]| {
    let (mapping, body) = match input.iter().position(|byte| *byte == 0) {
        Some(end) => (String::from_utf8_lossy(&input[..end]).into_owned(), &input[end + 1..]),
        None => {
            let format = ["json", "ndjson", "xml", "csv"][input.len() % 4];
            (format!("format = \"{format}\"\n{MAPPING}"), input)
        }
    };
    let Ok(mapping) = Mapping::compile(&mapping) else { return };
    let mut settings = Settings::new(Arc::clone(&CATALOGUE));
    settings.bookmaker = CATALOGUE.bookmaker_id("betway");
    let mut mapped = Mapped::new(Arc::new(mapping), settings);
    let Ok(read) = mapped.translate("u", body, Timestamp::from_secs(1_800_000_000)) else { return };
    for message in read.messages() {
        let mut line = String::new();
        push::write_line(&message, &CATALOGUE, &mut line);
        assert!(push::parse_line(line.trim_end().as_bytes(), &CATALOGUE, None).is_ok(), "{line}");
    }
});
