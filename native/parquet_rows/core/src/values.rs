//! Values of a flat column, kept as the file stores them: read by position, not decoded in advance.

use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::ColumnDescriptor;

use crate::error::{Error, Result};

/// Bytes before each text: its length.
const LENGTH: usize = 4;

/// Bytes that are copied at once of texts of up to this length.
pub const SHORT: usize = 16;

/// What values are, and how they are kept: numbers as little-endian integers of 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Class {
    /// Kept as one byte each, and in pages as numbers in a dictionary of both values.
    Bool,
    I32,
    I64,
    F32,
    F64,
    /// Unscaled decimals, stored as big-endian integers of so many bytes, from 1 to 8.
    Decimal(usize),
    Bytes,
}

impl Class {
    /// What the values of a column are that is read as `data_type`; None if they are not kept:
    /// nested columns, decimals of more than 8 bytes, INT96, and types that are seldom used.
    pub fn of(column: &ColumnDescriptor, data_type: &DataType) -> Option<Self> {
        use DataType::{
            Binary, Boolean, Date32, Decimal128, Float32, Float64, Int32, Int64, Timestamp, Utf8,
        };
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return None;
        }
        let length = usize::try_from(column.type_length()).unwrap_or(0);
        match (column.physical_type(), data_type) {
            (PhysicalType::BOOLEAN, Boolean) => Some(Class::Bool),
            (PhysicalType::INT32, Int32 | Date32 | Decimal128(..)) => Some(Class::I32),
            (PhysicalType::INT64, Int64 | Timestamp(..) | Decimal128(..)) => Some(Class::I64),
            (PhysicalType::FLOAT, Float32) => Some(Class::F32),
            (PhysicalType::DOUBLE, Float64) => Some(Class::F64),
            (PhysicalType::BYTE_ARRAY, Utf8 | Binary) => Some(Class::Bytes),
            (PhysicalType::FIXED_LEN_BYTE_ARRAY, Decimal128(..)) if (1..=8).contains(&length) => {
                Some(Class::Decimal(length))
            }
            _ => None,
        }
    }

    /// Bytes of each value that is kept; 0 for texts.
    pub fn width(self) -> usize {
        match self {
            Class::Bool => 1,
            Class::I32 | Class::F32 => 4,
            Class::I64 | Class::F64 | Class::Decimal(_) => 8,
            Class::Bytes => 0,
        }
    }
}

/// Values one after the other; texts lie behind their lengths, as in the file.
pub struct Values {
    class: Class,
    data: Bytes,
    /// Where each text starts, and `LENGTH` bytes after the end.
    offsets: Vec<u32>,
    len: usize,
}

impl Values {
    /// `len` values in Parquet's encoding PLAIN.
    ///
    /// # Errors
    /// `Error::Malformed` if `data` is too short for them.
    pub fn plain(class: Class, data: Bytes, len: usize) -> Result<Self> {
        let mut offsets = Vec::new();
        let data = match class {
            Class::Decimal(width) => widened(first(&data, len, width)?, width),
            Class::Bytes => {
                offsets = text_offsets(&data, len)?;
                data
            }
            _ => first(&data, len, class.width())?,
        };
        Ok(Values {
            class,
            data,
            offsets,
            len,
        })
    }

    /// The values of a dictionary, which are read many times each: behind the last text are enough
    /// bytes to copy it as a short one.
    ///
    /// # Errors
    /// As `plain`.
    pub fn dictionary(class: Class, data: Bytes, len: usize) -> Result<Self> {
        let mut values = Self::plain(class, data, len)?;
        if class == Class::Bytes {
            values.data = [&values.data, &[0; SHORT][..]].concat().into();
        }
        Ok(values)
    }

    /// FALSE and TRUE.
    pub fn booleans() -> Self {
        Values {
            class: Class::Bool,
            data: Bytes::from_static(&[0, 1]),
            offsets: Vec::new(),
            len: 2,
        }
    }

