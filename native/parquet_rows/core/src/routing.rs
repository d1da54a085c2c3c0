//! Routes keys of values to the files that may hold them, by a run of packed pairs of a key and a
//! file. docs/format.md describes its bytes.

use std::ops::Range;

use crate::error::{Error, Result};

/// A pair, with the up to 7 bits before its first byte, is read as one number of 64 bits.
const WIDEST: u32 = 57;
const WORD: usize = 8;
/// Parts of a run this near to each other are read as one; a block that is fetched is larger.
const NEAR: usize = 16 * 1024;
const NONE: u32 = u32::MAX;

/// How a run's pairs are packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// What is taken off each key.
    pub base: u64,
    /// The lowest bits that are cut off the rest.
    pub shift: u32,
    /// The bits of a key that are left.
    pub key_bits: u32,
    /// The highest of these, which choose a bucket.
    pub bucket_bits: u32,
    /// The bits of a file's number.
    pub file_bits: u32,
    pub pairs: usize,
}

/// For each file, the numbers of the keys that it may hold: those of file f are `numbers[starts[f]
/// .. starts[f + 1]]`, ascending, each once.
#[derive(Debug, PartialEq)]
pub struct Routed {
    pub starts: Vec<i32>,
    pub numbers: Vec<i32>,
}

/// Pairs in order, unpacked: what is left of each key, and the file.
#[derive(Debug, PartialEq)]
pub struct Unpacked {
    pub keys: Vec<u64>,
    pub files: Vec<u32>,
}

/// An open run, without its pairs.
pub struct Routing {
    layout: Layout,
    /// The position of the first pair of each bucket, and the end of the last one.
    directory: Vec<u32>,
}

impl Routing {
    /// # Errors
    /// `Error::Malformed` if the directory is not one of that layout.
    pub fn new(layout: Layout, directory: &[u8]) -> Result<Self> {
        let Layout {
            shift,
            key_bits,
            bucket_bits,
            file_bits,
            ..
        } = layout;
        let fits = bucket_bits <= key_bits
            && bucket_bits <= 32
            && file_bits <= 32
            && key_bits - bucket_bits + file_bits <= WIDEST
            && shift < u64::BITS
            && key_bits < u64::BITS
            && directory.len() == 4 * ((1_usize << bucket_bits) + 1);
        if !fits {
            return Err(broken("a directory that does not fit"));
        }
        let directory: Vec<u32> = directory
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        let last = directory[directory.len() - 1] as usize;
        if directory[0] != 0 || last != layout.pairs || !directory.is_sorted() {
            return Err(broken("a directory without order"));
        }
        Ok(Routing { layout, directory })
    }

    /// The parts of the packed pairs that `route` reads for these keys, in order.
    pub fn parts_of(&self, keys: &[u64]) -> Vec<Range<usize>> {
        let kept = self.kept();
        let mut buckets: Vec<usize> = keys
            .iter()
            .filter_map(|&key| self.cut(key))
            .map(|cut| (cut >> kept) as usize)
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        let mut parts: Vec<Range<usize>> = Vec::new();
        for bucket in buckets {
            let part = self.bytes_of(self.directory[bucket]..self.directory[bucket + 1]);
            match parts.last_mut() {
                Some(last) if part.start <= last.end + NEAR => last.end = last.end.max(part.end),
                _ if part.is_empty() => {}
                _ => parts.push(part),
            }
        }
        parts
    }

    /// The keys, in any order, that each of so many files may hold.
    ///
    /// # Errors
    /// `Error::Argument` if these are not the packed pairs.
    pub fn route(&self, keys: &[u64], files: usize, packed: &[u8]) -> Result<Routed> {
        self.check(packed)?;
        let mut found: Vec<(u32, i32)> = Vec::with_capacity(2 * keys.len());
        // Pairs repeat where keys were cut.
        let mut last = vec![NONE; files];
        let mut starts = vec![0_i32; files + 1];
        for (number, &key) in keys.iter().enumerate() {
            self.each_file(key, packed, |file| {
                if let Some(last) = last
                    .get_mut(file as usize)
                    .filter(|at| **at != number as u32)
                {
                    *last = number as u32;
                    starts[file as usize + 1] += 1;
                    found.push((file, number as i32));
                }
            });
        }
        for file in 0..files {
            starts[file + 1] += starts[file];
        }
        let mut next = starts.clone();
        let mut numbers = vec![0; found.len()];
        for (file, number) in found {
            let place = &mut next[file as usize];
            numbers[*place as usize] = number;
            *place += 1;
        }
        Ok(Routed { starts, numbers })
    }

