//! Figures derived from the programs' times.

use super::goals::{self, Figure, Goal};
use crate::measure::{Row, geometric_mean};
use crate::suite::columns::Column::{self, Interp, Jit, Kernel, Native, RbpfInterp, SbpfInterp};
use crate::suite::programs::Group;

/// The rows of a table.
pub struct Rows<'a>(pub &'a [Row]);

impl Rows<'_> {
    fn of(&self, group: Group) -> impl Iterator<Item = &Row> {
        self.0.iter().filter(move |row| row.program.group == group)
    }

    /// The ratios of the twelve, if both engines have a time.
    pub fn twelve(&self, of: Column, to: Column) -> Vec<(f64, &'static str)> {
        let rows = self.of(Group::Twelve);
        rows.filter_map(|row| Some((row.ratio(of, to)?, row.program.title)))
            .collect()
    }

    fn mean(&self, goal: Goal, of: Column, to: Column) -> Figure {
        let ratios = self.twelve(of, to);
        goal.measured(Some(geometric_mean(
            ratios.into_iter().map(|(ratio, _)| ratio),
        )))
    }

    /// The worst ratio, noted with its program and the number of ratios above the limit.
    fn worst(&self, goal: Goal, of: Column, to: Column) -> Figure {
        let ratios = self.twelve(of, to);
        let worst = ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let above = ratios
            .iter()
            .filter(|(ratio, _)| *ratio > goal.least)
            .count();
        let note = worst.map(|(_, program)| {
            format!(
                "{program}; {above} of {} above {}",
                ratios.len(),
                goal.least
            )
        });
        goal.measured(worst.map(|(ratio, _)| *ratio))
            .noted(note.unwrap_or_default())
    }

    /// The mean of the twelve after subtracting the time of an empty program.
    fn inside(&self, of: Column, to: Column) -> Option<f64> {
        let empty = self.of(Group::Empty).next()?;
        let rows = self.of(Group::Twelve);
        let ratios: Vec<_> = rows
            .filter_map(|row| row.ratio_inside(of, to, empty))
            .collect();
        // A ratio of zero would make the geometric mean zero.
        Some(geometric_mean(
            ratios.into_iter().map(|ratio| ratio.max(0.01)),
        ))
    }

    fn one(&self, goal: Goal, program: &str) -> Figure {
        let row = self.0.iter().find(|row| row.program.name == program);
        goal.measured(row.and_then(|row| row.ratio(Jit, Kernel)))
    }

    /// All figures.
    pub fn figures(&self) -> Vec<Figure> {
        let without_entry = match self.inside(Jit, Kernel) {
            Some(inside) if inside.is_finite() => {
                format!("{} without our entry", goals::number(inside))
            }
            _ => String::new(),
        };
        let empty = self.of(Group::Empty).next();
        vec![
            self.mean(goals::INTERP_RBPF, RbpfInterp, Interp),
            self.mean(goals::INTERP_SBPF, SbpfInterp, Interp),
            self.mean(goals::INTERP_KERNEL, Interp, Kernel),
            self.worst(goals::INTERP_KERNEL_WORST, Interp, Kernel),
            self.mean(goals::JIT_KERNEL, Jit, Kernel)
                .noted(without_entry),
            self.worst(goals::JIT_KERNEL_WORST, Jit, Kernel),
            self.one(goals::JIT_HELPERS, "helpers"),
            self.one(goals::JIT_CALLS, "calls"),
            self.mean(goals::JIT_NATIVE, Jit, Native),
            self.one(goals::JIT_ARRAY, "map_array"),
            self.one(goals::JIT_HASH, "map_hash"),
            goals::ENTRY.measured(empty.and_then(|row| row.ns(Jit).ok())),
        ]
    }
}
