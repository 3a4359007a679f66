//! Finds records that the kernel's run could not send, as a buffer was full or had no reader.
//! A replay always has room, so these records are left out of the comparison.

use crate::instrument::{Entry, Plan, What};
use crate::isa::{CallTarget, Insn, decode, decode_all};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::util::HelperId;

/// For each output of a replayed firing, in order: whether the kernel's run sent it, too.
/// Ends where the two logs diverge; all later outputs count as sent.
pub(super) fn sent(program: &Program, plan: &Plan, recorded: &[u8], replayed: &[u8]) -> Vec<bool> {
    let pairs = plan.entries(recorded).zip(plan.entries(replayed));
    let pairs = pairs.map_while(|(their, our)| Some((their.ok()?, our.ok()?)));
    let pairs = pairs.take_while(|(their, our)| their.site.number == our.site.number);
    let mut sent = Vec::new();
    for (their, our) in pairs {
        let Some(helper) = called(program, &our) else {
            continue;
        };
        match helper {
            id::ringbuf_output | id::perf_event_output if result(&our) == Some(0) => {
                sent.push(result(&their) == Some(0));
            }
            id::ringbuf_submit => sent.push(true),
            id::trace_printk | id::trace_vprintk if result(&our).is_some() => sent.push(true),
            _ => {}
        }
    }
    sent
}

/// The helper that an entry's instruction calls.
fn called(program: &Program, entry: &Entry<'_>) -> Option<HelperId> {
    let pc = entry.site.pc;
    match decode(program.insns.get(pc.index()..)?, pc) {
        Ok(Insn::Call(CallTarget::Helper(helper))) => Some(helper),
        _ => None,
    }
}

/// The return value of a call, if the entry has it.
fn result(entry: &Entry<'_>) -> Option<u64> {
    let mut results = entry
        .fields()
        .filter(|(field, _)| field.what == What::Result);
    let (_, bytes) = results.next()?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

/// The helpers that print a line.
const PRINT: [HelperId; 2] = [id::trace_printk, id::trace_vprintk];

/// Whether a program calls a helper whose output is compared.
pub(super) fn puts_out(program: &Program) -> bool {
    const PUT_OUT: [HelperId; 6] = [
        id::perf_event_output,
        id::ringbuf_output,
        id::ringbuf_reserve,
        id::ringbuf_reserve_dynptr,
        id::ringbuf_submit,
        id::ringbuf_submit_dynptr,
    ];
    prints(program) || calls(program, &PUT_OUT)
}

/// Whether a program prints lines.
pub(super) fn prints(program: &Program) -> bool {
    calls(program, &PRINT)
}

fn calls(program: &Program, helpers: &[HelperId]) -> bool {
    decode_all(&program.insns).any(|(_, insn)| match insn {
        Ok(Insn::Call(CallTarget::Helper(helper))) => helpers.contains(&helper),
        _ => false,
    })
}
