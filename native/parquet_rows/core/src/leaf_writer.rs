//! Writes leaves of a B+ tree index. docs/format.md describes their bytes; `leaves` reads them.

use crate::error::{Error, Result};
use crate::leaves::{HEADER, LZ4, NUMBER, RECORD, ZSTD};

/// Rows in a leaf, at most, unless one key alone has more.
const LEAF_ROWS: usize = 512;
/// Bytes of keys in a leaf, at most, unless one key alone has more.
const LEAF_KEY_BYTES: i64 = 32 * 1024;

// Unpacking some kilobytes by LZ4 takes as long as all else that is done to search a leaf, and by
// Zstandard ten times as long. So each must save much.
/// Of the size as it is.
const WORTH_LZ4: f64 = 0.6;
/// Of the size by LZ4.
const WORTH_ZSTD: f64 = 0.75;
const LEAST_FOR_ZSTD: usize = 8 * 1024;
const ZSTD_LEVEL: i32 = 1;

/// Keys in order, each once.
pub enum SortedKeys {
    Numbers(Vec<u64>),
    /// Key i lies between offsets i and i + 1.
    Bytes(Vec<u8>, Vec<i64>),
}

impl SortedKeys {
    fn len(&self) -> usize {
        match self {
            SortedKeys::Numbers(numbers) => numbers.len(),
            SortedKeys::Bytes(_, offsets) => offsets.len().saturating_sub(1),
        }
    }

    fn is_valid(&self) -> bool {
        match self {
            SortedKeys::Numbers(numbers) => numbers.is_sorted(),
            SortedKeys::Bytes(data, offsets) => match (offsets.first(), offsets.last()) {
                (Some(first), Some(last)) => {
                    *first >= 0 && offsets.is_sorted() && *last as u64 <= data.len() as u64
                }
                _ => false,
            },
        }
    }
}

/// Keys with their rows: those of each key are adjacent and in order.
pub struct Groups {
    pub keys: SortedKeys,
    /// The number of rows of each key.
    pub counts: Vec<i64>,
    pub rows: Vec<u32>,
}

/// Written leaves, one after the other.
#[derive(Default)]
pub struct Written {
    pub bodies: Vec<u8>,
    /// What the tree says of each leaf.
    pub records: Vec<u8>,
    /// The positions of the first key of each leaf, and the end of the keys of the last one.
    pub starts: Vec<usize>,
}

/// Leaves of all the keys or, if `keeps_last`, of all but those in the last leaf, which may have
/// room for keys that follow.
///
/// `offset` is where the first leaf will begin, `before` the number of rows before it.
///
/// # Errors
/// `Error::Argument` if keys, counts and rows contradict each other.
pub fn write(groups: &Groups, offset: u64, before: u64, keeps_last: bool) -> Result<Written> {
    let ends = row_ends(groups)?;
    let mut written = Written::default();
    let (mut start, all) = (0, groups.keys.len());
    written.starts.push(0);
    while start < all {
        let end = leaf_end(&groups.keys, &ends, start);
        if keeps_last && end == all {
            break;
        }
        let first = written.bodies.len();
        let rows = &groups.rows[ends[start]..ends[end]];
        let counts = &groups.counts[start..end];
        write_leaf(&groups.keys, start..end, counts, rows, &mut written.bodies)?;
        let body = &written.bodies[first..];
        let records = &mut written.records;
        records.push(0);
        records.extend((offset + first as u64).to_le_bytes());
        records.extend((body.len() as u32).to_le_bytes());
        records.extend(crc32fast::hash(body).to_le_bytes());
        records.extend((rows.len() as u64).to_le_bytes());
        records.extend((counts.len() as u32).to_le_bytes());
        records.extend((before + ends[start] as u64).to_le_bytes());
        debug_assert_eq!(records.len() % RECORD, 0);
        written.starts.push(end);
        start = end;
    }
    Ok(written)
}

/// The start of the rows of each key, and the number of all rows.
fn row_ends(groups: &Groups) -> Result<Vec<usize>> {
    let mut ends = Vec::with_capacity(groups.counts.len() + 1);
    let mut end = 0;
    ends.push(end);
    for count in &groups.counts {
        let is_valid = (1..=i64::from(u16::MAX)).contains(count);
        if !is_valid {
            return Err(Error::Argument(format!("a key cannot have {count} rows")));
        }
        end += *count as usize;
        ends.push(end);
    }
    if groups.counts.len() != groups.keys.len() || end != groups.rows.len() {
        return Err(Error::Argument(
            "keys, counts and rows differ in number".into(),
        ));
    }
    if !groups.keys.is_valid() {
        return Err(Error::Argument("the keys are not in order".into()));
    }
    Ok(ends)
}

