//! Routing runs for Python.

use parquet_rows::error::Result;
use parquet_rows::routing::{Layout, Routing};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::python::{guard, raised};

/// An open run, without its pairs. Each method gets them all; those that it does not read may be
/// missing.
#[pyclass(frozen, name = "Routing", module = "hudi_index_parquet._native")]
pub struct PyRouting {
    routing: Routing,
}

type TwoBuffers<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl PyRouting {
    #[new]
    #[pyo3(signature = (*, base, shift, key_bits, bucket_bits, file_bits, pairs, directory))]
    fn new(
        base: u64,
        shift: u32,
        key_bits: u32,
        bucket_bits: u32,
        file_bits: u32,
        pairs: usize,
        directory: &[u8],
    ) -> PyResult<Self> {
        let layout = Layout {
            base,
            shift,
            key_bits,
            bucket_bits,
            file_bits,
            pairs,
        };
        let routing = guard(|| Routing::new(layout, directory))?;
        Ok(PyRouting { routing })
    }

    fn parts_of(&self, py: Python<'_>, keys: PyBuffer<u64>) -> PyResult<Vec<(usize, usize)>> {
        let parts = self.routing.parts_of(&keys.to_vec(py)?);
        Ok(parts
            .into_iter()
            .map(|part| (part.start, part.end))
            .collect())
    }

    /// Where the numbers of each file begin, and the numbers; both as 32-bit integers.
    fn route<'py>(
        &self,
        py: Python<'py>,
        keys: PyBuffer<u64>,
        files: usize,
        packed: PyBuffer<u8>,
    ) -> PyResult<TwoBuffers<'py>> {
        let keys = keys.to_vec(py)?;
        let routed = with_bytes(&packed, |packed| self.routing.route(&keys, files, packed))?;
        let starts = bytes_of(py, &routed.starts, i32::to_ne_bytes)?;
        Ok((starts, bytes_of(py, &routed.numbers, i32::to_ne_bytes)?))
    }

    /// (number of pairs, start and end of their bytes)
    fn between(&self, low: u64, high: u64) -> (usize, usize, usize) {
        let pairs = self.routing.between(low, high);
        let bytes = self.routing.bytes_of(pairs.clone());
        (pairs.len(), bytes.start, bytes.end)
    }

    fn route_between<'py>(
        &self,
        py: Python<'py>,
        low: u64,
        high: u64,
        files: usize,
        packed: PyBuffer<u8>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let may = with_bytes(&packed, |packed| {
            self.routing.route_between(low, high, files, packed)
        })?;
        Ok(PyBytes::new(py, &may))
    }

    /// What is left of each key, as 64-bit integers, and the files, as 32-bit integers.
    fn unpack<'py>(&self, py: Python<'py>, packed: PyBuffer<u8>) -> PyResult<TwoBuffers<'py>> {
        let pairs = with_bytes(&packed, |packed| self.routing.unpack(packed))?;
        let keys = bytes_of(py, &pairs.keys, u64::to_ne_bytes)?;
        Ok((keys, bytes_of(py, &pairs.files, u32::to_ne_bytes)?))
    }
}

/// Works on the bytes of a buffer without copying them.
fn with_bytes<T>(buffer: &PyBuffer<u8>, work: impl FnOnce(&[u8]) -> Result<T>) -> PyResult<T> {
    if !buffer.is_c_contiguous() {
        return Err(raised(parquet_rows::error::Error::Argument(
            "the buffer is not contiguous".into(),
        )));
    }
    let bytes: &[u8] = if buffer.len_bytes() == 0 {
        &[]
    } else {
        // SAFETY: the buffer is contiguous, and held as long as the bytes are borrowed. Others may
        // fill in parts of it that were missing, but nobody changes what `work` reads.
        unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
    };
    guard(|| work(bytes))
}

fn bytes_of<'py, T: Copy, const SIZE: usize>(
    py: Python<'py>,
    numbers: &[T],
    each: impl Fn(T) -> [u8; SIZE],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, numbers.len() * SIZE, |bytes| {
        let (places, _) = bytes.as_chunks_mut();
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = each(*number);
        }
        Ok(())
    })
}
