//! Reads rows by position from Parquet files, page by page, searches leaves of indexes, hashes
//! values, and watches files. The module for Python is made of this crate, which knows no Python.

pub mod bloom_filter;
pub mod bounds;
pub mod cache;
pub mod condition;
pub mod decode;
pub mod error;
pub mod file;
pub mod file_pages;
pub mod gather;
pub mod hash;
pub mod leaf_writer;
pub mod leaves;
pub mod lists;
pub mod local_file;
pub mod memory;
pub mod metadata;
pub mod own_footer;
pub mod page;
pub mod parallel;
pub mod plan;
pub mod positions;
pub mod read;
pub mod routing;
pub mod rows_left;
pub mod runs;
pub mod select;
pub mod source;
pub mod states;
pub mod trees;
pub mod values;
pub mod wanted;
