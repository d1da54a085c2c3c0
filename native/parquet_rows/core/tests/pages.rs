//! Opened pages of local files: the values in them are those that the crate's own reader decodes.

use std::collections::HashSet;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::types::Decimal128Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array,
    Int64Array, PrimitiveArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet_rows::cache::{Admission, Kept, Key, PageCache};
use parquet_rows::condition::{Leaf, Node, Test, key_of};
use parquet_rows::error::{Error, guard};
use parquet_rows::file::ParquetFile;
use parquet_rows::file_pages::Keeping;
use parquet_rows::local_file::LocalFile;
use parquet_rows::metadata::stripped_footer;
use parquet_rows::own_footer::OwnFooter;
use parquet_rows::positions::Positions;
use parquet_rows::read::{
    Condition, FileRows, Matched, Wanted, read_files, read_known_rows, read_matching,
};
use parquet_rows::source::Source;
use parquet_rows::states::State;
use parquet_rows::values::{Class, Values};
use parquet_rows::wanted::PageCounts;

const ROWS: usize = 1_000;
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A file that goes when the test is over.
struct Written {
    path: PathBuf,
    bytes: Bytes,
}

impl Written {
    fn new(bytes: impl Into<Bytes>) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pages-{}-{number}.parquet", std::process::id());
        let path = std::env::temp_dir().join(name);
        let bytes = bytes.into();
        fs::write(&path, &bytes).unwrap();
        Self { path, bytes }
    }

    /// Waits until a later write would be noticed, without which no page is kept.
    fn settled(self) -> Self {
        wait_until_settled(&self.path);
        self
    }

    fn footer(&self) -> ParquetFile {
        let footer = stripped_footer(&mut Source::memory(self.bytes.clone())).unwrap();
        ParquetFile::of_stripped_footer(footer.into()).unwrap()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        fs::remove_file(&self.path).unwrap();
    }
}

fn wait_until_settled(path: &Path) {
    let is_settled = || {
        let found = LocalFile::find(path.to_owned(), None).unwrap();
        found.settled_state().is_some()
    };
    while !is_settled() {
        std::thread::yield_now();
    }
}

/// A value of every kind of column; each fifth row is NULL if there are NULLs.
fn batch(with_nulls: bool) -> RecordBatch {
    fn each<T>(with_nulls: bool, value: impl Fn(usize) -> T) -> Vec<Option<T>> {
        let valid = |row: usize| !with_nulls || row % 5 != 3 && !(300..420).contains(&row);
        let rows = 0..ROWS;
        rows.map(|row| valid(row).then(|| value(row))).collect()
    }
    let floats = [f64::NAN, -f64::NAN, -0.0, 0.0, f64::INFINITY, f64::MIN, 1.5];
    let decimal = |precision: u8| -> ArrayRef {
        let most = 10_i128.pow(precision.into()) - 1;
        let values = [most, -most, 0, 1, -1, most / 3];
        let array = PrimitiveArray::<Decimal128Type>::from(each(with_nulls, |row| {
            values[row % values.len()]
        }));
        Arc::new(array.with_precision_and_scale(precision, 1).unwrap())
    };
    let long = |row: usize| {
        "é ".repeat(if row.is_multiple_of(97) {
            4_000
        } else {
            row % 7
        })
    };
    let bytes = each(with_nulls, |row| vec![row as u8 | 0xF0; row % 4]);
    let few = each(with_nulls, |row| format!("one of seven {}", row % 7));
    let floats = |row: usize| floats[row % floats.len()];
    let extremes = |row: usize| [i64::MIN, i64::MAX, -1, row as i64][row % 4];
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "integer",
            Arc::new(Int32Array::from(each(with_nulls, |row| {
                extremes(row) as i32
            }))),
        ),
        (
            "bigint",
            Arc::new(Int64Array::from(each(with_nulls, extremes))),
        ),
        (
            "flag",
            Arc::new(BooleanArray::from(each(with_nulls, |row| {
                row % 3 == 0 || row > 700
            }))),
        ),
        (
            "date",
            Arc::new(Date32Array::from(each(with_nulls, |row| row as i32 - 500))),
        ),
        (
            "time",
            Arc::new(
                TimestampMicrosecondArray::from(each(with_nulls, extremes)).with_timezone("UTC"),
            ),
        ),
        (
            "float",
            Arc::new(Float32Array::from(each(with_nulls, |row| {
                floats(row) as f32
            }))),
        ),
        (
            "double",
            Arc::new(Float64Array::from(each(with_nulls, floats))),
        ),
        ("decimal1", decimal(1)),
        ("decimal9", decimal(9)),
        ("decimal10", decimal(10)),
        ("decimal18", decimal(18)),
        ("decimal38", decimal(38)),
        ("few", Arc::new(few.into_iter().collect::<StringArray>())),
        (
            "text",
            Arc::new(each(with_nulls, long).into_iter().collect::<StringArray>()),
        ),
        (
            "bytes",
            Arc::new(bytes.into_iter().collect::<BinaryArray>()),
        ),
        ("none", Arc::new(Int64Array::new_null(ROWS))),
    ];
    let columns = columns
        .into_iter()
        .map(|(name, array)| (name, array, with_nulls || name == "none"));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn file_of(batch: &RecordBatch, properties: WriterProperties) -> Written {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    Written::new(bytes)
}

