//! The names that texts of a mapping may refer to.

use domain::suggest::did_you_mean;
use jiff::tz::TimeZone;

use super::document::Symbols;

/// The names that texts of a mapping may refer to.
#[derive(Debug)]
pub(super) struct Names<'n> {
    pub(super) symbols: &'n mut Symbols,
    pub(super) zone: &'n TimeZone,
    pub(super) tables: &'n [String],
}

impl Names<'_> {
    pub(super) fn table(&self, name: &str) -> Result<usize, String> {
        self.tables.iter().position(|table| table == name).ok_or_else(|| {
            let near = did_you_mean(name, self.tables.iter().map(String::as_str));
            format!("there is no table [tables.{name}]{near}")
        })
    }
}
