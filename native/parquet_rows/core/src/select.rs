//! The rows that make a condition TRUE, by tests of opened pages: of a dictionary, each value is
//! tested once; numbers are compared where they lie.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::condition::{Leaf, Node, tested};
use crate::error::{Error, Result};
use crate::page::{Body, OpenPage};
use crate::parallel::{Work, in_parallel};
use crate::positions::{GroupRows, InGroup};
use crate::runs::Answers;
use crate::values::Values;
use crate::wanted::{PageCounts, Part, SMALLEST_TASKS, WantedPage, planned};

/// Of a page with fewer rows for each one that is wanted, all values are tested at once.
const SPARSE: usize = 16;

/// Those rows of a part that make the condition TRUE; its columns are those of the part. None if
/// pages of a column are encoded in a way that is not supported. `counts` says whether only their
/// number is needed, which takes less time than to list them where they are many.
///
/// # Errors
/// `Error::Argument` if a test does not fit its column; `Error::Malformed`; `Error::Io`.
pub fn select(
    part: &Part<'_>,
    condition: &Node,
    threads: usize,
    counts: bool,
) -> Result<Option<Selected>> {
    check(part, condition)?;
    let selecting = Selecting {
        part,
        threads,
        truths: Mutex::default(),
        pages: Mutex::default(),
    };
    let selected = selecting.node(condition, part.groups.clone(), counts)?;
    let pages = *lock(&selecting.pages);
    Ok(selected.map(|selected| Selected { pages, ..selected }))
}

/// Rows that were found.
#[derive(Default)]
pub struct Selected {
    /// By row group; may be empty if they are only counted.
    pub groups: Vec<GroupRows>,
    pub count: usize,
    /// The pages by which they were found.
    pub pages: PageCounts,
}

impl Selected {
    fn of(groups: Vec<GroupRows>) -> Self {
        let count = groups.iter().map(GroupRows::count).sum();
        let pages = PageCounts::default();
        Self {
            groups,
            count,
            pages,
        }
    }
}

fn check(part: &Part<'_>, condition: &Node) -> Result<()> {
    match condition {
        Node::Leaf(leaf) => match part.columns.get(leaf.column) {
            Some(Some(column)) => leaf.check(column.class),
            _ => Err(unread()),
        },
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().try_for_each(|node| check(part, node)),
    }
}

/// Of which values of a dictionary a leaf is TRUE. The dictionary is held so that no other one takes
/// its address.
struct Truths {
    dictionary: Arc<Values>,
    answers: OnceLock<Answers>,
}

impl Truths {
    /// The answers, found by the first task that asks for them.
    fn answers(&self, leaf: &Leaf) -> &Answers {
        self.answers.get_or_init(|| {
            let (bits, len) = (leaf.bits(&self.dictionary), self.dictionary.len());
            let of_each = (0..len).map(|at| (bits[at / 64] >> (at % 64) & 1) as u8);
            Answers::new(of_each.collect())
        })
    }
}

struct Selecting<'a> {
    part: &'a Part<'a>,
    threads: usize,
    /// By the addresses of both.
    truths: Mutex<HashMap<(usize, usize), Arc<Truths>>>,
    pages: Mutex<PageCounts>,
}

impl Selecting<'_> {
    fn node(&self, node: &Node, groups: Vec<GroupRows>, counts: bool) -> Result<Option<Selected>> {
        match node {
            Node::Leaf(leaf) => self.leaf(leaf, groups, counts),
            Node::And(nodes) => {
                let mut left = Selected::of(groups);
                for (number, node) in nodes.iter().enumerate() {
                    let counts = counts && number + 1 == nodes.len();
                    let Some(narrowed) = self.node(node, left.groups, counts)? else {
                        return Ok(None);
                    };
                    left = narrowed;
                }
                Ok(Some(left))
            }
            Node::Or(nodes) => {
                let mut all = Vec::new();
                for node in nodes {
                    let Some(found) = self.node(node, groups.clone(), false)? else {
                        return Ok(None);
                    };
                    all.extend(found.groups);
                }
                Ok(Some(Selected::of(united(all))))
            }
        }
    }

    fn leaf(&self, leaf: &Leaf, groups: Vec<GroupRows>, counts: bool) -> Result<Option<Selected>> {
        let column = self.part.columns[leaf.column].ok_or_else(unread)?;
        let pages = planned(self.part.pages, 0, column, &groups)?;
        pages.iter().for_each(|page| lock(&self.pages).add(page));
        let groups_of_pages: Vec<_> = pages.iter().map(|page| page.page.row_group).collect();
        let task = |page| Task { page, leaf, counts };
        let tasks: Vec<_> = pages.iter().map(task).collect();
        let found = in_parallel(tasks, self.threads, SMALLEST_TASKS, |task| task.run(self))?;
        let mut left = Selected::default();
        for (row_group, found) in groups_of_pages.into_iter().zip(found) {
            let Some(Found { rows, count }) = found else {
                return Ok(None);
            };
            left.count += count;
            match left
                .groups
                .last_mut()
                .map(|last| (last.row_group, &mut last.rows))
            {
                _ if rows.is_empty() => {}
                Some((last, InGroup::List(list))) if last == row_group => list.extend(rows),
                _ => {
                    let rows = InGroup::List(rows);
                    left.groups.push(GroupRows { row_group, rows });
                }
            }
        }
        Ok(Some(left))
    }

    fn truths(&self, leaf: &Leaf, dictionary: &Arc<Values>) -> Arc<Truths> {
        let key = (
            std::ptr::from_ref(leaf) as usize,
            Arc::as_ptr(dictionary) as usize,
        );
        let unknown = || {
            Arc::new(Truths {
                dictionary: dictionary.clone(),
                answers: OnceLock::new(),
            })
        };
        let mut known = lock(&self.truths);
        known.entry(key).or_insert_with(unknown).clone()
    }
}

