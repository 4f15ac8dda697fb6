//! Whole books, compressed.

use std::path::Path;

use crate::archive::Archive;
use crate::commit::{Blob, Image};
use crate::error::{ArchiveError, io_at};

const ZSTD_LEVEL: i32 = 3;
const COMPRESSED: &str = ".image.zst";

impl Archive {
    /// Writes a book that no commit names yet.
    pub(crate) fn put_image(&self, name: &str, book: &[u8]) -> Result<Blob, ArchiveError> {
        let compressed = zstd::encode_all(book, ZSTD_LEVEL).map_err(io_at(Path::new(name)))?;
        self.put(name, COMPRESSED, &compressed)
    }

    /// The bytes of a book.
    ///
    /// # Errors
    /// It cannot be read, or differs from what was committed.
    pub fn image(&self, image: &Image) -> Result<Vec<u8>, ArchiveError> {
        let path = &image.file.path;
        let bytes = self.get(&image.file)?;
        if !path.ends_with(COMPRESSED) {
            return Ok(bytes.into());
        }
        let damaged = |_| ArchiveError::Damaged { path: path.clone(), reason: "it is not a book" };
        zstd::decode_all(&*bytes).map_err(damaged)
    }
}
