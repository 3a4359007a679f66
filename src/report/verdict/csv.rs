//! Comma-separated values (RFC 4180), written and read.

use super::columns::COLUMNS;
use super::row::VerdictRow;

/// The rows as CSV, with a line of column names first.
#[must_use]
pub fn csv(rows: &[VerdictRow]) -> String {
    let mut text = line(COLUMNS.iter().map(|column| column.name.to_owned()));
    for row in rows {
        text += &line(COLUMNS.iter().map(|column| (column.cell)(row).to_string()));
    }
    text
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<_> = fields.map(quoted).collect();
    fields.join(",") + "\n"
}

fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

/// The records of a text: each a list of fields.
pub(super) fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut inside = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => inside = !inside,
            ',' if !inside => record.push(std::mem::take(&mut field)),
            '\r' if !inside => {}
            '\n' if !inside => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    records.retain(|record| record.iter().any(|field| !field.is_empty()));
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let row = VerdictRow {
            verdict: "reject",
            message: "a \"quoted\", line\nand another".to_owned(),
            processed: Some(3),
            ..VerdictRow::default()
        };
        let text = csv(std::slice::from_ref(&row));
        assert!(text.starts_with("id,object,program,section,prog_type,verdict,errno,message,"));
        let records = records(&text);
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].len(), COLUMNS.len());
        assert_eq!(records[1][7], row.message);
        assert_eq!(records[1][9], "3");
    }

    #[test]
    fn the_last_line_need_not_end() {
        assert_eq!(records("a,b\r\n\n,\n\"c\""), [vec!["a", "b"], vec!["c"]]);
    }
}
