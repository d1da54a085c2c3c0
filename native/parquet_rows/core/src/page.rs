//! Pages of flat columns, decompressed and opened for access by row: their values are not decoded.

use bytes::{Buf, Bytes};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::properties::{ReaderProperties, ReaderPropertiesPtr};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::error::{Error, Result};
use crate::runs::{Runs, WIDEST};
use crate::values::{Class, Values};

/// The values of a page that are not NULL.
pub enum Body {
    Plain(Values),
    /// Their numbers in the dictionary.
    Numbered(Runs),
}

/// A page whose values can be read by row.
pub struct OpenPage {
    rows: usize,
    valid: Option<Valid>,
    body: Body,
}

/// Which rows of a page have a value.
struct Valid {
    words: Vec<u64>,
    /// The number of values before each word.
    ranks: Vec<u32>,
}

impl OpenPage {
    /// Whether it is what `open_page` would open for these arguments.
    pub fn is_of(&self, class: Class, rows: usize) -> bool {
        self.rows == rows
            && match &self.body {
                Body::Plain(values) => values.class() == class,
                Body::Numbered(_) => true,
            }
    }

    pub fn body(&self) -> &Body {
        &self.body
    }

    pub fn has_nulls(&self) -> bool {
        self.valid.is_some()
    }

    /// The position of the value of a row, which is counted from the page's first; None for NULL.
    pub fn position(&self, row: usize) -> Option<usize> {
        let Some(valid) = &self.valid else {
            return Some(row);
        };
        let (word, bit) = (valid.words[row / 64], row % 64);
        let before = (word & ((1 << bit) - 1)).count_ones();
        (word >> bit & 1 == 1).then(|| (valid.ranks[row / 64] + before) as usize)
    }

    /// Bytes of memory.
    pub fn weight(&self) -> usize {
        let valid = self.valid.as_ref();
        let body = match &self.body {
            Body::Plain(values) => values.weight(),
            Body::Numbered(runs) => runs.weight(),
        };
        size_of::<Self>() + body + valid.map_or(0, |valid| 12 * valid.words.len())
    }
}

/// The range of bytes of a chunk's dictionary page, if there is one before its first data page.
pub fn dictionary_range(
    chunk: &ColumnChunkMetaData,
    first: &PageLocation,
) -> Option<std::ops::Range<u64>> {
    let (start, _) = chunk.byte_range();
    let end = u64::try_from(first.offset).ok()?;
    (start < end).then_some(start..end)
}

/// Opens the dictionary of a chunk from the bytes of its `dictionary_range`. None if its encoding
/// is not supported.
///
/// # Errors
/// `Error::Malformed`; so for the next function.
pub fn open_dictionary(
    class: Class,
    chunk: &ColumnChunkMetaData,
    first: &PageLocation,
    bytes: Bytes,
) -> Result<Option<Values>> {
    let mut reader = reader(chunk, chunk.byte_range().0, first, bytes)?;
    match reader.get_next_page()? {
        Some(Page::DictionaryPage {
            buf,
            num_values,
            encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
            ..
        }) => Ok(Some(Values::dictionary(class, buf, num_values as usize)?)),
        Some(Page::DictionaryPage { .. }) => Ok(None),
        _ => Err(Error::Malformed("a chunk has no dictionary".into())),
    }
}

