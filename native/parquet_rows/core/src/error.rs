//! The only error type of the crate, and the guard that converts a panic into it.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

/// Why rows could not be read.
#[derive(Debug)]
pub enum Error {
    /// The caller requested something that the file does not have.
    Argument(String),
    /// The bytes are not readable Parquet.
    Malformed(String),
    /// The operating system's error in reading a file, with its path if that is known.
    Io(io::Error, Option<PathBuf>),
    /// The error of a `Fetch`, unchanged.
    Fetch(Box<dyn std::error::Error + Send + Sync>),
}

pub type Result<T> = std::result::Result<T, Error>;

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        let message = match error {
            ParquetError::General(message)
            | ParquetError::NYI(message)
            | ParquetError::EOF(message) => message,
            other => other.to_string(),
        };
        Error::Malformed(message)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Error::Malformed(error.to_string())
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on bytes that may be damaged: a panic of the decoder becomes `Error::Malformed`.
///
/// The decoder asserts some properties of its input (for example, that sizes are not negative).
/// Neither a panic nor its message on stderr may reach a caller.
pub fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let outer = GUARDED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    outcome.unwrap_or_else(|payload| {
        Err(Error::Malformed(format!(
            "malformed Parquet: {}",
            panic_message(payload.as_ref())
        )))
    })
}

/// Suppresses the output of panics that `guard` catches; all others are printed as before.
pub fn silence_guarded_panics() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !GUARDED.get() {
            previous(info);
        }
    }));
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the decoder failed")
}