    #[inline]
    pub fn class(&self) -> Class {
        self.class
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text, or bytes, at a position.
    #[inline]
    pub fn bytes(&self, at: usize) -> &[u8] {
        &self.data[self.offsets[at] as usize..self.offsets[at + 1] as usize - LENGTH]
    }

    /// The bytes from the start of a text on, if so many are known.
    #[inline]
    pub fn short(&self, at: usize) -> Option<&[u8; SHORT]> {
        self.data[self.offsets[at] as usize..].first_chunk()
    }

    /// The number at a position.
    #[inline]
    pub fn integer(&self, at: usize) -> i64 {
        match self.class.width() {
            1 => self.data[at].into(),
            4 => i64::from(i32::from_le_bytes(self.fixed(at))),
            _ => i64::from_le_bytes(self.fixed(at)),
        }
    }

    /// The bytes of the number at a position; `W` is the width of the class.
    #[inline]
    pub fn fixed<const W: usize>(&self, at: usize) -> [u8; W] {
        let (all, _) = self.data.as_chunks();
        all[at]
    }

    /// The bytes of all numbers, or of all texts with their lengths.
    pub fn numbers(&self) -> &[u8] {
        &self.data
    }

    /// The position of the text of which the byte at a place in `numbers` is one, and where it ends
    /// there; None for bytes of a length. No text before `from` reaches so far; to search from the
    /// last one that was found takes no time where it is near.
    pub fn text_around(&self, place: usize, from: usize) -> Option<(usize, usize)> {
        let (mut low, mut step) = (from, 1);
        let is_before = |&start: &u32| start as usize <= place;
        while self.offsets.get(low + step).is_some_and(is_before) {
            low += step;
            step *= 2;
        }
        let high = self.offsets.len().min(low + step);
        let after = low + self.offsets[low..high].partition_point(is_before);
        let (number, next) = (after.checked_sub(1)?, *self.offsets.get(after)? as usize);
        let end = next - LENGTH;
        (place < end).then_some((number, end))
    }

    /// Bytes of memory.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.data.len() + size_of::<u32>() * self.offsets.len()
    }
}

/// The bytes of the first `len` values of `width` bytes.
fn first(data: &Bytes, len: usize, width: usize) -> Result<Bytes> {
    let end = len.checked_mul(width).filter(|&end| end <= data.len());
    Ok(data.slice(..end.ok_or_else(short)?))
}

/// Big-endian integers of `width` bytes as little-endian ones of 8 bytes.
fn widened(narrow: Bytes, width: usize) -> Bytes {
    let count = narrow.len() / width;
    // Whole 8 bytes are loaded, then shifted: copying `width` bytes takes three times as long.
    let mut padded = Vec::with_capacity(narrow.len() + 8);
    padded.extend_from_slice(&narrow);
    padded.extend_from_slice(&[0; 8]);
    let mut wide = Vec::with_capacity(count * 8);
    for at in 0..count {
        let eight = padded[at * width..at * width + 8].try_into();
        let eight = eight.expect("eight bytes");
        wide.extend_from_slice(&(i64::from_be_bytes(eight) >> (64 - 8 * width)).to_le_bytes());
    }
    wide.into()
}

fn text_offsets(data: &[u8], len: usize) -> Result<Vec<u32>> {
    // Before memory is allocated for a number that may be damaged.
    if len > data.len() / LENGTH || u32::try_from(data.len() + LENGTH).is_err() {
        return Err(short());
    }
    let mut offsets = Vec::with_capacity(len + 1);
    let mut at = 0;
    for _ in 0..len {
        let length: &[u8; LENGTH] = data
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .ok_or_else(short)?;
        at += LENGTH;
        offsets.push(at as u32);
        at += u32::from_le_bytes(*length) as usize;
    }
    if at > data.len() {
        return Err(short());
    }
    offsets.push((at + LENGTH) as u32);
    Ok(offsets)
}

fn short() -> Error {
    Error::Malformed("a page ends before its values".into())
}
