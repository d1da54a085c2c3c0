//! Errors of the row reader as Python's exceptions, and Python's buffers and callables as bytes.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use parquet_rows::error::{self, Error, Result};
use parquet_rows::parallel::{ask, while_wanted};
use parquet_rows::source::Fetch;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

create_exception!(
    hudi_index_parquet,
    ParquetReadError,
    PyValueError,
    "The file, or its stored metadata, is not readable Parquet."
);

/// Runs `work` on bytes that may be damaged; raises its error, or what ends it meanwhile (see
/// `is_wanted`).
pub fn guard<T>(work: impl FnOnce() -> Result<T>) -> PyResult<T> {
    while_wanted(|| error::guard(work)).map_err(raised)
}

/// Called while work is done, and raises if nobody waits for it any more.
static CHECK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// Why this thread's work is not wanted any more, until that is raised.
    static ENDED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Has signals handled, and the check called, while work is done.
pub fn ask_while_working() {
    ask(|| Python::attach(wanted).map_err(|error| Error::Fetch(error.into())));
}

/// Raises what a signal's handler raises, or the check.
fn wanted(py: Python<'_>) -> PyResult<()> {
    py.check_signals()?;
    match CHECK.get(py) {
        Some(check) => check.call0(py).map(|_| ()),
        None => Ok(()),
    }
}

/// The first check is called; later ones are ignored.
#[pyfunction]
pub fn check_while_working(py: Python<'_>, check: Py<PyAny>) {
    CHECK.get_or_init(py, || check);
}

/// Whether work of other native code is still wanted. Errors cannot pass through that, so
/// `raise_ended` raises them later.
#[pyfunction]
pub fn is_wanted(py: Python<'_>) -> bool {
    match wanted(py) {
        Ok(()) => true,
        Err(error) => {
            ENDED.set(Some(error));
            false
        }
    }
}

/// Raises the error for which `is_wanted` was false in this thread, if there is one.
#[pyfunction]
pub fn raise_ended() -> PyResult<()> {
    ENDED.take().map_or(Ok(()), Err)
}

/// The exception for an error; what a callback raised is raised again unchanged.
pub fn raised(error: Error) -> PyErr {
    match error {
        Error::Argument(message) => PyValueError::new_err(message),
        Error::Malformed(message) => ParquetReadError::new_err(message),
        Error::Io(error, None) => error.into(),
        Error::Io(error, Some(path)) => os_error(&error, &path),
        Error::Fetch(error) => match error.downcast::<PyErr>() {
            Ok(error) => *error,
            Err(other) => PyOSError::new_err(other.to_string()),
        },
    }
}

/// The `OSError` subclass that Python itself would raise.
fn os_error(error: &io::Error, path: &Path) -> PyErr {
    let path = path.to_string_lossy().into_owned();
    let message = error.to_string();
    match error.raw_os_error() {
        Some(code) => {
            let suffix = format!(" (os error {code})");
            let message = message.trim_end_matches(&suffix).to_owned();
            PyOSError::new_err((code, message, path))
        }
        None => PyOSError::new_err(format!("{path}: {message}")),
    }
}

/// Copies the bytes of any Python object with a contiguous buffer.
pub fn copy_buffer(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let buffer = PyUntypedBuffer::get(object)?;
    if !buffer.is_c_contiguous() {
        return Err(PyValueError::new_err("the buffer is not contiguous"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the buffer is contiguous, so `len_bytes` bytes follow `buf_ptr`; the buffer is held,
    // and Python is attached, until they are copied.
    let bytes = unsafe {
        std::slice::from_raw_parts(
            buffer.buf_ptr().cast::<u8>().cast_const(),
            buffer.len_bytes(),
        )
    };
    Ok(Bytes::copy_from_slice(bytes))
}

/// A callable `fetch([(start, end), ...]) -> [buffer, ...]`.
pub struct Callback(pub Py<PyAny>);

impl Fetch for Callback {
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        Python::attach(|py| call_back(self.0.bind(py), ranges))
            .map_err(|error| Error::Fetch(Box::new(error)))
    }
}

fn call_back(fetch: &Bound<'_, PyAny>, ranges: &[Range<u64>]) -> PyResult<Vec<Bytes>> {
    let pairs: Vec<(u64, u64)> = ranges
        .iter()
        .map(|range| (range.start, range.end))
        .collect();
    let answers: Vec<Bound<'_, PyAny>> = fetch
        .call1((pairs,))?
        .try_iter()?
        .collect::<PyResult<_>>()?;
    if answers.len() != ranges.len() {
        return Err(PyValueError::new_err(format!(
            "fetch returned {} buffers for {} ranges",
            answers.len(),
            ranges.len()
        )));
    }
    answers
        .iter()
        .zip(ranges)
        .map(|(answer, range)| {
            let bytes = copy_buffer(answer).map_err(|error| {
                let py = answer.py();
                let wrapped = PyTypeError::new_err(format!(
                    "fetch must return buffers of bytes, not {}",
                    answer.get_type()
                ));
                wrapped.set_cause(py, Some(error));
                wrapped
            })?;
            if bytes.len() as u64 != range.end - range.start {
                return Err(PyValueError::new_err(format!(
                    "fetch returned {} bytes for the range {}..{}",
                    bytes.len(),
                    range.start,
                    range.end
                )));
            }
            Ok(bytes)
        })
        .collect()
}
