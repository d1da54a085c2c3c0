//! The rows of a request: their positions in the file, ascending.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;

use crate::error::{Error, Result};
use crate::metadata::row_count;

/// 0-based row positions in a file.
pub enum Positions {
    List(Vec<i64>),
    /// All from the first to before the second.
    Range(Range<i64>),
}

/// Rows of one row group.
#[derive(Clone, Debug)]
pub struct GroupRows {
    pub row_group: usize,
    pub rows: InGroup,
}

/// Ascending, unique positions in a row group. They are no ranges: of rows in no order every second
/// range has one row, and to walk through short ranges takes longer than to read their values.
#[derive(Clone, Debug, PartialEq)]
pub enum InGroup {
    List(Vec<u32>),
    /// All from the first to before the second.
    Range(Range<u32>),
}

impl GroupRows {
    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// The rows.
    pub fn all(&self) -> SomeRows<'_> {
        match &self.rows {
            InGroup::List(rows) => SomeRows::of(rows),
            InGroup::Range(rows) => SomeRows::Range(rows.start as usize..rows.end as usize),
        }
    }

    /// Those of the rows from one position to before another one.
    pub fn between(&self, start: usize, end: usize) -> SomeRows<'_> {
        match &self.rows {
            InGroup::List(rows) => {
                let from = rows.partition_point(|&row| (row as usize) < start);
                let to = from + rows[from..].partition_point(|&row| (row as usize) < end);
                SomeRows::of(&rows[from..to])
            }
            InGroup::Range(rows) => {
                let first = start.max(rows.start as usize);
                SomeRows::Range(first..end.min(rows.end as usize).max(first))
            }
        }
    }

    /// The same as rows of the row group; None if there are none.
    pub fn part(&self, start: usize, end: usize) -> Option<Self> {
        let rows = match self.between(start, end) {
            some if some.is_empty() => return None,
            SomeRows::List(rows) => InGroup::List(rows.to_vec()),
            SomeRows::Range(rows) => InGroup::Range(rows.start as u32..rows.end as u32),
        };
        let row_group = self.row_group;
        Some(Self { row_group, rows })
    }

    /// Adds other rows of the row group.
    pub fn unite(&mut self, others: &Self) {
        let mut rows = self.all().counted_from(0);
        rows.extend(others.all().counted_from(0));
        rows.sort(); // which merges what is ascending
        rows.dedup();
        self.rows = InGroup::List(rows);
    }

    /// The rows before a number of them, and the others.
    fn split(self, number: usize) -> (Self, Self) {
        let (before, after) = match self.rows {
            InGroup::List(mut rows) => {
                let after = rows.split_off(number);
                (InGroup::List(rows), InGroup::List(after))
            }
            InGroup::Range(Range { start, end }) => {
                let middle = start + number as u32;
                (InGroup::Range(start..middle), InGroup::Range(middle..end))
            }
        };
        let with = |rows| Self {
            row_group: self.row_group,
            rows,
        };
        (with(before), with(after))
    }
}

/// Some of the rows of a row group.
#[derive(Clone)]
pub enum SomeRows<'a> {
    /// Not all in a row.
    List(&'a [u32]),
    Range(Range<usize>),
}