/// The end of the keys of a leaf that begins with one of them.
fn leaf_end(keys: &SortedKeys, ends: &[usize], start: usize) -> usize {
    let mut end = ends.partition_point(|end| *end <= ends[start] + LEAF_ROWS) - 1;
    if let SortedKeys::Bytes(_, offsets) = keys {
        let most = offsets[start] + LEAF_KEY_BYTES;
        end = end.min(offsets.partition_point(|offset| *offset <= most) - 1);
    }
    end.max(start + 1)
}

fn write_leaf(
    keys: &SortedKeys,
    of_leaf: std::ops::Range<usize>,
    counts: &[i64],
    rows: &[u32],
    body: &mut Vec<u8>,
) -> Result<()> {
    let least = rows.iter().copied().min().unwrap_or(0);
    let row_width = width(rows.iter().map(|row| u64::from(row - least)));
    let (key_width, base_key, raw) = match keys {
        SortedKeys::Numbers(numbers) => number_keys(&numbers[of_leaf]),
        SortedKeys::Bytes(data, offsets) => (
            0,
            0,
            byte_keys(data, &offsets[of_leaf.start..=of_leaf.end])?,
        ),
    };
    let (codec, content) = if key_width > 0 {
        (0, None)
    } else {
        compressed(&raw)?
    };
    let content = content.as_deref().unwrap_or(&raw);
    let count_width = match counts.iter().max() {
        Some(most) if counts.len() < rows.len() => 1 + usize::from(*most > i64::from(u8::MAX)),
        _ => 0,
    };
    let first = body.len();
    body.extend([key_width as u8, count_width as u8, row_width as u8, codec]);
    body.extend(least.to_le_bytes());
    body.extend(base_key.to_le_bytes());
    body.extend((content.len() as u32).to_le_bytes());
    body.extend((raw.len() as u32).to_le_bytes());
    debug_assert_eq!(body.len() - first, HEADER);
    extend(
        body,
        rows.iter().map(|row| u64::from(row - least)),
        row_width,
    );
    extend(body, counts.iter().map(|count| *count as u64), count_width);
    body.extend(content);
    Ok(())
}

/// The width of number keys, the least one, and their bytes.
fn number_keys(numbers: &[u64]) -> (usize, u64, Vec<u8>) {
    let least = numbers[0];
    let key_width = width(numbers.iter().map(|key| key - least));
    let mut raw = Vec::with_capacity(key_width * numbers.len());
    extend(&mut raw, numbers.iter().map(|key| key - least), key_width);
    (key_width, least, raw)
}

/// The common prefix of byte keys, the lengths of what follows, and that itself.
fn byte_keys(data: &[u8], offsets: &[i64]) -> Result<Vec<u8>> {
    let key = |at: usize| &data[offsets[at] as usize..offsets[at + 1] as usize];
    let count = offsets.len() - 1;
    let pairs = key(0).iter().zip(key(count - 1));
    let prefix = &key(0)[..pairs.take_while(|(a, b)| a == b).count()];
    let mut raw = length(prefix.len())?.to_vec();
    raw.extend(prefix);
    for at in 0..count {
        let rest = key(at).len().checked_sub(prefix.len());
        let rest = rest.ok_or_else(|| Error::Argument("the keys are not in order".into()))?;
        raw.extend(length(rest)?);
    }
    for at in 0..count {
        raw.extend(&key(at)[prefix.len()..]);
    }
    Ok(raw)
}

fn length(bytes: usize) -> Result<[u8; 2]> {
    let length = u16::try_from(bytes);
    let length = length.map_err(|_| Error::Argument(format!("a key cannot have {bytes} bytes")))?;
    Ok(length.to_le_bytes())
}

/// The codec, and the bytes if they are compressed.
fn compressed(raw: &[u8]) -> Result<(u8, Option<Vec<u8>>)> {
    let quick = lz4_flex::block::compress(raw);
    if raw.len() >= LEAST_FOR_ZSTD {
        let small = zstd::bulk::compress(raw, ZSTD_LEVEL);
        let small = small.map_err(|error| Error::Argument(error.to_string()))?;
        if small.len() as f64 <= WORTH_ZSTD * quick.len() as f64 {
            return Ok((ZSTD, Some(small)));
        }
    }
    let is_worth_it = quick.len() as f64 <= WORTH_LZ4 * raw.len() as f64;
    Ok(if is_worth_it {
        (LZ4, Some(quick))
    } else {
        (0, None)
    })
}

/// The least width in bytes, from 1, that fits all integers.
fn width(numbers: impl Iterator<Item = u64>) -> usize {
    let bits = u64::BITS - numbers.max().unwrap_or(0).leading_zeros();
    (bits as usize).div_ceil(8).max(1)
}

/// Adds integers as so many little-endian bytes each.
fn extend(body: &mut Vec<u8>, numbers: impl Iterator<Item = u64>, width: usize) {
    debug_assert!(width <= NUMBER);
    for number in numbers {
        body.extend(&number.to_le_bytes()[..width]);
    }
}
