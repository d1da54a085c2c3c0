//! The pages of one local file: those that are kept, and those that have to be read.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use crate::cache::{Admission, Kept, Key, PageCache};
use crate::error::{Error, Result};
use crate::file::ParquetFile;
use crate::local_file::LocalFile;
use crate::page::{OpenPage, dictionary_range, open_dictionary, open_page};
use crate::source::{Traffic, merge};
use crate::values::{Class, Values};

/// Where pages are kept, and which.
#[derive(Clone, Copy)]
pub struct Keeping<'a> {
    pub cache: &'a PageCache,
    pub admission: Admission,
}

/// A flat column of a file.
#[derive(Clone, Copy, PartialEq)]
pub struct Column {
    pub leaf: usize,
    pub class: Class,
    pub is_nullable: bool,
}

/// A data page of a file.
#[derive(Clone)]
pub struct PageOf {
    pub column: Column,
    pub row_group: usize,
    pub location: PageLocation,
    /// Its number of rows.
    pub rows: usize,
}

/// A dictionary, for which other threads wait while the first one reads it. The inner None says
/// that it is not supported.
type Shared = Arc<Mutex<Option<Option<Arc<Values>>>>>;

static BOOLEANS: LazyLock<Arc<Values>> = LazyLock::new(|| Arc::new(Values::booleans()));

/// The pages of a local file for one read; all in the state in which the file was found.
pub struct FilePages<'a> {
    file: &'a ParquetFile,
    local: Arc<LocalFile>,
    keeping: Option<Keeping<'a>>,
    /// By their offsets.
    dictionaries: Mutex<HashMap<u64, Shared>>,
    /// The leaves whose pages are held for this read, because another step of it uses them.
    used_again: Vec<usize>,
    /// Those pages by their offsets.
    held: Mutex<HashMap<u64, Arc<OpenPage>>>,
    read: Mutex<Vec<Range<u64>>>,
}

impl<'a> FilePages<'a> {
    pub fn new(
        file: &'a ParquetFile,
        local: Arc<LocalFile>,
        keeping: Option<Keeping<'a>>,
        used_again: Vec<usize>,
    ) -> Self {
        Self {
            file,
            local,
            keeping: keeping.filter(|keeping| keeping.cache.here().is_some()),
            dictionaries: Mutex::default(),
            used_again,
            held: Mutex::default(),
            read: Mutex::default(),
        }
    }

