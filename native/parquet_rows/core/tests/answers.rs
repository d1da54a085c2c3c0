//! What tests of many values say at once is what they say of each.

use bytes::Bytes;
use parquet_rows::condition::{Leaf, Test};
use parquet_rows::runs::{Runs, UNANSWERED};
use parquet_rows::values::{Class, Values};

/// Three packed groups of numbers of two bits, 0 to 3 in turn, then 3 repeated five times.
fn runs_of_two_bits() -> Runs {
    let packed = [3 << 1 | 1, 0b11_10_01_00, 0b11_10_01_00];
    let mut bytes = packed.to_vec();
    bytes.extend([0b11_10_01_00; 4]);
    bytes.extend([5 << 1, 3]);
    Runs::new(2, Bytes::from(bytes), 29).unwrap()
}

#[test]
fn a_table_answers_for_each_number() {
    let runs = runs_of_two_bits();
    let numbers: Vec<u32> = (0..24).map(|n| n % 4).chain([3; 5]).collect();
    assert_eq!(runs.unpacked(), numbers);
    let expected = (0..29).fold(0, |word, at| {
        word | u64::from(numbers[at].is_multiple_of(3)) << at
    });
    assert_eq!(runs.answers(&[1, 0, 0, 1]), Some(vec![expected]));
    assert_eq!(
        runs.answers(&[1, 0, 0, 1, 0, 0, 0, 0]),
        Some(vec![expected])
    );
    assert_eq!(runs.answers(&[1, 0, 0]), None);
    assert_eq!(runs.answers(&[1, 0, 0, UNANSWERED]), None);
    let repeated = Runs::new(2, Bytes::from_static(&[5 << 1, 7]), 5).unwrap();
    assert_eq!(repeated.answers(&[1; 4]), None);
}

#[test]
fn a_range_is_tested_up_to_its_ends() {
    let numbers = [i64::MIN, -1, 0, 1, i64::MAX];
    let ends = [i64::MIN, -1, 0, 1, i64::from(i32::MAX), i64::MAX];
    let wide = numbers.iter().flat_map(|number| number.to_le_bytes());
    let narrow = numbers.map(|number| number.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
    let values = [
        Values::plain(Class::I64, wide.collect::<Vec<u8>>().into(), 5).unwrap(),
        Values::plain(
            Class::I32,
            narrow
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect::<Vec<u8>>()
                .into(),
            5,
        )
        .unwrap(),
    ];
    for (least, most) in ends
        .iter()
        .flat_map(|&least| ends.map(|most| (least, most)))
    {
        let tests = vec![(Test::Range(least, most), false)];
        let leaf = Leaf { column: 0, tests };
        for values in &values {
            let one_by_one = (0..5).fold(0, |word, at| {
                word | u64::from(leaf.is_true(values, at)) << at
            });
            assert_eq!(leaf.bits(values), [one_by_one], "{least} to {most}");
        }
    }
}
