//! Reads leaves of a B+ tree index, and searches many by one call. docs/format.md describes their
//! bytes.

use std::borrow::Cow;
use std::fs::File;
use std::io::ErrorKind;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;

use crate::error::{Error, Result};

pub const RECORD: usize = 37;
pub const HEADER: usize = 24;
pub const NUMBER: usize = 8;
pub const LZ4: u8 = 1;
pub const ZSTD: u8 = 2;
const WORD: usize = u64::BITS as usize;

/// What the tree says of a leaf.
pub struct LeafRecord {
    offset: u64,
    pub length: usize,
    crc32: u32,
    rows: usize,
    keys: usize,
}

impl LeafRecord {
    /// One of many records, with its offset from the beginning of the file.
    ///
    /// # Errors
    /// `Error::Argument` if there are not so many; `Error::Malformed` for an offset beyond any file.
    pub fn of(records: &[u8], leaf: usize, start: u64) -> Result<Self> {
        let record = records.chunks_exact(RECORD).nth(leaf);
        let record = record.ok_or_else(|| Error::Argument(format!("there is no leaf {leaf}")))?;
        let offset = start.checked_add(number(&record[1..9]));
        Ok(LeafRecord {
            offset: offset.ok_or_else(|| broken("offset"))?,
            length: number(&record[9..13]) as usize,
            crc32: number(&record[13..17]) as u32,
            rows: number(&record[17..25]) as usize,
            keys: number(&record[25..29]) as usize,
        })
    }
}

/// The keys to find in one leaf.
pub enum Search<'a> {
    /// Those from the first on and below the second (None: no bound).
    Between(&'a [u8], Option<&'a [u8]>),
    /// These of a list, in order.
    Each(&'a KeyList<'a>, Range<usize>),
    /// These of a list by number, ascending.
    Some(&'a KeyList<'a>, &'a [u32]),
}

/// Keys one after the other: key i lies between offsets i and i + 1.
pub struct KeyList<'a> {
    bytes: &'a [u8],
    offsets: Vec<i64>,
}

impl<'a> KeyList<'a> {
    /// None if the offsets are not in order and within the bytes.
    pub fn new(bytes: &'a [u8], offsets: Vec<i64>) -> Option<Self> {
        let first = *offsets.first()?;
        let last = usize::try_from(*offsets.last()?).ok()?;
        let is_valid = first >= 0 && offsets.is_sorted() && last <= bytes.len();
        is_valid.then_some(KeyList { bytes, offsets })
    }

    /// The number of keys.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The key of a number.
    pub fn key(&self, at: usize) -> &[u8] {
        &self.bytes[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }
}

/// The bytes of a leaf in an open file; fewer if the file ends before.
pub fn read(file: RawFd, leaf: &LeafRecord) -> Result<Vec<u8>> {
    let (offset, length) = (leaf.offset, leaf.length);
    // SAFETY: the caller keeps the file open during the call, and `ManuallyDrop` does not close it.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(file) });
    let mut body = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut body[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Io(error, None)),
        }
    }
    body.truncate(filled);
    Ok(body)
}

/// All keys and rows of a leaf, unpacked, as bytes in the machine's order.
pub struct Unpacked {
    /// Numbers of 64 bits, or byte strings one after the other.
    pub keys: Vec<u8>,
    /// Where each byte string begins, and the end of the last one; None for numbers.
    pub offsets: Option<Vec<u8>>,
    /// The start of the rows of each key, and the number of rows.
    pub starts: Vec<u8>,
    pub rows: Vec<u8>,
}