fn properties(codec: Compression) -> parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(codec)
        .set_max_row_group_row_count(Some(400))
        .set_data_page_row_count_limit(64)
        .set_write_batch_size(64)
}

/// The rows as the crate decodes them, which reads memory and remote files.
fn decoded(file: &Written, rows: &Positions) -> RecordBatch {
    let mut source = Source::memory(file.bytes.clone());
    let read = read_known_rows(&file.footer(), &mut source, rows, None, 1, None).unwrap();
    arrow_select::concat::concat_batches(&read.schema, &read.batches).unwrap()
}

fn kept_read(
    file: &Written,
    footer: &ParquetFile,
    rows: &Positions,
    cache: &PageCache,
    admission: Admission,
) -> Result<(RecordBatch, PageCounts), Error> {
    let mut source = Source::file(file.path.clone(), None)?;
    let keeping = Some(Keeping { cache, admission });
    let read = read_known_rows(footer, &mut source, rows, None, 2, keeping)?;
    let batch = arrow_select::concat::concat_batches(&read.schema, &read.batches)?;
    let is_all_kept = read.pages.used == read.pages.kept;
    assert_eq!(
        source.traffic.bytes == 0,
        is_all_kept,
        "{:?} {:?}",
        source.traffic,
        read.pages
    );
    Ok((batch, read.pages))
}

fn some_rows() -> Vec<Positions> {
    let all = ROWS as i64;
    vec![
        Positions::List(vec![]),
        Positions::List(vec![0]),
        Positions::List(vec![3, 4, 63, 64, 399, 400, 401, 970, 999]),
        Positions::List((0..all).step_by(17).collect()),
        Positions::List((0..all).filter(|row| row % 11 != 0).collect()),
        Positions::Range(0..all),
        Positions::Range(130..411),
    ]
}