/// Opens the page of `rows` rows at a location from its bytes. None if its encoding is not
/// supported.
pub fn open_page(
    class: Class,
    is_nullable: bool,
    chunk: &ColumnChunkMetaData,
    location: &PageLocation,
    bytes: Bytes,
    rows: usize,
) -> Result<Option<OpenPage>> {
    let mut reader = reader(chunk, location.offset as u64, location, bytes)?;
    if chunk.byte_range().0 != location.offset as u64 {
        // It takes the bytes before the first page that it is told of for a dictionary.
        reader.skip_next_page()?;
    }
    let page = reader.get_next_page()?.ok_or_else(short)?;
    if page.num_values() as usize != rows {
        return Err(Error::Malformed(format!(
            "a page has {} rows, not {rows}",
            page.num_values()
        )));
    }
    let encoding = page.encoding();
    let (levels, body) = match page {
        Page::DataPage {
            buf,
            def_level_encoding,
            ..
        } if is_nullable => {
            if def_level_encoding != Encoding::RLE {
                return Ok(None);
            }
            let length: &[u8; 4] = buf.first_chunk().ok_or_else(short)?;
            let end = 4 + u32::from_le_bytes(*length) as usize;
            if end > buf.len() {
                return Err(short());
            }
            (Some(buf.slice(4..end)), buf.slice(end..))
        }
        Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len: 0,
            ..
        } => {
            let end = def_levels_byte_len as usize;
            if end > buf.len() {
                return Err(short());
            }
            (is_nullable.then(|| buf.slice(..end)), buf.slice(end..))
        }
        Page::DataPage { buf, .. } => (None, buf),
        Page::DataPageV2 { .. } | Page::DictionaryPage { .. } => {
            return Err(Error::Malformed("a page is not of a flat column".into()));
        }
    };
    let (valid, count) = match levels {
        None => (None, rows),
        Some(levels) => validity(&Runs::new(1, levels, rows)?, rows),
    };
    let body = match encoding {
        Encoding::PLAIN if class == Class::Bool => Body::Numbered(Runs::packed(1, body, count)?),
        Encoding::RLE if class == Class::Bool => {
            // Behind the length of the numbers, as levels are in a page of the first version.
            let numbers = body.slice(body.len().min(size_of::<u32>())..);
            Body::Numbered(Runs::new(1, numbers, count)?)
        }
        Encoding::PLAIN => Body::Plain(Values::plain(class, body, count)?),
        Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
            // Without values, there may be no width either.
            let width = match body.first() {
                Some(&width) => usize::from(width),
                None if count == 0 => 0,
                None => return Err(short()),
            };
            if width > WIDEST {
                return Ok(None);
            }
            Body::Numbered(Runs::new(width, body.slice(body.len().min(1)..), count)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(OpenPage { rows, valid, body }))
}

/// Which of `rows` rows have a value, None for all, and how many have.
fn validity(levels: &Runs, rows: usize) -> (Option<Valid>, usize) {
    let (words, count) = levels.bitmap();
    if count == rows {
        return (None, rows);
    }
    let mut before = 0;
    let mut ranks = Vec::with_capacity(words.len());
    for word in &words {
        ranks.push(before);
        before += word.count_ones();
    }
    (Some(Valid { words, ranks }), count)
}

/// Reads the page at a location, or the dictionary page before, from the bytes that start at
/// `start`.
fn reader(
    chunk: &ColumnChunkMetaData,
    start: u64,
    location: &PageLocation,
    bytes: Bytes,
) -> Result<SerializedPageReader<Part>> {
    let part = Part { start, bytes };
    let locations = Some(vec![location.clone()]);
    Ok(SerializedPageReader::new_with_properties(
        part.into(),
        chunk,
        1,
        locations,
        properties(),
    )?)
}

fn properties() -> ReaderPropertiesPtr {
    ReaderProperties::builder()
        .set_read_bloom_filter(false)
        .build()
        .into()
}

/// Bytes of a file from a position on.
struct Part {
    start: u64,
    bytes: Bytes,
}

impl Part {
    fn from(&self, position: u64) -> ParquetResult<Bytes> {
        let from = position
            .checked_sub(self.start)
            .map(|from| from as usize)
            .filter(|&from| from <= self.bytes.len());
        match from {
            Some(from) => Ok(self.bytes.slice(from..)),
            None => Err(parquet::errors::ParquetError::EOF(
                "a page is not where the metadata says".into(),
            )),
        }
    }
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let rest = self.from(start)?;
        if length > rest.len() {
            return Err(parquet::errors::ParquetError::EOF(
                "a page ends after the bytes that were read".into(),
            ));
        }
        Ok(rest.slice(..length))
    }
}

fn short() -> Error {
    Error::Malformed("a page ends too early".into())
}
