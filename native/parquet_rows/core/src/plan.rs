//! Determines which row groups, columns and pages a set of rows needs.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use parquet::arrow::push_decoder::{PageKind, ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::file::metadata::{ColumnChunkMask, ParquetMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::schema::types::SchemaDescriptor;

use crate::error::{Error, Result};
use crate::file::ParquetFile;
use crate::metadata::Footer;
use crate::positions::{GroupRows, Positions, in_batches};
use crate::source::{Source, merge};

/// Maximum number of rows in one batch of the result: a page that spans two is decoded twice.
pub const BATCH_ROWS: usize = 128 * 1024;

/// The cost of reading a set of rows, in row groups, pages and bytes of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowPlan {
    /// Data pages that contain the rows; a chunk without an offset index counts as one.
    pub pages: u64,
    /// Bytes of those pages and of the dictionary pages that they need.
    pub page_bytes: u64,
    /// Byte ranges that all these pages occupy; adjacent pages form one range.
    pub ranges: u64,
    /// Bytes of the columns' whole chunks in the row groups that contain the rows.
    pub chunk_bytes: u64,
    /// Bytes of all chunks of the columns in the file.
    pub total_bytes: u64,
    /// Row groups that contain the rows.
    pub row_groups: u64,
    /// Rows in those row groups.
    pub group_rows: u64,
    /// Bytes of the columns' chunks in those row groups, before compression.
    pub plain_bytes: u64,
}

/// The rows and columns of one request, validated against a file.
pub struct Request {
    /// The rows by row group, for each batch of the result.
    pub batches: Vec<Vec<GroupRows>>,
    mask: ProjectionMask,
    /// The top-level columns to decode, in file order: the leaves of each.
    roots: Vec<Vec<usize>>,
    /// The index of each requested column in `roots`, in the requested order.
    positions: Vec<usize>,
}

impl Request {
    /// # Errors
    /// `Error::Argument` for rows that are not ascending, unique positions in the file, and for
    /// columns that the file does not have.
    pub fn new(
        metadata: &ParquetMetaData,
        rows: &Positions,
        columns: Option<&[String]>,
    ) -> Result<Self> {
        Self::of_groups(metadata, rows.groups(metadata)?, columns, BATCH_ROWS)
    }

    /// The same request with all rows in one batch.
    pub fn in_one_batch(
        metadata: &ParquetMetaData,
        rows: &Positions,
        columns: Option<&[String]>,
    ) -> Result<Self> {
        Self::of_groups(metadata, rows.groups(metadata)?, columns, usize::MAX)
    }

    /// A request of rows by row group.
    ///
    /// # Errors
    /// `Error::Argument` for columns that the file does not have.
    pub fn of_groups(
        metadata: &ParquetMetaData,
        groups: Vec<GroupRows>,
        columns: Option<&[String]>,
        batch_rows: usize,
    ) -> Result<Self> {
        let schema = metadata.file_metadata().schema_descr();
        let (wanted, leaves) = find_columns(schema, columns)?;
        let mut decoded = wanted.clone();
        decoded.sort_unstable();
        decoded.dedup();
        let positions = wanted
            .iter()
            .map(|root| decoded.partition_point(|other| other < root))
            .collect();
        let mask = ProjectionMask::leaves(schema, leaves);
        let roots = decoded
            .into_iter()
            .map(|root| {
                (0..schema.num_columns())
                    .filter(|&leaf| mask.leaf_included(leaf))
                    .filter(|&leaf| schema.get_column_root_idx(leaf) == root)
                    .collect()
            })
            .collect();
        Ok(Self {
            batches: in_batches(groups, batch_rows),
            mask,
            roots,
            positions,
        })
    }

    /// Reads the offset indexes of only the chunks that the request touches.
    pub fn load_offset_index(
        &self,
        footer: Footer,
        source: &mut Source,
    ) -> Result<ParquetMetaData> {
        let row_groups = self.batches.iter().flatten().map(|group| group.row_group);
        let touched = ColumnChunkMask::row_groups_and_columns(row_groups, self.leaves());
        footer.with_offset_index(source, touched)
    }

    /// Number of top-level columns to decode; they are numbered in file order.
    pub fn root_count(&self) -> usize {
        self.roots.len()
    }

    /// The number of each requested column among those decoded.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// The only leaf of a column that is decoded; None if there are several.
    pub fn only_leaf(&self, root: usize) -> Option<usize> {
        match self.roots[root].as_slice() {
            &[leaf] => Some(leaf),
            _ => None,
        }
    }

