//! Reads rows by position from Parquet files, page by page, hashes values, and watches files, for
//! Python.
//!
//! This is the private module `hudi_index_parquet._native`; the package around it contains the
//! documented functions and their types, and the crate `parquet_rows` all that needs no Python.

mod conditions;
mod pages;
mod python;
mod routing;
mod trees;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, Int64Array, RecordBatch, StructArray, make_array};
use arrow_pyarrow::{FromPyArrow, IntoPyArrow, Table, ToPyArrow};
use arrow_schema::{Fields, Schema};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyRange, PyRangeMethods};

use parquet_rows::bounds::Value;
use parquet_rows::error::{Error, silence_guarded_panics};
use parquet_rows::file::ParquetFile;
use parquet_rows::hash;
use parquet_rows::leaf_writer::{self, Groups, SortedKeys};
use parquet_rows::leaves::{self, KeyList, LeafRecord, Search};
use parquet_rows::memory::LargeBlocks;
use parquet_rows::metadata;
use parquet_rows::own_footer::OwnFooter;
use parquet_rows::parallel::{Work, in_parallel};
use parquet_rows::plan;
use parquet_rows::positions::Positions;
use parquet_rows::read::{self, FileRows, Matched, Rows, SizedFile, Wanted};
use parquet_rows::source::{Source, Traffic};
use parquet_rows::states::{self, Entry, Files, State};
use parquet_rows::wanted::PageCounts;

use crate::conditions::NativeCondition;
use crate::pages::{Pages, keeping};
use crate::python::{
    Callback, ParquetReadError, ask_while_working, check_while_working, copy_buffer, guard,
    is_wanted, raise_ended, raised,
};

#[global_allocator]
static MEMORY: LargeBlocks = LargeBlocks::new();

/// `FileRows` of the package.
#[derive(FromPyObject)]
struct RowsOfFile {
    footer: Py<KnownFile>,
    path: PathBuf,
    rows: Py<PyAny>,
    size: Option<u64>,
}

/// A record of the package, of the class with this name.
fn record<'py>(
    py: Python<'py>,
    name: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("hudi_index_parquet")?
        .getattr(name)?
        .call1(fields)
}

/// The metadata of a file: parsed once, for any number of reads.
#[pyclass(frozen, name = "Footer", module = "hudi_index_parquet._native")]
struct KnownFile {
    file: ParquetFile,
    schema: PyOnceLock<Py<PyAny>>,
}

/// The last schema handed to Python: most files of a table have the same one, and to see that two
/// schemas are one object takes a tenth of the time of comparing them.
static LAST_SCHEMA: Mutex<Option<(Fields, Py<PyAny>)>> = Mutex::new(None);

/// A schema of these fields, without metadata, as an object of Python.
fn shared_schema(py: Python<'_>, fields: &Fields) -> PyResult<Py<PyAny>> {
    // The lock is not held while Python runs, where another thread may wait for it.
    let last = || LAST_SCHEMA.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, schema)) = &*last()
        && known == fields
    {
        return Ok(schema.clone_ref(py));
    }
    let schema = Schema::new(fields.clone()).to_pyarrow(py)?.unbind();
    let before = last().replace((fields.clone(), schema.clone_ref(py)));
    drop(before);
    Ok(schema)
}

impl KnownFile {
    fn of(file: ParquetFile) -> Self {
        Self {
            file,
            schema: PyOnceLock::new(),
        }
    }
}

#[pymethods]
impl KnownFile {
    #[new]
    fn new(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let footer = copy_buffer(data)?;
        let file = py.detach(|| guard(|| ParquetFile::of_stripped_footer(footer)))?;
        Ok(Self::of(file))
    }

    #[getter]
    fn rows(&self) -> i64 {
        metadata::row_count(self.file.metadata())
    }

