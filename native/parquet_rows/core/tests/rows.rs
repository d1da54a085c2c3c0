//! Rows of Parquet files that are written here, with small pages and several row groups.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "ranges are listed, not their numbers"
)]

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use parquet_rows::bounds::Value;
use parquet_rows::error::{Error, Result};
use parquet_rows::file::ParquetFile;
use parquet_rows::metadata::{Footer, row_count, stripped_footer};
use parquet_rows::plan::page_starts;
use parquet_rows::positions::{GroupRows, Positions, in_batches};
use parquet_rows::read::{plan_rows, read_known_rows, read_rows};
use parquet_rows::source::{Fetch, Source, merge};

const ROWS: i64 = 1_000;
const GROUP: i64 = 400;
const PAGE: i64 = 100;

/// Columns `id`, which counts the rows, and `name`, one of seven or NULL.
fn written() -> Bytes {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let names = (0..ROWS).map(|row| (row % 8 != 7).then(|| format!("name {}", row % 8)));
    let names: ArrayRef = Arc::new(names.collect::<StringArray>());
    let batch =
        RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("name", names, true)]);
    let batch = batch.unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP as usize))
        .set_data_page_row_count_limit(PAGE as usize)
        .set_write_batch_size(PAGE as usize)
        .set_column_dictionary_enabled("id".into(), false)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn known(bytes: &Bytes) -> ParquetFile {
    let footer = stripped_footer(&mut Source::memory(bytes.clone())).unwrap();
    ParquetFile::of_stripped_footer(footer.into()).unwrap()
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let columns = batches
        .iter()
        .map(|batch| batch.column_by_name("id").unwrap());
    columns
        .flat_map(|column| column.as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

/// Records what is fetched.
struct Recorded {
    bytes: Bytes,
    rounds: Arc<Mutex<Vec<Vec<Range<u64>>>>>,
}

impl Fetch for Recorded {
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.rounds.lock().unwrap().push(ranges.to_vec());
        let cut = |range: &Range<u64>| self.bytes.slice(range.start as usize..range.end as usize);
        Ok(ranges.iter().map(cut).collect())
    }
}

#[test]
fn rows_by_position_are_those_rows() {
    let bytes = written();
    for rows in [
        vec![],
        vec![0],
        vec![3, 4, 399, 400, 801],
        (0..ROWS).collect(),
    ] {
        for threads in [1, 3] {
            let mut source = Source::memory(bytes.clone());
            let wanted = Positions::List(rows.clone());
            let read = read_rows(&mut source, &wanted, None, threads).unwrap();
            assert_eq!(ids(&read.batches), rows);
            let file = known(&bytes);
            let mut source = Source::memory(bytes.clone());
            let read = read_known_rows(&file, &mut source, &wanted, None, threads, None).unwrap();
            assert_eq!(ids(&read.batches), rows);
            assert!(read.schema.fields().iter().all(|each| each.is_nullable()));
        }
    }
}

#[test]
fn a_range_of_rows_is_read_like_a_list() {
    let bytes = written();
    let mut source = Source::memory(bytes);
    let read = read_rows(&mut source, &Positions::Range(350..450), None, 2).unwrap();
    assert_eq!(ids(&read.batches), (350..450).collect::<Vec<_>>());
}

#[test]
fn only_the_pages_of_the_rows_are_fetched() {
    let bytes = written();
    let file = known(&bytes);
    let columns = ["id".to_owned()];
    let rows = Positions::List(vec![150, 199, 950]);
    let plan = plan_rows(&file, &rows, Some(&columns)).unwrap();
    assert_eq!((plan.pages, plan.ranges, plan.row_groups), (2, 2, 2));
    assert_eq!(plan.group_rows as i64, GROUP + ROWS % GROUP);
    let rounds = Arc::default();
    let recorded = Recorded {
        bytes: bytes.clone(),
        rounds: Arc::clone(&rounds),
    };
    let mut source = Source::callback(Box::new(recorded), bytes.len() as u64);
    let read = read_known_rows(&file, &mut source, &rows, Some(&columns), 1, None).unwrap();
    assert_eq!(ids(&read.batches), [150, 199, 950]);
    let rounds = rounds.lock().unwrap();
    let fetched: u64 = rounds
        .iter()
        .flatten()
        .map(|range| range.end - range.start)
        .sum();
    assert_eq!(fetched, plan.page_bytes);
    assert_eq!(
        rounds.iter().map(Vec::len).sum::<usize>() as u64,
        plan.ranges
    );
    assert_eq!(source.traffic.bytes, plan.page_bytes);
}

#[test]
fn pages_begin_where_they_were_cut() {
    let file = known(&written());
    let columns = ["id".to_owned()];
    let starts = page_starts(file.metadata(), Some(&columns)).unwrap();
    assert_eq!(
        starts,
        (0..ROWS / PAGE).map(|page| page * PAGE).collect::<Vec<_>>()
    );
}

#[test]
fn positions_have_to_ascend_within_the_file() {
    for (rows, fault) in [
        (vec![-1], "is negative"),
        (vec![ROWS], "is beyond"),
        (vec![3, 3], "is there twice"),
        (vec![4, 3], "is out of order"),
    ] {
        let answer = read_rows(
            &mut Source::memory(written()),
            &Positions::List(rows),
            None,
            1,
        );
        let Err(Error::Argument(message)) = answer else {
            panic!("no error for what {fault}");
        };
        assert!(message.contains(fault), "{message}");
    }
    let beyond = Positions::Range(990..ROWS + 1);
    assert!(matches!(beyond.check(ROWS), Err(Error::Argument(_))));
    let (start, end) = (ROWS + 5, ROWS);
    let none = Positions::Range(Range { start, end });
    assert!(none.check(ROWS).is_ok());
}

#[test]
fn batches_are_split_by_row_group() {
    let file = known(&written());
    let batches = |rows: Positions, most| in_batches(rows.groups(file.metadata()).unwrap(), most);
    let groups = |batch: &[GroupRows]| {
        let groups = batch.iter();
        groups
            .map(|group| (group.row_group, group.all().ranges()))
            .collect::<Vec<_>>()
    };
    let listed = batches(Positions::List(vec![0, 1, 5, 399, 400, 999]), 4);
    assert_eq!(groups(&listed[0]), [(0, vec![0..2, 5..6, 399..400])]);
    assert_eq!(groups(&listed[1]), [(1, vec![0..1]), (2, vec![199..200])]);
    let ranges = batches(Positions::Range(398..802), 403);
    let (first, all) = (vec![0..1], vec![0..400]);
    assert_eq!(
        groups(&ranges[0]),
        [(0, vec![398..400]), (1, all), (2, first)]
    );
    assert_eq!(
        (ranges.len(), groups(&ranges[1])),
        (2, vec![(2, vec![1..2])])
    );
    let one = batches(Positions::Range(0..ROWS), usize::MAX);
    assert_eq!(
        one[0].iter().map(GroupRows::count).sum::<usize>() as i64,
        ROWS
    );
}

#[test]
fn a_column_is_found_by_its_name_only() {
    let columns = ["nme".to_owned()];
    let rows = Positions::List(vec![0]);
    let answer = read_rows(&mut Source::memory(written()), &rows, Some(&columns), 1);
    let Err(Error::Argument(message)) = answer else {
        panic!("no error");
    };
    assert_eq!(message, "no column \"nme\" in the file, which has id, name");
}

#[test]
fn bounds_are_those_of_each_page() {
    let bytes = written();
    let path = ["id".to_owned()];
    let bounds = known(&bytes)
        .bounds(&mut Source::memory(bytes), &path)
        .unwrap()
        .unwrap();
    assert_eq!(bounds.len() as i64, ROWS / PAGE);
    for (page, each) in (0..).zip(&bounds) {
        assert_eq!((each.start, each.stop), (page * PAGE, (page + 1) * PAGE));
        assert_eq!(each.nulls, Some(0));
        let Some((Value::Integer(least), Value::Integer(greatest))) = each.range else {
            panic!("no bounds of page {page}");
        };
        assert_eq!((least, greatest), (each.start, each.stop - 1));
    }
}

#[test]
fn a_stripped_footer_is_a_footer_without_values() {
    let bytes = written();
    let footer = stripped_footer(&mut Source::memory(bytes)).unwrap();
    assert!(!footer.windows(6).any(|part| part == b"name 0"));
    let read = Footer::read(&mut Source::memory(footer.into())).unwrap();
    assert_eq!(row_count(&read.metadata), ROWS);
}

#[test]
fn a_damaged_file_is_malformed() {
    let bytes = written();
    for length in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        let answer = Footer::read(&mut Source::memory(bytes.slice(..length)));
        assert!(matches!(answer, Err(Error::Malformed(_))), "{length}");
    }
    let file = known(&bytes);
    let mut damaged = bytes.to_vec();
    damaged[..200].fill(0xff);
    let mut source = Source::memory(damaged.into());
    let answer = parquet_rows::error::guard(|| {
        read_known_rows(&file, &mut source, &Positions::List(vec![0]), None, 1, None)
    });
    assert!(matches!(answer, Err(Error::Malformed(_))));
}

