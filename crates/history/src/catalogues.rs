//! The catalogues that entries were written under: a publication is shown again with its own catalogue.

use domain::Catalogue;

use crate::archive::{Archive, Outcome};
use crate::commit::{Catalogue as Kept, Commit};
use crate::error::ArchiveError;

impl Archive {
    /// The catalogue of a version; `None` if the archive does not have it.
    ///
    /// # Errors
    /// It cannot be read, or this program cannot parse it.
    pub fn catalogue(
        &self,
        commit: &Commit,
        version: &str,
    ) -> Result<Option<Catalogue>, ArchiveError> {
        let Some(held) = commit.catalogues.iter().find(|held| held.version == version) else {
            return Ok(None);
        };
        let damaged = |reason| ArchiveError::Damaged { path: held.file.path.clone(), reason };
        let bytes = self.get(&held.file)?;
        let source = std::str::from_utf8(&bytes).map_err(|_| damaged("it is not text"))?;
        let catalogue = Catalogue::from_source(source);
        catalogue.map(Some).map_err(|_| damaged("this program cannot parse it"))
    }

    /// Stores the catalogue that entries are written under from now on, in a commit of its own, so that any process
    /// can show their publications later.
    ///
    /// # Errors
    /// The archive cannot be read or written.
    pub fn keep_catalogue(&self, catalogue: &Catalogue) -> Result<(), ArchiveError> {
        loop {
            let mut next = self.newest()?;
            next.commit += 1;
            if !self.add_catalogue(catalogue, &mut next)? {
                return Ok(());
            }
            if self.commit(&next)? == Outcome::Committed {
                return Ok(());
            }
        }
    }

    /// Adds a catalogue to a future commit, and returns whether it was missing.
    pub(crate) fn add_catalogue(
        &self,
        catalogue: &Catalogue,
        next: &mut Commit,
    ) -> Result<bool, ArchiveError> {
        let version = catalogue.version();
        if next.catalogues.iter().any(|held| held.version == version) {
            return Ok(false);
        }
        let source = catalogue.source().as_bytes();
        let file = self.put(&format!("catalogues/{version}"), ".toml", source)?;
        next.catalogues.push(Kept { file, version });
        Ok(true)
    }
}