    #[getter]
    fn plain_bytes(&self) -> i64 {
        metadata::plain_bytes(self.file.metadata())
    }

    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let schema = self
            .schema
            .get_or_try_init(py, || shared_schema(py, self.file.schema().fields()))?;
        Ok(schema.clone_ref(py))
    }

    #[pyo3(signature = (rows, columns = None))]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = row_positions(rows)?;
        let plan =
            py.detach(|| guard(|| read::plan_rows(&self.file, &rows, columns.as_deref())))?;
        let fields = (
            plan.pages,
            plan.page_bytes,
            plan.ranges,
            plan.chunk_bytes,
            plan.total_bytes,
            plan.row_groups,
            plan.group_rows,
            plan.plain_bytes,
        );
        record(py, "RowPlan", fields)
    }

    #[pyo3(signature = (source, columns, *, size = None, pages = None))]
    fn column_bytes(
        &self,
        source: &Bound<'_, PyAny>,
        columns: Vec<String>,
        size: Option<u64>,
        pages: Option<Py<Pages>>,
    ) -> PyResult<Vec<(u64, u64)>> {
        let source = open_source(source, size)?;
        let keeping = keeping(pages.as_ref(), true);
        let all = guard(|| read::column_bytes(&self.file, &source, &columns, keeping))?;
        Ok(all.iter().map(|each| (each.to_read, each.plain)).collect())
    }

    #[pyo3(signature = (columns = None))]
    fn page_starts(&self, columns: Option<Vec<String>>) -> PyResult<Vec<i64>> {
        guard(|| plan::page_starts(self.file.metadata(), columns.as_deref()))
    }

    #[pyo3(signature = (
        source, rows, columns = None, *, size = None, threads = None, pages = None, is_scan = false
    ))]
    #[expect(clippy::too_many_arguments)]
    fn read<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        rows: &Bound<'py, PyAny>,
        columns: Option<Vec<String>>,
        size: Option<u64>,
        threads: Option<usize>,
        pages: Option<Py<Pages>>,
        is_scan: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let mut source = open_source(source, size)?;
        let rows = row_positions(rows)?;
        let (columns, threads) = (columns.as_deref(), thread_count(threads));
        let keeping = keeping(pages.as_ref(), is_scan);
        let file = &self.file;
        let answer = py.detach(|| {
            guard(|| read::read_known_rows(file, &mut source, &rows, columns, threads, keeping))
        })?;
        handed_over(py, answer, &source)
    }

    /// None if a column of the condition is not read by opened pages.
    #[pyo3(signature = (
        source, rows, condition, columns = None, *,
        numbered = true, size = None, threads = None, pages = None, is_scan = false
    ))]
    #[expect(clippy::too_many_arguments)]
    fn matching<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        rows: &Bound<'py, PyAny>,
        condition: &NativeCondition,
        columns: Option<Vec<String>>,
        numbered: bool,
        size: Option<u64>,
        threads: Option<usize>,
        pages: Option<Py<Pages>>,
        is_scan: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut source = open_source(source, size)?;
        let rows = row_positions(rows)?;
        let wanted = Matched {
            rows: &rows,
            condition: &condition.condition,
            columns: columns.as_deref(),
            numbered,
        };
        let (threads, keeping) = (thread_count(threads), keeping(pages.as_ref(), is_scan));
        let file = &self.file;
        let found = py.detach(|| {
            guard(|| read::read_matching(file, &mut source, &wanted, threads, keeping))
        })?;
        let Some(found) = found else {
            return Ok(None);
        };
        let positions = numbered.then(|| Int64Array::from(found.positions).to_data());
        let positions = positions.map(|some| some.to_pyarrow(py)).transpose()?;
        let stats = stats(py, source.traffic, found.rows.pages)?;
        let batches = found.rows.batches.into_iter();
        let batches = batches.map(|batch| batch_in_python(py, batch));
        let batches = batches.collect::<PyResult<Vec<_>>>()?;
        record(py, "RowsFound", (found.count, positions, batches, stats)).map(Some)
    }

    /// None if a column of the condition is not read by opened pages.
    #[pyo3(signature = (
        source, rows, condition, *, size = None, threads = None, pages = None, is_scan = false
    ))]
    #[expect(clippy::too_many_arguments)]
    fn count<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        rows: &Bound<'py, PyAny>,
        condition: &NativeCondition,
        size: Option<u64>,
        threads: Option<usize>,
        pages: Option<Py<Pages>>,
        is_scan: bool,
    ) -> PyResult<Option<(usize, Bound<'py, PyAny>)>> {
        let mut source = open_source(source, size)?;
        let (rows, condition) = (row_positions(rows)?, &condition.condition);
        let (threads, keeping) = (thread_count(threads), keeping(pages.as_ref(), is_scan));
        let file = &self.file;
        let counted = py.detach(|| {
            guard(|| read::count_matching(file, &mut source, &rows, condition, threads, keeping))
        })?;
        counted
            .map(|(count, pages)| Ok((count, stats(py, source.traffic, pages)?)))
            .transpose()
    }

    /// None if no bounds of the column are reliable.
    #[pyo3(signature = (source, path, *, size = None))]
    fn bounds<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        path: Vec<String>,
        size: Option<u64>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let mut source = open_source(source, size)?;
        let known = py.detach(|| guard(|| self.file.bounds(&mut source, &path)))?;
        let Some(known) = known else {
            return Ok(None);
        };
        let mut all = Vec::with_capacity(known.len());
        for each in known {
            let range = match each.range {
                None => None,
                Some((least, greatest)) => Some((as_object(py, least)?, as_object(py, greatest)?)),
            };
            let fields = (each.start, each.stop, each.nulls, range);
            all.push(record(py, "Bounds", fields)?);
        }
        Ok(Some(all))
    }
}

