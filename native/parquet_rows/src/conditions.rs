//! Conditions that Python has written as nested tuples.

use parquet_rows::condition::{Leaf, Node, Test, key_of};
use parquet_rows::read::Condition;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyList, PyTuple};

/// A condition on rows of a file; see `Condition` of the package.
#[pyclass(frozen, name = "Condition", module = "hudi_index_parquet._native")]
pub struct NativeCondition {
    pub condition: Condition,
}

#[pymethods]
impl NativeCondition {
    #[new]
    fn new(tree: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut columns = Vec::new();
        let node = node(tree, &mut columns)?;
        Ok(Self {
            condition: Condition { columns, node },
        })
    }
}

/// `("and" | "or", [tree, …])` or `(column, negated, operator, value)`.
fn node(tree: &Bound<'_, PyTuple>, columns: &mut Vec<String>) -> PyResult<Node> {
    if tree.len() == 2 {
        let mut nodes = Vec::new();
        for each in tree.get_item(1)?.try_iter()? {
            nodes.push(node(each?.cast::<PyTuple>()?, columns)?);
        }
        return match tree.get_item(0)?.extract::<&str>()? {
            "and" => Ok(Node::all(nodes)),
            "or" => Ok(Node::Or(nodes)),
            other => Err(unknown(other)),
        };
    }
    let (name, negated): (String, bool) =
        (tree.get_item(0)?.extract()?, tree.get_item(1)?.extract()?);
    let operator: String = tree.get_item(2)?.extract()?;
    let test = test(&operator, &tree.get_item(3)?)?;
    let known = columns.iter().position(|column| *column == name);
    let column = known.unwrap_or_else(|| {
        columns.push(name);
        columns.len() - 1
    });
    Ok(Node::Leaf(Leaf {
        column,
        tests: vec![(test, negated)],
    }))
}

fn test(operator: &str, value: &Bound<'_, PyAny>) -> PyResult<Test> {
    if operator == "null" {
        return Ok(Test::Null);
    }
    if let Ok(several) = value.cast::<PyList>() {
        let values: Vec<_> = several.iter().collect();
        let are_texts = values.iter().any(|each| each.is_instance_of::<PyBytes>());
        return match (operator, are_texts) {
            ("like", _) => Test::like(texts(&values)?).map_err(crate::python::raised),
            ("in", true) => Ok(Test::texts(texts(&values)?)),
            ("in", false) => Ok(Test::keys(
                values.iter().map(key).collect::<PyResult<Vec<_>>>()?,
            )),
            _ => Err(unknown(operator)),
        };
    }
    if let Ok(text) = value.cast::<PyBytes>() {
        let text = text.as_bytes().to_vec();
        return match operator {
            "=" => Ok(Test::texts(vec![text])),
            "<" => Ok(Test::Between(None, Some((text, false)))),
            "<=" => Ok(Test::Between(None, Some((text, true)))),
            _ => Err(unknown(operator)),
        };
    }
    let key = key(value)?;
    match operator {
        "=" => Ok(Test::Range(key, key)),
        "<=" => Ok(Test::Range(i64::MIN, key)),
        "<" => Ok(match key.checked_sub(1) {
            Some(most) => Test::Range(i64::MIN, most),
            None => Test::keys(Vec::new()),
        }),
        _ => Err(unknown(operator)),
    }
}

fn texts(values: &[Bound<'_, PyAny>]) -> PyResult<Vec<Vec<u8>>> {
    let bytes = |each: &Bound<'_, PyAny>| Ok(each.cast::<PyBytes>()?.as_bytes().to_vec());
    values.iter().map(bytes).collect()
}

fn key(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    if value.is_instance_of::<PyFloat>() {
        return Ok(key_of(value.extract()?));
    }
    value.extract()
}

fn unknown(operator: &str) -> PyErr {
    PyValueError::new_err(format!("an unknown operator {operator:?}"))
}
