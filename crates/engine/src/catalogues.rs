//! The catalogues of publications: this process's own, and earlier ones from the archive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive::Archive;
use domain::Catalogue;
use market::Book;
use market::book::IMAGE_VERSION;

use crate::error::{Chain, WorldError};
use crate::options::WorldOptions;

/// Maximum number of catalogues in memory. An operator changes it rarely; each takes some ten kilobytes.
const HELD_MAX: usize = 64;

/// Catalogues by version.
#[derive(Debug)]
pub(crate) struct Catalogues {
    own: Arc<Catalogue>,
    own_version: String,
    held: Mutex<HashMap<Box<str>, Arc<Catalogue>>>,
    /// The own catalogue extended by all archived ones, and the versions of those.
    known: Mutex<Option<(Vec<String>, Arc<Catalogue>)>>,
}

impl Catalogues {
    pub(crate) fn new(options: &WorldOptions) -> Self {
        let own = Arc::clone(&options.catalogue);
        let own_version = own.version();
        Self { own_version, own, held: Mutex::default(), known: Mutex::default() }
    }

    pub(crate) fn own(&self) -> &Arc<Catalogue> {
        &self.own
    }

    /// True if a version is that of this process's own catalogue.
    pub(crate) fn is_own(&self, version: &str) -> bool {
        *version == self.own_version
    }

    /// The catalogue of a version; `None` if it is not stored anywhere.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub(crate) fn get(
        &self,
        archive: Option<&Archive>,
        version: &str,
    ) -> Result<Option<Arc<Catalogue>>, WorldError> {
        if self.is_own(version) {
            return Ok(Some(Arc::clone(&self.own)));
        }
        if let Some(held) = self.held().get(version) {
            return Ok(Some(Arc::clone(held)));
        }
        let Some(archive) = archive.filter(|archive| archive.is_begun()) else { return Ok(None) };
        let Some(read) = archive.catalogue(&archive.newest()?, version)? else { return Ok(None) };
        let read = Arc::new(read);
        let mut held = self.held();
        if held.len() >= HELD_MAX {
            held.clear();
        }
        held.insert(version.into(), Arc::clone(&read));
        Ok(Some(read))
    }

    /// The own catalogue extended by these other ones, if that is in memory.
    pub(crate) fn known_at_once(&self, versions: &[String]) -> Option<Arc<Catalogue>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let held = known.as_ref().filter(|(held, _)| held == versions);
        held.map(|(_, known)| Arc::clone(known))
    }

    /// The own catalogue extended by these other ones, the latest last. An archived catalogue that cannot be parsed
    /// adds nothing.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub(crate) fn known(
        &self,
        archive: Option<&Archive>,
        versions: &[String],
    ) -> Result<Arc<Catalogue>, WorldError> {
        if let Some(known) = self.known_at_once(versions) {
            return Ok(known);
        }
        let mut earlier = Vec::new();
        for version in versions {
            match self.get(archive, version) {
                Ok(catalogue) => earlier.extend(catalogue),
                Err(WorldError::Archive(error)) if error.is_damage() => {
                    tracing::warn!(event = "archive.catalogue_unreadable", version, error = %Chain(&error), "names of an earlier catalogue are not known");
                }
                Err(error) => return Err(error),
            }
        }
        let known = self.own.with_earlier(earlier.iter().map(|catalogue| &**catalogue));
        let known = Arc::new(known);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((versions.to_vec(), Arc::clone(&known)));
        Ok(known)
    }

    /// Builds a book with the catalogue of its last publication. `make` is called with the expected catalogue, and
    /// again if the book then names another.
    ///
    /// # Errors
    /// The book cannot be built, or the archive cannot be read.
    pub(crate) fn make<E: From<WorldError>>(
        &self,
        archive: Option<&Archive>,
        expected: Option<&str>,
        make: impl Fn(Arc<Catalogue>) -> Result<Book, E>,
    ) -> Result<Made, E> {
        let expected = match expected {
            Some(version) => self.get(archive, version)?,
            None => None,
        };
        let book = make(expected.unwrap_or_else(|| Arc::clone(&self.own)))?;
        let Some(then) = version_of(&book).filter(|then| !self.is_of(&book, then)) else {
            return Ok(Made::AsThen(book));
        };
        match self.get(archive, then)? {
            Some(catalogue) => make(catalogue).map(Made::AsThen),
            None => Ok(Made::Otherwise(book)),
        }
    }

    /// The same book with another catalogue, as a process that starts with that catalogue builds it.
    ///
    /// # Errors
    /// The book cannot be read back.
    pub(crate) fn carry_over(
        book: &Book,
        catalogue: &Arc<Catalogue>,
        options: &WorldOptions,
    ) -> Result<Book, WorldError> {
        let image = book.to_image();
        let mut book = Book::from_image(IMAGE_VERSION, &image, Arc::clone(catalogue))?;
        book.set_limits(options.limits);
        Ok(book)
    }

    /// True if a book was built with the catalogue of this version.
    pub(crate) fn is_of(&self, book: &Book, version: &str) -> bool {
        match Arc::ptr_eq(book.catalogue(), &self.own) {
            true => *version == self.own_version,
            false => *version == book.catalogue().version(),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Catalogue>>> {
        // Every entry is complete, so a poisoned lock is usable.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A book of a past publication.
#[derive(Debug)]
pub(crate) enum Made {
    /// With the catalogue of that time.
    AsThen(Book),
    /// With another catalogue, because the one of that time is not stored anywhere.
    Otherwise(Book),
}

impl Made {
    pub(crate) fn into_book(self) -> Book {
        match self {
            Self::AsThen(book) | Self::Otherwise(book) => book,
        }
    }
}

/// The version of the catalogue of a book's last publication, if the log has it.
pub(crate) fn version_of(book: &Book) -> Option<&str> {
    book.configured().map(|configured| &*configured.catalogue)
}