    /// A decoder of one column for the rows of one row group.
    pub fn decoder(
        &self,
        file: &ParquetFile,
        root: usize,
        rows: &GroupRows,
    ) -> Result<ParquetPushDecoder> {
        let schema = file.metadata().file_metadata().schema_descr();
        let mask = ProjectionMask::leaves(schema, self.roots[root].iter().copied());
        Ok(
            ParquetPushDecoderBuilder::new_with_metadata(file.arrow().clone())
                .with_projection(mask)
                .with_row_group_selections(vec![selection(file, rows)])
                // The decoder allocates memory for this many rows in advance.
                .with_batch_size(rows.count().max(1))
                .build()?,
        )
    }

    /// The schema of the result, in the requested order. Every column may be NULL: so it may be in
    /// other files of the table, and results have one schema.
    pub fn schema(&self, file: &ParquetFile) -> Result<SchemaRef> {
        // Schema-level metadata is omitted: it repeats the key-value metadata of the file.
        let decoded = file
            .schema()
            .fields()
            .filter_leaves(|leaf, _| self.mask.leaf_included(leaf));
        if decoded.len() != self.roots.len() {
            return Err(Error::Malformed(
                "a column of the file holds no values".into(),
            ));
        }
        let nullable = |&at: &usize| Field::clone(&decoded[at]).with_nullable(true);
        let fields: Vec<_> = self.positions.iter().map(nullable).collect();
        Ok(Arc::new(Schema::new(fields)))
    }

    /// The cost of a request in one batch; `file` contains the offset indexes that it needs.
    pub fn plan(&self, file: &ParquetFile) -> Result<RowPlan> {
        let metadata = file.metadata();
        let leaves = self.leaves();
        let chunk_bytes = |row_group: usize| -> u64 {
            let row_group = metadata.row_group(row_group);
            sum(leaves
                .iter()
                .map(|&leaf| row_group.column(leaf).byte_range().1))
        };
        let groups = self.batches.first().map_or(&[][..], Vec::as_slice);
        let pages = pages_of(metadata, groups, &leaves);
        let row_groups = || {
            groups
                .iter()
                .map(|group| metadata.row_group(group.row_group))
        };
        Ok(RowPlan {
            pages: pages.data_pages,
            page_bytes: pages.bytes(),
            ranges: merge(&pages.ranges, 0).len() as u64,
            row_groups: groups.len() as u64,
            group_rows: sum(row_groups().map(|group| group.num_rows().max(0) as u64)),
            plain_bytes: sum(row_groups().flat_map(|group| {
                let plain = |&leaf: &usize| group.column(leaf).uncompressed_size().max(0) as u64;
                leaves.iter().map(plain).collect::<Vec<_>>()
            })),
            chunk_bytes: sum(groups.iter().map(|group| chunk_bytes(group.row_group))),
            total_bytes: sum((0..metadata.num_row_groups()).map(chunk_bytes)),
        })
    }

    fn leaves(&self) -> Vec<usize> {
        self.roots.iter().flatten().copied().collect()
    }
}

/// The leaves of these columns.
///
/// # Errors
/// `Error::Argument` for columns that the file does not have.
pub fn leaves_of(metadata: &ParquetMetaData, columns: Option<&[String]>) -> Result<Vec<usize>> {
    Ok(find_columns(metadata.file_metadata().schema_descr(), columns)?.1)
}

/// Ascending row positions in the file at which pages of the largest of the columns begin; of a row
/// group without an offset index, the position of its first row. If rows are split there, no page
/// of that column is decoded twice.
pub fn page_starts(metadata: &ParquetMetaData, columns: Option<&[String]>) -> Result<Vec<i64>> {
    let leaves = leaves_of(metadata, columns)?;
    let mut starts = Vec::new();
    let mut first = 0;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let heaviest = leaves
            .iter()
            .max_by_key(|&&leaf| group.column(leaf).uncompressed_size());
        let index = metadata.page_index_for_row_group(number);
        match heaviest.and_then(|&leaf| index.page_locations(leaf)) {
            Some(pages) => starts.extend(pages.iter().map(|page| first + page.first_row_index)),
            None => starts.push(first),
        }
        first += group.num_rows();
    }
    starts.sort_unstable();
    Ok(starts)
}

