//! Sources of bytes: a local file, a callback, or memory.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::local_file::LocalFile;
use crate::parallel::{Work, in_parallel};

/// Fewer bytes of a local file than this are not worth a separate thread.
const SMALLEST_READ: u64 = 1024 * 1024;
/// Ranges of a callback, which probably reads a remote store, are merged across gaps up to this
/// size ...
const LARGEST_GAP: u64 = 64 * 1024;
/// ... as long as the unneeded bytes are at most the needed bytes divided by this number.
const WASTE: u64 = 25;

/// What has been fetched from a source so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Fetch rounds: calls of the callback, or batches of reads from a file.
    pub calls: u64,
    /// Ranges in those rounds, after nearby ranges were merged.
    pub ranges: u64,
    /// Bytes in those ranges.
    pub bytes: u64,
}

impl Traffic {
    /// Adds what was fetched besides.
    pub fn add(&mut self, other: Traffic) {
        self.calls += other.calls;
        self.ranges += other.ranges;
        self.bytes += other.bytes;
    }
}

/// A readable sequence of bytes of known size.
pub struct Source {
    kind: Kind,
    size: u64,
    pub traffic: Traffic,
}

/// Reads ranges of a file that only the caller can open.
pub trait Fetch: Send + Sync {
    /// The bytes of each range, in their order: exactly as many as it is long.
    ///
    /// # Errors
    /// `Error::Fetch`, which is handed on.
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
}

enum Kind {
    File(Arc<LocalFile>),
    Callback(Box<dyn Fetch>),
    Memory(Bytes),
}

impl Source {
    /// A local file; a `size` that differs from the file's is an error.
    pub fn file(path: PathBuf, size: Option<u64>) -> Result<Self> {
        let file = LocalFile::find(path, size)?;
        let size = file.size();
        Ok(Self::new(Kind::File(file.into()), size))
    }

    /// A file of `size` bytes, which `fetch` reads.
    pub fn callback(fetch: Box<dyn Fetch>, size: u64) -> Self {
        Self::new(Kind::Callback(fetch), size)
    }

    /// Bytes that are already in memory, such as a stripped footer.
    pub fn memory(bytes: Bytes) -> Self {
        let size = bytes.len() as u64;
        Self::new(Kind::Memory(bytes), size)
    }

    fn new(kind: Kind, size: u64) -> Self {
        Self {
            kind,
            size,
            traffic: Traffic::default(),
        }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The file, if it is a local one.
    pub fn local_file(&self) -> Option<&Arc<LocalFile>> {
        match &self.kind {
            Kind::File(file) => Some(file),
            _ => None,
        }
    }

    /// Fetches the ranges in one round; the results are in the order of `ranges`.
    pub fn fetch(&mut self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let fetched = self.fetch_merged(ranges, 1)?;
        Ok(fetched
            .cut(ranges)
            .expect("merged ranges cover the original ranges"))
    }

    /// Fetches the ranges in one round; reads a local file on several threads.
    ///
    /// Ranges beyond the end are rejected before anything is allocated: they come from metadata,
    /// which may be damaged.
    pub fn fetch_merged(&mut self, ranges: &[Range<u64>], threads: usize) -> Result<Fetched> {
        if let Some(range) = ranges
            .iter()
            .find(|range| range.start > range.end || range.end > self.size)
        {
            return Err(Error::Malformed(format!(
                "the metadata points at bytes {}..{} of a file of {} bytes",
                range.start, range.end, self.size
            )));
        }
        let ranges = merge(ranges, 0);
        let ranges = match self.kind {
            Kind::Callback(_) => merge_near(&ranges),
            // Reading the bytes between two pages of a local file has no benefit.
            _ => ranges,
        };
        if ranges.is_empty() {
            return Ok(Fetched::default());
        }
        self.traffic.calls += 1;
        self.traffic.ranges += ranges.len() as u64;
        self.traffic.bytes += ranges.iter().map(length).sum::<u64>();
        let bytes = match &self.kind {
            Kind::File(file) => in_parallel(ranges.clone(), threads, SMALLEST_READ, |range| {
                file.read(&range)
            })?,
            Kind::Callback(fetch) => fetch.fetch(&ranges)?,
            Kind::Memory(bytes) => ranges
                .iter()
                .map(|range| bytes.slice(range.start as usize..range.end as usize))
                .collect(),
        };
        Ok(Fetched { ranges, bytes })
    }
}

/// Bytes of ascending ranges that do not overlap.
#[derive(Default)]
pub struct Fetched {
    ranges: Vec<Range<u64>>,
    bytes: Vec<Bytes>,
}

impl Fetched {
    /// The bytes of each range in `wanted`; None if some of them were not fetched.
    pub fn cut(&self, wanted: &[Range<u64>]) -> Option<Vec<Bytes>> {
        wanted
            .iter()
            .map(|range| {
                let after = self
                    .ranges
                    .partition_point(|held| held.start <= range.start);
                let holder = after.checked_sub(1)?;
                let held = &self.ranges[holder];
                (range.end <= held.end).then(|| {
                    let (start, end) = (range.start - held.start, range.end - held.start);
                    self.bytes[holder].slice(start as usize..end as usize)
                })
            })
            .collect()
    }
}

/// The fewest ranges that cover `ranges`, with ranges at most `gap` bytes apart merged into one.
pub fn merge(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Merges ascending, disjoint ranges across the narrowest gaps first.
fn merge_near(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let wanted: u64 = ranges.iter().map(length).sum();
    let mut gaps: Vec<u64> = ranges
        .windows(2)
        .map(|pair| pair[1].start - pair[0].end)
        .filter(|&gap| gap <= LARGEST_GAP)
        .collect();
    gaps.sort_unstable();
    let mut left = wanted / WASTE;
    let mut widest = 0;
    // Of several gaps of the same size, either all are merged or none.
    for equal in gaps.chunk_by(|one, other| one == other) {
        let bytes: u64 = equal.iter().sum();
        if bytes > left {
            break;
        }
        left -= bytes;
        widest = equal[0];
    }
    merge(ranges, widest)
}

impl Work for Range<u64> {
    fn weight(&self) -> u64 {
        length(self)
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}
