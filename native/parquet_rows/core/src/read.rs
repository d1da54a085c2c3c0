//! Reads the rows of one request: fetches pages together and decodes columns in parallel.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, new_empty_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::decode::{Batch, SMALLEST_PIECE};
use crate::error::{Error, Result};
use crate::file::ParquetFile;
use crate::file_pages::{FilePages, Keeping};
use crate::gather::{Gathered, gather};
use crate::metadata::{Footer, row_count};
use crate::parallel::{Work, in_parallel};
use crate::plan::{Request, RowPlan};
use crate::positions::{GroupRows, Positions};
use crate::source::{Gaps, Source, Traffic};
use crate::wanted::{PageCounts, Part as PagePart, column_of};

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
    pub pages: PageCounts,
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
    let file = ParquetFile::new(metadata)?;
    let pages = file_pages(&file, source, None);
    decode(&file, source, &request, threads, pages.as_ref())
}

/// Reads `rows` from a file whose metadata is known; pages of a local one may be kept.
pub fn read_known_rows(
    file: &ParquetFile,
    source: &mut Source,
    rows: &Positions,
    columns: Option<&[String]>,
    threads: usize,
    keeping: Option<Keeping<'_>>,
) -> Result<Rows> {
    let request = Request::new(file.metadata(), rows, columns)?;
    let pages = file_pages(file, source, keeping);
    decode(file, source, &request, threads, pages.as_ref())
}

/// The pages of a local file.
fn file_pages<'a>(
    file: &'a ParquetFile,
    source: &Source,
    keeping: Option<Keeping<'a>>,
) -> Option<FilePages<'a>> {
    let local = source.local_file()?;
    Some(FilePages::new(file, local.clone(), keeping))
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
    /// What was read of each file, and the pages that held its rows.
    pub stats: Vec<(Traffic, PageCounts)>,
}

/// Reads rows of several files that have the same columns, at least one row; pages of several files
/// at once. None if the types of the columns differ.
pub fn read_files(
    files: &[FileRows<'_>],
    columns: Option<&[String]>,
    threads: usize,
    keeping: Option<Keeping<'_>>,
) -> Result<Option<ManyRows>> {
    let mut requests = Vec::with_capacity(files.len());
    let mut sources = Vec::with_capacity(files.len());
    let mut schemas = Vec::with_capacity(files.len());
    for each in files {
        let request = Request::in_one_batch(each.file.metadata(), &each.rows, columns)?;
        schemas.push(request.schema(each.file)?);
        requests.push(request);
        sources.push(Source::file(each.path.clone(), each.size, Gaps::UpTo(0))?);
    }
    let Some(schema) = common_schema(&schemas)? else {
        return Ok(None);
    };
    let pages = files.iter().zip(&sources);
    let pages: Vec<_> = pages
        .filter_map(|(each, source)| file_pages(each.file, source, keeping))
        .collect();
    let parts: Vec<_> = pages
        .iter()
        .zip(&requests)
        .map(|(pages, request)| page_part(pages, request, request.batches.concat(), &schema))
        .collect();
    let Gathered { arrays, pages } = gather(&parts, &types_of(&schema), threads)?;
    let mut stats = Vec::with_capacity(files.len());
    for (part, counts) in parts.iter().zip(pages) {
        stats.push((part.pages.traffic(), counts));
    }
    let mut tasks = Vec::with_capacity(files.len());
    for (number, (source, request)) in sources.iter_mut().zip(requests).enumerate() {
        let missing = missing_roots(&request, &arrays);
        if missing.is_empty() {
            continue;
        }
        let bytes = request.plan(files[number].file)?.page_bytes;
        tasks.push(FileTask {
            number,
            source,
            request,
            missing,
            bytes,
        });
    }
    let answers = in_parallel(tasks, threads, SMALLEST_PIECE, |task| task.run(files))?;
    let mut decoded = Vec::with_capacity(files.len());
    for (each, (columns, pages, traffic)) in stats.iter_mut().zip(answers) {
        each.0.add(traffic);
        each.1.used += pages;
        decoded.push(columns);
    }
    let mut columns = Vec::with_capacity(arrays.len());
    for (position, array) in arrays.into_iter().enumerate() {
        columns.push(match array {
            Some(array) => array,
            None => {
                let arrays = decoded.iter().flat_map(|columns| &columns[position]);
                concatenated(schema.field(position).data_type(), arrays)?
            }
        });
    }
    let rows = files.iter().map(|each| each.rows.len()).sum();
    Ok(Some(ManyRows {
        stats,
        batch: batch_of(schema, columns, rows)?,
    }))
}

/// All rows of several files in one batch, file by file.
pub struct WholeColumns {
    pub batch: RecordBatch,
    /// The number of rows of each file.
    pub rows: Vec<i64>,
}

/// A local file and its length in bytes, which is checked.
pub type SizedFile = (PathBuf, Option<u64>);

/// Reads whole columns of several local files, whose footers are not known yet, at least one file.
/// None if the types of the columns differ.
pub fn read_columns(
    files: &[SizedFile],
    columns: &[String],
    threads: usize,
) -> Result<Option<WholeColumns>> {
    let opened = in_parallel(
        files.iter().collect(),
        threads,
        SMALLEST_FOOTERS,
        |(path, size): &SizedFile| {
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
    let read = read_files(&wanted, Some(columns), threads, None)?;
    Ok(read.map(|read| WholeColumns {
        batch: read.batch,
        rows,
    }))
}

impl Work for &SizedFile {
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

/// The columns of one file that are not read from opened pages.
struct FileTask<'a> {
    number: usize,
    source: &'a mut Source,
    request: Request,
    /// The columns, by their numbers among those to decode.
    missing: Vec<usize>,
    bytes: u64,
}

impl Work for FileTask<'_> {
    fn weight(&self) -> u64 {
        self.bytes
    }
}

/// Arrays of each requested column, pages decoded, and what was read.
type DecodedFile = (Vec<Vec<ArrayRef>>, u64, Traffic);

impl FileTask<'_> {
    fn run(self, files: &[FileRows<'_>]) -> Result<DecodedFile> {
        let request = &self.request;
        let mut columns = vec![Vec::new(); request.positions().len()];
        let mut pages = 0;
        for groups in &request.batches {
            let file = files[self.number].file;
            let batch = Batch {
                request,
                groups,
                roots: &self.missing,
            };
            let (decoded, count) = batch.decode(file, self.source, 1, 1)?;
            pages += count;
            for (arrays, &root) in columns.iter_mut().zip(request.positions()) {
                arrays.extend(decoded[root].iter().cloned());
            }
        }
        Ok((columns, pages, self.source.traffic))
    }
}

/// The rows of a request with its columns, in the requested order.
fn page_part<'a>(
    pages: &'a FilePages<'a>,
    request: &Request,
    groups: Vec<GroupRows>,
    schema: &SchemaRef,
) -> PagePart<'a> {
    let roots = request.positions().iter().zip(schema.fields());
    let columns = roots
        .map(|(&root, field)| column_of(pages, request.only_leaf(root)?, field.data_type()))
        .collect();
    PagePart {
        pages,
        groups,
        columns,
    }
}

