//! Reads rows by position from Parquet files, page by page, for Python.
//!
//! This is the private module `hudi_index_parquet._native`; the package around it holds the
//! documented functions and their types.

mod error;
mod metadata;
mod plan;
mod read;
mod source;

use std::path::PathBuf;

use arrow_pyarrow::{IntoPyArrow, Table};
use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{Error, ParquetReadError, guard};
use crate::metadata::Footer;
use crate::source::{Source, copy_buffer};

/// Near ranges are merged for a callback, which is likely a remote store; a local file gains
/// nothing from reading what lies between two pages.
const CALLBACK_MERGE_GAP: u64 = 64 * 1024;

/// (calls, ranges, bytes, pages)
type StatsFields = (u64, u64, u64, u64);
/// (pages, page_bytes, chunk_bytes, total_bytes, row_groups)
type PlanFields = (u64, u64, u64, u64, u64);

#[pyfunction]
fn read_rows<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    rows: &Bound<'py, PyAny>,
    columns: Option<Vec<String>>,
    size: Option<u64>,
    metadata: Option<&Bound<'py, PyAny>>,
    merge_gap: Option<u64>,
) -> PyResult<(Bound<'py, PyAny>, StatsFields)> {
    let mut source = open_source(source, size, merge_gap)?;
    let rows = row_positions(rows)?;
    let metadata = metadata.map(copy_buffer).transpose()?;
    let answer =
        py.detach(|| guard(|| read::read_rows(&mut source, metadata, &rows, columns.as_deref())))?;
    let table = Table::try_new(answer.batches, answer.schema).map_err(Error::from)?;
    let traffic = source.traffic;
    let stats = (traffic.calls, traffic.ranges, traffic.bytes, answer.pages);
    Ok((table.into_pyarrow(py)?, stats))
}

#[pyfunction]
fn stripped_footer(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    size: Option<u64>,
    column_index: bool,
) -> PyResult<Vec<u8>> {
    let mut source = open_source(source, size, None)?;
    Ok(py.detach(|| guard(|| metadata::stripped_footer(&mut source, column_index)))?)
}

#[pyfunction]
fn plan_rows(
    py: Python<'_>,
    metadata: &Bound<'_, PyAny>,
    rows: &Bound<'_, PyAny>,
    columns: Option<Vec<String>>,
) -> PyResult<PlanFields> {
    let metadata = copy_buffer(metadata)?;
    let rows = row_positions(rows)?;
    let plan = py.detach(|| guard(|| read::plan_rows(metadata, &rows, columns.as_deref())))?;
    Ok((
        plan.pages,
        plan.page_bytes,
        plan.chunk_bytes,
        plan.total_bytes,
        plan.row_groups,
    ))
}

#[pyfunction]
fn row_count(metadata: &Bound<'_, PyAny>) -> PyResult<i64> {
    let bytes: Bytes = copy_buffer(metadata)?;
    Ok(guard(|| {
        let footer = Footer::read(&mut Source::memory(bytes), false)?;
        Ok(metadata::row_count(&footer.metadata))
    })?)
}

/// A path, or a callable together with the size of what it reads.
fn open_source(
    source: &Bound<'_, PyAny>,
    size: Option<u64>,
    merge_gap: Option<u64>,
) -> PyResult<Source> {
    if source.is_callable() {
        let size = size.ok_or_else(|| {
            PyTypeError::new_err("size, the length of the file in bytes, is needed with a callable")
        })?;
        let merge_gap = merge_gap.unwrap_or(CALLBACK_MERGE_GAP);
        return Ok(Source::callback(source.clone().unbind(), size, merge_gap));
    }
    let path: PathBuf = source.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "source must be a path or a callable, not {}",
            source.get_type()
        ))
    })?;
    Ok(Source::file(path, size, merge_gap.unwrap_or(0))?)
}

fn row_positions(rows: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let buffer = PyBuffer::<i64>::get(rows)
        .ok()
        .filter(|buffer| buffer.dimensions() == 1)
        .ok_or_else(|| {
            PyTypeError::new_err("rows must be a one-dimensional array of 64-bit signed integers")
        })?;
    buffer.to_vec(rows.py())
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::silence_guarded_panics();
    module.add(
        "ParquetReadError",
        module.py().get_type::<ParquetReadError>(),
    )?;
    module.add_function(wrap_pyfunction!(read_rows, module)?)?;
    module.add_function(wrap_pyfunction!(stripped_footer, module)?)?;
    module.add_function(wrap_pyfunction!(plan_rows, module)?)?;
    module.add_function(wrap_pyfunction!(row_count, module)?)?;
    Ok(())
}
