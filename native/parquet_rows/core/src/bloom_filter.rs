//! Where a footer contains Hudi's Bloom filter of record keys, which can be a hundred times as long
//! as the rest.
//!
//! A footer is a struct in Thrift's compact protocol. Its key-value pairs follow the row groups.

use std::ops::Range;

/// The key of the filter, in the footer's key-value pairs.
const BLOOM_FILTER: &[u8] = b"org.apache.hudi.bloomfilter";
/// The number of the footer's field of key-value pairs.
const KEY_VALUES: i16 = 5;
/// The numbers of the fields of a pair.
const KEY: i16 = 1;
const VALUE: i16 = 2;
/// More structs within one another are not part of any footer.
const DEEPEST: u8 = 16;

// Types of values.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The positions of the filter in the footer that starts with `head`, the filter's length included;
/// its end may lie beyond `head`. None if no filter starts in `head`.
pub fn bloom_filter(head: &[u8]) -> Option<Range<u64>> {
    let mut footer = Reader { bytes: head, at: 0 };
    let mut last = 0;
    loop {
        let (field, kind) = footer.field(last)?;
        if field == KEY_VALUES && kind == LIST {
            break;
        }
        footer.skip(kind, DEEPEST)?;
        last = field;
    }
    let (count, STRUCT) = footer.list()? else {
        return None;
    };
    for _ in 0..count {
        let mut is_filter = false;
        let mut last = 0;
        while let Some((field, kind)) = footer.next_field(last)? {
            let start = footer.at as u64;
            match (field, kind) {
                (KEY, BINARY) => is_filter = footer.binary()? == BLOOM_FILTER,
                (VALUE, BINARY) if is_filter => {
                    let length = footer.varint()?;
                    return Some(start..(footer.at as u64).checked_add(length)?);
                }
                _ => footer.skip(kind, DEEPEST)?,
            }
            last = field;
        }
    }
    None
}

/// Reads Thrift's compact protocol; every method returns None where the bytes end, or are damaged.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The number and type of the next field of a struct, if there is one. `last` is the number of
    /// the field before it, or 0.
    #[expect(clippy::option_option)]
    fn next_field(&mut self, last: i16) -> Option<Option<(i16, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        let number = match byte >> 4 {
            0 => {
                let zigzag = self.varint()?;
                i16::try_from((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)).ok()?
            }
            step => last.checked_add(i16::from(step))?,
        };
        Some(Some((number, byte & 15)))
    }

    /// The same of a struct that has another field.
    fn field(&mut self, last: i16) -> Option<(i16, u8)> {
        self.next_field(last)?
    }

    /// The number of elements of a list and their type.
    fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        Some((count, byte & 15))
    }

    fn binary(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let value = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(value)
    }

    /// Skips the value of a field.
    fn skip(&mut self, kind: u8, deepest: u8) -> Option<()> {
        match kind {
            TRUE | FALSE => Some(()), // the type is the value
            I8 => self.byte().map(drop),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.advance(8),
            BINARY => self.binary().map(drop),
            LIST => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| match kind {
                    TRUE | FALSE => self.advance(1),
                    _ => self.skip(kind, deepest.checked_sub(1)?),
                })
            }
            STRUCT => {
                let mut last = 0;
                while let Some((field, kind)) = self.next_field(last)? {
                    self.skip(kind, deepest.checked_sub(1)?)?;
                    last = field;
                }
                Some(())
            }
            _ => None, // footers have neither sets nor maps
        }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn advance(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes)?;
        (self.at <= self.bytes.len()).then_some(())
    }
}
