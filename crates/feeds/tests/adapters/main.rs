//! Translators of upstream formats: hand-made samples with their expected output, hostile input, and recordings of
//! real feeds if `../shared/data` is next to the repository.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stdout,
    reason = "an integration test is all tests"
)]

mod betfair;
mod hostile;
mod recorded;
mod samples;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::Catalogue;
use linesman_feeds::adapter::Settings;

/// The folder of the recordings, if it exists.
fn recordings() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !path.exists() {
        println!("no recordings at ../shared/data beside the repository: nothing is checked");
        return None;
    }
    Some(path)
}

/// A file's bytes, unpacked if it is packed; `None` if the tool for that is not installed.
fn read(path: &Path) -> Option<Vec<u8>> {
    let tool = match path.extension()?.to_str()? {
        "gz" => "gzip",
        "bz2" => "bzip2",
        _ => return Some(std::fs::read(path).unwrap()),
    };
    let Ok(output) = std::process::Command::new(tool).arg("-dc").arg(path).output() else {
        println!("{tool} is not installed: {} is not checked", path.display());
        return None;
    };
    assert!(output.status.success(), "{}", path.display());
    Some(output.stdout)
}

fn settings(bookmaker: &str) -> Settings {
    let mut settings = Settings::new(Arc::new(Catalogue::load(None).unwrap()));
    settings.bookmaker = settings.catalogue.bookmaker_id(bookmaker);
    settings
}

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapters")
}
