//! The size of the recorded context.

use crate::kernel::running_btf;
use crate::kernel::tracefs::Tracefs;
use crate::program::Program;
use crate::spec::ProgType;
use crate::vm::events::Layout;

/// Bytes of its context that a program may read, if its type does not fix them: the record of a
/// tracepoint, from its format file or, without tracefs, the kernel's types; the arguments of a
/// raw tracepoint. The kernel refuses to attach a program that reads more. 0 if not known.
pub(super) fn context_len(program: &Program) -> u32 {
    let target = program.attach_target.as_deref().unwrap_or_default();
    match program.prog_type {
        ProgType::Tracepoint => {
            let event = target.split_once('/');
            let layout = event.and_then(|(group, name)| record(group, name));
            layout.map_or(0, |layout| layout.readable)
        }
        ProgType::RawTracepoint | ProgType::Tracing => {
            let btf = running_btf();
            let layout = btf.and_then(|btf| Layout::of_raw_tracepoint(btf, target).ok());
            layout.map_or(0, |layout| layout.size)
        }
        _ => 0,
    }
}

fn record(group: &str, name: &str) -> Option<Layout> {
    let format = Tracefs::open().and_then(|tracefs| tracefs.format(group, name));
    format
        .ok()
        .or_else(|| Layout::from_btf(running_btf()?, group, name).ok())
}
