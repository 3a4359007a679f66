//! Rows as a table.

use std::fmt;

use super::row::{Subject, VerdictRow};
use crate::report::table::Table;

/// A line per program: verdict, name, counts, time, and the error line.
#[derive(Debug)]
pub struct VerdictTable<'r>(pub &'r [VerdictRow]);

impl fmt::Display for VerdictTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = Subject::several_objects(self.0.iter().map(|row| &row.subject));
        let skip = usize::from(!several);
        // The columns after verdict, file, program and type.
        let numbers: Vec<_> = [4, 5, 6].iter().map(|column| column - skip).collect();
        let mut table = Table::default().flush().numbers(&numbers);
        let mut add = |cells: [String; 8]| {
            let kept = cells.into_iter().enumerate();
            table.row(
                kept.filter(|(at, _)| several || *at != 1)
                    .map(|(_, cell)| cell),
            );
        };
        add([
            "verdict", "object", "program", "type", "insns", "states", "us", "message",
        ]
        .map(str::to_owned));
        for row in self.0 {
            let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
            add([
                row.word().to_owned(),
                row.subject.object.clone().unwrap_or_default(),
                row.subject.name().to_owned(),
                row.subject.prog_type.unwrap_or("").to_owned(),
                number(row.processed),
                number(row.total_states),
                number(row.time_us),
                row.reason(),
            ]);
        }
        table.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_where_there_are_several() {
        let row = |object: &str, verdict, errno| VerdictRow {
            verdict,
            errno: Some(errno),
            message: "R0 !read_ok".to_owned(),
            processed: Some(12),
            ..VerdictRow::of(Subject {
                object: Some(object.to_owned()),
                program: Some("p".to_owned()),
                prog_type: Some("xdp"),
                ..Subject::default()
            })
        };
        let rows = [row("a.o", "accept", 0), row("b.o", "reject", 13)];
        assert_eq!(
            VerdictTable(&rows).to_string(),
            "verdict  object  program  type  insns  states  us  message
accept   a.o     p        xdp      12
reject   b.o     p        xdp      12              EACCES: R0 !read_ok
"
        );
        assert_eq!(
            VerdictTable(&rows[1..]).to_string(),
            "verdict  program  type  insns  states  us  message
reject   p        xdp      12              EACCES: R0 !read_ok
"
        );
    }
}
