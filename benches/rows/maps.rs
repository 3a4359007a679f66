//! Single operations on maps.

use std::fmt::Write;

use bpflab::harness::EngineKind;

use super::goals::{self, Figure, Goal, number};
use crate::measure::Effort;
use crate::suite::maps::{Loops, Operation, Ours, Rust, measure};

/// The columns: our engines, Rust's collections, the kernel.
const COLUMNS: [&str; 5] = ["checked", "interp", "jit", "std", "kernel"];

/// Nanoseconds per operation by column.
pub struct Measured(Vec<(Operation, [Option<f64>; 5])>);

#[cfg(all(feature = "kernel", target_os = "linux"))]
fn kernel(operation: Operation) -> Option<Box<dyn Loops>> {
    let loops = crate::suite::maps::Kernel::new(operation)?;
    Some(Box::new(loops))
}

#[cfg(not(all(feature = "kernel", target_os = "linux")))]
fn kernel(_: Operation) -> Option<Box<dyn Loops>> {
    None
}

fn ours(operation: Operation, engine: EngineKind) -> Option<Box<dyn Loops>> {
    let loops = Ours::new(operation, engine)?;
    Some(Box::new(loops))
}

/// Measures all operations.
pub fn all(effort: Effort) -> Measured {
    let each = Operation::ALL.map(|operation| {
        let columns = [
            ours(operation, EngineKind::Checked),
            ours(operation, EngineKind::Interp),
            ours(operation, EngineKind::Jit),
            Some(Box::new(Rust::new(operation)) as Box<dyn Loops>),
            kernel(operation),
        ];
        let measured = columns.map(|loops| {
            let mut loops = loops?;
            Some(measure(
                &mut *loops,
                100,
                effort.samples * effort.bursts.count,
            ))
        });
        (operation, measured)
    });
    Measured(each.into())
}

impl Measured {
    /// The figures with their goals.
    pub fn figures(&self) -> Vec<Figure> {
        let goals: [(Operation, usize, Goal); 6] = [
            (Operation::Array, 0, goals::ARRAY_CHECKED),
            (Operation::Array, 2, goals::ARRAY_JIT),
            (Operation::Hash, 0, goals::HASH_CHECKED),
            (Operation::Hash, 2, goals::HASH_JIT),
            (Operation::Ring, 0, goals::RING_CHECKED),
            (Operation::Ring, 2, goals::RING_JIT),
        ];
        let found = goals.into_iter().map(|(operation, column, goal)| {
            let mut rows = self.0.iter();
            let row = rows.find(|(other, _)| *other == operation);
            goal.measured(row.and_then(|(_, columns)| columns[column]))
        });
        found.collect()
    }
}

/// The table.
impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "| ns an operation | {} |", COLUMNS.join(" | "))?;
        writeln!(f, "|---|{}", "--:|".repeat(COLUMNS.len()))?;
        for (operation, columns) in &self.0 {
            let mut cells = String::new();
            for cell in columns {
                let shown = cell.map_or("–".to_owned(), number);
                write!(cells, " {shown} |")?;
            }
            writeln!(f, "| {} |{cells}", operation.title())?;
        }
        Ok(())
    }
}