#[test]
fn ranges_merge_across_small_gaps() {
    assert_eq!(merge(&[20..30, 0..10, 10..15], 0), [0..15, 20..30]);
    assert_eq!(merge(&[0..10, 12..20, 30..40], 2), [0..20, 30..40]);
    assert!(merge(&[], 5).is_empty());
}

#[test]
fn remote_ranges_merge_while_few_bytes_are_wasted() {
    let bytes = Bytes::from(vec![7; 100_000]);
    let rounds = Arc::default();
    let recorded = Recorded {
        bytes,
        rounds: Arc::clone(&rounds),
    };
    let mut source = Source::callback(Box::new(recorded), 100_000);
    // 1,010 bytes between the first two, and 30,000 before the third: 4 % of 40,000 is 1,600.
    let wanted = [0..20_000, 21_010..40_000, 70_000..71_010];
    let cut = source.fetch(&wanted).unwrap();
    assert_eq!(
        cut.iter().map(Bytes::len).collect::<Vec<_>>(),
        [20_000, 18_990, 1_010]
    );
    assert_eq!(*rounds.lock().unwrap(), [[0..40_000, 70_000..71_010]]);
    let beyond = source.fetch(&[99_999..100_001]);
    assert!(matches!(beyond, Err(Error::Malformed(_))));
}
