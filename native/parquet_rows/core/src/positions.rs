//! The rows of a request: their positions in the file, ascending.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;

use crate::error::{Error, Result};

/// 0-based row positions in a file.
pub enum Positions {
    List(Vec<i64>),
    /// All from the first to before the second.
    Range(Range<i64>),
}

/// Rows of one row group: ascending, disjoint ranges of positions within it.
#[derive(Clone, Debug)]
pub struct GroupRows {
    pub row_group: usize,
    pub ranges: Vec<Range<usize>>,
}

impl GroupRows {
    pub fn count(&self) -> usize {
        self.ranges.iter().map(ExactSizeIterator::len).sum()
    }
}

impl Positions {
    pub fn len(&self) -> usize {
        match self {
            Self::List(rows) => rows.len(),
            Self::Range(rows) => usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(0),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of the row with this number among the rows.
    pub fn at(&self, number: usize) -> i64 {
        match self {
            Self::List(rows) => rows[number],
            Self::Range(rows) => rows.start + number as i64,
        }
    }

    /// # Errors
    /// `Error::Argument` unless they are ascending, unique positions in a file of `row_count` rows.
    pub fn check(&self, row_count: i64) -> Result<()> {
        match self {
            Self::List(rows) => check_list(rows, row_count),
            Self::Range(rows) if rows.start < 0 || (!self.is_empty() && rows.end > row_count) => {
                Err(Error::Argument(format!(
                    "rows must be positions in the file: {}..{} is not within its {row_count} rows",
                    rows.start, rows.end
                )))
            }
            Self::Range(_) => Ok(()),
        }
    }

    /// The rows in batches of at most `most`, each split by row group, without row groups that
    /// contain none. The rows have been checked.
    pub fn in_batches(&self, metadata: &ParquetMetaData, most: usize) -> Vec<Vec<GroupRows>> {
        match self {
            Self::List(rows) => rows
                .chunks(most)
                .map(|some| groups_of_list(metadata, some))
                .collect(),
            Self::Range(rows) => (0..self.len())
                .step_by(most)
                .map(|first| {
                    let start = rows.start + first as i64;
                    let stop = start.saturating_add(most as i64).min(rows.end);
                    groups_of_range(metadata, &(start..stop))
                })
                .collect(),
        }
    }
}

fn check_list(rows: &[i64], row_count: i64) -> Result<()> {
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

fn groups_of_list(metadata: &ParquetMetaData, mut rows: &[i64]) -> Vec<GroupRows> {
    let mut groups = Vec::new();
    let mut first = 0;
    for (row_group, group) in metadata.row_groups().iter().enumerate() {
        let end = first + group.num_rows();
        let (inside, rest) = rows.split_at(rows.partition_point(|&row| row < end));
        if !inside.is_empty() {
            let mut ranges: Vec<Range<usize>> = Vec::new();
            for position in inside.iter().map(|&row| (row - first) as usize) {
                match ranges.last_mut() {
                    Some(last) if last.end == position => last.end += 1,
                    _ => ranges.push(position..position + 1),
                }
            }
            groups.push(GroupRows { row_group, ranges });
        }
        rows = rest;
        first = end;
    }
    groups
}

fn groups_of_range(metadata: &ParquetMetaData, rows: &Range<i64>) -> Vec<GroupRows> {
    let mut groups = Vec::new();
    let mut first = 0;
    for (row_group, group) in metadata.row_groups().iter().enumerate() {
        let end = first + group.num_rows();
        let (start, stop) = (rows.start.max(first), rows.end.min(end));
        if start < stop {
            let range = (start - first) as usize..(stop - first) as usize;
            groups.push(GroupRows {
                row_group,
                ranges: vec![range],
            });
        }
        first = end;
    }
    groups
}
