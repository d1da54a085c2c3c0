//! The values of rows by position, taken from opened pages: a column at a time, from many files.

use std::ops::Range;

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::condition::packed;
use crate::error::{Error, Result};
use crate::page::{Body, OpenPage};
use crate::parallel::{Work, in_parallel};
use crate::positions::GroupRows;
use crate::runs::Runs;
use crate::values::{Class, Values};
use crate::wanted::{PageCounts, Part, SMALLEST_TASKS, WantedPage, planned};

/// The position of a NULL.
const NULL: u32 = u32::MAX;

/// The values of all parts, one part after the other.
pub struct Gathered {
    /// An array for each column; None if it has to be read in another way, for one of the parts.
    pub arrays: Vec<Option<ArrayRef>>,
    /// The pages that were used, for each part.
    pub pages: Vec<PageCounts>,
}

/// Takes the values of each column in the rows of all parts; `types` are those of the columns.
pub fn gather(parts: &[Part<'_>], types: &[&DataType], threads: usize) -> Result<Gathered> {
    let total: usize = parts
        .iter()
        .flat_map(|part| &part.groups)
        .map(GroupRows::count)
        .sum();
    let mut plans = Vec::with_capacity(types.len());
    for column in 0..types.len() {
        plans.push(planned_for_all(parts, column)?);
    }
    let mut buffers: Vec<MutableBuffer> = types
        .iter()
        .map(|data_type| MutableBuffer::from_len_zeroed(total * width_of(data_type)))
        .collect();
    let mut tasks = Vec::new();
    for ((plan, buffer), data_type) in plans.iter_mut().zip(&mut buffers).zip(types) {
        let mut left = buffer.as_slice_mut();
        for page in plan.iter_mut().flatten() {
            let (out, rest) = left.split_at_mut(page.count() * width_of(data_type));
            left = rest;
            tasks.push(Task {
                page,
                data_type,
                out,
            });
        }
    }
    let mut pieces =
        in_parallel(tasks, threads, SMALLEST_TASKS, |task| task.run(parts))?.into_iter();
    let mut gathered = Gathered {
        arrays: Vec::with_capacity(types.len()),
        pages: vec![PageCounts::default(); parts.len()],
    };
    for ((plan, buffer), data_type) in plans.iter().zip(buffers).zip(types) {
        let Some(plan) = plan else {
            gathered.arrays.push(None);
            continue;
        };
        let pieces: Vec<Option<Piece>> = pieces.by_ref().take(plan.len()).collect();
        let pieces: Option<Vec<Piece>> = pieces.into_iter().collect();
        let Some(pieces) = pieces else {
            gathered.arrays.push(None);
            continue;
        };
        for page in plan {
            gathered.pages[page.part].add(page);
        }
        gathered
            .arrays
            .push(Some(array(data_type, total, buffer, &pieces)?));
    }
    Ok(gathered)
}

/// The pages of a column in all parts, one part after the other; None unless all can be opened.
fn planned_for_all<'a>(
    parts: &'a [Part<'_>],
    column: usize,
) -> Result<Option<Vec<WantedPage<'a>>>> {
    let mut pages = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let Some(of_part) = part.columns[column] else {
            return Ok(None);
        };
        pages.extend(planned(part.pages, number, of_part, &part.groups)?);
    }
    Ok(Some(pages))
}

/// The rows of one page, whose numbers go to `out`.
struct Task<'a> {
    page: &'a WantedPage<'a>,
    data_type: &'a DataType,
    out: &'a mut [u8],
}

/// What else there is of a task: texts, and which rows have a value.
#[derive(Default)]
struct Piece {
    count: usize,
    /// None if all have.
    valid: Option<Vec<bool>>,
    lengths: Vec<u32>,
    texts: Vec<u8>,
}

impl Work for Task<'_> {
    fn weight(&self) -> u64 {
        self.page.weight()
    }
}

