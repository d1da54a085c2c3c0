//! Routing: every file of a key is named, whatever bits its run keeps.

use std::collections::BTreeSet;

use parquet_rows::error::Error;
use parquet_rows::routing::{Layout, Routing};

/// A sequence without visible order.
fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |most| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % most
    }
}

/// A run of pairs, packed as docs/format.md says.
fn packed(pairs: &[(u64, u64)], layout: Layout) -> (Routing, Vec<u8>) {
    let mut cut: Vec<(u64, u64)> = pairs
        .iter()
        .map(|(key, file)| ((key - layout.base) >> layout.shift, *file))
        .collect();
    cut.sort_by_key(|(key, _)| *key);
    let kept = layout.key_bits - layout.bucket_bits;
    let width = (kept + layout.file_bits) as usize;
    let mut bytes = vec![0; (cut.len() * width).div_ceil(8) + 8];
    let mut counts = vec![0_u32; (1 << layout.bucket_bits) + 1];
    for (at, (key, file)) in cut.iter().enumerate() {
        counts[(key >> kept) as usize + 1] += 1;
        let number = (key & ((1 << kept) - 1)) << layout.file_bits | file;
        for bit in (0..width).filter(|bit| number >> bit & 1 == 1) {
            bytes[(at * width + bit) / 8] |= 1 << ((at * width + bit) % 8);
        }
    }
    let mut directory = Vec::new();
    let mut before = 0;
    for count in counts {
        before += count;
        directory.extend(before.to_le_bytes());
    }
    (Routing::new(layout, &directory).unwrap(), bytes)
}

fn layout(pairs: usize) -> Layout {
    Layout {
        base: 1_000,
        shift: 0,
        key_bits: 12,
        bucket_bits: 5,
        file_bits: 6,
        pairs,
    }
}

#[test]
fn each_file_gets_the_keys_that_it_holds() {
    let mut throw = dice(1);
    let mut pairs: Vec<_> = (0..900)
        .map(|_| (1_000 + throw(4_000), throw(40)))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let (routing, bytes) = packed(&pairs, layout(pairs.len()));
    let keys: Vec<u64> = (0..500).map(|_| throw(6_000)).collect();
    let routed = routing.route(&keys, 40, &bytes).unwrap();
    for file in 0..40 {
        let (start, end) = (routed.starts[file], routed.starts[file + 1]);
        let found = &routed.numbers[start as usize..end as usize];
        let held = |key: &u64| pairs.contains(&(*key, file as u64));
        let expected: Vec<i32> = (0..500).filter(|at| held(&keys[*at as usize])).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn keys_that_are_cut_name_a_file_once() {
    let pairs = [(1_000, 3), (1_001, 1), (1_002, 3), (1_003, 3), (1_100, 2)];
    let cut = Layout {
        shift: 4,
        key_bits: 8,
        ..layout(pairs.len())
    };
    let (routing, bytes) = packed(&pairs, cut);
    let routed = routing.route(&[1_007, 999, 1_001], 4, &bytes).unwrap();
    assert_eq!(routed.starts, [0, 0, 2, 2, 4]);
    assert_eq!(routed.numbers, [0, 2, 0, 2]);
}

#[test]
fn files_beyond_the_known_ones_are_left_out() {
    let pairs = [(1_000, 0), (1_000, 9)];
    let (routing, bytes) = packed(&pairs, layout(2));
    let routed = routing.route(&[1_000], 2, &bytes).unwrap();
    assert_eq!((routed.starts, routed.numbers), (vec![0, 1, 1], vec![0]));
    assert_eq!(routing.route_between(0, 5_000, 2, &bytes).unwrap(), [1, 0]);
}

#[test]
fn a_range_names_the_files_with_a_key_in_it() {
    let mut throw = dice(2);
    let pairs: Vec<_> = (0..300)
        .map(|_| (1_000 + throw(4_000), throw(40)))
        .collect();
    let (routing, bytes) = packed(&pairs, layout(pairs.len()));
    for _ in 0..200 {
        let (low, high) = (throw(6_000), throw(6_000));
        let held: BTreeSet<_> = pairs
            .iter()
            .filter(|(key, _)| low <= *key && *key <= high)
            .map(|(_, file)| *file)
            .collect();
        let may = routing.route_between(low, high, 40, &bytes).unwrap();
        let named: BTreeSet<_> = (0..40).filter(|file| may[*file as usize] == 1).collect();
        assert_eq!(named, held);
        let among = routing.between(low, high);
        assert!(among.len() >= held.len());
    }
    assert_eq!(routing.between(0, u64::MAX), 0..300);
    assert_eq!(routing.route_between(0, 999, 40, &bytes).unwrap(), [0; 40]);
}

#[test]
fn only_parts_with_keys_are_read() {
    let pairs: Vec<_> = (0..20_000)
        .map(|number| (1_000 + number / 5, number % 60))
        .collect();
    let (routing, mut bytes) = packed(&pairs, layout(pairs.len()));
    let keys = [1_000, 4_999];
    let parts = routing.parts_of(&keys);
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().map(ExactSizeIterator::len).sum::<usize>() < bytes.len() / 10);
    let whole = routing.route(&keys, 60, &bytes).unwrap();
    for (at, byte) in bytes.iter_mut().enumerate() {
        if !parts.iter().any(|part| part.contains(&at)) {
            *byte = 0xFF;
        }
    }
    assert_eq!(routing.route(&keys, 60, &bytes).unwrap(), whole);
    assert!(routing.parts_of(&[0, 999]).is_empty());
}

#[test]
fn unpacked_pairs_are_those_packed() {
    let pairs = [(1_000, 3), (1_017, 1), (1_100, 2)];
    let (routing, bytes) = packed(&pairs, layout(3));
    let unpacked = routing.unpack(&bytes).unwrap();
    assert_eq!(unpacked.keys, [0, 17, 100]);
    assert_eq!(unpacked.files, [3, 1, 2]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let directory: Vec<u8> = [0_u32, 1, 2]
        .iter()
        .flat_map(|at| at.to_le_bytes())
        .collect();
    let fits = Layout {
        bucket_bits: 1,
        ..layout(2)
    };
    let routing = Routing::new(fits, &directory).unwrap();
    assert!(matches!(
        routing.route(&[1], 4, &[0; 8]),
        Err(Error::Argument(_))
    ));
    for other in [
        Layout { pairs: 3, ..fits },
        Layout {
            bucket_bits: 2,
            ..fits
        },
        Layout {
            bucket_bits: 13,
            ..fits
        },
        Layout {
            file_bits: 32,
            key_bits: 60,
            ..fits
        },
    ] {
        assert!(matches!(
            Routing::new(other, &directory),
            Err(Error::Malformed(_))
        ));
    }
    let unordered: Vec<u8> = [0_u32, 3, 2]
        .iter()
        .flat_map(|at| at.to_le_bytes())
        .collect();
    assert!(Routing::new(fits, &unordered).is_err());
}
