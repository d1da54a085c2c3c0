//! The rows of a file that may make a condition TRUE, by the bounds of its pages.

use std::ops::Range;

use crate::bounds::{Bounds, Value};
use crate::condition::{Leaf, Node, Test, key_of};
use crate::error::Result;
use crate::file::ParquetFile;
use crate::positions::Positions;
use crate::read::Condition;
use crate::source::Source;

/// Ascending, disjoint ranges of rows.
type Ranges = Vec<Range<i64>>;

/// Those of some rows that the column indexes of the condition's columns leave.
///
/// # Errors
/// `Error::Malformed`; `Error::Io`.
pub fn rows_left(
    file: &ParquetFile,
    source: &mut Source,
    condition: &Condition,
    rows: &Range<i64>,
) -> Result<Positions> {
    let mut known = Vec::with_capacity(condition.columns.len());
    for column in &condition.columns {
        known.push(file.bounds(source, std::slice::from_ref(column))?);
    }
    let mut left = of_node(&condition.node, &known, rows);
    Ok(match (left.pop(), left.is_empty()) {
        (None, _) => Positions::List(Vec::new()),
        (Some(only), true) => Positions::Range(only),
        (Some(last), false) => {
            left.push(last);
            Positions::List(left.into_iter().flatten().collect())
        }
    })
}

fn of_node(node: &Node, known: &[Option<Vec<Bounds>>], rows: &Range<i64>) -> Ranges {
    match node {
        Node::Leaf(leaf) => match &known[leaf.column] {
            Some(bounds) => of_leaf(leaf, bounds, rows),
            None => vec![rows.clone()],
        },
        Node::And(nodes) => nodes.iter().fold(vec![rows.clone()], |left, node| {
            common(&left, &of_node(node, known, rows))
        }),
        Node::Or(nodes) => {
            let of_nodes = nodes.iter().flat_map(|node| of_node(node, known, rows));
            united(of_nodes.collect())
        }
    }
}

fn of_leaf(leaf: &Leaf, bounds: &[Bounds], rows: &Range<i64>) -> Ranges {
    let left = bounds.iter().filter(|each| may_be_true(leaf, each));
    let left = left.map(|each| each.start.max(rows.start)..each.stop.min(rows.end));
    united(left.filter(|range| !range.is_empty()).collect())
}

fn common(some: &[Range<i64>], others: &[Range<i64>]) -> Ranges {
    let mut both = Vec::new();
    let (mut some, mut others) = (some.iter().peekable(), others.iter().peekable());
    while let (Some(one), Some(other)) = (some.peek(), others.peek()) {
        let range = one.start.max(other.start)..one.end.min(other.end);
        if one.end < other.end {
            some.next();
        } else {
            others.next();
        }
        if !range.is_empty() {
            both.push(range);
        }
    }
    both
}

