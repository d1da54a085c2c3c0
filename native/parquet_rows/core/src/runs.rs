//! Numbers in Parquet's hybrid of repeated numbers and bit-packed groups of eight, read by position.

use bytes::Bytes;

use crate::condition::packed;
use crate::error::{Error, Result};

/// More bits a number than a dictionary of a page's size needs.
pub const WIDEST: usize = 24;

/// In a table of answers: there is none.
pub const UNANSWERED: u8 = 2;

/// Numbers below 2^width.
pub struct Runs {
    width: usize,
    bytes: Bytes,
    runs: Vec<Run>,
    len: usize,
}

struct Run {
    /// The position of its first number.
    first: u32,
    /// Where its packed numbers start, or the number that it repeats.
    at: u32,
    packed: bool,
}

impl Runs {
    /// `len` numbers of at most `WIDEST` bits each, whose runs are found; the numbers are not read.
    ///
    /// # Errors
    /// `Error::Malformed` if there are fewer numbers.
    pub fn new(width: usize, bytes: Bytes, len: usize) -> Result<Self> {
        assert!(width <= WIDEST, "wider numbers are not supported");
        if u32::try_from(len).is_err() || u32::try_from(bytes.len()).is_err() {
            return Err(Error::Malformed("a page is too long".into()));
        }
        let (mut runs, mut first, mut at) = (Vec::new(), 0, 0);
        while first < len {
            let header = varint(&bytes, &mut at)?;
            let packed = header & 1 == 1;
            let (count, size) = if packed {
                let groups = header >> 1;
                // The last group may lack what is beyond the last number.
                let needed = (groups * 8).min(len - first);
                (groups * 8, (needed * width).div_ceil(8))
            } else {
                (header >> 1, width.div_ceil(8))
            };
            let end = at + size;
            let content = bytes.get(at..end).ok_or_else(short)?;
            if count == 0 {
                return Err(short());
            }
            let mut number = [0; 4];
            if !packed {
                number[..size].copy_from_slice(content);
            }
            runs.push(Run {
                first: first as u32,
                at: if packed {
                    at as u32
                } else {
                    u32::from_le_bytes(number)
                },
                packed,
            });
            at = if packed {
                at + (header >> 1) * width
            } else {
                end
            };
            first += count;
        }
        Ok(Runs {
            width,
            bytes,
            runs,
            len,
        })
    }

    /// `len` packed numbers of `width` bits each.
    ///
    /// # Errors
    /// `Error::Malformed` if there are fewer numbers.
    pub fn packed(width: usize, bytes: Bytes, len: usize) -> Result<Self> {
        if u32::try_from(len).is_err() {
            return Err(Error::Malformed("a page is too long".into()));
        }
        if bytes.len() < (len * width).div_ceil(8) {
            return Err(short());
        }
        let run = Run {
            first: 0,
            at: 0,
            packed: true,
        };
        Ok(Runs {
            width,
            bytes,
            runs: vec![run],
            len,
        })
    }

    /// The number at a position.
    pub fn at(&self, position: usize) -> u32 {
        let after = self
            .runs
            .partition_point(|run| run.first as usize <= position);
        let run = &self.runs[after - 1];
        if !run.packed {
            return run.at;
        }
        let bit = (position - run.first as usize) * self.width;
        let rest = &self.bytes[run.at as usize + bit / 8..];
        let mut eight = [0; 8];
        let known = rest.len().min(8);
        eight[..known].copy_from_slice(&rest[..known]);
        ((u64::from_le_bytes(eight) >> (bit % 8)) & ((1 << self.width) - 1)) as u32
    }

    /// All numbers.
    pub fn unpacked(&self) -> Vec<u32> {
        let mut out = Vec::with_capacity(self.len + 8);
        for (run, end) in self.with_ends() {
            if run.packed {
                let count = end - run.first as usize;
                unpack(self.width, &self.bytes[run.at as usize..], count, &mut out);
                out.truncate(end);
            } else {
                out.resize(end, run.at);
            }
        }
        out
    }

