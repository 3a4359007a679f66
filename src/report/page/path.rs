//! The path that led to a reject: its instructions with the values that they read and changed.

use std::fmt::{self, Write};
use std::ops::Range;

use super::markup::escaped;
use super::state::state;
use crate::explain::insn;
use crate::isa::{Code, Reg, RegSet};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::Unverified;
use crate::verifier::survey::PathOrigins;

/// Of a longer path, these many lines at its start and at its end are shown.
const START: usize = 100;
const END: usize = 400;

/// A line of the log.
enum Line<'l> {
    /// An instruction with its step, and the values after it.
    Insn {
        step: usize,
        pc: Pc,
        text: &'l str,
        after: &'l str,
    },
    Source(&'l str),
    Other(&'l str),
}

/// Writes the path of program `number`, from the log of level 1.
pub(super) fn failing_path(
    text: &mut String,
    number: usize,
    program: &Program,
    why: &Unverified,
    log: &str,
) -> fmt::Result {
    let lines = lines(log);
    let steps = lines
        .iter()
        .filter(|line| matches!(line, Line::Insn { .. }));
    let steps = steps.count();
    if steps == 0 {
        text.push_str(
            "<p class=\"note\">No path: the program is not accepted for what it is, before any \
             instruction was explored.</p>\n",
        );
        return Ok(());
    }
    writeln!(
        text,
        "<h3>The failing path</h3>\n<p class=\"note\">{steps} instructions, with the values after \
         each. A link at a register that an instruction reads leads to the instruction that made \
         the value.</p>"
    )?;
    let code = Code::new(&program.insns);
    let origins = Origins::new(program, why, &lines, steps);
    let hidden = START..lines.len().saturating_sub(END).max(START);
    let is_step = |line: &&Line<'_>| matches!(line, Line::Insn { .. });
    let steps_to = |end| lines.iter().take(end).filter(is_step).count();
    let hidden_steps = steps_to(hidden.start)..steps_to(hidden.end);
    text.push_str("<div class=\"wide\"><table class=\"path\">\n<tbody>\n");
    for (at, line) in lines.iter().enumerate() {
        if hidden.contains(&at) {
            if at == hidden.start {
                writeln!(
                    text,
                    "<tr class=\"gap\"><td></td><td colspan=\"2\">⋮ {} of {} lines of the path \
                     are not shown: bpflab verify --log 1 prints them</td></tr>",
                    hidden.len(),
                    lines.len()
                )?;
            }
            continue;
        }
        match *line {
            Line::Insn {
                step,
                pc,
                text: insn,
                after,
            } => {
                let last = step + 1 == steps;
                let class = if last { " class=\"missed mark\"" } else { "" };
                write!(
                    text,
                    "<tr id=\"p{number}s{step}\"{class}><td><a href=\"#p{number}i{pc}\">{pc}</a></td>\
                     <td>{}",
                    escaped(insn)
                )?;
                let reads = code.insn(pc).map_or(RegSet::of(&[]), |insn| insn.reads());
                origins.write(text, number, step, reads, &hidden_steps)?;
                text.push_str("</td><td>");
                state(text, after, |_| None)?;
                text.push_str("</td></tr>\n");
            }
            Line::Source(line) => writeln!(
                text,
                "<tr class=\"c\"><td></td><td colspan=\"2\">{}</td></tr>",
                escaped(line)
            )?,
            Line::Other(line) => writeln!(
                text,
                "<tr class=\"other\"><td></td><td colspan=\"2\">{}</td></tr>",
                escaped(line)
            )?,
        }
    }
    text.push_str("</tbody>\n</table></div>\n");
    Ok(())
}

fn lines(log: &str) -> Vec<Line<'_>> {
    let mut step = 0;
    let one = |line| {
        if let Some((pc, _, text)) = insn(line) {
            let (text, after) = text.split_once("; ").unwrap_or((text, ""));
            step += 1;
            return Line::Insn {
                step: step - 1,
                pc: Pc(pc),
                text: text.trim_end(),
                after: after.trim(),
            };
        }
        match line.strip_prefix("; ") {
            Some(source) => Line::Source(source),
            None => Line::Other(line),
        }
    };
    log.lines()
        .filter(|line| !line.is_empty())
        .map(one)
        .collect()
}

/// Where the values on the path come from.
struct Origins<'p> {
    known: Option<PathOrigins<'p>>,
    /// The step of the log that is the first of the known path.
    begin: usize,
    /// The instruction of each step of the log.
    pcs: Vec<Pc>,
}

impl<'p> Origins<'p> {
    fn new(program: &'p Program, why: &Unverified, lines: &[Line<'_>], steps: usize) -> Self {
        let pcs = lines.iter().filter_map(|line| match line {
            Line::Insn { pc, .. } => Some(*pc),
            _ => None,
        });
        let pcs: Vec<_> = pcs.collect();
        let trail = why.reject().and_then(|reject| reject.trail());
        let path = trail.map_or(&[][..], |trail| trail.path.as_slice());
        // Both end at the error, which the log may not have; the path's beginning may be missing.
        let logged = path.split_last().map_or(path, |(_, logged)| logged);
        for path in [path, logged] {
            let Some(begin) = steps.checked_sub(path.len()) else {
                continue;
            };
            if pcs.get(begin..) == Some(path) {
                let known = PathOrigins::new(program, path);
                return Self { known, begin, pcs };
            }
        }
        Self {
            known: None,
            begin: 0,
            pcs,
        }
    }

    /// Writes a link for each register that a step reads: to the step that made its value, or if
    /// that is not shown, to the instruction.
    fn write(
        &self,
        text: &mut String,
        number: usize,
        step: usize,
        reads: RegSet,
        hidden: &Range<usize>,
    ) -> fmt::Result {
        let (Some(known), Some(at)) = (&self.known, step.checked_sub(self.begin)) else {
            return Ok(());
        };
        for reg in Reg::ALL {
            if !reads.contains(reg) {
                continue;
            }
            let Some(made) = known.of(at, reg).map(|made| made + self.begin) else {
                continue;
            };
            let Some(pc) = self.pcs.get(made) else {
                continue;
            };
            let to = if hidden.contains(&made) {
                format!("i{pc}")
            } else {
                format!("s{made}")
            };
            write!(
                text,
                " <a class=\"from\" href=\"#p{number}{to}\" title=\"R{} was made by \
                 instruction {pc}\">R{} ← {pc}</a>",
                reg.number(),
                reg.number()
            )?;
        }
        Ok(())
    }
}
