//! Opened pages, dictionaries and footers within a budget of bytes, for all files of a process.

use std::hash::{BuildHasher, RandomState};
use std::mem::ManuallyDrop;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::error::{Error, Result};
use crate::own_footer::OwnFooter;
use crate::page::OpenPage;
use crate::states::State;
use crate::values::Values;

/// Larger than any page that a writer makes on purpose: each shard has room for it.
const A_SHARD: u64 = 16 * 1024 * 1024;
/// The usual bytes of a page.
const A_PAGE: u64 = 64 * 1024;
/// Places for the marks of pages that were read once. Four marks in each, so that pages which are
/// read in turn do not make each other forgotten.
const PLACES: usize = 1 << 14;
/// Bytes of the table's own for each page.
const AN_ITEM: u64 = 160;

/// What the cache keeps.
#[derive(Clone)]
pub enum Kept {
    Page(Arc<OpenPage>),
    Dictionary(Arc<Values>),
    Footer(Arc<OwnFooter>),
}

/// The page, dictionary or footer that starts at an offset in a file in one state, whatever the
/// name of that file.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub file: State,
    pub offset: u64,
}

/// When a page that has been read is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Admission {
    /// Rows by position are soon wanted again.
    FirstUse,
    /// A scan reads more than there is room for.
    SecondUse,
}

/// The cache is of use in the process that made it alone: a fork may find it half changed.
pub struct PageCache {
    kept: ManuallyDrop<Cache<Key, Kept, Weight>>,
    /// Marks of 16 bits of the last four pages of a place that were read but not kept, latest first.
    seen: Vec<AtomicU64>,
    hasher: RandomState,
    process: u32,
}

impl PageCache {
    /// # Errors
    /// `Error::Argument` if `budget`, in bytes, is 0.
    pub fn new(budget: u64) -> Result<Self> {
        if budget == 0 {
            return Err(Error::Argument("a cache needs room".into()));
        }
        let most = (budget / A_SHARD).clamp(1, 64);
        // Rounded down: the cache rounds up, which would make shards too small.
        let shards = 1 << most.ilog2();
        let options = OptionsBuilder::new()
            .shards(shards)
            .estimated_items_capacity((budget / A_PAGE).max(64) as usize)
            .weight_capacity(budget)
            .build()
            .map_err(|error| Error::Argument(error.to_string()))?;
        let (hasher, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Ok(PageCache {
            kept: ManuallyDrop::new(Cache::with_options(options, Weight, hasher, lifecycle)),
            seen: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            process: process::id(),
        })
    }

    /// The cache, unless this process was forked from the one that made it.
    pub fn here(&self) -> Option<&Self> {
        (process::id() == self.process).then_some(self)
    }

    pub fn get(&self, key: &Key) -> Option<Kept> {
        self.kept.get(key)
    }

    /// Whether it is kept; no use of it.
    pub fn has(&self, key: &Key) -> bool {
        self.kept.peek(key).is_some()
    }

    /// Keeps what has just been read, if it is admitted.
    pub fn offer(&self, key: Key, kept: Kept, admission: Admission) {
        if admission == Admission::SecondUse && !self.seen_before(&key) {
            return;
        }
        self.kept.insert(key, kept);
    }

    /// Whether the page was read lately; marks it.
    fn seen_before(&self, key: &Key) -> bool {
        let hash = self.hasher.hash_one(key);
        let (place, mark) = (&self.seen[hash as usize % PLACES], hash >> 48 | 1);
        let with_mark = |marks: u64| {
            let seen = (0..4).any(|number| marks >> (16 * number) & 0xFFFF == mark);
            (!seen).then_some(marks << 16 | mark)
        };
        place.fetch_update(Relaxed, Relaxed, with_mark).is_err()
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.kept.weight()
    }

    /// Forgets all pages.
    pub fn clear(&self) {
        self.kept.clear();
        self.seen.iter().for_each(|place| place.store(0, Relaxed));
    }
}

impl Drop for PageCache {
    fn drop(&mut self) {
        if self.here().is_some() {
            // SAFETY: nothing uses the cache after this.
            unsafe { ManuallyDrop::drop(&mut self.kept) };
        }
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Kept> for Weight {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        let bytes = match kept {
            Kept::Page(page) => page.weight(),
            Kept::Dictionary(values) => values.weight(),
            Kept::Footer(footer) => footer.weight(),
        };
        AN_ITEM + bytes as u64
    }
}