fn as_object(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Value::Boolean(value) => value.into_bound_py_any(py),
        Value::Integer(value) => value.into_bound_py_any(py),
        Value::Float(value) => value.into_bound_py_any(py),
        Value::Bytes(value) => Ok(PyBytes::new(py, &value).into_any()),
    }
}

#[pyfunction]
#[pyo3(signature = (source, rows, columns = None, *, size = None, metadata = None, threads = None))]
fn read_rows<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    rows: &Bound<'py, PyAny>,
    columns: Option<Vec<String>>,
    size: Option<u64>,
    metadata: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Some(metadata) = metadata {
        let file = KnownFile::new(py, metadata)?;
        return file.read(py, source, rows, columns, size, threads, None, false);
    }
    let mut source = open_source(source, size)?;
    let rows = row_positions(rows)?;
    let (columns, threads) = (columns.as_deref(), thread_count(threads));
    let answer = py.detach(|| guard(|| read::read_rows(&mut source, &rows, columns, threads)))?;
    handed_over(py, answer, &source)
}

/// None if the files' types of the columns differ, or a column of the condition is not read by
/// opened pages.
#[pyfunction]
#[pyo3(signature = (
    files, columns = None, *, condition = None, threads = None, pages = None, is_scan = false
))]
fn read_files<'py>(
    py: Python<'py>,
    files: Vec<RowsOfFile>,
    columns: Option<Vec<String>>,
    condition: Option<Py<NativeCondition>>,
    threads: Option<usize>,
    pages: Option<Py<Pages>>,
    is_scan: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut of_files = Vec::with_capacity(files.len());
    for each in &files {
        of_files.push(FileRows {
            file: &each.footer.get().file,
            path: each.path.clone(),
            size: each.size,
            rows: row_positions(each.rows.bind(py))?,
        });
    }
    let wanted = Wanted {
        condition: condition.as_ref().map(|each| &each.get().condition),
        columns: columns.as_deref(),
    };
    let (threads, keeping) = (thread_count(threads), keeping(pages.as_ref(), is_scan));
    let answer = py.detach(|| guard(|| read::read_files(&of_files, wanted, threads, keeping)))?;
    let Some(answer) = answer else {
        return Ok(None);
    };
    let all = answer.stats.iter();
    let all = all.map(|&(traffic, pages)| stats(py, traffic, pages));
    let all = all.collect::<PyResult<Vec<_>>>()?;
    let batch = batch_in_python(py, answer.batch)?;
    let fields = (batch, answer.counts, answer.tested, all);
    record(py, "FilesRead", fields).map(Some)
}

/// None if the files' types of the columns differ.
#[pyfunction]
#[pyo3(signature = (files, columns, *, threads = None))]
fn read_columns<'py>(
    py: Python<'py>,
    files: Vec<SizedFile>,
    columns: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Option<(Bound<'py, PyAny>, Vec<i64>)>> {
    let threads = thread_count(threads);
    let answer = py.detach(|| guard(|| read::read_columns(&files, &columns, threads)))?;
    match answer {
        None => Ok(None),
        Some(answer) => Ok(Some((batch_in_python(py, answer.batch)?, answer.rows))),
    }
}

#[pyfunction]
#[pyo3(signature = (source, *, size = None))]
fn stripped_footer(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    size: Option<u64>,
) -> PyResult<Vec<u8>> {
    let mut source = open_source(source, size)?;
    py.detach(|| guard(|| metadata::stripped_footer(&mut source)))
}