    /// What a table says of each number, 0 or 1, as one bit each; None if it has no answer for one.
    pub fn answers(&self, table: &[u8]) -> Option<Vec<u64>> {
        let numbers = self.unpacked();
        let answer = |&number: &u32| *table.get(number as usize).unwrap_or(&UNANSWERED);
        let answers: Vec<u8> = numbers.iter().map(answer).collect();
        let seen = answers.iter().fold(0, |seen, answer| seen | answer);
        (seen & UNANSWERED == 0).then(|| packed(&answers))
    }

    /// Numbers of one bit as a bitmap, and how many of them are 1.
    pub fn bitmap(&self) -> (Vec<u64>, usize) {
        let mut words = vec![0_u64; self.len.div_ceil(64)];
        for (run, end) in self.with_ends() {
            let first = run.first as usize;
            if !run.packed {
                if run.at != 0 {
                    set_bits(&mut words, first, end);
                }
                continue;
            }
            let packed = &self.bytes[run.at as usize..];
            for (number, &byte) in packed.iter().take((end - first).div_ceil(8)).enumerate() {
                let at = first + number * 8;
                let left = end - at;
                let byte = if left < 8 {
                    byte & ((1 << left) - 1)
                } else {
                    byte
                };
                words[at / 64] |= u64::from(byte) << (at % 64);
                if at % 64 > 56 && byte >> (64 - at % 64) != 0 {
                    words[at / 64 + 1] |= u64::from(byte >> (64 - at % 64));
                }
            }
        }
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        (words, count)
    }

    /// Bytes of memory.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + size_of::<Run>() * self.runs.len()
    }

    fn with_ends(&self) -> impl Iterator<Item = (&Run, usize)> {
        let ends = self.runs.iter().skip(1).map(|next| next.first as usize);
        self.runs.iter().zip(ends.chain([self.len]))
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> Result<usize> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *bytes.get(*at).ok_or_else(short)?;
        *at += 1;
        number |= usize::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(number);
        }
        shift += 7;
        if shift > 28 {
            return Err(short());
        }
    }
}

fn set_bits(words: &mut [u64], start: usize, end: usize) {
    for (at, word) in words
        .iter_mut()
        .enumerate()
        .take(end.div_ceil(64))
        .skip(start / 64)
    {
        let low = if at * 64 < start {
            u64::MAX << (start % 64)
        } else {
            u64::MAX
        };
        let high = if (at + 1) * 64 > end {
            (1 << (end % 64)) - 1
        } else {
            u64::MAX
        };
        *word |= low & high;
    }
}

/// Appends `count` packed numbers, rounded up to a whole group.
fn unpack(width: usize, bytes: &[u8], count: usize, out: &mut Vec<u32>) {
    // The compiler unrolls a group if it knows the width, which takes a third of the time.
    macro_rules! by_width {
        ($($known:literal)*) => {
            match width {
                $($known => unpack_groups::<$known>(bytes, count, out),)*
                _ => out.resize(out.len() + count, 0),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
}

fn unpack_groups<const W: usize>(bytes: &[u8], count: usize, out: &mut Vec<u32>) {
    let mask = (1_u64 << W) - 1;
    for group in 0..count.div_ceil(8) {
        let start = group * W;
        let mut padded = [0; WIDEST + 8];
        let source = match bytes.get(start..start + W + 8) {
            Some(whole) => whole,
            None => {
                let rest = &bytes[start..bytes.len().min(start + W)];
                padded[..rest.len()].copy_from_slice(rest);
                &padded[..W + 8]
            }
        };
        let mut eight = [0; 8];
        for (number, place) in eight.iter_mut().enumerate() {
            let bit = number * W;
            let mut word = [0; 8];
            word.copy_from_slice(&source[bit / 8..bit / 8 + 8]);
            *place = ((u64::from_le_bytes(word) >> (bit % 8)) & mask) as u32;
        }
        out.extend_from_slice(&eight);
    }
}

fn short() -> Error {
    Error::Malformed("a page ends before its numbers".into())
}
