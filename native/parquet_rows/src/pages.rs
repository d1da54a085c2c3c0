//! The cache of opened pages as a class of Python.

use parquet_rows::cache::{Admission, PageCache};
use parquet_rows::file_pages::Keeping;
use pyo3::prelude::*;

use crate::python::guard;

/// Opened pages of any files, within a budget of bytes.
#[pyclass(frozen, name = "PageCache", module = "hudi_index_parquet._native")]
pub struct Pages {
    cache: PageCache,
}

#[pymethods]
impl Pages {
    #[new]
    fn new(budget: u64) -> PyResult<Self> {
        Ok(Self {
            cache: guard(|| PageCache::new(budget))?,
        })
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.cache.here().map_or(0, PageCache::bytes)
    }

    fn clear(&self) {
        if let Some(cache) = self.cache.here() {
            cache.clear();
        }
    }
}

/// Where pages are kept, and from which use on.
pub fn keeping(pages: Option<&Py<Pages>>, is_scan: bool) -> Option<Keeping<'_>> {
    let admission = if is_scan {
        Admission::SecondUse
    } else {
        Admission::FirstUse
    };
    pages.map(|pages| Keeping {
        cache: &pages.get().cache,
        admission,
    })
}