#[test]
fn values_of_opened_pages_are_those_that_are_decoded() {
    // Gzip is not compressed here; tests in Python read it.
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::BROTLI(BrotliLevel::default()),
    ];
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for with_dictionary in [false, true] {
                for with_nulls in [false, true] {
                    let properties = properties(codec)
                        .set_writer_version(version)
                        .set_dictionary_enabled(with_dictionary)
                        .build();
                    let file = file_of(&batch(with_nulls), properties).settled();
                    let footer = file.footer();
                    let cache = PageCache::new(MOST_BYTES).unwrap();
                    for rows in some_rows() {
                        let expected = decoded(&file, &rows);
                        for _ in 0..2 {
                            let (read, _) =
                                kept_read(&file, &footer, &rows, &cache, Admission::FirstUse)
                                    .unwrap();
                            assert_eq!(format!("{read:?}"), format!("{expected:?}"));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_dictionary_that_grew_too_large_is_followed_by_plain_pages() {
    let properties = properties(Compression::SNAPPY)
        .set_dictionary_page_size_limit(500)
        .set_max_row_group_row_count(None)
        .build();
    let file = file_of(&batch(true), properties).settled();
    let cache = PageCache::new(MOST_BYTES).unwrap();
    for rows in some_rows() {
        let (read, _) =
            kept_read(&file, &file.footer(), &rows, &cache, Admission::FirstUse).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", decoded(&file, &rows)));
    }
}

#[test]
fn pages_of_few_rows_are_kept_at_once_and_those_of_scans_at_the_second_use() {
    let file = file_of(&batch(true), properties(Compression::SNAPPY).build()).settled();
    let (footer, rows) = (file.footer(), Positions::List(vec![5, 700]));
    let read = |cache: &PageCache, admission| {
        let (_, pages) = kept_read(&file, &footer, &rows, cache, admission).unwrap();
        (pages.used, pages.kept)
    };
    let cache = PageCache::new(MOST_BYTES).unwrap();
    let (used, kept) = read(&cache, Admission::FirstUse);
    assert_eq!(kept, 0);
    // The decimal of 38 digits is decoded by the crate.
    assert_eq!(read(&cache, Admission::FirstUse), (used, used - 2));
    assert!(cache.bytes() > 0);
    cache.clear();
    assert_eq!(cache.bytes(), 0);
    for kept in [0, used - 2] {
        assert_eq!(
            read(&cache, Admission::SecondUse),
            (used, kept),
            "of few rows"
        );
    }
    let all = Positions::Range(0..ROWS as i64);
    let kept_of_all = |admission| {
        let (_, pages) = kept_read(&file, &footer, &all, &cache, admission).unwrap();
        pages.kept
    };
    cache.clear();
    kept_of_all(Admission::FirstUse);
    let can_be_kept = kept_of_all(Admission::FirstUse);
    assert!(can_be_kept > used - 2, "all pages, not those of few rows");
    cache.clear();
    for kept in [0, 0, can_be_kept] {
        assert_eq!(kept_of_all(Admission::SecondUse), kept);
    }
}

#[test]
fn pages_of_a_scan_do_not_make_each_other_forgotten() {
    let file = State {
        device: 1,
        inode: 1,
        size: 1,
        written: 0,
        changed: 0,
    };
    let cache = PageCache::new(MOST_BYTES).unwrap();
    let values = Arc::new(Values::plain(Class::I32, Bytes::from_static(&[0; 4]), 1).unwrap());
    let keys: Vec<_> = (0..1_000).map(|offset| Key { file, offset }).collect();
    for expected in [0, 1_000] {
        for key in &keys {
            let page = Kept::Dictionary(values.clone());
            cache.offer(key.clone(), page, Admission::SecondUse);
        }
        assert_eq!(keys.iter().filter(|key| cache.has(key)).count(), expected);
    }
}

#[test]
fn a_footer_is_kept_while_the_file_is_as_it_was() {
    let file = file_of(&batch(true), properties(Compression::SNAPPY).build()).settled();
    let cache = PageCache::new(MOST_BYTES).unwrap();
    let read = |path: &Path, key: &str| {
        let mut source = Source::file(path.to_owned(), None).unwrap();
        let own = OwnFooter::read(&mut source, &[key.to_owned()], Some(&cache)).unwrap();
        let rows = own.file.metadata().file_metadata().num_rows();
        (rows, own.values.len(), source.traffic.calls > 0)
    };
    let schema = "ARROW:schema";
    for is_read in [true, true, false] {
        assert_eq!(read(&file.path, schema), (ROWS as i64, 1, is_read));
    }
    assert!(cache.bytes() > 0);
    assert_eq!(read(&file.path, "another key"), (ROWS as i64, 0, true));
    let shorter = file_of(
        &batch(true).slice(0, 100),
        properties(Compression::SNAPPY).build(),
    );
    fs::write(&file.path, &shorter.bytes).unwrap();
    assert_eq!(read(&file.path, schema), (100, 1, true));
}

#[test]
fn no_more_is_kept_than_fits() {
    let file = file_of(&batch(false), properties(Compression::SNAPPY).build()).settled();
    let (footer, rows) = (file.footer(), Positions::Range(0..ROWS as i64));
    for budget in [1, 20_000, MOST_BYTES] {
        let cache = PageCache::new(budget).unwrap();
        for _ in 0..3 {
            let (read, _) = kept_read(&file, &footer, &rows, &cache, Admission::FirstUse).unwrap();
            assert_eq!(format!("{read:?}"), format!("{:?}", decoded(&file, &rows)));
            assert!(cache.bytes() <= budget);
        }
    }
    assert!(PageCache::new(0).is_err());
}

#[test]
fn rows_of_several_files_are_in_one_batch() {
    let plain = properties(Compression::SNAPPY).set_dictionary_enabled(false);
    let files = [
        file_of(&batch(true), properties(Compression::SNAPPY).build()),
        file_of(&batch(false), plain.build()),
    ];
    let footers: Vec<_> = files.iter().map(Written::footer).collect();
    let wanted = |number: usize, rows: Vec<i64>| FileRows {
        file: &footers[number],
        path: files[number].path.clone(),
        size: None,
        rows: Positions::List(rows),
    };
    let columns = ["few".to_owned(), "decimal38".to_owned(), "date".to_owned()];
    let rows = [
        wanted(0, vec![7, 501]),
        wanted(1, vec![]),
        wanted(1, vec![0, 1, 2]),
    ];
    let some = Wanted {
        condition: None,
        columns: Some(&columns),
    };
    let read = read_files(&rows, some, 2, None).unwrap().unwrap();
    let mut expected = Vec::new();
    for each in &rows {
        let mut source =
            Source::memory(files[usize::from(each.path == files[1].path)].bytes.clone());
        let read =
            read_known_rows(each.file, &mut source, &each.rows, Some(&columns), 1, None).unwrap();
        expected.extend(read.batches);
    }
    let expected = arrow_select::concat::concat_batches(&read.batch.schema(), &expected).unwrap();
    assert_eq!(read.batch, expected);
    let pages: Vec<u64> = read.stats.iter().map(|(_, pages)| pages.used).collect();
    assert_eq!(pages, [6, 0, 3]);
}

#[test]
fn a_file_that_was_written_to_is_read_anew() {
    let of = |value: i64| {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![value; ROWS]));
        let batch = RecordBatch::try_from_iter([("id", array)]).unwrap();
        file_of(&batch, properties(Compression::UNCOMPRESSED).build())
    };
    let (file, other) = (of(1).settled(), of(2));
    assert_eq!(file.bytes.len(), other.bytes.len());
    let cache = PageCache::new(MOST_BYTES).unwrap();
    let (footer, rows) = (file.footer(), Positions::Range(0..ROWS as i64));
    let read = || kept_read(&file, &footer, &rows, &cache, Admission::FirstUse).unwrap();
    for kept in [false, true] {
        let (batch, pages) = read();
        assert_eq!((&batch, pages.kept > 0), (&decoded(&file, &rows), kept));
    }
    fs::write(&file.path, &other.bytes).unwrap();
    assert_eq!(read().0, decoded(&other, &rows));
    wait_until_settled(&file.path);
    read();
    let (batch, pages) = read();
    assert_eq!((&batch, pages.kept), (&decoded(&other, &rows), pages.used));
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_read_on() {
    let file = Written::new(vec![1; 100]).settled();
    let local = LocalFile::find(file.path.clone(), None).unwrap();
    assert_eq!(local.read(&(3..5)).unwrap().len(), 2);
    fs::write(&file.path, vec![2; 100]).unwrap();
    let error = local.read(&(3..5)).unwrap_err();
    assert!(matches!(error, Error::Malformed(message) if message.contains("written to")));
}

#[test]
fn a_file_that_is_deleted_while_it_is_read_is_read_on() {
    let file = Written::new(vec![1; 100]);
    let local = LocalFile::find(file.path.clone(), None).unwrap();
    assert_eq!(local.read(&(3..5)).unwrap().len(), 2);
    fs::remove_file(&file.path).unwrap();
    assert_eq!(local.read(&(3..5)).unwrap().len(), 2);
    fs::write(&file.path, []).unwrap();
}

#[test]
fn text_that_is_not_utf8_is_refused_where_it_is_read() {
    let texts: Vec<Vec<u8>> = (0..ROWS)
        .map(|row| {
            if row == 500 {
                vec![0xC3]
            } else {
                b"a".to_vec()
            }
        })
        .collect();
    let texts = BinaryArray::from_iter_values(texts);
    let (_, offsets, bytes, _) = {
        let (offsets, bytes, nulls) = texts.into_parts();
        ((), offsets, bytes, nulls)
    };
    // SAFETY: the array is only written to a file, as another program would.
    let broken: ArrayRef = Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, None) });
    let batch = RecordBatch::try_from_iter([("text", broken)]).unwrap();
    for with_dictionary in [false, true] {
        let properties = properties(Compression::SNAPPY).set_dictionary_enabled(with_dictionary);
        let file = file_of(&batch, properties.build());
        let (footer, cache) = (file.footer(), PageCache::new(MOST_BYTES).unwrap());
        let read = |rows| {
            kept_read(
                &file,
                &footer,
                &Positions::List(rows),
                &cache,
                Admission::FirstUse,
            )
        };
        assert_eq!(read(vec![499, 501]).unwrap().0.num_rows(), 2);
        let error = read(vec![499, 500, 501]).unwrap_err();
        assert!(matches!(error, Error::Malformed(message) if message.contains("UTF-8")));
    }
}