#[pyfunction]
#[pyo3(signature = (source, keys, *, size = None, pages = None))]
fn file_footer(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    keys: Vec<String>,
    size: Option<u64>,
    pages: Option<Py<Pages>>,
) -> PyResult<(KnownFile, HashMap<String, String>)> {
    let mut source = open_source(source, size)?;
    let cache = keeping(pages.as_ref(), true).map(|keeping| keeping.cache);
    let own = py.detach(|| guard(|| OwnFooter::read(&mut source, &keys, cache)))?;
    Ok((KnownFile::of(own.file.clone()), own.values.clone()))
}

/// One little-endian 64-bit number for each value.
#[pyfunction]
fn polynomials<'py>(py: Python<'py>, values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let values = make_array(FromPyArrow::from_pyarrow_bound(values)?);
    let sums = py.detach(|| guard(|| hash::polynomials(&values)))?;
    let bytes: Vec<u8> = sums.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok(PyBytes::new(py, &bytes))
}

/// What `os.stat` returns.
#[derive(FromPyObject)]
struct Status {
    st_dev: u64,
    st_ino: u64,
    st_size: u64,
    st_mtime_ns: i128,
    st_ctime_ns: i128,
}

/// Local files by path, and the state in which each was.
#[pyclass(frozen, name = "FileStates", module = "hudi_index_parquet._native")]
struct FileStates {
    files: Files,
}

#[pymethods]
impl FileStates {
    #[new]
    fn new(files: Vec<(PathBuf, Status)>) -> Self {
        let files = files.into_iter().map(|(path, status)| {
            let state = State {
                device: status.st_dev,
                inode: status.st_ino,
                size: status.st_size,
                written: status.st_mtime_ns,
                changed: status.st_ctime_ns,
            };
            (path, state)
        });
        Self {
            files: Files::new(files.collect()),
        }
    }

    /// One byte for each position: 1 if that file is still there, in the same state.
    #[pyo3(signature = (positions, *, threads = None))]
    fn unchanged<'py>(
        &self,
        py: Python<'py>,
        positions: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let positions: Vec<usize> = PyBuffer::<i32>::get(positions)?
            .to_vec(py)?
            .into_iter()
            .map(|position| usize::try_from(position).unwrap_or(usize::MAX))
            .collect();
        if positions
            .iter()
            .any(|&position| position >= self.files.count())
        {
            return Err(PyValueError::new_err("a position beyond the files"));
        }
        let threads = thread_count(threads);
        let answers = py.detach(|| self.files.unchanged(&positions, threads));
        let bytes: Vec<u8> = answers.into_iter().map(u8::from).collect();
        Ok(PyBytes::new(py, &bytes))
    }
}

#[pyfunction]
fn folder_entries(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<Entry>> {
    // The interpreter's lock is given away once, not for each name.
    let listed = py.detach(|| states::entries(&folder));
    listed.map_err(|error| raised(Error::Io(error, Some(folder))))
}

#[pyfunction]
fn folder_file_names(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<OsString>> {
    let listed = py.detach(|| states::file_names(&folder));
    listed.map_err(|error| raised(Error::Io(error, Some(folder))))
}

/// A batch as an object of Python. The crate would hand over a stream of one batch, for which pyarrow
/// gives the interpreter's lock away six times, not twice.
fn batch_in_python(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    if batch.num_columns() == 0 {
        return batch.into_pyarrow(py); // without a column, an array has no length
    }
    let schema = shared_schema(py, batch.schema().fields())?;
    let mut array = FFI_ArrowArray::new(&StructArray::from(batch).into_data());
    let pointer = &raw mut array as usize;
    let class = py.import("pyarrow")?.getattr("RecordBatch")?;
    class.call_method1("_import_from_c", (pointer, schema))
}

/// The rows as a table, and the statistics of the read.
fn handed_over<'py>(
    py: Python<'py>,
    answer: Rows,
    source: &Source,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let table =
        Table::try_new(answer.batches, answer.schema).map_err(|error| raised(error.into()))?;
    let stats = stats(py, source.traffic, answer.pages)?;
    Ok((table.into_pyarrow(py)?, stats))
}

fn stats(py: Python<'_>, traffic: Traffic, pages: PageCounts) -> PyResult<Bound<'_, PyAny>> {
    let Traffic {
        calls,
        ranges,
        bytes,
    } = traffic;
    record(
        py,
        "ReadStats",
        (calls, ranges, bytes, pages.used, pages.kept),
    )
}

fn thread_count(asked: Option<usize>) -> usize {
    // Found out once: it reads the control group's files, which takes longer than a page.
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = || *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from));
    asked.unwrap_or_else(cores).max(1)
}

