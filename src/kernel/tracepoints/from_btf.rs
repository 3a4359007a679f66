//! Tracepoints in BTF.

use super::tracepoint::{Argument, DescriptionSource, Record, RecordField};
use crate::btf::{Btf, Encoding, Kind};
use crate::util::TypeId;
use crate::vm::events::{self, Layout, tracepoint_prototype};

/// The prefix of each tracepoint's typedef.
const TYPEDEF: &str = "btf_trace_";

/// The names of the tracepoints in a table, without those of its base.
pub(super) fn names(btf: &Btf) -> impl Iterator<Item = &str> {
    let typedefs = btf.own_types().filter(|ty| ty.kind() == Kind::Typedef);
    typedefs.filter_map(|ty| ty.name().strip_prefix(TYPEDEF))
}

/// The system calls whose functions are in BTF, by name. The function's prefix depends on the
/// machine (`__SYSCALL_DEFINEx`, `arch/*/include/asm/syscall_wrapper.h`).
pub(super) fn syscalls(btf: &Btf) -> impl Iterator<Item = &str> {
    const PREFIXES: [&str; 2] = ["__x64_sys_", "__arm64_sys_"];
    // Without CONFIG_FTRACE_SYSCALLS there are calls, but no events.
    let traced = btf.find("syscall_trace_enter", Kind::Struct).is_some();
    let functions = btf
        .own_types()
        .filter(move |ty| traced && ty.kind() == Kind::Func);
    functions.filter_map(|ty| {
        PREFIXES
            .iter()
            .find_map(|prefix| ty.name().strip_prefix(prefix))
    })
}

/// The arguments that a tracepoint passes to programs.
pub(super) fn arguments(btf: &Btf, name: &str) -> Option<Vec<Argument>> {
    let (prototype, _) = tracepoint_prototype(btf, name)?;
    let arguments = prototype.params().skip(1).enumerate();
    Some(
        arguments
            .map(|(index, param)| Argument {
                name: match param.name {
                    "" => format!("arg{index}"),
                    name => name.to_owned(),
                },
                c_type: c_type(btf, param.ty),
            })
            .collect(),
    )
}

/// An event's record, from the struct that describes it.
pub(super) fn record(btf: &Btf, group: &str, name: &str) -> Option<Record> {
    let layout = Layout::from_btf(btf, group, name).ok()?;
    let events::LayoutSource::Btf(record) = &layout.source else {
        return None;
    };
    let record = btf.find(record, Kind::Struct)?;
    let own = record
        .members()
        .filter(|member| !matches!(member.name, "ent" | "__data"));
    let fields = own.map(|member| RecordField {
        name: member.name.to_owned(),
        c_type: c_type(btf, member.ty),
        declaration: declaration(btf, member.ty, member.name),
        offset: member.bit_offset / 8,
        size: btf.size_of(member.ty).unwrap_or(0),
        signed: is_signed(btf, member.ty),
    });
    Some(Record {
        id: None,
        fields: fields.collect(),
        source: DescriptionSource::Btf,
    })
}

fn is_signed(btf: &Btf, id: TypeId) -> Option<bool> {
    let ty = btf.resolve(id).ok()?;
    match ty.kind() {
        Kind::Int => Some(ty.int()?.encoding == Encoding::Signed),
        Kind::Enum | Kind::Enum64 => Some(ty.is_signed_enum()),
        _ => Some(false),
    }
}

fn c_type(btf: &Btf, id: TypeId) -> String {
    declaration(btf, id, "")
}

/// A declaration on one line; anonymous structs are printed on several.
fn declaration(btf: &Btf, id: TypeId, name: &str) -> String {
    let text = btf.c_declaration(id, name);
    // Only types that expand without limit have no declaration.
    let text = text.unwrap_or_else(|_| format!("{} {name}", btf.ty(id).name()));
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}
