//! Sorting rows: `--sort KEY[:asc|desc]`.

use std::cmp::Ordering;
use std::str::FromStr;

use thiserror::Error;

use super::columns::{Column, column, names};
use super::row::VerdictRow;

/// A sort key. Counts and times sort in descending order by default.
#[derive(Debug, Clone, Copy)]
pub struct SortKey {
    column: &'static Column,
    descending: bool,
}

/// An error in a sort key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SortError {
    /// There is no such column.
    #[error("no column '{0}'; there are {names}", names = names())]
    Column(String),
    /// An unknown order.
    #[error("no order '{0}'; use asc or desc")]
    Order(String),
}

impl FromStr for SortKey {
    type Err = SortError;

    fn from_str(text: &str) -> Result<Self, SortError> {
        let (name, order) = text.split_once(':').unwrap_or((text, ""));
        let column = column(name).ok_or_else(|| SortError::Column(name.to_owned()))?;
        let descending = match order {
            "" => column.descending,
            "asc" => false,
            "desc" => true,
            _ => return Err(SortError::Order(order.to_owned())),
        };
        Ok(Self { column, descending })
    }
}

impl SortKey {
    /// Sorts rows by several keys, the first one first; equal rows keep their order.
    pub fn sort(keys: &[Self], rows: &mut [VerdictRow]) {
        rows.sort_by(|one, other| {
            let orders = keys.iter().map(|key| key.order(one, other));
            orders.fold(Ordering::Equal, Ordering::then)
        });
    }

    fn order(&self, one: &VerdictRow, other: &VerdictRow) -> Ordering {
        let order = (self.column.cell)(one).order(&(self.column.cell)(other));
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_downwards_and_names_upwards() {
        let row = |verdict, processed| VerdictRow {
            verdict,
            processed,
            ..VerdictRow::default()
        };
        let mut rows = [
            row("reject", Some(1)),
            row("accept", None),
            row("accept", Some(7)),
            row("accept", Some(30)),
        ];
        let order = |keys: &[&str], rows: &mut [VerdictRow]| {
            let keys: Vec<SortKey> = keys.iter().map(|key| key.parse().unwrap()).collect();
            SortKey::sort(&keys, rows);
            rows.iter().map(|row| row.processed).collect::<Vec<_>>()
        };
        assert_eq!(
            order(&["insns"], &mut rows),
            [Some(30), Some(7), Some(1), None]
        );
        assert_eq!(
            order(&["verdict:desc", "processed:asc"], &mut rows),
            [Some(1), None, Some(7), Some(30)]
        );
        assert!("insns:up".parse::<SortKey>().is_err());
        let error = "size".parse::<SortKey>().unwrap_err().to_string();
        assert!(error.starts_with("no column 'size'; there are id, object,"));
    }
}
