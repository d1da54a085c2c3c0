//! Reads the rows of one request: fetches pages together and decodes columns in parallel.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::take::take;
use parquet::DecodeResult;
use parquet::arrow::push_decoder::ParquetPushDecoder;

use crate::error::{Error, Result};
use crate::file::ParquetFile;
use crate::metadata::{Footer, row_count};
use crate::parallel::{Work, in_parallel};
use crate::plan::{Pages, Request, RowPlan, planned};
use crate::positions::{GroupRows, Positions};
use crate::source::{Fetched, Gaps, Source, Traffic};

/// Maximum number of bytes fetched in one round, and so kept in memory at a time; a single larger
/// chunk may exceed it.
const ONE_ROUND_BYTES: u64 = 32 * 1024 * 1024;
/// Fewer compressed bytes than this are not worth a separate thread.
const SMALLEST_PIECE: u64 = 64 * 1024;
/// Fewer files than this are not worth a separate thread that reads their footers.
const SMALLEST_FOOTERS: u64 = 16;
/// Pieces per thread, so that no thread waits long for the last piece.
const PIECES_A_THREAD: u64 = 3;
/// The same for dictionary arrays: each piece decodes the dictionary again, and has its values
/// compared.
const DICTIONARY_PIECES_A_THREAD: u64 = 1;

/// Rows in file order, columns in the requested order.
pub struct Rows {
    pub batches: Vec<RecordBatch>,
    pub schema: SchemaRef,
    /// Data pages decoded; a chunk without an offset index counts as one.
    pub pages: u64,
}

/// Reads `rows` from a file whose metadata is not known yet.
pub fn read_rows(
    source: &mut Source,
    rows: &Positions,
    columns: Option<&[String]>,
    threads: usize,
) -> Result<Rows> {
    let footer = Footer::read(source)?;
    let request = Request::new(&footer.metadata, rows, columns)?;
    let metadata = if rows.is_empty() {
        footer.metadata
    } else {
        request.load_offset_index(footer, source)?
    };
    decode(&ParquetFile::new(metadata)?, source, &request, threads)
}

/// Reads `rows` from a file whose metadata is known.
pub fn read_known_rows(
    file: &ParquetFile,
    source: &mut Source,
    rows: &Positions,
    columns: Option<&[String]>,
    threads: usize,
) -> Result<Rows> {
    let request = Request::new(file.metadata(), rows, columns)?;
    decode(file, source, &request, threads)
}

/// Rows of one of several local files.
pub struct FileRows<'a> {
    pub file: &'a ParquetFile,
    pub path: PathBuf,
    pub size: Option<u64>,
    pub rows: Positions,
}

/// Rows of several files in one batch, file by file.
pub struct ManyRows {
    pub batch: RecordBatch,
    /// What was read of each file, and how many pages.
    pub stats: Vec<(Traffic, u64)>,
}

