//! Choosing rows: `--filter EXPRESSION`.

use std::cmp::Ordering;
use std::str::FromStr;

use thiserror::Error;

use super::columns::{Cell, Column, column, names};
use super::row::VerdictRow;
use crate::util::glob;

/// A filter of rows: `verdict=reject`, `processed>1000`, `message=*unbounded*`, or a pattern of
/// names, `PROGRAM` or `OBJECT/PROGRAM`. A leading `!` negates it.
#[derive(Debug, Clone)]
pub struct Filter {
    negated: bool,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    /// A column's text matches, or does not.
    Text(&'static Column, Relation, String),
    /// A column's number compares.
    Number(&'static Column, Relation, u64),
    /// A pattern of names.
    Names(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    Equal,
    Differs,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// The operators, longer ones before their prefixes.
const SIGNS: [(&str, Relation); 8] = [
    ("==", Relation::Equal),
    ("!=", Relation::Differs),
    ("<>", Relation::Differs),
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("=", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

impl Relation {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Differs => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// An error in a filter expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FilterError {
    /// There is no such column.
    #[error("no column '{0}'; there are {names}", names = names())]
    Column(String),
    /// A column of numbers is compared with something else.
    #[error("invalid number '{0}': column '{1}' holds numbers")]
    NoNumber(String, &'static str),
    /// A column of text is compared by order.
    #[error("column '{0}' holds text, which can only be compared with = and !=")]
    Order(&'static str),
    /// The expression is empty.
    #[error("empty filter: write a pattern of names, or an expression such as verdict=reject")]
    Empty,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let (negated, text) = match text.trim().strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        Ok(Self {
            negated,
            rule: rule(text)?,
        })
    }
}

fn rule(text: &str) -> Result<Rule, FilterError> {
    if text.is_empty() {
        return Err(FilterError::Empty);
    }
    // Names don't contain operators.
    let Some(at) = text.find(['=', '<', '>', '!']) else {
        return Ok(Rule::Names(text.to_owned()));
    };
    let (name, rest) = text.split_at(at);
    let sign = SIGNS
        .iter()
        .find_map(|(sign, relation)| Some((*relation, rest.strip_prefix(sign)?)));
    let name = name.trim();
    let (Some(column), Some((relation, value))) = (column(name), sign) else {
        return Err(FilterError::Column(name.to_owned()));
    };
    let value = value.trim();
    match (column.cell)(&VerdictRow::default()) {
        Cell::Number(_) => match value.parse() {
            Ok(number) => Ok(Rule::Number(column, relation, number)),
            Err(_) => Err(FilterError::NoNumber(value.to_owned(), column.name)),
        },
        Cell::Text(_) if matches!(relation, Relation::Equal | Relation::Differs) => {
            Ok(Rule::Text(column, relation, value.to_owned()))
        }
        Cell::Text(_) => Err(FilterError::Order(column.name)),
    }
}

impl Filter {
    /// Whether a row matches.
    #[must_use]
    pub fn wants(&self, row: &VerdictRow) -> bool {
        let holds = match &self.rule {
            Rule::Text(column, relation, pattern) => {
                let matches = glob(pattern, &(column.cell)(row).to_string());
                matches == (*relation == Relation::Equal)
            }
            Rule::Number(column, relation, wanted) => match (column.cell)(row) {
                Cell::Number(Some(number)) => relation.holds(number.cmp(wanted)),
                _ => false,
            },
            Rule::Names(pattern) => named(pattern, row),
        };
        holds != self.negated
    }
}

/// Whether a pattern matches the case's id, the program's name, or the object's file name and the
/// program's name.
fn named(pattern: &str, row: &VerdictRow) -> bool {
    let subject = &row.subject;
    let program = subject.program.as_deref().unwrap_or("");
    let path = subject.object.as_deref().unwrap_or("");
    let file = path.rsplit('/').next().unwrap_or(path);
    glob(pattern, program)
        || glob(pattern, &format!("{file}/{program}"))
        || subject.id.as_deref().is_some_and(|id| glob(pattern, id))
}

#[cfg(test)]
mod tests {
    use super::super::row::Subject;
    use super::*;

    fn row() -> VerdictRow {
        VerdictRow {
            verdict: "reject",
            message: "R1 unbounded memory access".to_owned(),
            processed: Some(100),
            ..VerdictRow::of(Subject {
                object: Some("dir/a.bpf.o".to_owned()),
                program: Some("on_write".to_owned()),
                ..Subject::default()
            })
        }
    }

    fn wants(filter: &str) -> bool {
        filter.parse::<Filter>().unwrap().wants(&row())
    }

    #[test]
    fn columns_are_compared() {
        assert!(wants("verdict=reject") && wants("verdict != accept"));
        assert!(!wants("verdict=acc*") && wants("!verdict=acc*"));
        assert!(wants("message=*unbounded*"));
        assert!(wants("processed>99") && wants("insns <= 100") && !wants("insns<100"));
        // A missing number matches no comparison.
        assert!(!wants("total_states>=0") && wants("!total_states>=0"));
    }

    #[test]
    fn names_are_patterns() {
        assert!(wants("on_*") && wants("a.bpf.o/on_write") && wants("*"));
        assert!(!wants("b*/on_write") && !wants("write") && wants("!write"));
    }

    #[test]
    fn what_is_no_expression_says_why() {
        let error = |text: &str| text.parse::<Filter>().err().unwrap();
        assert_eq!(error("size=1"), FilterError::Column("size".to_owned()));
        assert_eq!(error("!"), FilterError::Empty);
        assert_eq!(error("verdict<2"), FilterError::Order("verdict"));
        assert_eq!(
            error("insns=many"),
            FilterError::NoNumber("many".to_owned(), "processed")
        );
    }
}