/// The pages of these leaves that contain rows of `groups`: those that decoders fetch.
fn pages_of(metadata: &ParquetMetaData, groups: &[GroupRows], leaves: &[usize]) -> Pages {
    let mut found = Pages {
        ranges: Vec::new(),
        data_pages: 0,
    };
    for group in groups {
        let index = metadata.page_index_for_row_group(group.row_group);
        let row_group = metadata.row_group(group.row_group);
        for &leaf in leaves {
            let (start, length) = row_group.column(leaf).byte_range();
            let Some(pages) = index.page_locations(leaf) else {
                found.ranges.push(start..start.saturating_add(length));
                found.data_pages += 1;
                continue;
            };
            if let Some(first) = pages.first().filter(|page| page.offset as u64 != start) {
                found.ranges.push(start..first.offset as u64);
            }
            for (number, page) in pages.iter().enumerate() {
                let end = pages.get(number + 1).map_or(usize::MAX, first_row);
                if !group.between(first_row(page), end).is_empty() {
                    let (offset, size) = (page.offset as u64, page.compressed_page_size.max(0));
                    found
                        .ranges
                        .push(offset..offset.saturating_add(size as u64));
                    found.data_pages += 1;
                }
            }
        }
    }
    found
}

fn first_row(page: &PageLocation) -> usize {
    page.first_row_index.max(0) as usize
}

/// The pages that a decoder still has to read.
pub struct Pages {
    /// Byte ranges of the pages, including dictionary pages.
    pub ranges: Vec<Range<u64>>,
    pub data_pages: u64,
}

impl Pages {
    pub fn bytes(&self) -> u64 {
        sum(self
            .ranges
            .iter()
            .map(|range| range.end.saturating_sub(range.start)))
    }
}

/// Determines the pages that a decoder still has to read.
pub fn planned(decoder: &ParquetPushDecoder) -> Pages {
    let mut pages = Pages {
        ranges: Vec::new(),
        data_pages: 0,
    };
    for planned in decoder.scan_plan() {
        pages.data_pages += u64::from(planned.kind != PageKind::Dictionary);
        pages.ranges.push(planned.range);
    }
    pages
}

fn selection(file: &ParquetFile, rows: &GroupRows) -> RowGroupSelection {
    let total = file.metadata().row_group(rows.row_group).num_rows() as usize;
    let selected = RowSelection::from_consecutive_ranges(rows.all().ranges().into_iter(), total);
    RowGroupSelection::new(rows.row_group, Some(selected))
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// The requested top-level columns, in the requested order, and their leaves to read.
fn find_columns(
    schema: &SchemaDescriptor,
    columns: Option<&[String]>,
) -> Result<(Vec<usize>, Vec<usize>)> {
    let Some(names) = columns else {
        let all = 0..schema.root_schema().get_fields().len();
        return Ok((all.collect(), (0..schema.num_columns()).collect()));
    };
    let (mut roots, mut leaves) = (Vec::new(), Vec::new());
    for name in names {
        let (root, inside) = find_column(schema, name)?;
        // Fields of the same struct form one column of the result.
        if !(name.contains('.') && roots.contains(&root)) {
            roots.push(root);
        }
        leaves.extend(inside);
    }
    Ok((roots, leaves))
}

/// The top-level column that `name` denotes or belongs to, and the leaves that `name` covers.
fn find_column(schema: &SchemaDescriptor, name: &str) -> Result<(usize, Vec<usize>)> {
    let fields = schema.root_schema().get_fields();
    let leaves = || 0..schema.num_columns();
    let mut found = (0..fields.len()).filter(|&root| fields[root].name() == name);
    match (found.next(), found.next()) {
        (Some(root), None) => Ok((
            root,
            leaves()
                .filter(|&leaf| schema.get_column_root_idx(leaf) == root)
                .collect(),
        )),
        (Some(_), Some(_)) => Err(Error::Argument(format!(
            "column {name:?} is ambiguous: the file has several of that name"
        ))),
        (None, _) => {
            let wanted: Vec<&str> = name.split('.').collect();
            let inside: Vec<usize> = leaves()
                .filter(|&leaf| starts_with(schema.column(leaf).path().parts(), &wanted))
                .collect();
            if let Some(&leaf) = inside.first() {
                return Ok((schema.get_column_root_idx(leaf), inside));
            }
            let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            Err(Error::Argument(format!(
                "no column {name:?} in the file, which has {}",
                names.join(", ")
            )))
        }
    }
}

fn starts_with(path: &[String], start: &[&str]) -> bool {
    path.len() >= start.len() && path.iter().zip(start).all(|(part, wanted)| part == wanted)
}
