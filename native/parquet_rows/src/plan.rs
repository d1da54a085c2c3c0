//! Which row groups, columns and pages a set of rows needs.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, RowGroupSelection, RowSelection,
};
use parquet::arrow::push_decoder::{PageKind, ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{ColumnChunkMask, ParquetMetaData};
use parquet::schema::types::SchemaDescriptor;

use crate::error::{Error, Result};
use crate::metadata::{Footer, row_count};
use crate::source::Source;

/// Most rows in one batch of the answer.
const BATCH_ROWS: usize = 64 * 1024;

/// What reading some rows takes, in the terms of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowPlan {
    /// Data pages that hold the rows; a chunk without offset index counts as one.
    pub pages: u64,
    /// Bytes of those pages and of the dictionary pages they need.
    pub page_bytes: u64,
    /// Bytes of the whole chunks of the columns in the row groups that hold the rows.
    pub chunk_bytes: u64,
    /// Bytes of all chunks of the columns in the file.
    pub total_bytes: u64,
    /// Row groups that hold the rows.
    pub row_groups: u64,
}

/// The rows and columns of one request, checked against a file.
pub struct Request {
    selections: Vec<RowGroupSelection>,
    mask: ProjectionMask,
    /// Positions in the file of the wanted top-level columns, in the wanted order.
    roots: Vec<usize>,
}

impl Request {
    /// # Errors
    /// `Error::Argument` for rows that are not ascending, unique positions in the file and for
    /// columns that it does not have.
    pub fn new(
        metadata: &ParquetMetaData,
        rows: &[i64],
        columns: Option<&[String]>,
    ) -> Result<Self> {
        check_rows(rows, row_count(metadata))?;
        let schema = metadata.file_metadata().schema_descr();
        let mut roots = Vec::new();
        let mut leaves = Vec::new();
        match columns {
            None => {
                roots.extend(0..schema.root_schema().get_fields().len());
                leaves.extend(0..schema.num_columns());
            }
            Some(names) => {
                for name in names {
                    let (root, inside) = find_column(schema, name)?;
                    // Fields of one struct are one column of the answer.
                    if !(name.contains('.') && roots.contains(&root)) {
                        roots.push(root);
                    }
                    leaves.extend(inside);
                }
            }
        }
        Ok(Self {
            selections: select_rows(metadata, rows),
            mask: ProjectionMask::leaves(schema, leaves),
            roots,
        })
    }

    /// Reads the offset indexes of just the chunks that the request touches.
    pub fn load_offset_index(
        &self,
        footer: Footer,
        source: &mut Source,
    ) -> Result<ParquetMetaData> {
        let leaves: Vec<usize> = self.leaves(&footer.metadata).collect();
        let row_groups = self
            .selections
            .iter()
            .map(RowGroupSelection::row_group_index);
        let touched = ColumnChunkMask::row_groups_and_columns(row_groups, leaves);
        footer.with_page_index(source, touched, ColumnChunkMask::none())
    }

    /// A decoder of the request, and the schema of its answer in the wanted order.
    pub fn decoder(&self, metadata: ParquetMetaData) -> Result<(ParquetPushDecoder, SchemaRef)> {
        let metadata = arrow_metadata(Arc::new(metadata))?;
        let schema = self.schema(metadata.schema())?;
        let decoder = ParquetPushDecoderBuilder::new_with_metadata(metadata)
            .with_projection(self.mask.clone())
            .with_row_group_selections(self.selections.clone())
            .with_batch_size(BATCH_ROWS)
            .build()?;
        Ok((decoder, schema))
    }

    /// Where each wanted column is among the decoded ones, which come in the file's order.
    pub fn positions(&self) -> Vec<usize> {
        let mut decoded = self.roots.clone();
        decoded.sort_unstable();
        decoded.dedup();
        self.roots
            .iter()
            .map(|root| decoded.partition_point(|other| other < root))
            .collect()
    }

    /// What the request takes; `metadata` holds the offset indexes it needs.
    pub fn plan(&self, metadata: ParquetMetaData) -> Result<RowPlan> {
        let mut plan = RowPlan {
            row_groups: self.selections.len() as u64,
            ..RowPlan::default()
        };
        let leaves: Vec<usize> = self.leaves(&metadata).collect();
        let chunk_bytes = |row_group: usize| -> u64 {
            let row_group = metadata.row_group(row_group);
            leaves
                .iter()
                .map(|&leaf| row_group.column(leaf).byte_range().1)
                .fold(0, u64::saturating_add)
        };
        for selection in &self.selections {
            plan.chunk_bytes = plan
                .chunk_bytes
                .saturating_add(chunk_bytes(selection.row_group_index()));
        }
        plan.total_bytes = (0..metadata.num_row_groups())
            .map(chunk_bytes)
            .fold(0, u64::saturating_add);
        let (decoder, _) = self.decoder(metadata)?;
        (plan.pages, plan.page_bytes) = pages_to_read(&decoder);
        Ok(plan)
    }

