//! Instructions under construction: jumps and calls have labels until all are placed.

use crate::isa::{CallTarget, Insn, Pseudo, RawInsn, encode};
use crate::util::Pc;

/// A position in the code, placed or not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Instructions whose jumps and calls are resolved at the end.
#[derive(Debug, Default)]
pub(super) struct Code {
    insns: Vec<Insn>,
    /// Instructions with a label as their target or operand.
    aims: Vec<(usize, Label)>,
    /// By label: the index of the following instruction.
    labels: Vec<usize>,
}

impl Code {
    /// Allocates a label, to be [bound](Self::bind).
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    /// Places the label here.
    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0] = self.insns.len();
    }

    /// A label of this position.
    pub(super) fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    pub(super) fn emit(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    /// Adds an instruction with a label as target or operand; its offset is filled in
    /// later.
    pub(super) fn aim(&mut self, insn: Insn, at: Label) {
        self.aims.push((self.insns.len(), at));
        self.insns.push(insn);
    }

    /// The number of instructions.
    pub(super) fn len(&self) -> usize {
        self.insns.len()
    }

    /// The slot of a label.
    pub(super) fn pc(&self, label: Label) -> Pc {
        let slots = |insns: &[Insn]| insns.iter().map(Insn::slots).sum();
        Pc(slots(
            self.insns.get(..self.labels[label.0]).unwrap_or_default(),
        ))
    }

    /// The slots, with all labels resolved.
    pub(super) fn finish(mut self) -> Vec<RawInsn> {
        let mut starts = Vec::with_capacity(self.insns.len() + 1);
        let mut slot = 0i32;
        for insn in &self.insns {
            starts.push(slot);
            slot += i32::try_from(insn.slots()).unwrap_or_default();
        }
        starts.push(slot);
        for (at, label) in &self.aims {
            let to = starts[self.labels[label.0]] - starts[*at] - 1;
            let insn = &mut self.insns[*at];
            *insn = aimed(*insn, to);
        }
        encode(&self.insns)
    }
}

/// The same instruction with its target `to` slots after the next.
fn aimed(insn: Insn, to: i32) -> Insn {
    match insn {
        Insn::Call(CallTarget::Subprogram { .. }) => Insn::Call(CallTarget::Subprogram { rel: to }),
        Insn::LoadPseudo { dst, .. } => Insn::LoadPseudo {
            dst,
            source: Pseudo::Func { rel: to },
        },
        jump => jump.with_jump_off(to).unwrap_or(jump),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{NoNames, Reg, disassemble};

    #[test]
    fn jumps_and_calls_count_slots() {
        let mut code = Code::default();
        let (out, function) = (code.label(), code.label());
        let head = code.here();
        code.aim(Insn::JumpLong { off: 0 }, out);
        code.emit(Insn::LoadImm64 {
            dst: Reg::R1,
            value: 1,
        });
        code.aim(Insn::Call(CallTarget::Subprogram { rel: 0 }), function);
        code.aim(Insn::Jump { off: 0 }, head);
        code.bind(out);
        code.emit(Insn::Exit);
        code.bind(function);
        code.emit(Insn::Exit);
        assert_eq!(code.pc(function).0, 6);
        let text = disassemble(&code.finish(), &NoNames).to_string();
        for line in ["gotol pc+4", "call pc+2", "goto pc-5"] {
            assert!(text.contains(line), "{text}");
        }
    }
}
