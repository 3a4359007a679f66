//! Makes the part of a program that a log shows, and finds out whether an object's program is it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::parsed::{Parsed, Printed};
use crate::btf::{Btf, Builder, LineInfo, Linkage};
use crate::isa::{CallTarget, Code, Insn, Names, RawInsn, assemble_with};
use crate::program::{Program, Subprogram};
use crate::spec::{ProgType, helpers};
use crate::util::{HelperId, Pc, TypeId};

/// More instructions than the kernel takes: a larger number in a log is none of an instruction.
const MAX_INSNS: u32 = 1_000_000;

/// The kfuncs that a log names, with ids of our own: the log's are those of a BTF which is not
/// there.
#[derive(Default)]
struct Named(BTreeMap<String, TypeId>);

impl Names for Named {
    fn helper(&self, id: HelperId) -> Option<Cow<'_, str>> {
        Some(format!("bpf_{}", helpers::helper(id)?.name).into())
    }

    fn kfunc_named(&self, name: &str) -> Option<(TypeId, i16)> {
        self.0.get(name).map(|id| (*id, 0))
    }
}

impl Named {
    fn of(parsed: &Parsed) -> (Self, Option<Btf>) {
        let mut named = Self::default();
        let mut btf = Builder::new();
        for name in parsed.insns.values().filter_map(kfunc) {
            if !named.0.contains_key(name) {
                let id = btf.function(name, TypeId(0), Linkage::Global);
                named.0.insert(name.to_owned(), id);
            }
        }
        (named, btf.build().ok())
    }

    fn decode(&self, printed: &Printed) -> Option<RawInsn> {
        let own = kfunc(printed).and_then(|name| Some((name, self.0.get(name)?.0)));
        let text = match own {
            Some((name, id)) => format!("call {name}#{id}"),
            None => printed.text.clone(),
        };
        let text = format!("({:02x}) {text}", printed.opcode);
        let slots = assemble_with(&text, self).ok()?.slots;
        slots.first().copied()
    }
}

/// The kfunc that an instruction calls: `call bpf_task_from_pid#66993`.
fn kfunc(printed: &Printed) -> Option<&str> {
    let (name, _) = printed.text.strip_prefix("call ")?.split_once('#')?;
    let is_helper = helpers::helper_by_name(name).is_some();
    (name != "unknown" && !is_helper).then_some(name)
}

/// A program with the instructions, lines and functions that the log shows. All others are
/// zero, which is no instruction.
pub(super) fn program(name: &str, parsed: &Parsed) -> Program {
    let (named, kernel_btf) = Named::of(parsed);
    let printed = parsed.insns.iter().filter(|(pc, _)| pc.0 < MAX_INSNS);
    let insns: BTreeMap<Pc, RawInsn> = printed
        .filter_map(|(pc, printed)| Some((*pc, named.decode(printed)?)))
        .collect();
    let count = insns.keys().next_back().map_or(0, |pc| pc.index() + 2);
    let mut slots = vec![RawInsn::default(); count];
    for (pc, raw) in &insns {
        if let Some(slot) = slots.get_mut(pc.index()) {
            *slot = *raw;
        }
    }
    let mut program = Program::new(name, ProgType::SocketFilter, slots);
    let mut btf = Builder::new();
    for (pc, printed) in &parsed.insns {
        let Some(source) = &printed.source else {
            continue;
        };
        program.lines.push(LineInfo {
            insn_off: pc.0,
            file: btf.string(&source.file),
            text: btf.string(&source.text),
            line_col: source.line << 10,
        });
    }
    program.btf = btf.build().ok();
    let code = Code::new(&program.insns);
    let mut starts = parsed.functions.clone();
    starts.extend(insns.keys().filter_map(|pc| {
        let target = code.insn(*pc)?.subprogram_target(*pc)?;
        u32::try_from(target).ok().map(Pc)
    }));
    starts.remove(&Pc(0));
    let others = starts
        .into_iter()
        .map(|start| Subprogram::new(format!("function_at_{}", start.0), start));
    program.subprograms.extend(others);
    program.kernel_btf = kernel_btf;
    program
}

/// The first instruction of a log that an object's program does not have: its position. Offsets
/// and constants may differ, since they are relocated for a kernel.
pub(super) fn differs(object: &Program, shown: &Program) -> Option<Pc> {
    let code = Code::new(&shown.insns);
    let same = |pc: Pc| {
        let (raw, other) = (shown.insns.get(pc.index())?, object.insns.get(pc.index())?);
        let is_call = |insn| matches!(insn, Insn::Call(CallTarget::Helper(_)));
        Some(match code.insn(pc) {
            // The upper half of the registers' byte of a 64-bit immediate says what it is.
            Some(Insn::LoadImm64 { .. }) => {
                raw.opcode == other.opcode && raw.regs & 0xf == other.regs & 0xf
            }
            Some(insn) if is_call(insn) => raw.opcode == other.opcode && raw.imm == other.imm,
            Some(Insn::Call(_)) => raw.opcode == other.opcode,
            Some(insn) => {
                let jumps = insn.jump_target(pc).is_some();
                raw.opcode == other.opcode
                    && raw.regs == other.regs
                    && (!jumps || raw.off == other.off)
            }
            None => false,
        })
    };
    let shown = (0..shown.insns.len()).map(Pc::from_index);
    let mut shown = shown.filter(|pc| is_shown(&code, *pc));
    shown.find(|pc| same(*pc) != Some(true))
}

/// Whether there is an instruction.
pub(super) fn is_shown(code: &Code, pc: Pc) -> bool {
    code.insn(pc).is_some()
}