/// A whole leaf, whose checksum has been checked.
///
/// # Errors
/// `Error::Malformed` if it contradicts itself.
pub fn unpack(body: &[u8], rows: usize, keys: usize) -> Result<Unpacked> {
    let open = Open::new(body, rows, keys)?;
    let mut row_ids = Vec::new();
    open.rows_of_keys(0, keys, &mut row_ids);
    let starts: Vec<i64> = match &open.starts {
        Some(starts) => starts.iter().map(|start| i64::from(*start)).collect(),
        None => (0..=keys as i64).collect(),
    };
    let (key_bytes, offsets) = match &open.keys {
        Keys::Numbers(numbers) => (native(numbers, |key| key.to_ne_bytes()), None),
        Keys::Bytes(keys) => {
            let (bytes, offsets) = keys.joined();
            (bytes, Some(native(&offsets, |offset| offset.to_ne_bytes())))
        }
    };
    Ok(Unpacked {
        keys: key_bytes,
        offsets,
        starts: native(&starts, |start| start.to_ne_bytes()),
        rows: native(&row_ids, |row| row.to_ne_bytes()),
    })
}

fn native<T: Copy, const SIZE: usize>(values: &[T], bytes: impl Fn(T) -> [u8; SIZE]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes(*value)).collect()
}

/// The rows that searches find in a leaf; None if it does not have its checksum.
pub fn rows_in(body: &[u8], leaf: &LeafRecord, searches: &[Search]) -> Result<Option<Vec<u32>>> {
    if crc32fast::hash(body) != leaf.crc32 {
        return Ok(None);
    }
    let open = Open::new(body, leaf.rows, leaf.keys)?;
    let mut rows = Vec::new();
    for search in searches {
        match search {
            Search::Between(low, high) => open.rows_between(low, *high, &mut rows),
            Search::Each(keys, of_leaf) => {
                let mut at = 0;
                for key in of_leaf.clone() {
                    at = open.rows_of(keys.key(key), at, &mut rows);
                }
            }
            Search::Some(keys, numbers) => {
                let mut at = 0;
                for number in *numbers {
                    at = open.rows_of(keys.key(*number as usize), at, &mut rows);
                }
            }
        }
    }
    Ok(Some(rows))
}

/// The rows in order, each once.
pub fn in_order(mut rows: Vec<u32>) -> Vec<u32> {
    let words = rows
        .iter()
        .max()
        .map_or(0, |most| *most as usize / WORD + 1);
    if words > rows.len() {
        rows.sort_unstable();
        rows.dedup();
        return rows;
    }
    // They are dense: marking each one takes less time than sorting.
    let mut marks = vec![0_u64; words];
    for row in &rows {
        marks[*row as usize / WORD] |= 1 << (*row as usize % WORD);
    }
    rows.clear();
    for (number, mut word) in marks.into_iter().enumerate() {
        while word != 0 {
            rows.push((number * WORD) as u32 + word.trailing_zeros());
            word &= word - 1;
        }
    }
    rows
}

enum Keys<'a> {
    Numbers(Vec<u64>),
    Bytes(ByteKeys<'a>),
}

/// Byte strings in order, without their common prefix.
struct ByteKeys<'a> {
    content: Cow<'a, [u8]>,
    prefix: Range<usize>,
    /// Where the rest of each key begins in the content, and the end of the last one.
    offsets: Vec<usize>,
}

impl<'a> ByteKeys<'a> {
    fn new(content: Cow<'a, [u8]>, keys: usize) -> Result<Self> {
        let lengths_at = 2 + content.get(..2).map_or(0, |length| number(length) as usize);
        let rests_at = lengths_at + 2 * keys;
        let lengths = content.get(lengths_at..rests_at);
        let lengths = lengths.ok_or_else(|| broken("keys"))?;
        let mut offsets = Vec::with_capacity(keys + 1);
        let mut end = rests_at;
        offsets.push(end);
        for_each_number(lengths, 2, |length| {
            end += length as usize;
            offsets.push(end);
        });
        if end != content.len() {
            return Err(broken("keys"));
        }
        Ok(ByteKeys {
            content,
            prefix: 2..lengths_at,
            offsets,
        })
    }

    fn prefix(&self) -> &[u8] {
        &self.content[self.prefix.clone()]
    }