/// Opens a path, or a callable together with the size of the file that it reads.
fn open_source(source: &Bound<'_, PyAny>, size: Option<u64>) -> PyResult<Source> {
    if source.is_callable() {
        let size = size.ok_or_else(|| {
            PyTypeError::new_err("size, the length of the file in bytes, is needed with a callable")
        })?;
        let fetch = Callback(source.clone().unbind());
        return Ok(Source::callback(Box::new(fetch), size));
    }
    let path: PathBuf = source.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "source must be a path or a callable, not {}",
            source.get_type()
        ))
    })?;
    Source::file(path, size).map_err(raised)
}

fn row_positions(rows: &Bound<'_, PyAny>) -> PyResult<Positions> {
    if let Ok(range) = rows.cast::<PyRange>() {
        if range.step()? != 1 {
            return Err(PyValueError::new_err(
                "a range of rows must have the step 1",
            ));
        }
        return Ok(Positions::Range(
            range.start()? as i64..range.stop()? as i64,
        ));
    }
    let buffer = PyBuffer::<i64>::get(rows)
        .ok()
        .filter(|buffer| buffer.dimensions() == 1)
        .ok_or_else(|| {
            PyTypeError::new_err("rows must be a one-dimensional array of 64-bit signed integers")
        })?;
    Ok(Positions::List(buffer.to_vec(rows.py())?))
}

/// (records of leaves, numbers of those to be searched, the offset in the file of the first leaf)
type SomeLeaves = (PyBackedBytes, Vec<usize>, u64);
/// (position among the leaves to be searched, lower bound, upper bound)
type SpanFields = (usize, PyBackedBytes, Option<PyBackedBytes>);
/// The rows that searches find, in order; None if a leaf does not have its checksum.
type FoundRows = Option<Py<PyBytes>>;

/// To start a thread takes about as long as searching some tens of leaves.
const LEAF_BYTES_A_THREAD: u64 = 512 * 1024;

/// Where the bytes of leaves are: an open file, or in memory.
#[derive(FromPyObject)]
enum LeafSource {
    File(i32),
    Bodies(Vec<PyBackedBytes>),
}

/// A leaf to be searched.
struct LeafSearch<'a> {
    position: usize,
    record: LeafRecord,
    searches: Vec<Search<'a>>,
}

impl Work for LeafSearch<'_> {
    fn weight(&self) -> u64 {
        self.record.length as u64
    }
}

/// The leaves to be searched, as yet for nothing.
fn leaf_searches<'a>((records, numbers, start): SomeLeaves) -> PyResult<Vec<LeafSearch<'a>>> {
    let mut work = Vec::with_capacity(numbers.len());
    for (position, number) in numbers.into_iter().enumerate() {
        let record = LeafRecord::of(&records, number, start).map_err(raised)?;
        work.push(LeafSearch {
            position,
            record,
            searches: Vec::new(),
        });
    }
    Ok(work)
}

fn search(py: Python<'_>, source: &LeafSource, work: Vec<LeafSearch>) -> PyResult<FoundRows> {
    let one = |leaf: LeafSearch| {
        let body: Cow<[u8]> = match source {
            LeafSource::File(file) => leaves::read(*file, &leaf.record)?.into(),
            LeafSource::Bodies(bodies) => {
                let body = bodies.get(leaf.position);
                body.map_or(&[] as &[u8], |body| &body[..]).into()
            }
        };
        leaves::rows_in(&body, &leaf.record, &leaf.searches)
    };
    let found = py.detach(|| {
        guard(|| {
            let found = in_parallel(work, thread_count(None), LEAF_BYTES_A_THREAD, one)?;
            let of_leaves: Option<Vec<Vec<u32>>> = found.into_iter().collect();
            Ok(of_leaves.map(|rows| leaves::in_order(rows.concat())))
        })
    })?;
    let Some(rows) = found else {
        return Ok(None);
    };
    let bytes = PyBytes::new_with(py, rows.len() * size_of::<u32>(), |bytes| {
        let (places, _) = bytes.as_chunks_mut();
        for (place, row) in places.iter_mut().zip(rows) {
            *place = row.to_ne_bytes();
        }
        Ok(())
    })?;
    Ok(Some(bytes.unbind()))
}

