//! A file's metadata and the Arrow view of it.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::{ColumnChunkMask, ParquetMetaData};

use crate::bounds::{Bounds, bounded_leaf, bounds};
use crate::error::Result;
use crate::lists::with_element_levels;
use crate::metadata::{Footer, column_indexes};
use crate::source::Source;

/// The metadata of a file: created once, used by many requests.
#[derive(Clone)]
pub struct ParquetFile {
    arrow: ArrowReaderMetadata,
}

impl ParquetFile {
    pub fn new(metadata: ParquetMetaData) -> Result<Self> {
        Ok(Self {
            arrow: arrow_metadata(Arc::new(with_element_levels(metadata)?))?,
        })
    }

    /// The file that has this stripped footer, with all its offset indexes.
    pub fn of_stripped_footer(footer: Bytes) -> Result<Self> {
        let mut source = Source::memory(footer);
        let footer = Footer::read(&mut source)?;
        Self::new(footer.with_offset_index(&mut source, ColumnChunkMask::all())?)
    }

    /// The bounds of the leaf at `path`, whose column index is read from `source`; None if no
    /// bounds are reliable.
    pub fn bounds(&self, source: &mut Source, path: &[String]) -> Result<Option<Vec<Bounds>>> {
        let metadata = self.metadata();
        let Some(leaf) = bounded_leaf(metadata, path) else {
            return Ok(None);
        };
        let indexes = column_indexes(metadata, source, leaf)?;
        bounds(metadata, &indexes, leaf).map(Some)
    }

    pub fn metadata(&self) -> &ParquetMetaData {
        self.arrow.metadata()
    }

    pub fn arrow(&self) -> &ArrowReaderMetadata {
        &self.arrow
    }

    pub fn schema(&self) -> &SchemaRef {
        self.arrow.schema()
    }
}

/// The Arrow view of the file, as its writer intended it, but with INT96 as microseconds.
///
/// INT96 timestamps default to nanoseconds, which end in 2262; Spark's timestamps range from year 1
/// to 9999.
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

/// `fields` with the INT96 leaves as microseconds; both schemas list the leaves in the same order.
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
