//! Leaves of a B+ tree index, written here byte by byte as docs/format.md describes them.

use parquet_rows::error::Error;
use parquet_rows::leaves::{KeyList, LeafRecord, Search, in_order, read, rows_in};
use std::io::Write;
use std::os::fd::AsRawFd;

/// A leaf's body, and its record, which starts at an offset.
struct Leaf {
    body: Vec<u8>,
    record: Vec<u8>,
}

/// A leaf of keys, as they are stored, with one row each.
fn leaf(key_width: u8, codec: u8, keys: &[u8], raw: usize, base_key: u64, rows: &[u8]) -> Leaf {
    let mut body = vec![key_width, 0, 1, codec];
    body.extend(100_u32.to_le_bytes()); // the smallest row
    body.extend(base_key.to_le_bytes());
    body.extend((keys.len() as u32).to_le_bytes());
    body.extend((raw as u32).to_le_bytes());
    body.extend(rows);
    body.extend(keys);
    let record = record(&body, rows.len(), rows.len());
    Leaf { body, record }
}

fn record(body: &[u8], rows: usize, keys: usize) -> Vec<u8> {
    let mut record = vec![0];
    record.extend(7_u64.to_le_bytes());
    record.extend((body.len() as u32).to_le_bytes());
    record.extend(crc32fast::hash(body).to_le_bytes());
    record.extend((rows as u64).to_le_bytes());
    record.extend((keys as u32).to_le_bytes());
    record.extend(0_u64.to_le_bytes());
    record
}

/// The numbers 10, 12, 300 in rows 100, 105, 103.
fn numbers() -> Leaf {
    leaf(2, 0, &[0, 0, 2, 0, 34, 1], 6, 10, &[0, 5, 3])
}

fn strings(codec: u8) -> Leaf {
    let mut keys = 2_u16.to_le_bytes().to_vec();
    keys.extend(b"ab");
    for length in [0_u16, 1, 2] {
        keys.extend(length.to_le_bytes());
    }
    keys.extend(b"cde");
    let raw = keys.len();
    let stored = match codec {
        1 => lz4_flex::block::compress(&keys),
        2 => zstd::bulk::compress(&keys, 1).unwrap(),
        _ => keys,
    };
    leaf(0, codec, &stored, raw, 0, &[0, 5, 3]) // ab, abc, abde
}

fn search(leaf: &Leaf, searches: &[Search]) -> Result<Option<Vec<u32>>, Error> {
    let record = LeafRecord::of(&leaf.record, 0, 0)?;
    rows_in(&leaf.body, &record, searches)
}