fn united(mut ranges: Ranges) -> Ranges {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Ranges = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Whether a leaf may be TRUE of one of some rows.
fn may_be_true(leaf: &Leaf, bounds: &Bounds) -> bool {
    if leaf.of_null() {
        return bounds.nulls != Some(0);
    }
    if bounds.nulls == Some(bounds.stop - bounds.start) {
        return false;
    }
    let mut tests = leaf.tests.iter();
    match &bounds.range {
        Some((Value::Integer(least), Value::Integer(most))) => {
            tests.all(|(test, negated)| of_numbers(test, *negated, *least, *most))
        }
        Some((Value::Boolean(least), Value::Boolean(most))) => {
            let (least, most) = (i64::from(*least), i64::from(*most));
            tests.all(|(test, negated)| of_numbers(test, *negated, least, most))
        }
        Some((Value::Float(least), Value::Float(most))) if !least.is_nan() && !most.is_nan() => {
            // NaN is above all others, and not in the bounds.
            tests.all(|(test, negated)| of_numbers(test, *negated, key_of(*least), i64::MAX))
        }
        Some((Value::Bytes(least), Value::Bytes(most))) => {
            tests.all(|(test, negated)| of_texts(test, *negated, least, most))
        }
        _ => true,
    }
}

fn of_numbers(test: &Test, negated: bool, least: i64, most: i64) -> bool {
    match (test, negated) {
        (Test::Range(from, to), false) => *from <= most && least <= *to,
        (Test::Range(from, to), true) => !(*from <= least && most <= *to),
        (Test::Keys(keys), false) => {
            let first = keys.partition_point(|key| *key < least);
            keys.get(first).is_some_and(|key| *key <= most)
        }
        (Test::Keys(keys), true) => least != most || keys.binary_search(&least).is_err(),
        _ => true,
    }
}

fn of_texts(test: &Test, negated: bool, least: &[u8], most: &[u8]) -> bool {
    match (test, negated) {
        (Test::Texts(texts), false) => {
            let first = texts.partition_point(|text| text[..] < *least);
            texts.get(first).is_some_and(|text| text[..] <= *most)
        }
        (Test::Between(from, to), false) => {
            from.as_ref().is_none_or(|from| from[..] <= *most)
                && to
                    .as_ref()
                    .is_none_or(|(to, is_in)| *least < to[..] || *is_in && *least == to[..])
        }
        (Test::Like { prefix, .. }, false) => {
            let beginning = &least[..least.len().min(prefix.len())];
            beginning <= &prefix[..] && prefix[..] <= *most
        }
        // All texts between two that pass the test do so, too.
        (Test::Between(..), true) => !(test.of_text(least) && test.of_text(most)),
        (Test::Texts(_), true) => least != most || !test.of_text(least),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(nulls: Option<i64>, range: Option<(Value, Value)>) -> Bounds {
        Bounds {
            start: 0,
            stop: 10,
            nulls,
            range,
        }
    }

    fn may(test: Test, negated: bool, bounds: &Bounds) -> bool {
        let leaf = Leaf {
            column: 0,
            tests: vec![(test, negated)],
        };
        may_be_true(&leaf, bounds)
    }

    #[test]
    fn numbers_are_compared_with_both_bounds() {
        let page = page(Some(0), Some((Value::Integer(5), Value::Integer(9))));
        for (from, to, plain, negated) in [
            (i64::MIN, 4, false, true),
            (i64::MIN, 5, true, true),
            (9, i64::MAX, true, true),
            (10, i64::MAX, false, true),
            (5, 9, true, false),
            (6, 7, true, true),
        ] {
            assert_eq!(may(Test::Range(from, to), false, &page), plain);
            assert_eq!(may(Test::Range(from, to), true, &page), negated);
        }
        assert!(may(Test::keys(vec![1, 7]), false, &page));
        assert!(!may(Test::keys(vec![1, 10]), false, &page));
        assert!(may(Test::keys(vec![5]), true, &page));
    }

    #[test]
    fn one_value_is_all_there_is() {
        let numbers = page(None, Some((Value::Integer(5), Value::Integer(5))));
        assert!(!may(Test::keys(vec![5, 6]), true, &numbers));
        let text = || Value::Bytes(b"a".to_vec());
        let texts = page(None, Some((text(), text())));
        assert!(!may(Test::texts(vec![b"a".to_vec()]), true, &texts));
    }

    #[test]
    fn nan_may_be_among_floats() {
        let page = page(Some(0), Some((Value::Float(-1.0), Value::Float(2.0))));
        assert!(may(Test::Range(key_of(3.0), i64::MAX), false, &page));
        assert!(may(Test::Range(i64::MIN, key_of(2.0)), true, &page));
        assert!(!may(Test::Range(i64::MIN, key_of(-2.0)), false, &page));
    }

    #[test]
    fn nulls_are_counted() {
        let (none, all) = (page(Some(0), None), page(Some(10), None));
        assert!(!may(Test::Null, false, &none) && may(Test::Null, true, &none));
        assert!(may(Test::Null, false, &all) && !may(Test::Null, true, &all));
        assert!(!may(Test::Range(0, 1), true, &all));
        assert!(may(Test::Null, false, &page(None, None)));
    }

    #[test]
    fn texts_are_compared_by_bytes() {
        let (least, most) = (b"car".to_vec(), b"home".to_vec());
        let page = page(Some(0), Some((Value::Bytes(least), Value::Bytes(most))));
        let like = |text: &str| {
            let texts = text.split('%').map(|part| part.as_bytes().to_vec());
            Test::like(texts.collect()).unwrap()
        };
        for (pattern, plain) in [
            ("ca%", true),
            ("cat%", true),
            ("boat%", false),
            ("home%", true),
            ("homes%", false),
            ("%x%", true),
        ] {
            assert_eq!(may(like(pattern), false, &page), plain, "{pattern}");
            assert!(may(like(pattern), true, &page));
        }
        let below =
            |text: &str, is_in| Test::Between(None, Some((text.as_bytes().to_vec(), is_in)));
        assert!(!may(below("car", false), false, &page) && may(below("car", true), false, &page));
        assert!(!may(below("home", true), true, &page) && may(below("home", false), true, &page));
    }

    #[test]
    fn ranges_are_joined_and_cut() {
        assert_eq!(united(vec![5..7, 0..2, 2..4]), vec![0..4, 5..7]);
        assert_eq!(
            common(&[0..4, 6..9], &[2..7, 8..20]),
            vec![2..4, 6..7, 8..9]
        );
        assert_eq!(common(&[], &[0..1, 3..4]), vec![]);
    }
}