    fn schema(&self, file: &Schema) -> Result<SchemaRef> {
        // Schema-level metadata is left out: it repeats the key-value metadata of the file.
        let decoded = file
            .fields()
            .filter_leaves(|leaf, _| self.mask.leaf_included(leaf));
        let projected = Schema::new(decoded).project(&self.positions())?;
        Ok(Arc::new(Schema::new(projected.fields)))
    }

    fn leaves(&self, metadata: &ParquetMetaData) -> impl Iterator<Item = usize> {
        let count = metadata.file_metadata().schema_descr().num_columns();
        (0..count).filter(|&leaf| self.mask.leaf_included(leaf))
    }
}

/// Data pages that a decoder has yet to read, and the bytes of these and their dictionaries.
pub fn pages_to_read(decoder: &ParquetPushDecoder) -> (u64, u64) {
    let (mut pages, mut bytes) = (0, 0_u64);
    for planned in decoder.scan_plan() {
        bytes = bytes.saturating_add(planned.len());
        if planned.kind != PageKind::Dictionary {
            pages += 1;
        }
    }
    (pages, bytes)
}

fn check_rows(rows: &[i64], row_count: i64) -> Result<()> {
    for (position, &row) in rows.iter().enumerate() {
        let fault = if row < 0 {
            "is negative".to_owned()
        } else if row >= row_count {
            format!("is beyond the {row_count} rows of the file")
        } else if position > 0 && row == rows[position - 1] {
            "is there twice".to_owned()
        } else if position > 0 && row < rows[position - 1] {
            format!("is out of order, after {}", rows[position - 1])
        } else {
            continue;
        };
        return Err(Error::Argument(format!(
            "rows must be ascending row positions: {row} at position {position} {fault}"
        )));
    }
    Ok(())
}

/// The top-level column that `name` means or lies in, and the leaves that it has.
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

/// Splits checked rows into one selection for each row group that holds some.
fn select_rows(metadata: &ParquetMetaData, mut rows: &[i64]) -> Vec<RowGroupSelection> {
    let mut selections = Vec::new();
    let mut first = 0;
    for (index, row_group) in metadata.row_groups().iter().enumerate() {
        let end = first + row_group.num_rows();
        let (inside, rest) = rows.split_at(rows.partition_point(|&row| row < end));
        if !inside.is_empty() {
            let ranges = inside
                .iter()
                .map(|&row| (row - first) as usize..(row - first) as usize + 1);
            let selection =
                RowSelection::from_consecutive_ranges(ranges, row_group.num_rows() as usize);
            selections.push(RowGroupSelection::new(index, Some(selection)));
        }
        rows = rest;
        first = end;
    }
    selections
}

/// The Arrow view of the file: as its writer meant it, but INT96 as microseconds.
///
/// INT96 timestamps default to nanoseconds, which end in 2262; Spark's run from year 1 to 9999.
fn arrow_metadata(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata> {
    let descriptor = metadata.file_metadata().schema_descr_ptr();
    let is_int96: Vec<bool> = descriptor
        .columns()
        .iter()
        .map(|leaf| leaf.physical_type() == PhysicalType::INT96)
        .collect();
    let as_written = ArrowReaderMetadata::try_new(metadata.clone(), ArrowReaderOptions::new())?;
    if !is_int96.contains(&true) {
        return Ok(as_written);
    }
    let mut leaves = is_int96.into_iter();
    let schema = as_written.schema();
    let fields = int96_as_micros(schema.fields(), &mut leaves);
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    Ok(ArrowReaderMetadata::try_new(metadata, options)?)
}

/// `fields` with the INT96 leaves as microseconds; the leaves of both schemas are in one order.
fn int96_as_micros(fields: &Fields, is_int96: &mut impl Iterator<Item = bool>) -> Fields {
    fields
        .iter()
        .map(|field| int96_field_as_micros(field, is_int96))
        .collect()
}

fn int96_field_as_micros(field: &FieldRef, is_int96: &mut impl Iterator<Item = bool>) -> FieldRef {
    let mut inner = |child: &FieldRef| int96_field_as_micros(child, is_int96);
    let data_type = match field.data_type() {
        DataType::Struct(children) => DataType::Struct(int96_as_micros(children, is_int96)),
        DataType::List(child) => DataType::List(inner(child)),
        DataType::LargeList(child) => DataType::LargeList(inner(child)),
        DataType::ListView(child) => DataType::ListView(inner(child)),
        DataType::LargeListView(child) => DataType::LargeListView(inner(child)),
        DataType::FixedSizeList(child, size) => DataType::FixedSizeList(inner(child), *size),
        DataType::Map(child, sorted) => DataType::Map(inner(child), *sorted),
        leaf => match (is_int96.next(), leaf) {
            (Some(true), DataType::Timestamp(_, zone)) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            _ => leaf.clone(),
        },
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}
