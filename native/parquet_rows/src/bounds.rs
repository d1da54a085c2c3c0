//! What the column index of a file says of a column: bounds of its values, page by page.
//!
//! Only what is sound is told. Left out are bounds of writers that are not known, of orders other
//! than that of the type, of INT96 and of decimals in byte arrays, and everything about columns
//! inside arrays and maps.

use std::ops::Range;

use parquet::basic::{ColumnOrder, SortOrder, Type as PhysicalType};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use crate::error::{Error, Result};

/// Whose statistics are believed; Hudi writes by the first.
const KNOWN_WRITERS: [&str; 3] = ["parquet-mr ", "parquet-cpp-arrow ", "parquet-rs "];

/// A bound of a column's values.
#[derive(Clone, Debug)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Bytes(Vec<u8>),
}

/// Consecutive rows, and what is known of a column's values in them.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Position of the first row in the file, and of the first one behind.
    pub start: i64,
    pub stop: i64,
    /// How many of the values are NULL; None if not known.
    pub nulls: Option<i64>,
    /// No value that is neither NULL nor NaN is below the first or above the second.
    pub range: Option<(Value, Value)>,
}

/// The leaf of that path, if bounds of it are of use: it is not repeated, and of a type and order
/// whose bounds are sound.
pub fn bounded_leaf(metadata: &ParquetMetaData, path: &[String]) -> Option<usize> {
    let file = metadata.file_metadata();
    let writer = file.created_by()?;
    let known = KNOWN_WRITERS.iter().any(|name| writer.starts_with(name));
    let schema = file.schema_descr();
    let mut found =
        (0..schema.num_columns()).filter(|&leaf| schema.column(leaf).path().parts() == path);
    let leaf = found.next()?;
    let column = schema.column(leaf);
    let sound = match (column.physical_type(), file.column_order(leaf)) {
        (PhysicalType::INT96 | PhysicalType::FIXED_LEN_BYTE_ARRAY, _) => false,
        (PhysicalType::BOOLEAN, ColumnOrder::TYPE_DEFINED_ORDER(_)) => true,
        (PhysicalType::BYTE_ARRAY, ColumnOrder::TYPE_DEFINED_ORDER(order)) => {
            order == SortOrder::UNSIGNED
        }
        (PhysicalType::FLOAT | PhysicalType::DOUBLE, ColumnOrder::IEEE_754_TOTAL_ORDER) => true,
        (_, ColumnOrder::TYPE_DEFINED_ORDER(order)) => order == SortOrder::SIGNED,
        _ => false,
    };
    let usable = known && sound && column.max_rep_level() == 0 && found.next().is_none();
    usable.then_some(leaf)
}

/// Bounds of a leaf: of each page where there is an index of pages; of other row groups nothing.
///
/// `metadata` has the offset indexes, `indexes` are the column indexes of the leaf.
pub fn bounds(
    metadata: &ParquetMetaData,
    indexes: &[Option<ColumnIndexMetaData>],
    leaf: usize,
) -> Result<Vec<Bounds>> {
    let mut all = Vec::new();
    let mut start = 0;
    for (number, (row_group, index)) in metadata.row_groups().iter().zip(indexes).enumerate() {
        let stop = start + row_group.num_rows();
        let pages = metadata.page_index_for_row_group(number);
        match (pages.page_locations(leaf), index) {
            (Some(pages), Some(index)) => {
                let starts = pages.iter().map(|page| start + page.first_row_index);
                page_bounds(index, starts.collect(), start..stop, &mut all)?;
            }
            _ => all.push(Bounds {
                start,
                stop,
                nulls: None,
                range: None,
            }),
        }
        start = stop;
    }
    Ok(all)
}

fn page_bounds(
    index: &ColumnIndexMetaData,
    mut borders: Vec<i64>,
    rows: Range<i64>,
    all: &mut Vec<Bounds>,
) -> Result<()> {
    let pages = borders.len();
    borders.push(rows.end);
    let ordered = borders[0] == rows.start && borders.is_sorted();
    if !ordered || index.num_pages() != pages as u64 {
        return Err(Error::Malformed(
            "the page indexes contradict each other".into(),
        ));
    }
    for (page, rows) in borders.windows(2).enumerate() {
        let all_null = index.is_null_page(page);
        all.push(Bounds {
            start: rows[0],
            stop: rows[1],
            nulls: if all_null {
                Some(rows[1] - rows[0])
            } else {
                index.null_count(page)
            },
            range: if all_null {
                None
            } else {
                page_range(index, page)
            },
        });
    }
    Ok(())
}

fn page_range(index: &ColumnIndexMetaData, page: usize) -> Option<(Value, Value)> {
    match index {
        ColumnIndexMetaData::BOOLEAN(index) => {
            pair(index.min_value(page), index.max_value(page), |&value| {
                Value::Boolean(value)
            })
        }
        ColumnIndexMetaData::INT32(index) => {
            pair(index.min_value(page), index.max_value(page), |&value| {
                Value::Integer(value.into())
            })
        }
        ColumnIndexMetaData::INT64(index) => {
            pair(index.min_value(page), index.max_value(page), |&value| {
                Value::Integer(value)
            })
        }
        ColumnIndexMetaData::FLOAT(index) => {
            pair(index.min_value(page), index.max_value(page), |&value| {
                Value::Float(value.into())
            })
        }
        ColumnIndexMetaData::DOUBLE(index) => {
            pair(index.min_value(page), index.max_value(page), |&value| {
                Value::Float(value)
            })
        }
        ColumnIndexMetaData::BYTE_ARRAY(index) => {
            pair(index.min_value(page), index.max_value(page), |value| {
                Value::Bytes(value.to_vec())
            })
        }
        ColumnIndexMetaData::INT96(_) | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(_) => None,
    }
}

fn pair<T: ?Sized>(
    least: Option<&T>,
    greatest: Option<&T>,
    value: impl Fn(&T) -> Value,
) -> Option<(Value, Value)> {
    Some((value(least?), value(greatest?)))
}