    pub fn file(&self) -> &'a ParquetFile {
        self.file
    }

    /// The page, if it is kept or held, and whether it is held: used by this read before.
    pub fn kept(&self, page: &PageOf) -> (Option<Arc<OpenPage>>, bool) {
        let Ok(start) = u64::try_from(page.location.offset) else {
            return (None, false);
        };
        if let Some(held) = lock(&self.held).get(&start) {
            return (Some(held.clone()), true);
        }
        let kept = self.in_cache(start, page);
        if let Some(kept) = &kept {
            self.hold(start, page.column, kept);
        }
        (kept, false)
    }

    fn in_cache(&self, start: u64, page: &PageOf) -> Option<Arc<OpenPage>> {
        match self.keeping?.cache.get(&self.key(start)?)? {
            Kept::Page(kept) => kept.is_of(page.column.class, page.rows).then_some(kept),
            Kept::Dictionary(_) | Kept::Footer(_) => None,
        }
    }

    fn hold(&self, start: u64, column: Column, page: &Arc<OpenPage>) {
        if self.used_again.contains(&column.leaf) {
            lock(&self.held).insert(start, page.clone());
        }
    }

    /// Reads the page from the file; None if its encoding is not supported. `is_sparse` says whether
    /// few of its rows are wanted.
    ///
    /// # Errors
    /// `Error::Io`; `Error::Malformed` if the file is damaged, or not as it was found. So for
    /// `dictionary`.
    pub fn read(&self, page: &PageOf, is_sparse: bool) -> Result<Option<Arc<OpenPage>>> {
        let PageOf {
            column, location, ..
        } = page;
        let start = position(location.offset)?;
        let length = position(location.compressed_page_size.into())?;
        let bytes = self.bytes(start..start.saturating_add(length))?;
        let chunk = self.chunk(page);
        let (class, is_nullable) = (column.class, column.is_nullable);
        let opened = open_page(class, is_nullable, chunk, location, bytes, page.rows)?;
        let opened = opened.map(Arc::new);
        if let Some(opened) = &opened {
            self.hold(start, *column, opened);
            self.keep(start, Kept::Page(opened.clone()), is_sparse);
        }
        Ok(opened)
    }

    /// The dictionary of the page's column chunk, which is read once for all its pages; None if its
    /// encoding is not supported.
    pub fn dictionary(&self, page: &PageOf, is_sparse: bool) -> Result<Option<Arc<Values>>> {
        let Column { leaf, class, .. } = page.column;
        if class == Class::Bool {
            return Ok(Some(BOOLEANS.clone())); // the file has none
        }
        let (chunk, metadata) = (self.chunk(page), self.file.metadata());
        let index = metadata.page_index_for_row_group(page.row_group);
        let first = index.page_locations(leaf).and_then(|pages| pages.first());
        let located = first.and_then(|first| Some((first, dictionary_range(chunk, first)?)));
        let (first, range) =
            located.ok_or_else(|| Error::Malformed("a chunk has no dictionary".into()))?;
        let start = range.start;
        if let (Some(key), Some(keeping)) = (self.key(start), self.keeping)
            && let Some(Kept::Dictionary(values)) = keeping.cache.get(&key)
            && values.class() == class
        {
            return Ok(Some(values));
        }
        let shared: Shared = lock(&self.dictionaries).entry(start).or_default().clone();
        let mut known = lock(&shared);
        if let Some(values) = &*known {
            return Ok(values.clone());
        }
        let opened = open_dictionary(class, chunk, first, self.bytes(range)?)?;
        let values = opened.map(Arc::new);
        if let Some(values) = &values {
            self.keep(start, Kept::Dictionary(values.clone()), is_sparse);
        }
        *known = Some(values.clone());
        Ok(values)
    }

    /// Bytes of the pages and dictionaries of a leaf that are not kept, as they are in the file.
    pub fn bytes_to_read(&self, leaf: usize) -> u64 {
        let is_kept = |start: u64| {
            let key = self.key(start).zip(self.keeping);
            key.is_some_and(|(key, keeping)| keeping.cache.has(&key))
        };
        let metadata = self.file.metadata();
        let mut bytes = 0u64;
        for (number, group) in metadata.row_groups().iter().enumerate() {
            let index = metadata.page_index_for_row_group(number);
            let (mut start, length) = group.column(leaf).byte_range();
            let end = start.saturating_add(length);
            let pages = index.page_locations(leaf).map_or(&[][..], Vec::as_slice);
            // From each page, or the dictionary before the first one, to the next page.
            let stops = pages.iter().map(|page| page.offset.max(0) as u64);
            for stop in stops.chain([end]) {
                if stop > start && !is_kept(start) {
                    bytes = bytes.saturating_add(stop - start);
                }
                start = stop;
            }
        }
        bytes
    }

    /// What has been read from the file so far.
    pub fn traffic(&self) -> Traffic {
        let read = lock(&self.read);
        Traffic {
            calls: u64::from(!read.is_empty()),
            ranges: merge(&read, 0).len() as u64,
            bytes: read.iter().map(|range| range.end - range.start).sum(),
        }
    }

    fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.local.size() {
            return Err(Error::Malformed(format!(
                "the metadata points at bytes {}..{} of a file of {} bytes",
                range.start,
                range.end,
                self.local.size()
            )));
        }
        let bytes = self.local.read(&range)?;
        lock(&self.read).push(range);
        Ok(bytes)
    }

    fn chunk(&self, page: &PageOf) -> &'a ColumnChunkMetaData {
        let group = self.file.metadata().row_group(page.row_group);
        group.column(page.column.leaf)
    }

    fn key(&self, offset: u64) -> Option<Key> {
        let file = *self.local.settled_state()?;
        Some(Key { file, offset })
    }

    fn keep(&self, offset: u64, kept: Kept, is_sparse: bool) {
        if let (Some(key), Some(Keeping { cache, admission })) = (self.key(offset), self.keeping) {
            // A scan, too, looks at single rows, where it has found few.
            let admission = if is_sparse {
                Admission::FirstUse
            } else {
                admission
            };
            cache.offer(key, kept, admission);
        }
    }
}

fn position(number: i64) -> Result<u64> {
    u64::try_from(number)
        .map_err(|_| Error::Malformed("the metadata has a negative position".into()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
