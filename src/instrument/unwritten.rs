//! Stack that a program reads before it writes it: the kernel allows that to root, and the
//! former contents then reach keys, records and registers. A replay would not find the same
//! contents, so both forms zero that stack first. Most programs do so by filling in a structure
//! without the padding between its members.

use std::collections::BTreeMap;

use super::calls::{self, Callee, Role, Signature};
use super::dataflow::{Bytes, Kind, Owner, State};
use crate::isa::{CallTarget, Insn, Reg};
use crate::program::Program;

/// The bytes to be zeroed at the start of functions, by function number.
#[derive(Debug, Default)]
pub(super) struct Unwritten(BTreeMap<usize, Bytes>);

impl Unwritten {
    /// Visits an instruction of a function.
    pub(super) fn see(&mut self, program: &Program, function: usize, insn: Insn, before: &State) {
        let mut read = Bytes::default();
        let mut reads = |kind: Kind, len: Option<u32>| {
            if let Kind::Frame {
                owner: Owner::Own,
                off,
            } = kind
            {
                let bytes = match off {
                    Some(off) => Bytes::of(off, len),
                    None => Bytes::of(i16::MIN, None),
                };
                read = read.union(before.unwritten(bytes));
            }
        };
        match insn {
            Insn::Load { base, off, .. }
            | Insn::LoadSx { base, off, .. }
            | Insn::LoadAcquire { base, off, .. }
            | Insn::Atomic { base, off, .. } => {
                let bytes = insn.memory().map(|(_, _, size)| size.bytes().into());
                reads(before.reg(base).moved_by(off), bytes);
            }
            Insn::Call(CallTarget::Subprogram { .. }) => {
                for reg in Reg::ARGUMENTS {
                    reads(before.reg(reg), None);
                }
            }
            Insn::Call(target) => {
                if let Ok(Callee::Outside(signature)) = calls::callee(program, target) {
                    call(program, &signature, before, reads);
                }
            }
            _ => {}
        }
        let all = self.0.entry(function).or_default();
        *all = all.union(read);
    }

    /// The bytes of a function.
    pub(super) fn of(&self, function: usize) -> Bytes {
        self.0.get(&function).copied().unwrap_or_default()
    }
}

/// The memory that a helper or kfunc reads, including what its callback gets.
fn call(
    program: &Program,
    signature: &Signature,
    before: &State,
    mut reads: impl FnMut(Kind, Option<u32>),
) {
    for (reg, role) in Reg::ARGUMENTS.into_iter().zip(&signature.roles) {
        let kind = before.reg(reg);
        match role {
            Role::Given(extent) => reads(kind, before.extent(program, signature, reg, *extent)),
            // A callback's context.
            Role::Silent if signature.callback.is_some() => reads(kind, None),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Plan;
    use crate::isa::assemble;
    use crate::program::{MapDef, Program};
    use crate::spec::{MapType, ProgType};

    /// The slots that are zeroed at the start of a program.
    fn zeroed(text: &str) -> Vec<i16> {
        let insns = assemble(text).unwrap();
        let mut program = Program::new("test", ProgType::Kprobe, insns);
        program.maps = [MapDef::new("map", MapType::Hash, 16, 8, 1)].into();
        let plan = Plan::new(&program).unwrap();
        plan.functions[0].unwritten.slots().collect()
    }

    #[test]
    fn what_every_path_writes_first_is_left_alone() {
        let text = "r2 = 1\n *(u64 *)(r10 - 8) = r2\n r0 = *(u64 *)(r10 - 8)\n exit";
        assert_eq!(zeroed(text), [0; 0]);
    }

    #[test]
    fn what_one_path_does_not_write_is_zero() {
        let text = "if r1 == 0 goto +1\n *(u64 *)(r10 - 8) = r1\n r0 = *(u32 *)(r10 - 4)\n exit";
        assert_eq!(zeroed(text), [-8]);
    }

    /// A key of 16 bytes with a hole in it.
    #[test]
    fn holes_in_what_a_helper_reads_are_zero() {
        let text = "*(u64 *)(r10 - 16) = 1\n *(u32 *)(r10 - 8) = 2\n r2 = r10\n r2 += -16\n \
                    r1 = 0 ll\n call 1\n r0 = 0\n exit";
        let mut insns = assemble(text).unwrap();
        insns[4].regs |= 5 << 4;
        let mut program = Program::new("test", ProgType::Kprobe, insns);
        program.maps = [MapDef::new("map", MapType::Hash, 16, 8, 1)].into();
        let plan = Plan::new(&program).unwrap();
        assert_eq!(
            plan.functions[0].unwritten.slots().collect::<Vec<_>>(),
            [-8]
        );
    }

    #[test]
    fn what_a_function_may_read_of_its_callers_frame_is_zero() {
        let text = "*(u64 *)(r10 - 24) = 1\n r1 = r10\n r1 += -24\n call f\n exit\n \
                    f: r0 = *(u64 *)(r1 + 8)\n exit";
        assert_eq!(zeroed(text), [-8, -16]);
    }
}
