//! Many trees searched by one call, each for other keys.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;

use parquet_rows::leaf_writer::{Groups, SortedKeys, write};
use parquet_rows::leaves::{KeyList, RECORD};
use parquet_rows::trees::{Tree, rows_of_keys};

/// Writes a tree of the keys 0, `step`, 2 `step` … in rows 0, 1, 2 …
fn tree(file: &mut File, start: u64, step: u64, keys: u64) -> Tree<Vec<u8>> {
    let numbers: Vec<u64> = (0..keys).map(|at| at * step).collect();
    let groups = Groups {
        keys: SortedKeys::Numbers(numbers.clone()),
        counts: vec![1; keys as usize],
        rows: (0..keys as u32).collect(),
    };
    let written = write(&groups, 0, 0, false).unwrap();
    file.write_all(&vec![0; start as usize]).unwrap();
    file.write_all(&written.bodies).unwrap();
    let first = |at: &usize| numbers[*at].to_be_bytes().to_vec();
    let leaves = written.records.len() / RECORD;
    Tree {
        file: file.as_raw_fd(),
        start,
        rows: keys as u32,
        records: written.records,
        first_keys: written.starts[..leaves].iter().map(first).collect(),
    }
}

fn key_bytes(keys: &[u64]) -> (Vec<u8>, Vec<i64>) {
    let bytes = keys.iter().flat_map(|key| key.to_be_bytes()).collect();
    (bytes, (0..=keys.len() as i64).map(|at| 8 * at).collect())
}

#[test]
fn each_tree_is_asked_for_its_own_keys() {
    let path = std::env::temp_dir().join(format!("trees-{}", std::process::id()));
    let mut files = [1, 2, 3].map(|number| {
        let path = path.with_extension(number.to_string());
        let mut options = File::options();
        options.read(true).write(true).create(true);
        (options.truncate(true).open(&path).unwrap(), path)
    });
    let [one, two, three] = &mut files;
    let mut trees = vec![
        tree(&mut one.0, 0, 1, 2_000),
        tree(&mut two.0, 64, 3, 1_000),
        tree(&mut three.0, 7, 5, 700),
    ];
    let keys = [0, 3, 10, 1_999, 2_400, 2_997, 3_495, 9_999];
    let (bytes, offsets) = key_bytes(&keys);
    let list = KeyList::new(&bytes, offsets).unwrap();
    let every: Vec<u32> = (0..8).collect();
    let asked: [(usize, &[u32]); 4] = [(2, &every), (0, &every[1..4]), (1, &[]), (1, &[4, 5, 7])];
    let rows = |trees: &[Tree<_>], most| rows_of_keys(trees, &list, &asked, most, 2).unwrap();
    let of_three = Some(vec![0, 2, 480, 699]);
    let of_one = Some(vec![3, 10, 1_999]);
    let of_two = Some(vec![800, 999]);
    let found = [of_three, of_one, Some(vec![]), of_two];
    assert_eq!(rows(&trees, 4), found);
    assert_eq!(rows(&trees, 3)[0], None);
    trees[0].rows = 1_999;
    assert_eq!(rows(&trees, 4)[1], None, "there are not so many rows");
    trees[0].rows = 2_000;
    trees[0].records[13] ^= 1;
    assert_eq!(rows(&trees, 4)[1], None, "a leaf is damaged");
    for (_, path) in files {
        fs::remove_file(path).unwrap();
    }
}
