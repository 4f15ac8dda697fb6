//! Loads the catalogue.

use std::sync::Arc;

use anyhow::Context;
use domain::Catalogue;

use crate::config::Config;

/// The embedded catalogue with the operator's file applied to it.
pub(crate) fn load(config: &Config) -> anyhow::Result<Arc<Catalogue>> {
    let file = match &config.catalogue.file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("the catalogue file {} cannot be read", path.display()))?;
            Some((path, text))
        }
        None => None,
    };
    let loaded = Catalogue::load(file.as_ref().map(|(_, text)| text.as_str()));
    let catalogue = match (loaded, &file) {
        (Ok(catalogue), _) => catalogue,
        (Err(error), Some((path, _))) => {
            return Err(error)
                .with_context(|| format!("the catalogue file {} is invalid", path.display()));
        }
        (Err(error), None) => return Err(error).context("the embedded catalogue is invalid"),
    };
    Ok(Arc::new(catalogue))
}