fn types_of(schema: &SchemaRef) -> Vec<&DataType> {
    schema
        .fields()
        .iter()
        .map(|field| field.data_type())
        .collect()
}

/// The columns to decode, of those requested that have no array.
fn missing_roots(request: &Request, arrays: &[Option<ArrayRef>]) -> Vec<usize> {
    let roots = request.positions().iter().zip(arrays);
    let mut missing: Vec<usize> = roots
        .filter(|(_, array)| array.is_none())
        .map(|(&root, _)| root)
        .collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Values of one column as dictionary arrays, one or more for each row group, in row order.
pub struct Dictionaries {
    pub arrays: Vec<DictionaryArray<Int32Type>>,
    pub pages: PageCounts,
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
        pages: PageCounts::default(),
    };
    for groups in &request.batches {
        let pieces = threads as u64 * DICTIONARY_PIECES_A_THREAD;
        let batch = Batch {
            request: &request,
            groups,
            roots: &[0],
        };
        let (columns, pages) = batch.decode(&file, source, threads, pieces)?;
        for array in columns.into_iter().flatten() {
            let array = array.as_dictionary_opt::<Int32Type>().ok_or_else(|| {
                Error::Malformed("a dictionary was decoded as something else".into())
            })?;
            found.arrays.push(array.clone());
        }
        found.pages.used += pages;
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

fn decode(
    file: &ParquetFile,
    source: &mut Source,
    request: &Request,
    threads: usize,
    opened: Option<&FilePages<'_>>,
) -> Result<Rows> {
    let schema = request.schema(file)?;
    let mut batches = Vec::with_capacity(request.batches.len());
    let mut pages = PageCounts::default();
    for groups in &request.batches {
        let mut arrays = vec![None; schema.fields().len()];
        if let Some(opened) = opened {
            let parts = [page_part(opened, request, groups.clone(), &schema)];
            let gathered = gather(&parts, &types_of(&schema), threads)?;
            arrays = gathered.arrays;
            pages.used += gathered.pages[0].used;
            pages.kept += gathered.pages[0].kept;
        }
        let batch = Batch {
            request,
            groups,
            roots: &missing_roots(request, &arrays),
        };
        let (decoded, count) =
            batch.decode(file, source, threads, threads as u64 * PIECES_A_THREAD)?;
        pages.used += count;
        let mut columns = Vec::with_capacity(arrays.len());
        for (position, array) in arrays.into_iter().enumerate() {
            let root = request.positions()[position];
            columns.push(match array {
                Some(array) => array,
                None => concatenated(schema.field(position).data_type(), &decoded[root])?,
            });
        }
        let rows = groups.iter().map(GroupRows::count).sum();
        batches.push(batch_of(schema.clone(), columns, rows)?);
    }
    if let Some(opened) = opened {
        source.traffic.add(opened.traffic());
    }
    Ok(Rows {
        batches,
        schema,
        pages,
    })
}

/// The arrays of one column, one after the other.
fn concatenated<'a>(
    data_type: &DataType,
    arrays: impl IntoIterator<Item = &'a ArrayRef>,
) -> Result<ArrayRef> {
    let arrays: Vec<&dyn Array> = arrays.into_iter().map(AsRef::as_ref).collect();
    match arrays.as_slice() {
        [] => Ok(new_empty_array(data_type)),
        several => Ok(concat(several)?),
    }
}

fn batch_of(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    // The row count is given for the case without columns.
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}
