//! Reads the rows of one request: fetches pages together and decodes columns in parallel.

use std::path::PathBuf;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat;

use crate::condition::Node;
use crate::decode::{Batch, SMALLEST_PIECE};
use crate::error::{Error, Result};
use crate::file::ParquetFile;
use crate::file_pages::{FilePages, Keeping};
use crate::gather::{Gathered, gather};
use crate::metadata::{Footer, row_count};
use crate::parallel::{Work, in_parallel};
use crate::plan::{BATCH_ROWS, Request, RowPlan, leaves_of};
use crate::positions::{GroupRows, InGroup, Positions};
use crate::rows_left::rows_left;
use crate::select::{Selected, select};
use crate::source::{Source, Traffic};
use crate::wanted::{PageCounts, Part as PagePart, column_of};

/// Fewer files than this are not worth a separate thread that reads their footers.
const SMALLEST_FOOTERS: u64 = 16;
/// Bytes of a value, to compare files with each other.
const VALUE_BYTES: usize = 8;
/// Pieces per thread, so that no thread waits long for the last piece.
const PIECES_A_THREAD: u64 = 3;

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
    let pages = file_pages(&file, source, None, Vec::new());
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
    let pages = file_pages(file, source, keeping, Vec::new());
    decode(file, source, &request, threads, pages.as_ref())
}

/// Rows that make a condition TRUE.
pub struct Matching {
    pub count: usize,
    /// Their positions in the file; empty if they are not wanted.
    pub positions: Vec<i64>,
    pub rows: Rows,
}

/// What rows have to match.
pub struct Condition {
    /// The names of top-level columns.
    pub columns: Vec<String>,
    /// Tests of them, by their numbers.
    pub node: Node,
}

impl Condition {
    /// The leaves whose pages a read of `columns` uses after a test of them: those of columns that
    /// it returns, too, or tests in several places.
    fn leaves_used_again(
        &self,
        file: &ParquetFile,
        columns: Option<&[String]>,
    ) -> Result<Vec<usize>> {
        let tested = self.columns.iter().enumerate();
        let again = tested.filter(|(number, name)| {
            columns.is_none_or(|columns| columns.contains(name)) || self.node.leaves_of(*number) > 1
        });
        let names: Vec<String> = again.map(|(_, name)| name.clone()).collect();
        leaves_of(file.metadata(), Some(&names))
    }
}

/// Rows among which to look, and their columns to read.
pub struct Matched<'a> {
    pub rows: &'a Positions,
    pub condition: &'a Condition,
    pub columns: Option<&'a [String]>,
    /// Whether their positions are wanted.
    pub numbered: bool,
}

/// Reads those of the rows of a local file that make a condition TRUE; pages of other columns only
/// where there are such rows. None if the condition's columns are not read by opened pages.
pub fn read_matching(
    file: &ParquetFile,
    source: &mut Source,
    wanted: &Matched<'_>,
    threads: usize,
    keeping: Option<Keeping<'_>>,
) -> Result<Option<Matching>> {
    let used_again = wanted.condition.leaves_used_again(file, wanted.columns)?;
    let Some(pages) = file_pages(file, source, keeping, used_again) else {
        return Ok(None);
    };
    let Some(selected) = selected(&pages, wanted.rows, wanted.condition, threads, false)? else {
        return Ok(None);
    };
    let mut positions = Vec::new();
    if wanted.numbered {
        positions = positions_of(file, &selected.groups);
    }
    let (groups, columns) = (selected.groups, wanted.columns);
    let request = Request::of_groups(file.metadata(), groups, columns, BATCH_ROWS)?;
    let mut rows = decode(file, source, &request, threads, Some(&pages))?;
    rows.pages.used += selected.pages.used;
    rows.pages.kept += selected.pages.kept;
    Ok(Some(Matching {
        count: selected.count,
        positions,
        rows,
    }))
}

/// How many of the rows of a local file make a condition TRUE, and the pages that were tested. None
/// as for `read_matching`.
pub fn count_matching(
    file: &ParquetFile,
    source: &mut Source,
    rows: &Positions,
    condition: &Condition,
    threads: usize,
    keeping: Option<Keeping<'_>>,
) -> Result<Option<(usize, PageCounts)>> {
    let used_again = condition.leaves_used_again(file, Some(&[]))?;
    let Some(pages) = file_pages(file, source, keeping, used_again) else {
        return Ok(None);
    };
    let selected = selected(&pages, rows, condition, threads, true)?;
    source.traffic.add(pages.traffic());
    Ok(selected.map(|selected| (selected.count, selected.pages)))
}