/// Rows of one page.
struct Task<'a> {
    page: &'a WantedPage<'a>,
    leaf: &'a Leaf,
    counts: bool,
}

impl Work for Task<'_> {
    fn weight(&self) -> u64 {
        self.page.weight()
    }
}

impl Task<'_> {
    /// Those of the wanted rows for which the leaf is TRUE; None if the page is encoded in a way
    /// that is not supported.
    fn run(self, selecting: &Selecting<'_>) -> Result<Option<Found>> {
        let pages = selecting.part.pages;
        let Some(page) = self.page.opened(pages)? else {
            return Ok(None);
        };
        let start = self.page.start as u32;
        let of_null = self.leaf.of_null();
        let dictionary = match page.body() {
            Body::Plain(_) => None,
            Body::Numbered(_) => match self.page.dictionary(pages)? {
                Some(dictionary) => Some(dictionary),
                None => return Ok(None),
            },
        };
        if self.page.count() * SPARSE < self.page.page.rows {
            let mut rows = Vec::new();
            for row in self.page.positions() {
                let is_true = match page.position(row as usize) {
                    None => of_null,
                    Some(at) => self.is_true(&page, dictionary.as_deref(), at)?,
                };
                if is_true {
                    rows.push(start + row);
                }
            }
            return Ok(Some(Found::of(rows)));
        }
        let mut bits = match (page.body(), &dictionary) {
            (Body::Plain(values), _) => self.leaf.bits(values),
            (Body::Numbered(runs), Some(dictionary)) => {
                let truths = selecting.truths(self.leaf, dictionary);
                let answers = truths.answers(self.leaf);
                if !of_null && !answers.any() {
                    return Ok(Some(Found::default()));
                }
                runs.answers(answers).ok_or_else(beyond)?
            }
            (Body::Numbered(_), None) => return Ok(None),
        };
        if page.has_nulls() {
            bits = tested(self.page.page.rows, |row| match page.position(row) {
                Some(at) => bits[at / 64] >> (at % 64) & 1 == 1,
                None => of_null,
            });
        }
        let is_set = |row: u32| bits[row as usize / 64] >> (row % 64) & 1 == 1;
        Ok(Some(match (self.page.range(), self.counts) {
            (Some(rows), true) => Found {
                count: ones(&bits, rows),
                rows: Vec::new(),
            },
            (Some(rows), false) => Found::of(set(&bits, rows, start)),
            (None, _) => {
                let rows = self.page.positions().into_iter();
                Found::of(
                    rows.filter(|&row| is_set(row))
                        .map(|row| start + row)
                        .collect(),
                )
            }
        }))
    }

    fn is_true(&self, page: &OpenPage, dictionary: Option<&Values>, at: usize) -> Result<bool> {
        match (page.body(), dictionary) {
            (Body::Plain(values), _) => Ok(self.leaf.is_true(values, at)),
            (Body::Numbered(runs), Some(dictionary)) => {
                let number = runs.at(at) as usize;
                if number >= dictionary.len() {
                    return Err(beyond());
                }
                Ok(self.leaf.is_true(dictionary, number))
            }
            (Body::Numbered(_), None) => Err(beyond()),
        }
    }
}

/// Rows of a page that were found.
#[derive(Default)]
struct Found {
    /// Positions in the row group; may be empty if they are only counted.
    rows: Vec<u32>,
    count: usize,
}

impl Found {
    fn of(rows: Vec<u32>) -> Self {
        let count = rows.len();
        Self { rows, count }
    }
}

/// How many bits of these rows are set.
fn ones(bits: &[u64], rows: Range<usize>) -> usize {
    let mut count = 0;
    let mut at = rows.start;
    while at < rows.end {
        let end = (at / 64 + 1) * 64;
        let word = bits[at / 64] >> (at % 64) << (at % 64);
        let beyond = end.saturating_sub(rows.end);
        count += (word << beyond >> beyond).count_ones() as usize;
        at = end;
    }
    count
}

/// Those of some rows whose bit is set, `start` added to each.
fn set(bits: &[u64], rows: Range<usize>, start: u32) -> Vec<u32> {
    let mut found = vec![0; ones(bits, rows.clone())];
    let mut places = found.iter_mut();
    let mut at = rows.start;
    while at < rows.end {
        let mut word = bits[at / 64] >> (at % 64) << (at % 64);
        let first = start + (at / 64 * 64) as u32;
        at = (at / 64 + 1) * 64;
        let beyond = at.saturating_sub(rows.end);
        word = word << beyond >> beyond;
        for place in places.by_ref().take(word.count_ones() as usize) {
            *place = first + word.trailing_zeros();
            word &= word - 1;
        }
    }
    found
}

/// The rows that are in any of these, by row group.
fn united(mut all: Vec<GroupRows>) -> Vec<GroupRows> {
    all.sort_by_key(|group| group.row_group);
    let mut united: Vec<GroupRows> = Vec::new();
    for group in all {
        match united.last_mut() {
            Some(last) if last.row_group == group.row_group => last.unite(&group),
            _ => united.push(group),
        }
    }
    united
}

fn beyond() -> Error {
    Error::Malformed("a number is beyond the dictionary".into())
}

fn unread() -> Error {
    Error::Argument("a test of a column that is not read".into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