    /// The positions of the pairs among which those with a key between two lie, both included.
    pub fn between(&self, low: u64, high: u64) -> Range<u32> {
        match self.cut_range(low, high) {
            None => 0..0,
            Some((first, last)) => {
                let kept = self.kept();
                let (first, last) = ((first >> kept) as usize, (last >> kept) as usize);
                self.directory[first]..self.directory[last + 1]
            }
        }
    }

    /// For each of so many files, whether it may hold a key between two, both included.
    ///
    /// # Errors
    /// `Error::Argument` if these are not the packed pairs.
    pub fn route_between(
        &self,
        low: u64,
        high: u64,
        files: usize,
        packed: &[u8],
    ) -> Result<Vec<u8>> {
        self.check(packed)?;
        let mut may = vec![0; files];
        let Some((first, last)) = self.cut_range(low, high) else {
            return Ok(may);
        };
        let kept = self.kept();
        for bucket in first >> kept..=last >> kept {
            for at in self.directory[bucket as usize]..self.directory[bucket as usize + 1] {
                let (rest, file) = self.pair(at, packed);
                let cut = bucket << kept | rest;
                if first <= cut && cut <= last && (file as usize) < files {
                    may[file as usize] = 1;
                }
            }
        }
        Ok(may)
    }

    /// The part of the packed pairs that holds some, by position.
    pub fn bytes_of(&self, pairs: Range<u32>) -> Range<usize> {
        if pairs.is_empty() {
            return 0..0;
        }
        let width = self.width();
        let (first, last) = (pairs.start as usize, pairs.end as usize - 1);
        first * width / 8..last * width / 8 + WORD
    }

    /// All pairs.
    ///
    /// # Errors
    /// `Error::Argument` if these are not the packed pairs.
    pub fn unpack(&self, packed: &[u8]) -> Result<Unpacked> {
        self.check(packed)?;
        let kept = self.kept();
        let (mut keys, mut files) = (Vec::new(), Vec::new());
        keys.reserve_exact(self.layout.pairs);
        files.reserve_exact(self.layout.pairs);
        for (bucket, ends) in self.directory.windows(2).enumerate() {
            for at in ends[0]..ends[1] {
                let (rest, file) = self.pair(at, packed);
                keys.push((bucket as u64) << kept | rest);
                files.push(file);
            }
        }
        Ok(Unpacked { keys, files })
    }

    fn check(&self, packed: &[u8]) -> Result<()> {
        if packed.len() < self.bytes_of(0..self.layout.pairs as u32).end {
            return Err(Error::Argument("a routing run lacks pairs".into()));
        }
        Ok(())
    }

    /// The bits of a key that stand in its pair.
    fn kept(&self) -> u32 {
        self.layout.key_bits - self.layout.bucket_bits
    }

    fn width(&self) -> usize {
        (self.kept() + self.layout.file_bits) as usize
    }

    /// What is left of a key; None for one that the run cannot have.
    fn cut(&self, key: u64) -> Option<u64> {
        let cut = key.checked_sub(self.layout.base)? >> self.layout.shift;
        (cut >> self.layout.key_bits == 0).then_some(cut)
    }

    /// What is left of both ends of a range, as far as the run can have them.
    fn cut_range(&self, low: u64, high: u64) -> Option<(u64, u64)> {
        let distance = high.checked_sub(self.layout.base)?;
        let first = low.saturating_sub(self.layout.base) >> self.layout.shift;
        let greatest = (1 << self.layout.key_bits) - 1;
        let last = (distance >> self.layout.shift).min(greatest);
        (low <= high && first <= last).then_some((first, last))
    }

    fn each_file(&self, key: u64, packed: &[u8], mut each: impl FnMut(u32)) {
        let Some(cut) = self.cut(key) else { return };
        let kept = self.kept();
        let (bucket, wanted) = ((cut >> kept) as usize, cut & ((1 << kept) - 1));
        let (mut low, end) = (self.directory[bucket], self.directory[bucket + 1]);
        let mut high = end;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.pair(middle, packed).0 < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for at in low..end {
            let (rest, file) = self.pair(at, packed);
            if rest != wanted {
                return;
            }
            each(file);
        }
    }

    /// What a pair holds of its key, and the file.
    fn pair(&self, at: u32, packed: &[u8]) -> (u64, u32) {
        let (width, file_bits) = (self.width(), self.layout.file_bits);
        let bit = at as usize * width;
        let word = packed[bit / 8..bit / 8 + WORD].try_into();
        let word = word.expect("a whole word");
        let pair = (u64::from_le_bytes(word) >> (bit % 8)) & ((1 << width) - 1);
        (pair >> file_bits, (pair & ((1 << file_bits) - 1)) as u32)
    }
}

fn broken(part: &str) -> Error {
    Error::Malformed(format!("a routing run has {part}"))
}