/// Reads rows of several files that have the same columns, at least one row; several files at once,
/// each by one thread. None if the types of the columns differ.
pub fn read_files(
    files: &[FileRows<'_>],
    columns: Option<&[String]>,
    threads: usize,
) -> Result<Option<ManyRows>> {
    let mut tasks = Vec::with_capacity(files.len());
    let mut schemas = Vec::with_capacity(files.len());
    for (number, each) in files.iter().enumerate() {
        let request = Request::new(each.file.metadata(), &each.rows, columns)?;
        schemas.push(request.schema(each.file)?);
        let bytes = request.plan(each.file)?.page_bytes;
        tasks.push(FileTask {
            number,
            request,
            bytes,
        });
    }
    let Some(schema) = common_schema(&schemas)? else {
        return Ok(None);
    };
    let answers = in_parallel(tasks, threads, SMALLEST_PIECE, |task| {
        let FileRows {
            file, path, size, ..
        } = &files[task.number];
        let mut source = Source::file(path.clone(), *size, Gaps::UpTo(0))?;
        let rows = decode(file, &mut source, &task.request, 1)?;
        Ok((rows, source.traffic))
    })?;
    let batches = answers.iter().flat_map(|(rows, _)| &rows.batches);
    let batch = if schema.fields().is_empty() {
        let count = batches.map(RecordBatch::num_rows).sum();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(schema, Vec::new(), &options)?
    } else {
        concat_batches(&schema, batches)?
    };
    let stats = answers.iter().map(|(rows, traffic)| (*traffic, rows.pages));
    Ok(Some(ManyRows {
        stats: stats.collect(),
        batch,
    }))
}

/// All rows of several files in one batch, file by file.
pub struct WholeColumns {
    pub batch: RecordBatch,
    /// The number of rows of each file.
    pub rows: Vec<i64>,
}

/// A local file and its length in bytes, which is checked.
pub type LocalFile = (PathBuf, Option<u64>);

/// Reads whole columns of several local files, whose footers are not known yet, at least one file.
/// None if the types of the columns differ.
pub fn read_columns(
    files: &[LocalFile],
    columns: &[String],
    threads: usize,
) -> Result<Option<WholeColumns>> {
    let opened = in_parallel(
        files.iter().collect(),
        threads,
        SMALLEST_FOOTERS,
        |(path, size): &LocalFile| {
            let mut source = Source::file(path.clone(), *size, Gaps::UpTo(0))?;
            ParquetFile::new(Footer::read(&mut source)?.metadata)
        },
    )?;
    let rows: Vec<i64> = opened
        .iter()
        .map(|file| row_count(file.metadata()))
        .collect();
    let wanted: Vec<_> = files
        .iter()
        .zip(&opened)
        .zip(&rows)
        .map(|(((path, size), file), &rows)| FileRows {
            file,
            path: path.clone(),
            size: *size,
            rows: Positions::Range(0..rows),
        })
        .collect();
    let read = read_files(&wanted, Some(columns), threads)?;
    Ok(read.map(|read| WholeColumns {
        batch: read.batch,
        rows,
    }))
}

impl Work for &LocalFile {
    fn weight(&self) -> u64 {
        1
    }
}

/// The columns of several files, which may be NULL if they may in any; None if their names or types
/// differ.
fn common_schema(schemas: &[SchemaRef]) -> Result<Option<SchemaRef>> {
    let Some((first, others)) = schemas.split_first() else {
        return Err(Error::Argument("no file is given".into()));
    };
    let mut fields = first
        .fields()
        .iter()
        .map(|each| Field::clone(each))
        .collect::<Vec<_>>();
    for other in others {
        if other.fields().len() != fields.len() {
            return Ok(None);
        }
        for (field, same) in fields.iter_mut().zip(other.fields()) {
            if field.name() != same.name() || field.data_type() != same.data_type() {
                return Ok(None);
            }
            field.set_nullable(field.is_nullable() || same.is_nullable());
        }
    }
    Ok(Some(Arc::new(Schema::new(fields))))
}

/// The rows of one file.
struct FileTask {
    number: usize,
    request: Request,
    bytes: u64,
}

impl Work for FileTask {
    fn weight(&self) -> u64 {
        self.bytes
    }
}

/// Values of one column as dictionary arrays, one or more for each row group, in row order.
pub struct Dictionaries {
    pub arrays: Vec<DictionaryArray<Int32Type>>,
    /// Data pages decoded.
    pub pages: u64,
}

/// The rows that were chosen by their values.
pub struct Chosen {
    /// Their positions.
    pub rows: Vec<i64>,
    /// The value of each, unless there are too many, or no rows were read.
    pub values: Option<ArrayRef>,
}

impl Dictionaries {
    /// The rows whose value is chosen, of the rows that were read.
    ///
    /// `truths` has for each array one byte for each value of its dictionary, and at the end one
    /// for NULL; a row is chosen if the byte of its value is not 0.
    pub fn chosen(
        &self,
        rows: &Positions,
        truths: &[Arc<Vec<u8>>],
        threads: usize,
        most_values: usize,
    ) -> Result<Chosen> {
        let mut parts = Vec::with_capacity(self.arrays.len());
        let mut first = 0;
        for (array, truths) in self.arrays.iter().zip(truths) {
            parts.push(Part {
                array,
                truths,
                first,
            });
            first += array.len();
        }
        let numbers = in_parallel(parts, threads, SMALLEST_PIECE, |part| Ok(part.chosen()))?;
        let numbers = numbers.concat();
        let values = if numbers.len() <= most_values && !self.arrays.is_empty() {
            Some(self.values(&numbers)?)
        } else {
            None
        };
        let rows = numbers.into_iter().map(|number| rows.at(number)).collect();
        Ok(Chosen { rows, values })
    }

    /// The values of the rows with these ascending numbers.
    fn values(&self, numbers: &[usize]) -> Result<ArrayRef> {
        let mut parts = Vec::with_capacity(self.arrays.len());
        let (mut left, mut first) = (numbers, 0);
        for array in &self.arrays {
            let end = first + array.len();
            let (here, others) = left.split_at(left.partition_point(|&number| number < end));
            let keys = array.keys();
            let keys: Int32Array = here
                .iter()
                .map(|number| number - first)
                .map(|place| keys.is_valid(place).then(|| keys.value(place)))
                .collect();
            parts.push(take(array.values(), &keys, None)?);
            (left, first) = (others, end);
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(concat(&parts)?)
    }
}

/// An array of dictionary values, which of these are chosen, and the number of its first row.
struct Part<'a> {
    array: &'a DictionaryArray<Int32Type>,
    truths: &'a [u8],
    first: usize,
}

impl Part<'_> {
    /// The numbers of the rows that are chosen.
    fn chosen(&self) -> Vec<usize> {
        let keys = self.array.keys();
        let Some((of_null, of_values)) = self.truths.split_last() else {
            return Vec::new();
        };
        let of_null = *of_null != 0;
        let is_true = |key: i32| of_values.get(key as usize).is_some_and(|&truth| truth != 0);
        let mut chosen = Vec::new();
        for (number, &key) in keys.values().iter().enumerate() {
            if is_true(key) && keys.is_valid(number) || of_null && keys.is_null(number) {
                chosen.push(self.first + number);
            }
        }
        chosen
    }
}

