//! Any path and query is accepted or refused with one of our codes.
#![no_main]

use std::sync::LazyLock;

use domain::Catalogue;
use libfuzzer_sys::fuzz_target;

static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::load(None).expect("ships with the crate"));

fuzz_target!(|target: &str| {
    let (path, query) = target.split_once('?').unwrap_or(("/v1/sports/mma/odds", target));
    if let Err(code) = api::v1::check_target(path, query, &CATALOGUE) {
        assert!(matches!(code.status(), 400 | 404), "{code:?}");
    }
});