/// Tests of numbers and texts, in dictionaries or not.
fn condition() -> Condition {
    let leaf = |column, test, negated| {
        Node::Leaf(Leaf {
            column,
            tests: vec![(test, negated)],
        })
    };
    let like = Test::like(vec![vec![], b"seven".to_vec(), vec![]]).unwrap();
    let nodes = vec![
        leaf(0, like, false),
        leaf(1, Test::Between(None, Some((vec![0xFF], true))), false),
        Node::Or(vec![
            leaf(2, Test::Range(-5, 10), true),
            leaf(3, Test::keys(vec![key_of(1.5), key_of(f64::NAN)]), false),
            leaf(3, Test::Null, false),
        ]),
    ];
    let names = ["few", "text", "decimal10", "double"];
    Condition {
        columns: names.map(str::to_owned).to_vec(),
        node: Node::all(nodes),
    }
}

#[test]
fn rows_that_match_a_condition_are_read_with_few_pages() {
    let file = file_of(&batch(true), properties(Compression::SNAPPY).build());
    let (footer, rows) = (file.footer(), Positions::Range(0..ROWS as i64));
    let (condition, columns) = (condition(), ["bigint".to_owned()]);
    let matched = Matched {
        rows: &rows,
        condition: &condition,
        columns: Some(&columns),
        numbered: true,
    };
    let mut source = Source::file(file.path.clone(), None).unwrap();
    let found = read_matching(&footer, &mut source, &matched, 2, None)
        .unwrap()
        .unwrap();
    let is_valid = |row: i64| row % 5 != 3 && !(300..420).contains(&row);
    let expected = |&row: &i64| {
        let decimal =
            [9_999_999_999_i64, -9_999_999_999, 0, 1, -1, 3_333_333_333][row as usize % 6];
        is_valid(row) && (!(-5..=10).contains(&decimal) || [0, 1, 6].contains(&(row % 7)))
    };
    let expected: Vec<i64> = (0..ROWS as i64).filter(expected).collect();
    assert_eq!(found.positions, expected);
    let read = found
        .rows
        .batches
        .iter()
        .map(RecordBatch::num_rows)
        .sum::<usize>();
    assert_eq!(read, expected.len());
    // Of memory, and of remote files, the caller evaluates.
    let mut source = Source::memory(file.bytes.clone());
    let found = read_matching(&footer, &mut source, &matched, 2, None).unwrap();
    assert!(found.is_none());
}

