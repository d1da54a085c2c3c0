//! Runs work on several threads at once.

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result, guard};

/// The longest time in which a thread does not ask whether its work is wanted, but for one item.
pub const ASKED_EVERY: Duration = Duration::from_millis(50);

static IS_WANTED: OnceLock<fn() -> Result<()>> = OnceLock::new();

thread_local! {
    /// When this thread asked last; None if it does not ask.
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Who is asked whether work is still wanted: an error ends it. The first one is.
pub fn ask(is_wanted: fn() -> Result<()>) {
    IS_WANTED.get_or_init(|| is_wanted);
}

/// Does work between whose items this thread asks whether it is still wanted. Threads that it
/// starts do not.
pub fn while_wanted<T>(work: impl FnOnce() -> T) -> T {
    let before = ASKED.replace(Some(Instant::now()));
    let done = work();
    ASKED.set(before);
    done
}

fn still_wanted() -> Result<()> {
    let (Some(last), Some(is_wanted)) = (ASKED.get(), IS_WANTED.get()) else {
        return Ok(());
    };
    let now = Instant::now();
    if now.duration_since(last) < ASKED_EVERY {
        return Ok(());
    }
    ASKED.set(Some(now));
    is_wanted()
}

/// A unit of work.
pub trait Work: Send {
    /// The amount of work, in bytes.
    fn weight(&self) -> u64;
}

/// Does all the work, the largest items first; the results are in the order of `items`.
///
/// The calling thread is one of at most `threads` threads, and there is at most one thread per
/// `smallest` bytes of work. After a failure, or once the work is not wanted any more, no further
/// item is started.
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
        let each = |item| still_wanted().and_then(|()| work(item));
        return items.into_iter().map(each).collect();
    }
    let mut waiting: Vec<(usize, W)> = items.into_iter().enumerate().collect();
    waiting.sort_by_key(|(_, item)| item.weight());
    let waiting = Mutex::new(waiting);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let worker = || -> Result<Vec<(usize, R)>> {
        let mut done = Vec::new();
        while let Some((number, item)) = next() {
            match still_wanted().and_then(|()| guard(|| work(item))) {
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
