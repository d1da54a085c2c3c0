//! A local file that must not change while it is read.

use std::fs::{File, Metadata, metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::states::State;

/// A write sooner than this after another one may leave the same times: the kernel's clock for them
/// ticks every 10 ms at the slowest.
const ONE_TICK: Duration = Duration::from_millis(20);
/// The same where a file system stores whole seconds, or two.
const COARSE_TICK: Duration = Duration::from_secs(3);

/// A local file, opened by the first read, and the state in which it was found.
pub struct LocalFile {
    path: PathBuf,
    state: State,
    is_settled: bool,
    file: OnceLock<File>,
}

impl LocalFile {
    /// # Errors
    /// `Error::Io` if there is no such file; `Error::Malformed` if its size is not `size`.
    pub fn find(path: PathBuf, size: Option<u64>) -> Result<Self> {
        let found = metadata(&path).map_err(|error| in_file(error, &path))?;
        if let Some(expected) = size.filter(|&expected| expected != found.size()) {
            return Err(Error::Malformed(format!(
                "{} has {} bytes, not {expected}",
                path.display(),
                found.size()
            )));
        }
        Ok(Self {
            is_settled: is_settled(&found, SystemTime::now()),
            state: State::of(&found),
            file: OnceLock::new(),
            path,
        })
    }

    pub fn size(&self) -> u64 {
        self.state.size
    }

    /// The state of the file, if every later write to it leaves another one; None if the last one
    /// was just now.
    pub fn settled_state(&self) -> Option<&State> {
        self.is_settled.then_some(&self.state)
    }

    /// These bytes of the file as it was found.
    ///
    /// # Errors
    /// `Error::Malformed` if the file has changed since, before the bytes were read or meanwhile.
    pub fn read(&self, range: &Range<u64>) -> Result<Bytes> {
        let in_file = |error| in_file(error, &self.path);
        let file = match self.file.get() {
            Some(file) => file,
            None => {
                let opened = File::open(&self.path).map_err(in_file)?;
                self.file.get_or_init(|| opened)
            }
        };
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = file.read_exact_at(&mut bytes, range.start);
        let now = file.metadata().map_err(in_file)?;
        if !self.is_unchanged(&now) {
            return Err(Error::Malformed(format!(
                "{} was written to while it was read",
                self.path.display()
            )));
        }
        read.map_err(in_file)?;
        Ok(Bytes::from(bytes))
    }

    fn is_unchanged(&self, now: &Metadata) -> bool {
        let mut state = State::of(now);
        // To delete a file changes its last time alone.
        if now.nlink() == 0 {
            state.changed = self.state.changed;
        }
        state == self.state
    }
}

/// Whether the next write to a file leaves other times than the last one did.
fn is_settled(found: &Metadata, now: SystemTime) -> bool {
    let tick = if found.mtime_nsec() == 0 && found.ctime_nsec() == 0 {
        COARSE_TICK
    } else {
        ONE_TICK
    };
    let age = |seconds: i64, nanos: i64| {
        let written = Duration::new(u64::try_from(seconds).unwrap_or(0), nanos as u32);
        now.duration_since(UNIX_EPOCH + written).unwrap_or_default()
    };
    // The last one cannot be set back.
    age(found.ctime(), found.ctime_nsec()) > tick
}

/// The error of the operating system with the path of the file.
fn in_file(error: io::Error, path: &Path) -> Error {
    Error::Io(error, Some(path.to_owned()))
}