fn between(leaf: &Leaf, low: &[u8], high: Option<&[u8]>) -> Vec<u32> {
    let found = search(leaf, &[Search::Between(low, high)]);
    found.unwrap().expect("the checksum is right")
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[test]
fn numbers_between_two_bounds_are_found_without_the_upper_one() {
    let leaf = numbers();
    assert_eq!(between(&leaf, &key(0), None), [100, 105, 103]);
    assert_eq!(between(&leaf, &key(11), Some(&key(300))), [105]);
    assert_eq!(between(&leaf, &key(12), Some(&key(301))), [105, 103]);
    assert!(between(&leaf, &key(301), None).is_empty());
}

#[test]
fn a_longer_bound_is_above_the_number_that_it_begins_with() {
    let above_12 = [&key(12)[..], &[0]].concat();
    assert_eq!(between(&numbers(), &above_12, None), [103]);
    let above_all = [&key(u64::MAX)[..], &[0]].concat();
    assert!(between(&numbers(), &above_all, None).is_empty());
}

#[test]
fn strings_are_found_in_every_compression() {
    for codec in [0, 1, 2] {
        let leaf = strings(codec);
        assert_eq!(between(&leaf, b"", None), [100, 105, 103]);
        assert_eq!(between(&leaf, b"aba", Some(b"abd")), [105]);
        assert_eq!(between(&leaf, b"abc", Some(b"abde")), [105]);
        assert!(between(&leaf, b"b", None).is_empty());
        assert!(between(&leaf, b"", Some(b"ab")).is_empty());
    }
}

#[test]
fn a_list_of_keys_finds_those_that_are_there() {
    let bytes = [key(9), key(10), key(11), key(300), key(301)].concat();
    let keys = KeyList::new(&bytes, vec![0, 8, 16, 24, 32, 40]).unwrap();
    assert_eq!(keys.count(), 5);
    let found = search(&numbers(), &[Search::Each(&keys, 0..5)]);
    assert_eq!(found.unwrap().unwrap(), [100, 103]);
    let bytes = b"aababcabcd";
    let keys = KeyList::new(bytes, vec![0, 1, 3, 6, 10]).unwrap();
    let found = search(&strings(1), &[Search::Each(&keys, 0..4)]);
    assert_eq!(found.unwrap().unwrap(), [100, 105]);
}

#[test]
fn a_list_of_keys_has_offsets_in_order_and_within_the_bytes() {
    for offsets in [vec![], vec![-1, 2], vec![2, 1], vec![0, 4]] {
        assert!(KeyList::new(b"abc", offsets).is_none());
    }
}

#[test]
fn a_key_may_have_several_rows() {
    let mut body = vec![1, 1, 1, 0];
    body.extend(0_u32.to_le_bytes());
    body.extend(5_u64.to_le_bytes());
    body.extend(2_u32.to_le_bytes());
    body.extend(2_u32.to_le_bytes());
    body.extend([1, 4, 9, 2, 1, 0, 3]); // rows, counts, keys 5 and 8
    let record = record(&body, 3, 2);
    let leaf = Leaf { body, record };
    assert_eq!(between(&leaf, &key(5), Some(&key(6))), [1, 4]);
    assert_eq!(between(&leaf, &key(6), None), [9]);
}

#[test]
fn a_leaf_with_another_checksum_has_no_answer() {
    let mut leaf = numbers();
    leaf.body[24] ^= 1;
    let found = search(&leaf, &[Search::Between(b"", None)]);
    assert!(found.unwrap().is_none());
}

#[test]
fn a_leaf_that_contradicts_itself_is_refused() {
    // Each byte of a header, and each cut, with a checksum that fits.
    for whole in [numbers(), strings(0), strings(1)] {
        for length in 0..whole.body.len() {
            let body = whole.body[..length].to_vec();
            let record = record(&body, 3, 3);
            let found = search(&Leaf { body, record }, &[Search::Between(b"", None)]);
            assert!(matches!(found, Err(Error::Malformed(_))), "{length}");
        }
        for position in [0, 1, 2, 16, 20] {
            let mut body = whole.body.clone();
            body[position] = 9;
            let record = record(&body, 3, 3);
            let found = search(&Leaf { body, record }, &[Search::Between(b"", None)]);
            assert!(matches!(found, Err(Error::Malformed(_))), "{position}");
        }
    }
}

#[test]
fn a_record_that_is_not_there_is_refused() {
    let leaf = numbers();
    let missing = LeafRecord::of(&leaf.record, 1, 0);
    assert!(matches!(missing, Err(Error::Argument(_))));
    let beyond = LeafRecord::of(&leaf.record, 0, u64::MAX);
    assert!(matches!(beyond, Err(Error::Malformed(_))));
}

#[test]
fn a_leaf_is_read_from_its_place_in_a_file() {
    let leaf = numbers();
    let path = std::env::temp_dir().join(format!("leaf-{}", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&[0; 17]).unwrap();
    file.write_all(&leaf.body).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let record = LeafRecord::of(&leaf.record, 0, 10).unwrap(); // 10 + 7
    assert_eq!(read(file.as_raw_fd(), &record).unwrap(), leaf.body);
    let record = LeafRecord::of(&leaf.record, 0, 15).unwrap();
    let short = read(file.as_raw_fd(), &record).unwrap();
    assert_eq!(short, &leaf.body[5..]);
}

#[test]
fn rows_come_in_order_and_once() {
    let sparse = vec![5_000_000, 3, 70, 3];
    assert_eq!(in_order(sparse), [3, 70, 5_000_000]);
    let dense: Vec<u32> = (0..200).rev().chain(50..130).collect();
    assert_eq!(in_order(dense), (0..200).collect::<Vec<_>>());
    assert!(in_order(Vec::new()).is_empty());
}
