//! The pages that hold the wanted rows of flat columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use parquet::basic::Encoding;

use crate::error::{Error, Result};
use crate::file_pages::{Column, FilePages, PageOf};
use crate::page::OpenPage;
use crate::positions::{GroupRows, SomeRows};
use crate::values::{Class, Values};

/// Fewer bytes than this are not worth a separate thread.
pub const SMALLEST_TASKS: u64 = 64 * 1024;
/// To look at a value in a page that is kept costs as much as to decompress so many bytes.
const A_KEPT_VALUE: u64 = 4;
/// Of a page with fewer rows for each one that is wanted, all numbers are unpacked at once.
const SPARSE: usize = 8;

/// Rows of one file.
pub struct Part<'a> {
    pub pages: &'a FilePages<'a>,
    /// The rows, by row group.
    pub groups: Vec<GroupRows>,
    /// The columns, in the same order for all parts; None for those whose pages are not opened.
    pub columns: Vec<Option<Column>>,
}

/// How many data pages hold the rows that were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageCounts {
    /// All; a chunk without an offset index counts as one.
    pub used: u64,
    /// Those that were kept from an earlier read, and not read from the file.
    pub kept: u64,
}

impl PageCounts {
    /// Counts a page, unless this read has used it before.
    pub fn add(&mut self, page: &WantedPage<'_>) {
        if !page.is_held {
            self.used += 1;
            self.kept += u64::from(page.kept.is_some());
        }
    }
}

/// The column of a leaf that is read as `data_type`, if its pages can be opened as far as the
/// footer says.
#[expect(deprecated, reason = "parquet-mr states BIT_PACKED for levels")]
pub fn column_of(pages: &FilePages<'_>, leaf: usize, data_type: &DataType) -> Option<Column> {
    use Encoding::{BIT_PACKED, PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY};
    let metadata = pages.file().metadata();
    let described = metadata.file_metadata().schema_descr().column(leaf);
    let class = Class::of(&described, data_type)?;
    let is_known = |each: Encoding| {
        let known = [PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY, RLE, BIT_PACKED];
        known.contains(&each)
    };
    let mut groups = metadata.row_groups().iter().enumerate();
    let are_known = groups.all(|(number, group)| {
        let index = metadata.page_index_for_row_group(number);
        index.page_locations(leaf).is_some() && group.column(leaf).encodings().all(is_known)
    });
    are_known.then_some(Column {
        leaf,
        class,
        is_nullable: described.max_def_level() > 0,
    })
}

/// A page with wanted rows.
pub struct WantedPage<'a> {
    /// The number of its part.
    pub part: usize,
    pub page: PageOf,
    /// The position of its first row in the row group.
    pub start: usize,
    /// The wanted rows, as positions in the row group.
    rows: SomeRows<'a>,
    kept: Option<Arc<OpenPage>>,
    /// Whether this read has used it before.
    is_held: bool,
}

impl WantedPage<'_> {
    /// The number of wanted rows.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The wanted rows, counted from the page's first one.
    pub fn positions(&self) -> Vec<u32> {
        self.rows.counted_from(self.start)
    }

    /// The same if they follow each other without a gap.
    pub fn range(&self) -> Option<Range<usize>> {
        match &self.rows {
            SomeRows::Range(rows) => Some(rows.start - self.start..rows.end - self.start),
            SomeRows::List(_) => None,
        }
    }

    /// The page, read from the file unless it is kept; None if its encoding is not supported.
    pub fn opened(&self, pages: &FilePages<'_>) -> Result<Option<Arc<OpenPage>>> {
        match &self.kept {
            Some(page) => Ok(Some(page.clone())),
            None => pages.read(&self.page, self.is_sparse()),
        }
    }

    /// The dictionary of its column chunk; see `FilePages::dictionary`.
    pub fn dictionary(&self, pages: &FilePages<'_>) -> Result<Option<Arc<Values>>> {
        pages.dictionary(&self.page, self.is_sparse())
    }

    /// Whether few of its rows are wanted, which are looked at one by one.
    pub fn is_sparse(&self) -> bool {
        self.count() * SPARSE < self.page.rows
    }

    /// The cost of looking at its rows, in bytes.
    pub fn weight(&self) -> u64 {
        match self.kept {
            Some(_) => A_KEPT_VALUE * self.count() as u64,
            None => self.page.location.compressed_page_size.max(0) as u64,
        }
    }
}

/// The pages of a column that hold wanted rows of one part, in their order.
pub fn planned<'a>(
    pages: &FilePages<'_>,
    part: usize,
    column: Column,
    groups: &'a [GroupRows],
) -> Result<Vec<WantedPage<'a>>> {
    let metadata = pages.file().metadata();
    let mut wanted = Vec::new();
    for group in groups {
        let index = metadata.page_index_for_row_group(group.row_group);
        let locations = index
            .page_locations(column.leaf)
            .map_or(&[][..], Vec::as_slice);
        let group_rows = metadata.row_group(group.row_group).num_rows() as usize;
        let mut found = 0;
        for (number, location) in locations.iter().enumerate() {
            let start = location.first_row_index as usize;
            let next = locations.get(number + 1);
            let end = next.map_or(group_rows, |next| next.first_row_index as usize);
            if location.first_row_index < 0 || start > end || end > group_rows {
                return Err(Error::Malformed("the pages of a column overlap".into()));
            }
            let rows = group.between(start, end);
            if rows.is_empty() {
                continue;
            }
            found += rows.len();
            let page = PageOf {
                column,
                row_group: group.row_group,
                location: location.clone(),
                rows: end - start,
            };
            let (kept, is_held) = pages.kept(&page);
            wanted.push(WantedPage {
                part,
                page,
                start,
                rows,
                kept,
                is_held,
            });
        }
        if found != group.count() {
            return Err(Error::Malformed(format!(
                "the pages contain {found} of the {} requested rows",
                group.count()
            )));
        }
    }
    Ok(wanted)
}
