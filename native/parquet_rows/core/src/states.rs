//! What is in a local folder, and which of many local files have changed since their state was taken.

use std::ffi::OsString;
use std::fs::{Metadata, metadata, read_dir};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

/// What differs after a file was written to or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    /// The time of the last write, in nanoseconds since 1970.
    pub written: i128,
    /// The time of the last change, also of its name, rights or times.
    pub changed: i128,
}

impl State {
    /// The state of a file that has been looked at.
    pub fn of(now: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * SECOND + i128::from(rest);
        Self {
            device: now.dev(),
            inode: now.ino(),
            size: now.size(),
            written: nanoseconds(now.mtime(), now.mtime_nsec()),
            changed: nanoseconds(now.ctime(), now.ctime_nsec()),
        }
    }
}

const SECOND: i128 = 1_000_000_000;

/// Files for which a thread is started.
const A_THREAD: usize = 1024;

/// Files by path, each with the state to which it is compared.
pub struct Files {
    files: Vec<(PathBuf, State)>,
}

impl Files {
    pub fn new(files: Vec<(PathBuf, State)>) -> Self {
        Self { files }
    }

    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// For each of the positions, whether that file is still there, in the same state.
    pub fn unchanged(&self, positions: &[usize], threads: usize) -> Vec<bool> {
        let threads = threads.min(positions.len() / A_THREAD).max(1);
        let answer = |some: &[usize]| -> Vec<bool> {
            some.iter()
                .map(|&number| is_unchanged(&self.files[number]))
                .collect()
        };
        let share = positions.len().div_ceil(threads).max(1);
        thread::scope(|scope| {
            let mut shares = positions.chunks(share);
            let first = shares.next().unwrap_or_default();
            let others: Vec<_> = shares
                .map(|some| (some.len(), scope.spawn(move || answer(some))))
                .collect();
            let mut answers = answer(first);
            for (count, other) in others {
                // Without an answer, a file counts as changed.
                answers.extend(other.join().unwrap_or_else(|_| vec![false; count]));
            }
            answers
        })
    }
}

/// The name of what is in a folder, with the length and the time of the last write, in seconds since
/// 1970, of what is no folder itself.
pub type Entry = (OsString, Option<(u64, f64)>);

/// What is in a folder. Links are followed; those to nothing are left out.
///
/// # Errors
/// Those of opening the folder, reading it, and looking at what is in it.
pub fn entries(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for entry in read_dir(folder)? {
        let entry = entry?;
        let file_type = entry.file_type()?;
        if file_type.is_dir() {
            found.push((entry.file_name(), None));
            continue;
        }
        match metadata(entry.path()) {
            Ok(now) if now.is_dir() => found.push((entry.file_name(), None)),
            Ok(now) => {
                let written = now.mtime() as f64 + now.mtime_nsec() as f64 * 1e-9;
                found.push((entry.file_name(), Some((now.size(), written))));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The names of the files in a folder, without their attributes.
///
/// # Errors
/// As those of `entries`.
pub fn file_names(folder: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in read_dir(folder)? {
        let entry = entry?;
        let file_type = entry.file_type()?;
        let is_link_to_file =
            || file_type.is_symlink() && metadata(entry.path()).is_ok_and(|now| now.is_file());
        if file_type.is_file() || is_link_to_file() {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}

fn is_unchanged((path, known): &(PathBuf, State)) -> bool {
    metadata(path).is_ok_and(|now| State::of(&now) == *known)
}