    /// All keys, one after the other, and where each begins and the last one ends.
    fn joined(&self) -> (Vec<u8>, Vec<i64>) {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
        for at in 0..self.offsets.len() - 1 {
            bytes.extend(self.prefix());
            bytes.extend(self.rest(at));
            offsets.push(bytes.len() as i64);
        }
        (bytes, offsets)
    }

    /// A key without the prefix.
    fn rest(&self, at: usize) -> &[u8] {
        &self.content[self.offsets[at]..self.offsets[at + 1]]
    }
}

/// A leaf whose keys are unpacked.
struct Open<'a> {
    keys: Keys<'a>,
    key_count: usize,
    /// The start of the rows of each key, and the number of rows; None if each has one.
    starts: Option<Vec<u32>>,
    row_width: usize,
    base_row: u32,
    row_bytes: &'a [u8],
}

impl<'a> Open<'a> {
    fn new(body: &'a [u8], row_count: usize, key_count: usize) -> Result<Self> {
        if body.len() < HEADER {
            return Err(broken("header"));
        }
        let [key_width, count_width, row_width, codec] = [body[0], body[1], body[2], body[3]];
        let (base_row, base_key) = (number(&body[4..8]) as u32, number(&body[8..16]));
        let (stored, raw) = (
            number(&body[16..20]) as usize,
            number(&body[20..24]) as usize,
        );
        let (key_width, row_width) = (key_width as usize, row_width as usize);
        let row_bytes = row_width.checked_mul(row_count);
        let row_bytes = row_bytes.filter(|bytes| *bytes <= body.len());
        let counts_at = HEADER + row_bytes.ok_or_else(|| broken("length"))?;
        let keys_at = counts_at + count_width as usize * key_count;
        let is_valid = (1..=4).contains(&row_width)
            && key_width <= NUMBER
            && count_width <= 2
            && (count_width > 0 || key_count == row_count)
            && body.len() == keys_at + stored;
        if !is_valid {
            return Err(broken("length"));
        }
        let content = unpacked(codec, &body[keys_at..], raw)?;
        let keys = if key_width > 0 {
            if content.len() != key_width * key_count {
                return Err(broken("keys"));
            }
            let mut numbers = Vec::with_capacity(key_count);
            for_each_number(&content, key_width, |difference| {
                numbers.push(base_key.wrapping_add(difference));
            });
            Keys::Numbers(numbers)
        } else {
            Keys::Bytes(ByteKeys::new(content, key_count)?)
        };
        Ok(Open {
            keys,
            key_count,
            starts: starts(count_width, &body[counts_at..keys_at], row_count)?,
            row_width,
            base_row,
            row_bytes: &body[HEADER..counts_at],
        })
    }

    fn rows_between(&self, low: &[u8], high: Option<&[u8]>, rows: &mut Vec<u32>) {
        let first = self.position(low, 0);
        let last = high.map_or(self.key_count, |high| self.position(high, first));
        self.rows_of_keys(first, last, rows);
    }

    /// Adds the rows of a key, which is not below that before a position; returns its position.
    fn rows_of(&self, key: &[u8], from: usize, rows: &mut Vec<u32>) -> usize {
        let at = self.position(key, from);
        if at < self.key_count && self.is_at(at, key) {
            self.rows_of_keys(at, at + 1, rows);
        }
        at
    }

    /// Whether a key, which is not above that at a position, is that one.
    fn is_at(&self, at: usize, key: &[u8]) -> bool {
        match &self.keys {
            Keys::Numbers(numbers) => key == numbers[at].to_be_bytes(),
            Keys::Bytes(keys) => key.strip_prefix(keys.prefix()) == Some(keys.rest(at)),
        }
    }

    /// The rows of the keys from one position to another.
    fn rows_of_keys(&self, first: usize, last: usize, rows: &mut Vec<u32>) {
        let (start, end) = match &self.starts {
            Some(starts) => (starts[first] as usize, starts[last] as usize),
            None => (first, last),
        };
        let bytes = &self.row_bytes[start * self.row_width..end * self.row_width];
        rows.reserve(end - start);
        for_each_number(bytes, self.row_width, |row| {
            rows.push(self.base_row.wrapping_add(row as u32));
        });
    }

