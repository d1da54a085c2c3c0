//! Tells which of many local files have changed since their state was taken.

use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

/// (device, inode, size, seconds and nanoseconds of the last write, and of the last change)
pub type State = (u64, u64, u64, i64, i64, i64, i64);

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

fn is_unchanged((path, known): &(PathBuf, State)) -> bool {
    metadata(path).is_ok_and(|now| state_of(&now) == *known)
}

/// The state of a file that has been looked at.
pub fn state_of(now: &Metadata) -> State {
    (
        now.dev(),
        now.ino(),
        now.size(),
        now.mtime(),
        now.mtime_nsec(),
        now.ctime(),
        now.ctime_nsec(),
    )
}