impl<'a> SomeRows<'a> {
    fn of(rows: &'a [u32]) -> Self {
        match rows {
            [] => Self::Range(0..0),
            [first, .., last] if (last - first) as usize + 1 != rows.len() => Self::List(rows),
            [first, ..] => {
                let first = *first as usize;
                Self::Range(first..first + rows.len())
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::List(rows) => rows.len(),
            Self::Range(rows) => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their positions, counted from a row that is not after the first of them.
    pub fn counted_from(&self, start: usize) -> Vec<u32> {
        match self {
            Self::List(rows) => rows.iter().map(|row| row - start as u32).collect(),
            Self::Range(rows) => ((rows.start - start) as u32..(rows.end - start) as u32).collect(),
        }
    }

    /// The longest ranges of which all rows are wanted.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let rows = match self {
            Self::Range(rows) => return vec![rows.clone()],
            Self::List(rows) => rows.iter(),
        };
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for position in rows.map(|&row| row as usize) {
            match ranges.last_mut() {
                Some(last) if last.end == position => last.end += 1,
                _ => ranges.push(position..position + 1),
            }
        }
        ranges
    }
}

/// The rows in batches of at most `most`, each split by row group.
pub fn in_batches(groups: Vec<GroupRows>, most: usize) -> Vec<Vec<GroupRows>> {
    let mut batches = Vec::new();
    let (mut batch, mut left) = (Vec::new(), most);
    for mut group in groups {
        while group.count() > left {
            let (before, after) = group.split(left);
            if left > 0 {
                batch.push(before);
            }
            batches.push(std::mem::take(&mut batch));
            (group, left) = (after, most);
        }
        left -= group.count();
        batch.push(group);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
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

    /// The rows by row group, without row groups that contain none.
    ///
    /// # Errors
    /// `Error::Argument` as for `check`; `Error::Malformed` if a row group has too many rows.
    pub fn groups(&self, metadata: &ParquetMetaData) -> Result<Vec<GroupRows>> {
        self.check(row_count(metadata))?;
        let (mut groups, mut first) = (Vec::new(), 0);
        for (row_group, group) in metadata.row_groups().iter().enumerate() {
            let end = first + group.num_rows();
            if u32::try_from(group.num_rows()).is_err() {
                let rows = group.num_rows();
                let message = format!("{rows} rows are too many for a row group");
                return Err(Error::Malformed(message));
            }
            let within = |row: i64| (row - first) as u32;
            let rows = match self {
                Self::List(rows) => {
                    let from = rows.partition_point(|&row| row < first);
                    let to = from + rows[from..].partition_point(|&row| row < end);
                    InGroup::List(rows[from..to].iter().copied().map(within).collect())
                }
                Self::Range(rows) => {
                    let stop = rows.end.min(end).max(first);
                    InGroup::Range(within(rows.start.clamp(first, stop))..within(stop))
                }
            };
            let rows = GroupRows { row_group, rows };
            if rows.count() > 0 {
                groups.push(rows);
            }
            first = end;
        }
        Ok(groups)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rows: &[u32]) -> GroupRows {
        let rows = InGroup::List(rows.to_vec());
        GroupRows { row_group: 0, rows }
    }

    fn range(rows: Range<u32>) -> GroupRows {
        let rows = InGroup::Range(rows);
        GroupRows { row_group: 0, rows }
    }

    #[test]
    fn rows_without_gaps_are_a_range() {
        for (rows, is_range) in [
            (list(&[4, 5, 6]), true),
            (range(4..7), true),
            (list(&[4, 6]), false),
            (list(&[4]), true),
            (list(&[]), true),
        ] {
            assert_eq!(matches!(rows.all(), SomeRows::Range(_)), is_range);
        }
        assert_eq!(list(&[4, 5, 7]).all().ranges(), [4..6, 7..8]);
        assert_eq!(list(&[3, 4, 6, 9]).between(4, 9).counted_from(4), [0, 2]);
        assert_eq!(range(3..9).between(5, 20).counted_from(5), [0, 1, 2, 3]);
        assert!(range(3..9).between(9, 12).is_empty() && list(&[3]).between(0, 3).is_empty());
    }

    #[test]
    fn a_batch_ends_within_a_row_group() {
        let counts = |most| -> Vec<Vec<usize>> {
            let groups = vec![list(&[0, 7, 9]), range(0..4), list(&[1])];
            let batches = in_batches(groups, most).into_iter();
            batches
                .map(|batch| batch.iter().map(GroupRows::count).collect())
                .collect()
        };
        assert_eq!(counts(3), [vec![3], vec![3], vec![1, 1]]);
        assert_eq!(counts(5), [vec![3, 2], vec![2, 1]]);
        assert_eq!(counts(2), [vec![2], vec![1, 1], vec![2], vec![1, 1]]);
        assert_eq!(counts(usize::MAX), [vec![3, 4, 1]]);
    }

    #[test]
    fn rows_of_two_lists_are_united() {
        let mut rows = list(&[1, 5, 9]);
        rows.unite(&range(4..7));
        assert_eq!(rows.rows, InGroup::List(vec![1, 4, 5, 6, 9]));
    }
}