impl Task<'_> {
    /// None if the page is encoded in a way that is not supported.
    fn run(self, parts: &[Part<'_>]) -> Result<Option<Piece>> {
        let pages = parts[self.page.part].pages;
        let Some(page) = self.page.opened(pages)? else {
            return Ok(None);
        };
        match page.body() {
            Body::Plain(values) => {
                let is_as_stored = values.class().width() == width_of(self.data_type);
                let has_all = values.class() != Class::Bytes && !page.has_nulls();
                if let (true, Some(rows)) = (is_as_stored && has_all, self.page.range()) {
                    return Ok(Some(self.copied(values, rows)));
                }
                let positions = self.positions(&page);
                self.taken(&page, values, positions).map(Some)
            }
            Body::Numbered(runs) => {
                let Some(values) = self.page.dictionary(pages)? else {
                    return Ok(None);
                };
                let positions = self.numbered(&page, runs);
                self.taken(&page, &values, positions).map(Some)
            }
        }
    }

    /// The rows of a page that has a value in each, of the width in which it is wanted.
    fn copied(self, values: &Values, rows: Range<usize>) -> Piece {
        let width = values.class().width();
        let numbers = &values.numbers()[rows.start * width..rows.end * width];
        self.out.copy_from_slice(numbers);
        Piece {
            count: rows.len(),
            ..Piece::default()
        }
    }

    /// Where the value of each row is.
    fn positions(&self, page: &OpenPage) -> Vec<u32> {
        let mut positions = self.page.positions();
        if page.has_nulls() {
            for row in &mut positions {
                *row = page.position(*row as usize).map_or(NULL, |at| at as u32);
            }
        }
        positions
    }

    /// Where the value of each row is in the dictionary.
    fn numbered(&self, page: &OpenPage, runs: &Runs) -> Vec<u32> {
        if self.page.count() == self.page.page.rows && !page.has_nulls() {
            return runs.unpacked();
        }
        let mut positions = self.positions(page);
        let known = positions.iter_mut().filter(|at| **at != NULL);
        if self.page.is_sparse() {
            known.for_each(|at| *at = runs.at(*at as usize));
        } else {
            let numbers = runs.unpacked();
            known.for_each(|at| *at = numbers[*at as usize]);
        }
        positions
    }

    fn taken(self, page: &OpenPage, values: &Values, positions: Vec<u32>) -> Result<Piece> {
        let is_beyond = |at: u32| at as usize >= values.len();
        let most = if page.has_nulls() {
            positions.iter().copied().filter(|&at| at != NULL).max()
        } else {
            // Several at once, which a comparison with each of two numbers is not.
            Some(positions.iter().copied().fold(0, u32::max)).filter(|_| !positions.is_empty())
        };
        if most.is_some_and(is_beyond) {
            return Err(Error::Malformed("a number is beyond the dictionary".into()));
        }
        let mut piece = Piece {
            count: positions.len(),
            valid: page
                .has_nulls()
                .then(|| positions.iter().map(|&at| at != NULL).collect()),
            ..Piece::default()
        };
        match (values.class().width(), width_of(self.data_type)) {
            (0, _) => (piece.lengths, piece.texts) = texts(values, &positions),
            (1, 1) => put::<1, 1>(self.out, &positions, values, |value| value),
            (4, 4) => put::<4, 4>(self.out, &positions, values, |value| value),
            (8, 8) => put::<8, 8>(self.out, &positions, values, |value| value),
            (4, 16) => put(self.out, &positions, values, |value| {
                i128::from(i32::from_le_bytes(value)).to_le_bytes()
            }),
            (8, 16) => put(self.out, &positions, values, |value| {
                i128::from(i64::from_le_bytes(value)).to_le_bytes()
            }),
            (kept, wanted) => unreachable!("{kept} bytes are kept for {wanted}"),
        }
        Ok(piece)
    }
}