impl Work for Part<'_> {
    fn weight(&self) -> u64 {
        4 * self.array.len() as u64
    }
}

/// Reads a text column of `rows` as dictionary arrays, without making a value for each row. None if
/// it is no top-level column of text or bytes, or if not all of its values are stored so.
pub fn read_dictionaries(
    file: &ParquetFile,
    source: &mut Source,
    rows: &Positions,
    column: &str,
    threads: usize,
) -> Result<Option<Dictionaries>> {
    let columns = [column.to_owned()];
    let request = Request::in_one_batch(file.metadata(), rows, Some(&columns))?;
    if !request.is_dictionary_encoded(file.metadata()) {
        return Ok(None);
    }
    let Some(file) = file.with_dictionaries(column)? else {
        return Ok(None);
    };
    let mut found = Dictionaries {
        arrays: Vec::new(),
        pages: 0,
    };
    for groups in &request.batches {
        let pieces = threads as u64 * DICTIONARY_PIECES_A_THREAD;
        let (columns, pages) = decode_batch(&file, source, &request, groups, threads, pieces)?;
        for array in columns.into_iter().flatten() {
            let array = array.as_dictionary_opt::<Int32Type>().ok_or_else(|| {
                Error::Malformed("a dictionary was decoded as something else".into())
            })?;
            found.arrays.push(array.clone());
        }
        found.pages += pages;
    }
    Ok(Some(found))
}

/// The cost of reading `rows`.
pub fn plan_rows(
    file: &ParquetFile,
    rows: &Positions,
    columns: Option<&[String]>,
) -> Result<RowPlan> {
    Request::new(file.metadata(), rows, columns)?.plan(file)
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

fn decode(
    file: &ParquetFile,
    source: &mut Source,
    request: &Request,
    threads: usize,
) -> Result<Rows> {
    let schema = request.schema(file)?;
    let mut batches = Vec::with_capacity(request.batches.len());
    let mut pages = 0;
    for groups in &request.batches {
        let pieces = threads as u64 * PIECES_A_THREAD;
        let (columns, decoded) = decode_batch(file, source, request, groups, threads, pieces)?;
        pages += decoded;
        let rows = groups.iter().map(GroupRows::count).sum();
        batches.push(assemble(columns, request.positions(), &schema, rows)?);
    }
    Ok(Rows {
        batches,
        schema,
        pages,
    })
}

/// The arrays of each decoded column for one batch, and the number of data pages decoded. Several
/// threads decode about `number_of_pieces` pieces.
fn decode_batch(
    file: &ParquetFile,
    source: &mut Source,
    request: &Request,
    groups: &[GroupRows],
    threads: usize,
    number_of_pieces: u64,
) -> Result<(Vec<Vec<ArrayRef>>, u64)> {
    let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); request.root_count()];
    let mut pages = 0;
    for round in rounds(pieces(file, request, groups)?) {
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
fn pieces(file: &ParquetFile, request: &Request, groups: &[GroupRows]) -> Result<Vec<Piece>> {
    let mut pieces = Vec::with_capacity(groups.len() * request.root_count());
    for rows in groups {
        for root in 0..request.root_count() {
            pieces.push(Piece::new(file, request, root, rows.clone())?);
        }
    }
    Ok(pieces)
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
    let mut parts = Vec::new();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut wanted = piece.rows.ranges.iter().cloned().peekable();
    let mut bytes = 0;
    for (number, page) in pages.iter().enumerate() {
        let end = pages
            .get(number + 1)
            .map_or(usize::MAX, |next| next.first_row_index.max(0) as usize);
        let before = ranges.len();
        while let Some(range) = wanted.next_if(|range| range.start < end) {
            // A range that continues after the page is cut there only if the part ends there.
            ranges.push(range);
        }
        let reaches = ranges
            .last()
            .is_some_and(|last| last.end > page.first_row_index.max(0) as usize);
        if ranges.len() > before || reaches {
            bytes += page.compressed_page_size.max(0) as u64;
        }
        if bytes < fair {
            continue;
        }
        bytes = 0;
        let mut rest = None;
        if let Some(last) = ranges.last_mut().filter(|last| last.end > end) {
            rest = Some(end..last.end);
            last.end = end;
        }
        parts.push(GroupRows {
            row_group,
            ranges: std::mem::take(&mut ranges),
        });
        ranges.extend(rest);
    }
    if !ranges.is_empty() {
        parts.push(GroupRows { row_group, ranges });
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

/// Builds one batch of the result from the arrays of each decoded column.
fn assemble(
    columns: Vec<Vec<ArrayRef>>,
    positions: &[usize],
    schema: &SchemaRef,
    rows: usize,
) -> Result<RecordBatch> {
    let mut decoded = Vec::with_capacity(columns.len());
    for arrays in columns {
        decoded.push(match arrays.as_slice() {
            [array] => array.clone(),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                concat(&several)?
            }
        });
    }
    let columns = positions.iter().map(|&position| decoded[position].clone());
    // The row count is given for the case without columns.
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        schema.clone(),
        columns.collect(),
        &options,
    )?)
}
