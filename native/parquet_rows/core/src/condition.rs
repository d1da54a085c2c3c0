//! A condition in negation normal form, of which only TRUE is tracked: a NULL makes no test TRUE
//! but the one for NULL.

use memchr::memchr;
use memchr::memmem::Finder;

use crate::error::{Error, Result};
use crate::values::{Class, Values};

/// A condition on the rows of a file.
pub enum Node {
    Leaf(Leaf),
    /// TRUE for all rows if it is empty.
    And(Vec<Node>),
    /// TRUE for none if it is empty.
    Or(Vec<Node>),
}

impl Node {
    /// The number of leaves that test a column.
    pub fn leaves_of(&self, column: usize) -> usize {
        match self {
            Node::Leaf(leaf) => usize::from(leaf.column == column),
            Node::And(nodes) | Node::Or(nodes) => {
                nodes.iter().map(|node| node.leaves_of(column)).sum()
            }
        }
    }

    /// TRUE where all nodes are; tests of one column become one leaf, and numbers come first.
    pub fn all(nodes: Vec<Node>) -> Self {
        let mut flat: Vec<Node> = Vec::new();
        for node in nodes {
            match node {
                Node::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let mut joined: Vec<Node> = Vec::with_capacity(flat.len());
        for node in flat {
            let Node::Leaf(leaf) = node else {
                joined.push(node);
                continue;
            };
            let same = joined.iter_mut().find_map(|known| match known {
                Node::Leaf(known) if known.column == leaf.column => Some(known),
                _ => None,
            });
            match same {
                Some(known) => known.tests.extend(leaf.tests),
                None => joined.push(Node::Leaf(leaf)),
            }
        }
        joined.sort_by_key(Node::cost);
        Node::And(joined)
    }

    fn cost(&self) -> u8 {
        match self {
            Node::Leaf(leaf) if leaf.tests.iter().any(|(test, _)| test.is_of_texts()) => 1,
            Node::Leaf(_) => 0,
            Node::And(_) | Node::Or(_) => 2,
        }
    }
}

/// Tests of one column, all of which a value has to pass.
pub struct Leaf {
    /// The column's number among those of the condition.
    pub column: usize,
    /// Each with whether it is negated.
    pub tests: Vec<(Test, bool)>,
}

/// A test of a value that is not NULL; but for `Null`.
pub enum Test {
    Null,
    /// Keys from the first to the last.
    Range(i64, i64),
    /// Ascending keys.
    Keys(Vec<i64>),
    /// Texts from the first, and before the second or up to it.
    Between(Option<Vec<u8>>, Option<(Vec<u8>, bool)>),
    /// Ascending texts.
    Texts(Vec<Vec<u8>>),
    /// A text that starts and ends so, with these others between, in this order.
    Like {
        prefix: Vec<u8>,
        inside: Vec<Finder<'static>>,
        suffix: Vec<u8>,
    },
}

/// A number in the order in which Spark compares values of its type.
pub fn key_of(value: f64) -> i64 {
    // One NaN, above all others; -0.0 is 0.0.
    let value = if value.is_nan() {
        f64::NAN.abs()
    } else {
        value + 0.0
    };
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl Test {
    /// `texts` before, between and after the `%` of a pattern: two at least.
    ///
    /// # Errors
    /// `Error::Argument` if there are fewer.
    pub fn like(mut texts: Vec<Vec<u8>>) -> Result<Self> {
        let (Some(suffix), true) = (texts.pop(), !texts.is_empty()) else {
            return Err(Error::Argument("a pattern without % is a text".into()));
        };
        let inside = texts.split_off(1);
        let find = |text: Vec<u8>| Finder::new(&text).into_owned();
        Ok(Test::Like {
            prefix: texts.pop().unwrap_or_default(),
            inside: inside.into_iter().map(find).collect(),
            suffix,
        })
    }

    pub fn keys(mut keys: Vec<i64>) -> Self {
        keys.sort_unstable();
        Test::Keys(keys)
    }

    pub fn texts(mut texts: Vec<Vec<u8>>) -> Self {
        texts.sort_unstable();
        Test::Texts(texts)
    }

    fn is_of_texts(&self) -> bool {
        matches!(self, Test::Between(..) | Test::Texts(_) | Test::Like { .. })
    }

    fn is_of_numbers(&self) -> bool {
        matches!(self, Test::Range(..) | Test::Keys(_))
    }

    fn of_number(&self, key: i64) -> bool {
        match self {
            Test::Range(least, most) => (*least..=*most).contains(&key),
            Test::Keys(keys) => keys.binary_search(&key).is_ok(),
            _ => false,
        }
    }

    /// Whether it is TRUE of a text.
    pub fn of_text(&self, text: &[u8]) -> bool {
        match self {
            Test::Texts(texts) => match texts.as_slice() {
                [only] => only == text,
                several => several.binary_search_by(|each| each[..].cmp(text)).is_ok(),
            },
            Test::Between(least, most) => {
                least.as_ref().is_none_or(|least| text >= &least[..])
                    && most
                        .as_ref()
                        .is_none_or(|(most, is_in)| text < &most[..] || *is_in && text == &most[..])
            }
            Test::Like {
                prefix,
                inside,
                suffix,
            } => {
                // To compare with an empty vector, whose bytes are nowhere in memory, takes 80 ns.
                let mut rest = text;
                if !prefix.is_empty() {
                    match rest.strip_prefix(&prefix[..]) {
                        Some(after) => rest = after,
                        None => return false,
                    }
                }
                if !suffix.is_empty() {
                    match rest.strip_suffix(&suffix[..]) {
                        Some(before) => rest = before,
                        None => return false,
                    }
                }
                inside.iter().all(|part| match find(part, rest) {
                    Some(at) => {
                        rest = &rest[at + part.needle().len()..];
                        true
                    }
                    None => false,
                })
            }
            _ => false,
        }
    }
}

impl Leaf {
    /// # Errors
    /// `Error::Argument` unless all tests are of values of this class.
    pub fn check(&self, class: Class) -> Result<()> {
        let is_other = |(test, _): &(Test, bool)| match class {
            Class::Bytes => test.is_of_numbers(),
            _ => test.is_of_texts(),
        };
        if self.tests.iter().any(is_other) {
            return Err(Error::Argument(format!(
                "a test of other values than {class:?}"
            )));
        }
        Ok(())
    }

    /// Whether it is TRUE of NULL.
    pub fn of_null(&self) -> bool {
        let is_null = |(test, negated): &(Test, bool)| matches!(test, Test::Null) && !negated;
        self.tests.iter().all(is_null)
    }

    /// Whether it is TRUE of a value.
    pub fn is_true(&self, values: &Values, at: usize) -> bool {
        self.tests.iter().all(|(test, negated)| {
            *negated
                != match values.class() {
                    Class::Bytes => test.of_text(values.bytes(at)),
                    _ => test.of_number(key(values, at)),
                }
        })
    }

    /// One bit for each value, from the lowest of the first word on: whether it is TRUE.
    pub fn bits(&self, values: &Values) -> Vec<u64> {
        let of_integers = matches!(values.class(), Class::I32 | Class::I64 | Class::Decimal(_));
        let nothing = || vec![0; values.len().div_ceil(64)];
        match self.range() {
            Some((least, most)) if least > most => return nothing(),
            Some((least, most)) if of_integers && values.class().width() == 4 => {
                let (least, most) = (least.max(i32::MIN.into()), most.min(i32::MAX.into()));
                if least > most {
                    return nothing();
                }
                // One comparison for both ends.
                let (least, span) = (least as i32, (most - least) as u32);
                return of_numbers(values, |number| {
                    i32::from_le_bytes(number).wrapping_sub(least) as u32 <= span
                });
            }
            Some((least, most)) if of_integers => {
                let span = most.wrapping_sub(least) as u64;
                return of_numbers(values, |number| {
                    i64::from_le_bytes(number).wrapping_sub(least) as u64 <= span
                });
            }
            Some((least, most)) if values.class() == Class::F64 => {
                return of_numbers(values, |number| {
                    let key = key_of(f64::from_le_bytes(number));
                    (least <= key) & (key <= most)
                });
            }
            _ => {}
        }
        if let ([(test, false)], Class::Bytes) = (self.tests.as_slice(), values.class()) {
            match test {
                Test::Texts(texts) if texts.len() == 1 && !texts[0].is_empty() => {
                    return equal(&texts[0], values);
                }
                Test::Like {
                    prefix,
                    inside,
                    suffix,
                } => {
                    let others = prefix.len().max(suffix.len());
                    let longest = inside.iter().max_by_key(|part| part.needle().len());
                    if let Some(part) = longest.filter(|part| part.needle().len() > others) {
                        let is_all = inside.len() == 1 && others == 0;
                        let is_true = |at| is_all || test.of_text(values.bytes(at));
                        return searched(part, 0, values, is_true);
                    }
                }
                _ => {}
            }
        }
        tested(values.len(), |at| self.is_true(values, at))
    }

    /// The tests as one range of keys; None if they are something else.
    fn range(&self) -> Option<(i64, i64)> {
        let (mut least, mut most) = (i64::MIN, i64::MAX);
        for test in &self.tests {
            let (from, to) = match test {
                (Test::Range(from, to), false) => (*from, *to),
                (Test::Range(i64::MIN, to), true) => (to.checked_add(1)?, i64::MAX),
                (Test::Range(from, i64::MAX), true) => (i64::MIN, from.checked_sub(1)?),
                _ => return None,
            };
            (least, most) = (least.max(from), most.min(to));
        }
        Some((least, most))
    }
}

/// The number at a position in the order in which Spark compares.
fn key(values: &Values, at: usize) -> i64 {
    match values.class() {
        Class::F32 => key_of(f32::from_le_bytes(values.fixed(at)).into()),
        Class::F64 => key_of(f64::from_le_bytes(values.fixed(at))),
        _ => values.integer(at),
    }
}

/// Which texts are another one, which is not empty.
fn equal(text: &[u8], values: &Values) -> Vec<u64> {
    let with_length = [&(text.len() as u32).to_le_bytes(), text].concat();
    let length = with_length.len() - text.len();
    searched(&Finder::new(&with_length), length, values, |at| {
        values.bytes(at) == text
    })
}

/// Of which texts a test is TRUE, by one search through all of them for what each must have:
/// something that begins so many bytes before a byte of the text, and ends in it.
fn searched(
    finder: &Finder<'_>,
    before: usize,
    values: &Values,
    is_true: impl Fn(usize) -> bool,
) -> Vec<u64> {
    let mut words = vec![0; values.len().div_ceil(64)];
    let (data, mut from, mut last) = (values.numbers(), 0, 0);
    while let Some(found) = find(finder, &data[from..]) {
        let start = from + found;
        from = start + 1;
        // It may be in the length before a text, or reach beyond its end.
        if let Some((number, end)) = values.text_around(start + before, last)
            && start + finder.needle().len() <= end
        {
            words[number / 64] |= u64::from(is_true(number)) << (number % 64);
            (from, last) = (end, number);
        }
    }
    words
}

fn find(finder: &Finder<'_>, text: &[u8]) -> Option<usize> {
    match finder.needle() {
        [only] => memchr(*only, text), // takes a fraction of the time in short texts
        _ => finder.find(text),
    }
}

/// Answers, each 0 or 1, as bits, from the lowest of the first word on.
pub fn packed(answers: &[u8]) -> Vec<u64> {
    let (words, rest) = answers.as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain((!rest.is_empty()).then_some(&last));
    words.map(packed_word).collect()
}

fn packed_word(answers: &[u8; 64]) -> u64 {
    let (eights, _) = answers.as_chunks::<8>();
    let mut word = 0;
    for (number, &eight) in eights.iter().enumerate() {
        // Each product's highest byte gets each answer once, in its place.
        let product = u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080);
        word |= product >> 56 << (8 * number);
    }
    word
}

/// The answers for all numbers of `W` bytes as bits.
fn of_numbers<const W: usize>(values: &Values, is_true: impl Fn([u8; W]) -> bool) -> Vec<u64> {
    let (numbers, _) = values.numbers().as_chunks();
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for.
        return packed(&unsafe { answers_by_avx2(numbers, is_true) });
    }
    packed(&answers(numbers, is_true))
}

/// Compares several numbers of 8 bytes at once, as processors without AVX2 cannot.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn answers_by_avx2<const W: usize>(
    numbers: &[[u8; W]],
    is_true: impl Fn([u8; W]) -> bool,
) -> Vec<u8> {
    answers(numbers, is_true)
}

#[inline(always)]
fn answers<const W: usize>(numbers: &[[u8; W]], is_true: impl Fn([u8; W]) -> bool) -> Vec<u8> {
    let mut answers = vec![0; numbers.len()];
    for (answer, &number) in answers.iter_mut().zip(numbers) {
        *answer = u8::from(is_true(number));
    }
    answers
}

/// The answers for 0 to `len` as bits.
pub fn tested(len: usize, is_true: impl Fn(usize) -> bool) -> Vec<u64> {
    let answers: Vec<u8> = (0..len).map(|at| u8::from(is_true(at))).collect();
    packed(&answers)
}
