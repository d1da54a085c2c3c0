//! Columns as the crate's own reader decodes them: those of remote files, and those whose pages are
//! not opened.

use arrow_array::ArrayRef;
use parquet::DecodeResult;
use parquet::arrow::push_decoder::ParquetPushDecoder;

use crate::error::{Error, Result};
use crate::file::ParquetFile;
use crate::parallel::{Work, in_parallel};
use crate::plan::{Pages, Request, planned};
use crate::positions::GroupRows;
use crate::source::{Fetched, Source};

/// Maximum number of bytes fetched in one round, and so kept in memory at a time; a single larger
/// chunk may exceed it.
const ONE_ROUND_BYTES: u64 = 32 * 1024 * 1024;
/// Fewer compressed bytes than this are not worth a separate thread.
pub const SMALLEST_PIECE: u64 = 64 * 1024;

/// Rows of some columns that the crate's own reader decodes.
pub struct Batch<'a> {
    pub request: &'a Request,
    pub groups: &'a [GroupRows],
    /// The columns, by their numbers among those to decode.
    pub roots: &'a [usize],
}

impl Batch<'_> {
    /// The arrays of each column to decode, none for the others, and the number of data pages
    /// decoded. Several threads decode about `number_of_pieces` pieces.
    pub fn decode(
        &self,
        file: &ParquetFile,
        source: &mut Source,
        threads: usize,
        number_of_pieces: u64,
    ) -> Result<(Vec<Vec<ArrayRef>>, u64)> {
        let request = self.request;
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); request.root_count()];
        let mut pages = 0;
        for round in rounds(self.pieces(file)?) {
            let ranges: Vec<_> = round
                .iter()
                .flat_map(|piece| piece.pages.ranges.iter().cloned())
                .collect();
            pages += round
                .iter()
                .map(|piece| piece.pages.data_pages)
                .sum::<u64>();
            let fetched = source.fetch_merged(&ranges, threads)?;
            let round = if threads > 1 {
                split(file, request, round, number_of_pieces)?
            } else {
                round
            };
            let roots: Vec<usize> = round.iter().map(|piece| piece.root).collect();
            let decoded = in_parallel(round, threads, SMALLEST_PIECE, |piece| {
                decode_piece(piece, &fetched)
            })?;
            for (root, arrays) in roots.into_iter().zip(decoded) {
                columns[root].extend(arrays);
            }
        }
        Ok((columns, pages))
    }

    /// One piece per column and row group: row group by row group, in file order.
    fn pieces(&self, file: &ParquetFile) -> Result<Vec<Piece>> {
        let mut pieces = Vec::with_capacity(self.groups.len() * self.roots.len());
        for rows in self.groups {
            for &root in self.roots {
                pieces.push(Piece::new(file, self.request, root, rows.clone())?);
            }
        }
        Ok(pieces)
    }
}

/// Rows of one column in one row group.
struct Piece {
    root: usize,
    rows: GroupRows,
    decoder: ParquetPushDecoder,
    pages: Pages,
}

impl Piece {
    fn new(file: &ParquetFile, request: &Request, root: usize, rows: GroupRows) -> Result<Self> {
        let decoder = request.decoder(file, root, &rows)?;
        Ok(Self {
            root,
            rows,
            pages: planned(&decoder),
            decoder,
        })
    }
}

impl Work for Piece {
    fn weight(&self) -> u64 {
        self.pages.bytes()
    }
}

/// Divides the pieces into rounds; the pieces of a round are fetched together.
fn rounds(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut rounds: Vec<Vec<Piece>> = Vec::new();
    let mut left = 0;
    for piece in pieces {
        let bytes = piece.weight();
        match rounds.last_mut() {
            Some(round) if bytes <= left => {
                left -= bytes;
                round.push(piece);
            }
            _ => {
                left = ONE_ROUND_BYTES.saturating_sub(bytes);
                rounds.push(vec![piece]);
            }
        }
    }
    rounds
}

/// Splits large pieces at page boundaries into about so many, so that every thread has work.
fn split(
    file: &ParquetFile,
    request: &Request,
    pieces: Vec<Piece>,
    number: u64,
) -> Result<Vec<Piece>> {
    let total: u64 = pieces.iter().map(Work::weight).sum();
    let fair = (total / number.max(1)).max(SMALLEST_PIECE);
    let mut cut = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let parts = if piece.weight() >= 2 * fair {
            parts_of(file, request, &piece, fair)
        } else {
            Vec::new()
        };
        if parts.len() < 2 {
            cut.push(piece);
            continue;
        }
        for rows in parts {
            cut.push(Piece::new(file, request, piece.root, rows)?);
        }
    }
    Ok(cut)
}

/// The rows of a piece in parts of about `fair` bytes, split at page boundaries.
///
/// Each part decodes the dictionary again, so parts are at least twice as large as the dictionary.
fn parts_of(file: &ParquetFile, request: &Request, piece: &Piece, fair: u64) -> Vec<GroupRows> {
    let row_group = piece.rows.row_group;
    let index = file.metadata().page_index_for_row_group(row_group);
    let Some((leaf, pages)) = request
        .only_leaf(piece.root)
        .and_then(|leaf| Some((leaf, index.page_locations(leaf)?)))
    else {
        return Vec::new();
    };
    let chunk = file
        .metadata()
        .row_group(row_group)
        .column(leaf)
        .byte_range()
        .0;
    let dictionary = pages
        .first()
        .map_or(0, |page| (page.offset as u64).saturating_sub(chunk));
    let fair = fair.max(2 * dictionary);
    let mut parts: Vec<GroupRows> = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (number, page) in pages.iter().enumerate() {
        let first = page.first_row_index.max(0) as usize;
        let next = pages.get(number + 1);
        let end = next.map_or(usize::MAX, |next| next.first_row_index.max(0) as usize);
        if !piece.rows.between(first, end).is_empty() {
            bytes += page.compressed_page_size.max(0) as u64;
        }
        if bytes >= fair || next.is_none() {
            parts.extend(piece.rows.part(start, end));
            (start, bytes) = (end, 0);
        }
    }
    parts
}

/// Decodes the values of a piece into one or more arrays.
fn decode_piece(mut piece: Piece, fetched: &Fetched) -> Result<Vec<ArrayRef>> {
    let mut arrays = Vec::new();
    loop {
        match piece.decoder.try_decode()? {
            DecodeResult::NeedsData(ranges) => {
                let found = fetched.cut(&ranges).ok_or_else(|| {
                    Error::Malformed("the pages are not where the metadata says".into())
                })?;
                piece.decoder.push_ranges(ranges, found)?;
            }
            DecodeResult::Data(batch) => match batch.columns() {
                [array] => arrays.push(array.clone()),
                _ => {
                    return Err(Error::Malformed(
                        "a column of the file holds no values".into(),
                    ));
                }
            },
            DecodeResult::Finished => break,
        }
    }
    let decoded: usize = arrays.iter().map(|array| array.len()).sum();
    if decoded != piece.rows.count() {
        return Err(Error::Malformed(format!(
            "the pages contain {decoded} of the {} requested rows",
            piece.rows.count()
        )));
    }
    Ok(arrays)
}
