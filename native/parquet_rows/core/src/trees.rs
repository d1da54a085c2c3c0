//! B+ trees of one column in many entries, searched by one call.

use std::os::fd::RawFd;

use crate::error::Result;
use crate::leaves::{KeyList, LeafRecord, RECORD, Search, in_order, read, rows_in};
use crate::parallel::{Work, in_parallel};

/// To start a thread takes about as long as searching the leaves of some tens of keys.
const BYTES_A_THREAD: u64 = 512 * 1024;
const BYTES_A_KEY: u64 = 8 * 1024;

/// The leaves of one column in one entry.
pub struct Tree<B> {
    /// The entry's open file; the caller keeps it open.
    pub file: RawFd,
    /// The offset of the first leaf of all columns.
    pub start: u64,
    /// The number of rows of the base file.
    pub rows: u32,
    /// What the tree says of each leaf.
    pub records: B,
    /// The first key of each leaf.
    pub first_keys: Vec<B>,
}

/// The keys that one tree is asked for: numbers in a list, ascending.
struct Asked<'a>(usize, &'a [u32]);

impl Work for Asked<'_> {
    fn weight(&self) -> u64 {
        BYTES_A_KEY * self.1.len() as u64
    }
}

/// The rows, ascending, of keys in some trees.
///
/// None for a tree in which they must be looked up by itself: a key's rows are a set, a leaf is
/// damaged, or more than `most` rows are found.
///
/// # Errors
/// Those of reading a file.
pub fn rows_of_keys<B: AsRef<[u8]> + Sync>(
    trees: &[Tree<B>],
    keys: &KeyList,
    asked: &[(usize, &[u32])],
    most: usize,
    threads: usize,
) -> Result<Vec<Option<Vec<u32>>>> {
    let work: Vec<_> = asked.iter().map(|(at, of)| Asked(*at, of)).collect();
    in_parallel(work, threads, BYTES_A_THREAD, |Asked(at, numbers)| {
        let rows = trees[at].rows_of(keys, numbers)?;
        Ok(rows.filter(|rows| rows.len() <= most))
    })
}

impl<B: AsRef<[u8]>> Tree<B> {
    fn rows_of(&self, keys: &KeyList, numbers: &[u32]) -> Result<Option<Vec<u32>>> {
        let (records, mut rows, mut left) = (self.records.as_ref(), Vec::new(), numbers);
        while let Some(first) = left.first() {
            let key = keys.key(*first as usize);
            let after = self.first_keys.partition_point(|each| each.as_ref() <= key);
            let next = self.first_keys.get(after);
            let is_before =
                |number: &u32| next.is_none_or(|next| keys.key(*number as usize) < next.as_ref());
            let (here, others) = left.split_at(left.partition_point(is_before).max(1));
            left = others;
            let Some(leaf) = after.checked_sub(1) else {
                continue;
            };
            if records
                .get(leaf * RECORD)
                .is_some_and(|is_set| *is_set != 0)
            {
                if key == self.first_keys[leaf].as_ref() {
                    return Ok(None);
                }
                continue;
            }
            let record = LeafRecord::of(records, leaf, self.start)?;
            let body = read(self.file, &record)?;
            match rows_in(&body, &record, &[Search::Some(keys, here)]) {
                Ok(Some(found)) => rows.extend(found),
                _ => return Ok(None),
            }
        }
        let rows = in_order(rows);
        Ok(rows
            .last()
            .is_none_or(|last| *last < self.rows)
            .then_some(rows))
    }
}
