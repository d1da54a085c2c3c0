//! Runs work on several threads at once.

use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result, guard};

/// A unit of work.
pub trait Work: Send {
    /// The amount of work, in bytes.
    fn weight(&self) -> u64;
}

/// Does all the work, the largest items first; the results are in the order of `items`.
///
/// The calling thread is one of at most `threads` threads, and there is at most one thread per
/// `smallest` bytes of work. After a failure, no further item is started.
pub fn in_parallel<W: Work, R: Send>(
    items: Vec<W>,
    threads: usize,
    smallest: u64,
    work: impl Fn(W) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let total = items.iter().map(Work::weight).fold(0, u64::saturating_add);
    let threads = threads
        .min(items.len())
        .min(usize::try_from(total / smallest).unwrap_or(usize::MAX));
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let mut waiting: Vec<(usize, W)> = items.into_iter().enumerate().collect();
    waiting.sort_by_key(|(_, item)| item.weight());
    let waiting = Mutex::new(waiting);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let worker = || -> Result<Vec<(usize, R)>> {
        let mut done = Vec::new();
        while let Some((number, item)) = next() {
            match guard(|| work(item)) {
                Ok(answer) => done.push((number, answer)),
                Err(error) => {
                    waiting
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clear();
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let answers = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut answers = vec![worker()];
        for other in others {
            let joined = other.join();
            answers.push(joined.unwrap_or_else(|_| Err(Error::Malformed("a thread died".into()))));
        }
        answers
    });
    let mut done = Vec::new();
    for answer in answers {
        done.extend(answer?);
    }
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, answer)| answer).collect())
}
