//! States of files, hashes, and work on several threads.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow_array::{BinaryArray, Int64Array};
use parquet_rows::error::{Error, guard};
use parquet_rows::hash::polynomials;
use parquet_rows::parallel::{ASKED_EVERY, Work, ask, in_parallel, while_wanted};
use parquet_rows::states::{Files, State};

fn state(path: &Path) -> State {
    State::of(&fs::metadata(path).unwrap())
}

#[test]
fn a_file_that_changed_or_is_gone_is_noticed() {
    let folder = std::env::temp_dir().join(format!("states-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let paths: Vec<_> = (0..3)
        .map(|number| folder.join(number.to_string()))
        .collect();
    for path in &paths {
        fs::write(path, "before").unwrap();
    }
    let files = Files::new(
        paths
            .iter()
            .map(|path| (path.clone(), state(path)))
            .collect(),
    );
    assert_eq!(files.count(), 3);
    assert_eq!(files.unchanged(&[2, 0], 4), [true, true]);
    fs::write(&paths[0], "longer than before").unwrap();
    fs::remove_file(&paths[1]).unwrap();
    assert_eq!(files.unchanged(&[0, 1, 2], 1), [false, false, true]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn hashes_are_the_documented_polynomials() {
    let multiplier = 0x9E37_79B9_7F4A_7C15_u64;
    let values = BinaryArray::from_opt_vec(vec![Some(b"a"), None, Some(b""), Some(b"ab")]);
    let a = multiplier.wrapping_mul(98);
    let ab = a.wrapping_add(multiplier.wrapping_mul(multiplier).wrapping_mul(99));
    assert_eq!(polynomials(&values).unwrap(), [a, 0, 0, ab]);
    let numbers = polynomials(&Int64Array::from(vec![1]));
    assert!(matches!(numbers, Err(Error::Argument(_))));
}

struct Item(u64);

impl Work for Item {
    fn weight(&self) -> u64 {
        self.0
    }
}

#[test]
fn answers_come_in_the_order_of_the_items() {
    for threads in [1, 4] {
        let items = [3, 1, 2, 9, 5].map(Item).into();
        let answers = in_parallel(items, threads, 1, |item: Item| Ok(item.0 * 2)).unwrap();
        assert_eq!(answers, [6, 2, 4, 18, 10]);
    }
}

#[test]
fn the_first_failure_is_the_answer_a_panic_too() {
    for threads in [1, 4] {
        let items = (1..50).map(Item).collect();
        let answer = guard(|| {
            in_parallel(items, threads, 1, |item: Item| {
                assert!(item.0 != 30, "thirty");
                Ok(item.0)
            })
        });
        let Err(Error::Malformed(message)) = answer else {
            panic!("no error");
        };
        assert!(message.contains("thirty"), "{message}");
    }
}

#[test]
fn work_that_is_not_wanted_any_more_ends() {
    ask(|| Err(Error::Argument("not wanted".into())));
    for threads in [1, 4] {
        let done = AtomicUsize::new(0);
        let all = || {
            in_parallel((1..1_000).map(Item).collect(), threads, 1, |_| {
                let begun = Instant::now();
                while begun.elapsed() < ASKED_EVERY / 10 {}
                done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        };
        let answer = while_wanted(all);
        assert!(matches!(answer, Err(Error::Argument(_))));
        assert!((1..999).contains(&done.load(Ordering::Relaxed)));
    }
    // Threads that do not ask are not told.
    let answer = in_parallel([Item(1)].into(), 1, 1, |_| Ok(()));
    assert!(answer.is_ok());
}