/// Those of the rows that make a condition TRUE; None if its columns are not read by opened pages.
fn selected(
    pages: &FilePages<'_>,
    rows: &Positions,
    condition: &Condition,
    threads: usize,
    counts: bool,
) -> Result<Option<Selected>> {
    let file = pages.file();
    let tested = Request::in_one_batch(file.metadata(), rows, Some(&condition.columns))?;
    let schema = tested.schema(file)?;
    let part = page_part(pages, &tested, tested.batches.concat(), &schema);
    if part.columns.contains(&None) {
        return Ok(None);
    }
    select(&part, &condition.node, threads, counts)
}

/// The positions in the file of rows by row group.
fn positions_of(file: &ParquetFile, groups: &[GroupRows]) -> Vec<i64> {
    let mut starts = vec![0];
    for group in file.metadata().row_groups() {
        starts.push(starts[starts.len() - 1] + group.num_rows());
    }
    let mut positions = Vec::with_capacity(groups.iter().map(GroupRows::count).sum());
    for group in groups {
        let start = starts[group.row_group];
        match &group.rows {
            InGroup::List(rows) => positions.extend(rows.iter().map(|&row| start + i64::from(row))),
            InGroup::Range(rows) => {
                positions.extend(rows.clone().map(|row| start + i64::from(row)))
            }
        }
    }
    positions
}

/// Bytes of a column of a file.
pub struct ColumnBytes {
    /// Those of pages that a read of all rows reads, since they are not kept.
    pub to_read: u64,
    /// Those of all pages before compression.
    pub plain: u64,
}

/// The bytes of some columns of a local file; nothing is read.
pub fn column_bytes(
    file: &ParquetFile,
    source: &Source,
    columns: &[String],
    keeping: Option<Keeping<'_>>,
) -> Result<Vec<ColumnBytes>> {
    let pages = file_pages(file, source, keeping, Vec::new())
        .ok_or_else(|| Error::Argument("only pages of local files are kept".into()))?;
    let metadata = file.metadata();
    let plain = |leaf: usize| {
        let groups = metadata.row_groups().iter();
        groups.map(move |group| group.column(leaf).uncompressed_size().max(0) as u64)
    };
    let of_column = |column: &String| {
        let leaves = leaves_of(metadata, Some(std::slice::from_ref(column)))?;
        Ok(ColumnBytes {
            to_read: leaves.iter().map(|&leaf| pages.bytes_to_read(leaf)).sum(),
            plain: leaves.iter().flat_map(|&leaf| plain(leaf)).sum(),
        })
    };
    columns.iter().map(of_column).collect()
}

/// The pages of a local file.
fn file_pages<'a>(
    file: &'a ParquetFile,
    source: &Source,
    keeping: Option<Keeping<'a>>,
    used_again: Vec<usize>,
) -> Option<FilePages<'a>> {
    let local = source.local_file()?;
    Some(FilePages::new(file, local.clone(), keeping, used_again))
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
    /// The number of rows of each file.
    pub counts: Vec<usize>,
    /// The number of rows of each file that were tested, or read without a condition.
    pub tested: Vec<usize>,
    /// What was read of each file, and the pages that held its rows.
    pub stats: Vec<(Traffic, PageCounts)>,
}

/// Which of the rows of several files are read.
#[derive(Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Those that make it TRUE; all without one.
    pub condition: Option<&'a Condition>,
    /// Their columns; all if None.
    pub columns: Option<&'a [String]>,
}