    /// The number of keys below a bound, but at least `from`.
    fn position(&self, bound: &[u8], from: usize) -> usize {
        match &self.keys {
            Keys::Numbers(numbers) => match u64::try_from(lowest_number(bound)) {
                Ok(lowest) => self.first_where(from, |at| numbers[at] >= lowest),
                Err(_) => self.key_count,
            },
            Keys::Bytes(keys) => match bound.strip_prefix(keys.prefix()) {
                Some(rest) => self.first_where(from, |at| keys.rest(at) >= rest),
                None if bound < keys.prefix() => from,
                None => self.key_count,
            },
        }
    }

    /// The first position from one on where a condition is true, which it is at all later ones. Of
    /// many keys, each is found near the one before.
    fn first_where(&self, from: usize, is_true: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high, mut step) = (from, from, 1);
        while high < self.key_count && !is_true(high) {
            low = high + 1;
            high += step;
            step *= 2;
        }
        high = high.min(self.key_count);
        while low < high {
            let middle = (low + high) / 2;
            if is_true(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

fn unpacked(codec: u8, content: &[u8], raw: usize) -> Result<Cow<'_, [u8]>> {
    let bytes: Cow<[u8]> = match codec {
        0 => content.into(),
        LZ4 => lz4_flex::block::decompress(content, raw)
            .map_err(|_| broken("compression"))?
            .into(),
        ZSTD => zstd::bulk::decompress(content, raw)
            .map_err(|_| broken("compression"))?
            .into(),
        _ => return Err(broken("compression")),
    };
    if bytes.len() == raw {
        Ok(bytes)
    } else {
        Err(broken("keys"))
    }
}

fn starts(width: u8, counts: &[u8], rows: usize) -> Result<Option<Vec<u32>>> {
    if width == 0 {
        return Ok(None);
    }
    let mut starts = Vec::with_capacity(counts.len() / width as usize + 1);
    let mut start = 0;
    starts.push(0);
    for_each_number(counts, width as usize, |count| {
        start += count;
        starts.push(start as u32);
    });
    if start == rows as u64 {
        Ok(Some(starts))
    } else {
        Err(broken("counts"))
    }
}

/// A little-endian integer of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; NUMBER];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// Calls `each` with the little-endian integers of so many bytes, in order. For the usual widths the
/// compiler knows how many bytes it copies, which takes a tenth of the time.
fn for_each_number(bytes: &[u8], width: usize, each: impl FnMut(u64)) {
    match width {
        1 => fixed::<1>(bytes, each),
        2 => fixed::<2>(bytes, each),
        3 => fixed::<3>(bytes, each),
        4 => fixed::<4>(bytes, each),
        _ => bytes.chunks_exact(width).map(number).for_each(each),
    }
}

fn fixed<const WIDTH: usize>(bytes: &[u8], each: impl FnMut(u64)) {
    let widened = |chunk: &[u8; WIDTH]| {
        let mut all = [0; NUMBER];
        if let Some(first) = all.first_chunk_mut() {
            *first = *chunk;
        }
        u64::from_le_bytes(all)
    };
    let (chunks, _) = bytes.as_chunks();
    chunks.iter().map(widened).for_each(each);
}

/// The least number whose key, as big-endian bytes, is not below a byte string.
fn lowest_number(bound: &[u8]) -> u128 {
    let mut first = [0; NUMBER];
    let length = bound.len().min(NUMBER);
    first[..length].copy_from_slice(&bound[..length]);
    u128::from(u64::from_be_bytes(first)) + u128::from(bound.len() > NUMBER)
}

fn broken(part: &str) -> Error {
    Error::Malformed(format!(
        "a leaf of a btree index contradicts itself: {part}"
    ))
}
