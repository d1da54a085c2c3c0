//! B+ trees of many entries for Python.

use std::os::fd::RawFd;

use parquet_rows::leaves::KeyList;
use parquet_rows::trees::{Tree, rows_of_keys};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::python::guard;
use crate::thread_count;

/// (file, start, rows, records of leaves, their first keys)
type TreeFields = (RawFd, u64, u32, PyBackedBytes, Vec<PyBackedBytes>);

#[pyclass(frozen, name = "Trees", module = "hudi_index_parquet._native")]
pub struct Trees {
    trees: Vec<Tree<PyBackedBytes>>,
}

#[pymethods]
impl Trees {
    #[new]
    fn new(trees: Vec<TreeFields>) -> Self {
        let trees = trees.into_iter();
        let trees = trees.map(|(file, start, rows, records, first_keys)| Tree {
            file,
            start,
            rows,
            records,
            first_keys,
        });
        Trees {
            trees: trees.collect(),
        }
    }

    /// The number of rows in each of the trees at these positions, -1 where they must be looked up
    /// by themselves, and all rows; both as 32-bit integers.
    #[allow(clippy::too_many_arguments)]
    fn rows_of_keys<'py>(
        &self,
        py: Python<'py>,
        keys: PyBackedBytes,
        offsets: PyBuffer<i64>,
        positions: PyBuffer<i32>,
        starts: PyBuffer<i32>,
        numbers: PyBuffer<i32>,
        most: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let keys = KeyList::new(&keys, offsets.to_vec(py)?)
            .ok_or_else(|| PyValueError::new_err("offsets must be in order and among the bytes"))?;
        let (positions, starts) = (positions.to_vec(py)?, starts.to_vec(py)?);
        let numbers = as_numbers(&numbers.to_vec(py)?, keys.count())?;
        if starts.len() != positions.len() + 1 {
            return Err(PyValueError::new_err("one start more than trees is needed"));
        }
        let mut asked = Vec::with_capacity(positions.len());
        for (position, ends) in positions.iter().zip(starts.windows(2)) {
            let of_tree = usize::try_from(ends[0])
                .ok()
                .zip(usize::try_from(ends[1]).ok());
            let of_tree = of_tree.and_then(|(start, end)| numbers.get(start..end));
            let position = usize::try_from(*position).ok();
            match (position.filter(|at| *at < self.trees.len()), of_tree) {
                (Some(position), Some(of_tree)) => asked.push((position, of_tree)),
                _ => return Err(PyValueError::new_err("a position is out of range")),
            }
        }
        let threads = thread_count(None);
        let found =
            py.detach(|| guard(|| rows_of_keys(&self.trees, &keys, &asked, most, threads)))?;
        let (mut counts, mut rows) = (Vec::new(), Vec::new());
        for each in &found {
            let count = each.as_ref().map_or(-1, |rows| rows.len() as i32);
            counts.extend(count.to_ne_bytes());
            rows.extend(each.iter().flatten().flat_map(|row| row.to_ne_bytes()));
        }
        Ok((PyBytes::new(py, &counts), PyBytes::new(py, &rows)))
    }
}

fn as_numbers(numbers: &[i32], count: usize) -> PyResult<Vec<u32>> {
    let checked = numbers.iter().map(|number| {
        let number = u32::try_from(*number).ok();
        number.filter(|number| (*number as usize) < count)
    });
    let checked: Option<Vec<u32>> = checked.collect();
    checked.ok_or_else(|| PyValueError::new_err("the number of a key is out of range"))
}
