//! The lines of C whose instructions a program executes most often.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::exit::Failure;
use crate::coverage::Unit;
use crate::harness::{Step, Vm, Watch};
use crate::program::Program;
use crate::report::LineRow;
use crate::vm::ProgramHandle;
use crate::vm::events::Event;

/// How often each instruction was executed, by slot, of each program that ran.
#[derive(Default)]
struct Counter {
    programs: Vec<(Arc<Program>, Vec<u64>)>,
    /// Index of the program that ran last.
    last: usize,
}

impl Watch for Counter {
    fn before(&mut self, step: &Step<'_>) {
        let program = step.program();
        let is_it = |known: &(Arc<Program>, Vec<u64>)| Arc::ptr_eq(&known.0, program);
        // Only a tail call leads to another program.
        if !self.programs.get(self.last).is_some_and(is_it) {
            self.last = self.programs.iter().position(is_it).unwrap_or_else(|| {
                let counts = vec![0; program.insns.len()];
                self.programs.push((Arc::clone(program), counts));
                self.programs.len() - 1
            });
        }
        let counts = self.programs.get_mut(self.last).map(|known| &mut known.1);
        if let Some(count) = counts.and_then(|counts| counts.get_mut(step.pc.index())) {
            *count += 1;
        }
    }
}

/// Runs a program once on the checked engine, and counts what it executes: the lines of C, the
/// costliest first. Instructions without line information are in a row of their own.
pub(super) fn lines(
    file: &str,
    vm: &mut Vm,
    program: ProgramHandle,
    event: &Event,
) -> Result<Vec<LineRow>, Failure> {
    let name = vm.program(program).map(|it| it.name.clone());
    let name = name.unwrap_or_default();
    let mut counter = Counter::default();
    vm.run_watched(program, event, &mut counter)?;
    let total = counter.programs.iter().flat_map(|(_, counts)| counts).sum();
    let mut costs: FxHashMap<Option<(String, u32)>, (u64, String)> = FxHashMap::default();
    for (program, counts) in &counter.programs {
        let unit = Unit::of(program, None);
        for (slot, count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
            let line = unit
                .as_ref()
                .and_then(|unit| Some((unit, unit.line_at(slot)?)));
            let key = line.and_then(|(unit, line)| {
                let file = unit.files.get(line.file as usize)?;
                Some((file.clone(), line.line))
            });
            let text = || line.map_or(String::new(), |(_, line)| line.text.trim().to_owned());
            costs.entry(key).or_insert_with(|| (0, text())).0 += count;
        }
    }
    let rows = costs.into_iter().map(|(place, (insns, text))| {
        let (source, line) = place.unzip();
        LineRow::new(file, &name, (source, line), text, (insns, total))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| {
        b.insns
            .cmp(&a.insns)
            .then_with(|| a.place().cmp(&b.place()))
    });
    Ok(rows)
}
