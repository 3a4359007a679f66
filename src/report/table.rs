//! Columns of text.

use std::fmt;

/// Rows whose cells stand below each other, two spaces between them. The last
/// column is as long as it likes.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                line.push_str("  ");
                line.push_str(cell);
                let padding = width - cell.chars().count();
                line.extend(std::iter::repeat_n(' ', padding));
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
}
