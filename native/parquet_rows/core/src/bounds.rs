//! Bounds of a column's values, page by page, from the column index of a file.
//!
//! Only reliable bounds are returned. Bounds by unknown writers, in an order other than that of the
//! type, of INT96 and of decimals in byte arrays are omitted, and so is everything about columns
//! inside arrays and maps.

use std::ops::Range;

use parquet::basic::{ColumnOrder, SortOrder, Type as PhysicalType};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use crate::error::{Error, Result};

/// Writers whose statistics are trusted; Hudi uses the first.
const KNOWN_WRITERS: [&str; 3] = ["parquet-mr ", "parquet-cpp-arrow ", "parquet-rs "];

/// A bound of a column's values.
#[derive(Clone, Debug)]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Bytes(Vec<u8>),
}

/// Consecutive rows, and what is known about a column's values in them.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Positions in the file of the first row, and of the first row after the last.
    pub start: i64,
    pub stop: i64,
    /// Number of NULL values; None if unknown.
    pub nulls: Option<i64>,
    /// Lower and upper bound of the values that are neither NULL nor NaN; None if unknown.
    pub range: Option<(Value, Value)>,
}

/// The leaf at this path, if its bounds are usable: it is not repeated, and the bounds of its type
/// and order are reliable.
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

/// Bounds of a leaf: one per page where the row group has page indexes; nothing is known about the
/// values in other row groups.
///
/// `metadata` contains the offset indexes; `indexes` are the column indexes of the leaf.
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
