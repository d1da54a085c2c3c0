//! Numbers in Parquet's hybrid of repeated numbers and bit-packed groups of eight, read by position.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::error::{Error, Result};

/// More bits a number than a dictionary of a page's size needs.
pub const WIDEST: usize = 24;

/// Numbers of a page from which on it pays to make a table of several numbers at once.
const MANY: usize = 4096;
/// Numbers of up to so many bits are looked up several at once.
const NARROW: usize = 6;

/// What is said of each number, and of several packed ones at once.
pub struct Answers {
    /// Up to a power of two, with `UNANSWERED` for further numbers.
    of_each: Vec<u8>,
    /// By the width of numbers, for those that lie in up to 12 bits: one bit for each of them, and
    /// `SOME_UNANSWERED` if there is no answer for one.
    of_several: [OnceLock<Vec<u16>>; NARROW + 1],
}

/// In place of 0 or 1: there is no answer.
const UNANSWERED: u8 = 2;
const SOME_UNANSWERED: u16 = 1 << 8;

impl Answers {
    /// `of_each` is 0 or 1 for each number from 0 on.
    pub fn new(mut of_each: Vec<u8>) -> Self {
        of_each.resize(of_each.len().next_power_of_two(), UNANSWERED);
        Answers {
            of_each,
            of_several: Default::default(),
        }
    }

    /// Whether one of them is yes.
    pub fn any(&self) -> bool {
        self.of_each.contains(&1)
    }

    fn of(&self, number: u32) -> u8 {
        *self.of_each.get(number as usize).unwrap_or(&UNANSWERED)
    }

    fn of_several(&self, width: usize) -> &[u16] {
        self.of_several[width].get_or_init(|| {
            let several = at_once(width);
            let said = |packed: u32| {
                (0..several).fold(0, |said, at| {
                    match self.of(packed >> (at * width) & ((1 << width) - 1)) {
                        UNANSWERED => said | SOME_UNANSWERED,
                        answer => said | u16::from(answer) << at,
                    }
                })
            };
            (0..1 << (several * width)).map(said).collect()
        })
    }
}

/// How many numbers of a width are looked up at once; their bits are at most 12.
const fn at_once(width: usize) -> usize {
    match width {
        1 => 8,
        2 | 3 => 4,
        _ => 2,
    }
}

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
        check_length(&bytes, len)?;
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
        check_length(&bytes, len)?;
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
        let eight = eight_bytes(&self.bytes[run.at as usize + bit / 8..]);
        ((eight >> (bit % 8)) & ((1 << self.width) - 1)) as u32
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

    /// What is said of each number as one bit each; None if there is no answer for one.
    pub fn answers(&self, answers: &Answers) -> Option<Vec<u64>> {
        let answer_groups = self.answering();
        let mut words = vec![0; self.len.div_ceil(64)];
        for (run, end) in self.with_ends() {
            let first = run.first as usize;
            if !run.packed {
                match answers.of(run.at) {
                    0 => {}
                    1 => set_bits(&mut words, first, end),
                    _ => return None,
                }
                continue;
            }
            let (groups, packed) = ((end - first) / 8, &self.bytes[run.at as usize..]);
            let answered = answer_groups(packed, groups, first, answers, &mut words)?;
            for at in first + answered * 8..end {
                match answers.of(self.at(at)) {
                    UNANSWERED => return None,
                    answer => words[at / 64] |= u64::from(answer) << (at % 64),
                }
            }
        }
        Some(words)
    }

    /// Puts what is said of packed groups of eight numbers into words.
    fn answering(&self) -> AnswerGroups {
        let many = self.len >= MANY;
        // As in `unpack`, the compiler has to know the width.
        macro_rules! by_width {
            ($($narrow:literal)*; $($wide:literal)*) => {
                match self.width {
                    $($narrow if many => answer_groups_at_once::<$narrow>,)*
                    $($narrow => answer_groups::<$narrow>,)*
                    $($wide => answer_groups::<$wide>,)*
                    _ => answer_groups::<0>,
                }
            };
        }
        by_width!(1 2 3 4 5 6; 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24)
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
                put_byte(&mut words, at, byte);
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

/// Positions of numbers and of bytes are kept in 32 bits.
fn check_length(bytes: &[u8], len: usize) -> Result<()> {
    if u32::try_from(len.max(bytes.len())).is_err() {
        return Err(Error::Malformed("a page is too long".into()));
    }
    Ok(())
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

/// Sets the bits of a byte from a position on.
fn put_byte(words: &mut [u64], at: usize, byte: u8) {
    words[at / 64] |= u64::from(byte) << (at % 64);
    if at % 64 > 56 && byte >> (64 - at % 64) != 0 {
        words[at / 64 + 1] |= u64::from(byte >> (64 - at % 64));
    }
}

/// Puts what is said of packed groups of eight numbers into words, from the bit `first` on. Returns
/// the number of these groups, all but the last ones; None if there is no answer for a number.
type AnswerGroups = fn(&[u8], usize, usize, &Answers, &mut [u64]) -> Option<usize>;

fn answer_groups<const W: usize>(
    bytes: &[u8],
    groups: usize,
    first: usize,
    answers: &Answers,
    words: &mut [u64],
) -> Option<usize> {
    let mask = (1 << W) - 1;
    let mut longer;
    let table = match answers.of_each.get(..=mask) {
        Some(table) => table,
        None => {
            longer = answers.of_each.clone();
            longer.resize(mask + 1, UNANSWERED);
            &longer[..=mask]
        }
    };
    let (mut seen, mut group) = (0, 0);
    while group < groups
        && let Some(source) = bytes.get(group * W..group * W + W + 8)
    {
        let mut said = 0;
        for number in 0..8 {
            let answer = table[number_of::<W>(source, number) as usize];
            seen |= answer;
            said |= answer << number;
        }
        put_byte(words, first + group * 8, said);
        group += 1;
    }
    (seen & UNANSWERED == 0).then_some(group)
}

/// The same by several numbers at once.
fn answer_groups_at_once<const W: usize>(
    bytes: &[u8],
    groups: usize,
    first: usize,
    answers: &Answers,
    words: &mut [u64],
) -> Option<usize> {
    let (table, several) = (answers.of_several(W), at_once(W));
    let mask = (1 << (several * W)) - 1;
    let mut seen = 0;
    for group in 0..groups {
        let packed = eight_bytes(&bytes[group * W..]);
        let mut said = 0;
        for part in 0..8 / several {
            let answer = table[(packed >> (part * several * W)) as usize & mask];
            seen |= answer;
            said |= (answer as u8) << (part * several);
        }
        put_byte(words, first + group * 8, said);
    }
    (seen & SOME_UNANSWERED == 0).then_some(groups)
}

/// The first eight bytes, as far as there are so many.
fn eight_bytes(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(eight)
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
            *place = number_of::<W>(source, number);
        }
        out.extend_from_slice(&eight);
    }
}

/// A number of a packed group that is followed by eight bytes. They are not copied: that is not
/// always compiled into a load, and then takes six times as long.
#[inline(always)]
fn number_of<const W: usize>(group: &[u8], number: usize) -> u32 {
    let (at, bit) = (number * W / 8, number * W % 8);
    let eight = group[at..at + 8].try_into().expect("eight bytes");
    (u64::from_le_bytes(eight) >> bit) as u32 & ((1 << W) - 1)
}

fn short() -> Error {
    Error::Malformed("a page ends before its numbers".into())
}