#[pyfunction]
fn rows_between(
    py: Python<'_>,
    source: LeafSource,
    leaves: SomeLeaves,
    spans: Vec<SpanFields>,
) -> PyResult<FoundRows> {
    let mut work = leaf_searches(leaves)?;
    for (position, low, high) in &spans {
        work.get_mut(*position)
            .ok_or_else(|| PyValueError::new_err(format!("there is no leaf at {position}")))?
            .searches
            .push(Search::Between(low, high.as_deref()));
    }
    search(py, &source, work)
}

#[pyfunction]
fn rows_of_keys(
    py: Python<'_>,
    source: LeafSource,
    leaves: SomeLeaves,
    keys: PyBackedBytes,
    offsets: PyBuffer<i64>,
    parts: Vec<(usize, usize)>,
) -> PyResult<FoundRows> {
    let keys = KeyList::new(&keys, offsets.to_vec(py)?)
        .ok_or_else(|| PyValueError::new_err("offsets must be in order and among the bytes"))?;
    let mut work = leaf_searches(leaves)?;
    for (leaf, (start, end)) in work.iter_mut().zip(parts) {
        if end > keys.count() {
            return Err(PyValueError::new_err(format!("there is no key {end}")));
        }
        leaf.searches.push(Search::Each(&keys, start..end));
    }
    search(py, &source, work)
}

#[pyfunction]
#[pyo3(signature = (keys, key_offsets, counts, rows, *, offset, before, keeps_last = false))]
#[allow(clippy::too_many_arguments)]
fn write_leaves<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    key_offsets: Option<PyBuffer<i64>>,
    counts: PyBuffer<i64>,
    rows: PyBuffer<u32>,
    offset: u64,
    before: u64,
    keeps_last: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = match key_offsets {
        None => SortedKeys::Numbers(PyBuffer::<u64>::get(keys)?.to_vec(py)?),
        Some(offsets) => {
            let bytes = PyBuffer::<u8>::get(keys)?.to_vec(py)?;
            SortedKeys::Bytes(bytes, offsets.to_vec(py)?)
        }
    };
    let groups = Groups {
        keys,
        counts: counts.to_vec(py)?,
        rows: rows.to_vec(py)?,
    };
    let written =
        py.detach(|| guard(|| leaf_writer::write(&groups, offset, before, keeps_last)))?;
    let fields = (written.bodies, written.records, written.starts);
    record(py, "WrittenLeaves", fields)
}

#[pyfunction]
fn read_leaf<'py>(
    py: Python<'py>,
    body: &[u8],
    rows: usize,
    keys: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let leaf = guard(|| leaves::unpack(body, rows, keys))?;
    record(
        py,
        "Leaf",
        (leaf.keys, leaf.offsets, leaf.starts, leaf.rows),
    )
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    silence_guarded_panics();
    ask_while_working();
    module.add(
        "ParquetReadError",
        module.py().get_type::<ParquetReadError>(),
    )?;
    module.add_class::<KnownFile>()?;
    module.add_class::<FileStates>()?;
    module.add_class::<Pages>()?;
    module.add_class::<NativeCondition>()?;
    module.add_class::<routing::PyRouting>()?;
    module.add_class::<trees::Trees>()?;
    module.add_function(wrap_pyfunction!(check_while_working, module)?)?;
    module.add_function(wrap_pyfunction!(is_wanted, module)?)?;
    module.add_function(wrap_pyfunction!(raise_ended, module)?)?;
    module.add_function(wrap_pyfunction!(read_rows, module)?)?;
    module.add_function(wrap_pyfunction!(read_files, module)?)?;
    module.add_function(wrap_pyfunction!(read_columns, module)?)?;
    module.add_function(wrap_pyfunction!(stripped_footer, module)?)?;
    module.add_function(wrap_pyfunction!(file_footer, module)?)?;
    module.add_function(wrap_pyfunction!(folder_entries, module)?)?;
    module.add_function(wrap_pyfunction!(folder_file_names, module)?)?;
    module.add_function(wrap_pyfunction!(polynomials, module)?)?;
    module.add_function(wrap_pyfunction!(rows_between, module)?)?;
    module.add_function(wrap_pyfunction!(rows_of_keys, module)?)?;
    module.add_function(wrap_pyfunction!(read_leaf, module)?)?;
    module.add_function(wrap_pyfunction!(write_leaves, module)?)?;
    Ok(())
}