/// The lengths of the texts at some positions, and the texts one after the other.
fn texts(values: &Values, positions: &[u32]) -> (Vec<u32>, Vec<u8>) {
    let length = |&at: &u32| match at {
        NULL => 0,
        at => values.bytes(at as usize).len() as u32,
    };
    let lengths: Vec<u32> = positions.iter().map(length).collect();
    let total = lengths.iter().map(|&length| length as usize).sum();
    let mut texts = vec![0; total];
    let mut start = 0;
    for &at in positions.iter().filter(|&&at| at != NULL) {
        let (text, rest) = (values.bytes(at as usize), &mut texts[start..]);
        // What is copied beyond the end is overwritten by the next text: to copy a number of bytes
        // that is not known takes several times as long.
        match (values.short(at as usize), rest.first_chunk_mut()) {
            (Some(short), Some(place)) if text.len() <= short.len() => *place = *short,
            _ => rest[..text.len()].copy_from_slice(text),
        }
        start += text.len();
    }
    (lengths, texts)
}

/// Puts the values of `KEPT` bytes at some positions as values of `WANTED` bytes.
fn put<const KEPT: usize, const WANTED: usize>(
    out: &mut [u8],
    positions: &[u32],
    values: &Values,
    as_wanted: impl Fn([u8; KEPT]) -> [u8; WANTED],
) {
    let ((places, _), (values, _)) = (out.as_chunks_mut(), values.numbers().as_chunks());
    for (place, &at) in places.iter_mut().zip(positions) {
        if let Some(value) = values.get(at as usize) {
            *place = as_wanted(*value); // there is none at `NULL`
        }
    }
}

/// Bytes of a value of this type in an array, before booleans are packed; 0 for texts.
fn width_of(data_type: &DataType) -> usize {
    match data_type {
        DataType::Boolean => 1,
        _ => data_type.primitive_width().unwrap_or(0),
    }
}

fn array(
    data_type: &DataType,
    total: usize,
    numbers: MutableBuffer,
    pieces: &[Piece],
) -> Result<ArrayRef> {
    let mut builder = ArrayData::builder(data_type.clone()).len(total);
    if pieces.iter().any(|piece| piece.valid.is_some()) {
        let mut valid = BooleanBufferBuilder::new(total);
        for piece in pieces {
            match &piece.valid {
                Some(some) => valid.append_slice(some),
                None => valid.append_n(piece.count, true),
            }
        }
        builder = builder.nulls(Some(NullBuffer::new(valid.finish())));
    }
    builder = match data_type {
        DataType::Boolean => builder.add_buffer(Buffer::from_vec(packed(&numbers))),
        _ if width_of(data_type) == 0 => {
            let (offsets, texts) = joined(total, pieces)?;
            builder.add_buffer(offsets).add_buffer(texts)
        }
        _ => builder.add_buffer(numbers.into()),
    };
    let built = builder.build().map_err(|error| match data_type {
        DataType::Utf8 => Error::Malformed(format!("encountered text that is not UTF-8: {error}")),
        _ => error.into(),
    })?;
    Ok(make_array(built))
}

/// Offsets, one more than rows, and texts.
fn joined(total: usize, pieces: &[Piece]) -> Result<(Buffer, Buffer)> {
    let bytes = pieces.iter().map(|piece| piece.texts.len()).sum();
    if i32::try_from(bytes).is_err() {
        return Err(Error::Malformed(format!(
            "{bytes} bytes of text are too many for an array"
        )));
    }
    let mut offsets = Vec::with_capacity(total + 1);
    let mut texts = MutableBuffer::with_capacity(bytes);
    let mut end = 0;
    offsets.push(end);
    for piece in pieces {
        texts.extend_from_slice(&piece.texts);
        offsets.extend(piece.lengths.iter().map(|&length| {
            end += length as i32;
            end
        }));
    }
    Ok((Buffer::from_vec(offsets), texts.into()))
}
