//! Blocks of memory of all sizes, small, large and in between.

use std::fs;
use std::hint::black_box;
use std::thread;

use parquet_rows::memory::{KEPT, LARGE, LargeBlocks};

#[global_allocator]
static MEMORY: LargeBlocks = LargeBlocks::new();

fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn bytes_stay_when_a_block_grows_and_shrinks() {
    let mut block: Vec<u8> = Vec::new();
    for length in (0..8 * LARGE).step_by(LARGE / 8) {
        block.resize(length, (length % 251) as u8);
        block.reserve_exact(1);
    }
    let written = |at: usize| ((at / (LARGE / 8) + 1) * (LARGE / 8) % 251) as u8;
    assert!((0..block.len()).all(|at| block[at] == written(at)));

    while block.len() > 1 {
        block.truncate(block.len() / 2);
        block.shrink_to_fit();
        assert!((0..block.len()).all(|at| block[at] == written(at)));
    }
}

#[test]
fn a_block_used_again_is_cleared_where_zeros_are_asked_for() {
    for size in [LARGE - 1, LARGE, LARGE + 1, 5 * LARGE] {
        drop(vec![7u8; size]);
        assert!(vec![0u8; size].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn threads_have_blocks_of_their_own() {
    thread::scope(|threads| {
        for number in 0..8u8 {
            threads.spawn(move || {
                for round in 0..200 {
                    let block = vec![number; LARGE + round * 1000];
                    thread::yield_now();
                    assert!(block.iter().all(|byte| *byte == number));
                }
            });
        }
    });
}

#[test]
fn freed_memory_goes_back_to_the_system() {
    let before = resident_bytes();
    let blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![1u8; 4 << 20]).collect();
    assert!(resident_bytes() > before + (200 << 20));
    // Every other one stays, as kept pages do among others.
    let stay: Vec<Vec<u8>> = blocks.into_iter().step_by(2).collect();
    let (stays, others) = (stay.len() * (4 << 20), 16 << 20);
    assert!(resident_bytes() < before + stays + KEPT + others);
}

#[test]
fn a_block_that_is_never_used_takes_no_memory() {
    let before = resident_bytes();
    let block: Vec<u8> = Vec::with_capacity(4 << 30);
    let block = black_box(block);
    assert!(block.is_empty() && resident_bytes() < before + (300 << 20));
}