#[test]
fn a_page_that_is_tested_twice_and_returned_is_read_once() {
    let file = file_of(&batch(true), properties(Compression::SNAPPY).build());
    let footer = file.footer();
    let leaf = |test| {
        Node::Leaf(Leaf {
            column: 0,
            tests: vec![(test, false)],
        })
    };
    let name = "double".to_owned();
    let condition = Condition {
        columns: vec![name.clone()],
        node: Node::Or(vec![leaf(Test::keys(vec![key_of(1.5)])), leaf(Test::Null)]),
    };
    let matched = Matched {
        rows: &Positions::Range(0..ROWS as i64),
        condition: &condition,
        columns: Some(&[name]),
        numbered: false,
    };
    let mut source = Source::file(file.path.clone(), None).unwrap();
    let found = read_matching(&footer, &mut source, &matched, 2, None)
        .unwrap()
        .unwrap();
    assert!(found.count > 0);
    let chunks = footer.metadata().row_groups().iter().map(|group| {
        let mut columns = group.columns().iter();
        let chunk = columns.find(|each| each.column_path().string() == "double");
        chunk.unwrap().compressed_size() as u64
    });
    assert_eq!(source.traffic.bytes, chunks.sum::<u64>());
}

#[test]
fn damaged_bytes_are_errors_and_never_panics_of_this_crate() {
    let panics: Arc<Mutex<HashSet<String>>> = Arc::default();
    let seen = panics.clone();
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| match info.location() {
        Some(at) if at.file().contains("core/src/") => {
            seen.lock().unwrap().insert(at.to_string());
        }
        // The crates that decode assert what they are told.
        Some(at) if at.file().contains("registry") => {}
        _ => previous(info),
    }));
    let mut random = 7_u64;
    let mut below = |most: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % most
    };
    let condition = condition();
    let columns = ["text".to_owned(), "bigint".to_owned()];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
            let properties = properties(codec).set_writer_version(version).build();
            let sound = file_of(&batch(true), properties);
            let footer = sound.footer();
            let end = sound.bytes.len();
            for _ in 0..150 {
                let mut bytes = sound.bytes.to_vec();
                for _ in 0..1 + below(20) {
                    bytes[below(end)] = below(256) as u8;
                }
                let damaged = Written::new(bytes);
                let cache = PageCache::new(MOST_BYTES).unwrap();
                for rows in some_rows() {
                    let matched = Matched {
                        rows: &rows,
                        condition: &condition,
                        columns: Some(&columns),
                        numbered: true,
                    };
                    let mut source = Source::memory(Bytes::new());
                    let _ = guard(|| {
                        source = Source::file(damaged.path.clone(), None)?;
                        read_matching(&footer, &mut source, &matched, 2, None)
                    });
                    // An error, or other values.
                    let _ =
                        guard(|| kept_read(&damaged, &footer, &rows, &cache, Admission::FirstUse));
                }
            }
        }
    }
    let panics = panics.lock().unwrap().clone();
    assert_eq!(panics, HashSet::new());
}
