//! Text tables.

use std::fmt;

/// A table with aligned columns, two spaces apart. The last column has no padding.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Row>,
    numbers: Vec<usize>,
    flush: bool,
}

#[derive(Debug, Clone)]
enum Row {
    Cells(Vec<String>),
    /// A line that has no columns.
    Line(String),
}

impl Table {
    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells = cells.into_iter().map(Into::into).collect();
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line that has no columns.
    pub fn line(&mut self, line: impl Into<String>) {
        self.rows.push(Row::Line(line.into()));
    }

    /// Right-aligns these columns, counted from 0, as for numbers.
    #[must_use]
    pub fn numbers(mut self, columns: &[usize]) -> Self {
        self.numbers = columns.to_vec();
        self
    }

    /// Removes the indentation, for a table without a heading.
    #[must_use]
    pub const fn flush(mut self) -> Self {
        self.flush = true;
        self
    }

    /// The rows that have columns.
    pub(super) fn cells(&self) -> impl Iterator<Item = &[String]> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells.as_slice()),
            Row::Line(_) => None,
        })
    }

    /// Whether a column is right-aligned.
    pub(super) fn is_number(&self, column: usize) -> bool {
        self.numbers.contains(&column)
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            widths.resize(widths.len().max(cells.len()), 0);
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }
}

/// A heading with a table of these rows below it, unless there are none.
pub(super) fn section(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    rows: impl Iterator<Item = Vec<String>>,
) -> fmt::Result {
    let mut table = Table::default();
    rows.for_each(|row| table.row(row));
    if table.rows.is_empty() {
        return Ok(());
    }
    write!(f, "\n{title}\n{table}")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            let cells = match row {
                Row::Cells(cells) => cells,
                Row::Line(text) => {
                    writeln!(f, "{text}")?;
                    continue;
                }
            };
            for (column, (width, cell)) in widths.iter().zip(cells).enumerate() {
                if column > 0 || !self.flush {
                    line.push_str("  ");
                }
                let padding = std::iter::repeat_n(' ', width - cell.chars().count());
                if self.numbers.contains(&column) {
                    line.extend(padding);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.extend(padding);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let mut table = Table::default();
        table.row(["a", "bb", "c"]);
        table.row(["äää", "", ""]);
        assert_eq!(table.to_string(), "  a    bb  c\n  äää\n");
    }

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::default().flush().numbers(&[1]);
        table.row(["a", "1", "c"]);
        table.line("a line of its own");
        table.row(["b", "100"]);
        assert_eq!(table.to_string(), "a    1  c\na line of its own\nb  100\n");
    }
}
