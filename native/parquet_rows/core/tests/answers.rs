//! What tests of many values say at once is what they say of each.

use bytes::Bytes;
use parquet_rows::condition::{Leaf, Test};
use parquet_rows::runs::{Answers, Runs, WIDEST};
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
    let answered = |runs: &Runs, of_each: &[u8]| runs.answers(&Answers::new(of_each.to_vec()));
    assert_eq!(answered(&runs, &[1, 0, 0, 1]), Some(vec![expected]));
    let more = [1, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(answered(&runs, &more), Some(vec![expected]));
    assert_eq!(answered(&runs, &[1, 0, 0]), None);
    let repeated = Runs::new(2, Bytes::from_static(&[5 << 1, 7]), 5).unwrap();
    assert_eq!(answered(&repeated, &[1; 4]), None);
}

#[test]
fn numbers_of_every_width_are_answered_wherever_a_run_starts() {
    for width in 1..=WIDEST {
        let most = (1_usize << width).min(1000);
        for (repeats, count) in [1, 5, 60, 63].into_iter().zip([77, 5_003, 77, 5_003]) {
            let packed: Vec<u32> = (0..count).map(|n| (n * n % most) as u32).collect();
            // Some repeated numbers, then packed ones, whose last group is not whole.
            let mut bytes = vec![repeats << 1];
            bytes.extend(&1_u32.to_le_bytes()[..width.div_ceil(8)]);
            let groups = count.div_ceil(8);
            bytes.extend(match groups << 1 | 1 {
                short @ ..128 => vec![short as u8],
                long => vec![long as u8 | 128, (long >> 7) as u8],
            });
            let mut bits = vec![false; groups * 8 * width];
            for (at, number) in packed.iter().enumerate() {
                (0..width).for_each(|bit| bits[at * width + bit] = number >> bit & 1 == 1);
            }
            let eights = bits.chunks(8);
            bytes.extend(eights.map(|eight| {
                let ones = eight.iter().enumerate();
                ones.fold(0, |byte, (bit, &one)| byte | u8::from(one) << bit)
            }));
            let numbers: Vec<u32> = std::iter::repeat_n(1, repeats.into())
                .chain(packed.iter().copied())
                .collect();
            let runs = Runs::new(width, Bytes::from(bytes), numbers.len()).unwrap();
            assert_eq!(runs.unpacked(), numbers);
            let table: Vec<u8> = (0..most).map(|n| u8::from(n % 3 == 1)).collect();
            let largest = numbers.iter().max().copied().unwrap() as usize;
            assert_eq!(runs.answers(&Answers::new(vec![0; largest])), None);
            let words = runs.answers(&Answers::new(table)).unwrap();
            for (at, number) in numbers.iter().enumerate() {
                let expected = u64::from(number % 3 == 1);
                assert_eq!(words[at / 64] >> (at % 64) & 1, expected, "{width} {at}");
            }
            let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
            assert_eq!(
                ones as usize,
                numbers.iter().filter(|n| *n % 3 == 1).count()
            );
        }
    }
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

fn plain(texts: &[&[u8]]) -> Values {
    let mut data = Vec::new();
    for text in texts {
        data.extend((text.len() as u32).to_le_bytes());
        data.extend(*text);
    }
    Values::plain(Class::Bytes, data.into(), texts.len()).unwrap()
}

/// Whether a text matches a pattern whose only wildcard is `%`: by trying all lengths for each.
fn is_like(text: &[u8], pattern: &[&[u8]]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [last] => text == *last,
        [first, rest @ ..] => {
            let after = text.strip_prefix(*first);
            after.is_some_and(|text| (0..=text.len()).any(|at| is_like(&text[at..], rest)))
        }
    }
}

#[test]
fn a_pattern_is_searched_in_all_texts_at_once() {
    let texts: Vec<Vec<u8>> = (0..400_u32)
        .map(|n| {
            (0..n % 7)
                .map(|at| b'a' + ((n / 7) >> at) as u8 % 3)
                .collect()
        })
        .collect();
    let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let values = plain(&texts);
    let patterns: [&[&[u8]]; 10] = [
        &[b"", b"a", b""],
        &[b"", b"ab", b""],
        &[b"", b"a", b"b", b""],
        &[b"", b"ab", b"c", b""],
        &[b"", b"", b""],
        &[b"a", b"bc", b""],
        &[b"", b"bc", b"a"],
        &[b"a", b"b"],
        &[b"", b"aa", b"aa", b"a"],
        &[b"", b"\x02\0\0", b""],
    ];
    for pattern in patterns {
        for negated in [false, true] {
            let like = Test::like(pattern.iter().map(|part| part.to_vec()).collect());
            let tests = vec![(like.unwrap(), negated)];
            let bits = Leaf { column: 0, tests }.bits(&values);
            for (at, text) in texts.iter().enumerate() {
                let found = bits[at / 64] >> (at % 64) & 1 == 1;
                assert_eq!(
                    found,
                    is_like(text, pattern) != negated,
                    "{pattern:?} {text:?}"
                );
            }
        }
    }
}

#[test]
fn a_text_is_found_only_where_it_is_the_whole_value() {
    // Texts that hold others with their lengths, or what looks like it across two values.
    let texts: [&[u8]; 9] = [
        b"",
        b"a",
        b"\x01\0\0\0a",
        b"aa",
        b"a",
        b"b\x01\0\0\0",
        b"a\x01\0\0\0a\x01\0\0\0",
        b"\0\0\0\0",
        b"a",
    ];
    let values = plain(&texts);
    for sought in texts {
        let tests = vec![(Test::texts(vec![sought.to_vec()]), false)];
        let bits = Leaf { column: 0, tests }.bits(&values);
        let found = (0..texts.len()).filter(|at| bits[0] >> at & 1 == 1);
        let same = (0..texts.len()).filter(|&at| texts[at] == sought);
        assert!(found.eq(same), "{sought:?}");
    }
}

#[test]
fn the_last_text_of_a_dictionary_is_copied_as_a_short_one() {
    let data = [&2_u32.to_le_bytes()[..], b"no"].concat();
    let short_of = |values: &Values| values.short(0).map(|bytes| bytes.to_vec());
    let dictionary = Values::dictionary(Class::Bytes, data.clone().into(), 1).unwrap();
    assert_eq!(dictionary.bytes(0), b"no");
    assert!(short_of(&dictionary).is_some_and(|bytes| bytes.starts_with(b"no")));
    assert!(short_of(&plain(&[b"no"])).is_none());
    let too_short = data[..data.len() - 1].to_vec();
    assert!(Values::dictionary(Class::Bytes, too_short.into(), 1).is_err());
}
