//! The bytes of a file that are read in pieces.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::bucket::Bucket;
use crate::durable::count;

/// Minimum number of bytes read from a bucket at a time.
const PIECE_BYTES: u64 = 64 << 10;

/// The location of the bytes.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(Arc<File>),
    Memory(Bytes),
    Remote(Arc<Remote>),
}

/// An object of a bucket, and the part of it that was read last.
#[derive(Debug)]
pub(crate) struct Remote {
    bucket: Bucket,
    name: String,
    length: u64,
    held: Mutex<(u64, Bytes)>,
}

impl Source {
    pub(crate) fn remote(bucket: Bucket, name: &str, length: u64) -> Self {
        let (name, held) = (name.to_owned(), Mutex::default());
        Self::Remote(Arc::new(Remote { bucket, name, length, held }))
    }

    /// Reads a range with one request, before it is read in many pieces.
    pub(crate) fn prefetch(&self, range: Range<u64>) -> Result<()> {
        match self {
            Self::File(_) | Self::Memory(_) => Ok(()),
            Self::Remote(remote) => remote.fetch(range).map(drop),
        }
    }
}

impl Remote {
    /// Some bytes, from the held part or else from the bucket.
    fn get(&self, range: Range<u64>) -> Result<Bytes> {
        {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(bytes) = cut(&held, &range) {
                return Ok(bytes);
            }
        }
        // A reader starts with the end of a file, in pieces, and continues with the bytes before it.
        let wanted = range.end - range.start;
        let end = range.end.max(range.start + PIECE_BYTES).min(self.length);
        let start = range.start.min(end.saturating_sub(PIECE_BYTES.max(wanted)));
        self.fetch(start..end)?;
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        cut(&held, &range).ok_or_else(|| ParquetError::EOF("beyond the end".to_owned()))
    }

    fn fetch(&self, range: Range<u64>) -> Result<()> {
        let range = range.start..range.end.min(self.length);
        let start = range.start;
        let bytes = self.bucket.read_range(&self.name, range, self.length);
        let bytes = bytes.map_err(|error| ParquetError::External(Box::new(error)))?;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = (start, bytes);
        Ok(())
    }
}

/// A range of bytes that start at some place; `None` if some are missing.
fn cut((begin, bytes): &(u64, Bytes), range: &Range<u64>) -> Option<Bytes> {
    let place = |at: u64| usize::try_from(at.checked_sub(*begin)?).ok();
    let (from, to) = (place(range.start)?, place(range.end)?);
    (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
}

impl Length for Source {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => file.len(),
            Self::Memory(bytes) => count(bytes.len()),
            Self::Remote(remote) => remote.length,
        }
    }
}

impl ChunkReader for Source {
    type T = SourceReader;

    fn get_read(&self, start: u64) -> Result<SourceReader> {
        Ok(match self {
            Self::File(file) => SourceReader::File(file.get_read(start)?),
            Self::Memory(_) | Self::Remote(_) => {
                SourceReader::Pieces { source: self.clone(), at: start }
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let range = start..start.saturating_add(count(length));
        match self {
            Self::File(file) => file.get_bytes(start, length),
            Self::Memory(bytes) => Ok(cut(&(0, bytes.clone()), &range)
                .ok_or_else(|| ParquetError::EOF("beyond the end".to_owned()))?),
            Self::Remote(remote) => remote.get(range),
        }
    }
}

/// Reads sequentially from some place.
#[derive(Debug)]
pub(crate) enum SourceReader {
    File(BufReader<File>),
    Pieces { source: Source, at: u64 },
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Pieces { source, at } => {
                let rest = source.len().saturating_sub(*at).min(PIECE_BYTES);
                let length = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
                let bytes = source.get_bytes(*at, length).map_err(io::Error::other)?;
                buffer.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
                *at += count(bytes.len());
                Ok(bytes.len())
            }
        }
    }
}