/// Reads rows of several files that have the same columns, at least one row; pages of several files
/// at once. None if the types of the columns differ, or the condition's columns are not read by
/// opened pages.
pub fn read_files(
    files: &[FileRows<'_>],
    wanted: Wanted<'_>,
    threads: usize,
    keeping: Option<Keeping<'_>>,
) -> Result<Option<ManyRows>> {
    let mut sources = Vec::with_capacity(files.len());
    for each in files {
        sources.push(Source::file(each.path.clone(), each.size)?);
    }
    let counts = wanted.columns.is_some_and(<[String]>::is_empty);
    let mut pages = Vec::with_capacity(files.len());
    for (each, source) in files.iter().zip(&sources) {
        let used_again = match wanted.condition {
            Some(condition) => condition.leaves_used_again(each.file, wanted.columns)?,
            None => Vec::new(),
        };
        pages.extend(file_pages(each.file, source, keeping, used_again));
    }
    let mut selected = match wanted.condition {
        None => None,
        Some(condition) => {
            let tested = TestedFiles {
                files,
                pages: &pages,
                condition,
                counts,
            };
            match tested.selected(&mut sources, threads)? {
                None => return Ok(None),
                selected => selected,
            }
        }
    };
    let every = || files.iter().map(|each| each.rows.len()).collect();
    let (counts, tested): (Vec<usize>, Vec<usize>) = match &selected {
        None => (every(), every()),
        Some(selected) => selected
            .iter()
            .map(|(each, tested)| (each.count, tested))
            .unzip(),
    };
    let mut requests = Vec::with_capacity(files.len());
    let mut schemas = Vec::with_capacity(files.len());
    for (number, each) in files.iter().enumerate() {
        let metadata = each.file.metadata();
        let groups = match &mut selected {
            None => each.rows.groups(metadata)?,
            Some(selected) => std::mem::take(&mut selected[number].0.groups),
        };
        let request = Request::of_groups(metadata, groups, wanted.columns, usize::MAX)?;
        schemas.push(request.schema(each.file)?);
        requests.push(request);
    }
    let Some(schema) = common_schema(&schemas)? else {
        return Ok(None);
    };
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
    for ((_, counts), (selected, _)) in stats.iter_mut().zip(selected.iter().flatten()) {
        counts.used += selected.pages.used;
        counts.kept += selected.pages.kept;
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
    let rows = counts.iter().sum();
    Ok(Some(ManyRows {
        batch: batch_of(schema, columns, rows)?,
        counts,
        tested,
        stats,
    }))
}

/// Files of which those rows are sought that make a condition TRUE.
struct TestedFiles<'a> {
    files: &'a [FileRows<'a>],
    pages: &'a [FilePages<'a>],
    condition: &'a Condition,
    /// Whether only their number is needed.
    counts: bool,
}

impl TestedFiles<'_> {
    /// These rows of each file, and the number of rows that were tested; None if the condition's
    /// columns are not read by opened pages in all.
    fn selected(&self, sources: &mut [Source], threads: usize) -> Result<Option<Vec<Found>>> {
        if self.pages.len() < self.files.len() {
            return Ok(None);
        }
        let of_one = if self.files.len() == 1 { threads } else { 1 };
        let bytes = VALUE_BYTES * self.condition.columns.len();
        let tested = sources.iter_mut().enumerate();
        let tested = tested.map(|(number, source)| TestedFile {
            number,
            source,
            bytes: (bytes * self.files[number].rows.len()) as u64,
        });
        let selected = in_parallel(tested.collect(), threads, SMALLEST_PIECE, |tested| {
            self.selected_of(tested.number, tested.source, of_one)
        })?;
        Ok(selected.into_iter().collect())
    }

    fn selected_of(
        &self,
        number: usize,
        source: &mut Source,
        threads: usize,
    ) -> Result<Option<Found>> {
        let (file, condition) = (&self.files[number], self.condition);
        let left = match &file.rows {
            Positions::Range(rows) => Some(rows_left(file.file, source, condition, rows)?),
            Positions::List(_) => None,
        };
        source.traffic = Traffic::default(); // of rows alone
        let rows = left.as_ref().unwrap_or(&file.rows);
        let found = selected(&self.pages[number], rows, condition, threads, self.counts)?;
        Ok(found.map(|found| (found, rows.len())))
    }
}

/// Rows of a file, and the number of rows that were tested.
type Found = (Selected, usize);

/// One of them.
struct TestedFile<'a> {
    number: usize,
    source: &'a mut Source,
    bytes: u64,
}

impl Work for TestedFile<'_> {
    fn weight(&self) -> u64 {
        self.bytes
    }
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
            let mut source = Source::file(path.clone(), *size)?;
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
    let of_all = Wanted {
        condition: None,
        columns: Some(columns),
    };
    let read = read_files(&wanted, of_all, threads, None)?;
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

/// The columns of several files; None if their names or types differ.
fn common_schema(schemas: &[SchemaRef]) -> Result<Option<SchemaRef>> {
    let Some((first, others)) = schemas.split_first() else {
        return Err(Error::Argument("no file is given".into()));
    };
    let are_same = |other: &SchemaRef| {
        let mut pairs = first.fields().iter().zip(other.fields());
        first.fields().len() == other.fields().len()
            && pairs
                .all(|(one, same)| one.name() == same.name() && one.data_type() == same.data_type())
    };
    Ok(others.iter().all(are_same).then(|| first.clone()))
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

/// The cost of reading `rows`.
pub fn plan_rows(
    file: &ParquetFile,
    rows: &Positions,
    columns: Option<&[String]>,
) -> Result<RowPlan> {
    Request::in_one_batch(file.metadata(), rows, columns)?.plan(file)
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
