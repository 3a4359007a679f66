//! Contexts that are structs of plain fields: their layouts, and which fields are derived
//! from an event's bytes.

use super::error::EventError;
use super::layout::{Layout, LayoutSource};
use super::record::Values;
use crate::spec::ContextKind;
use crate::spec::context::{self as spec, Arch, FieldType};
use crate::util::nearest_first;
use crate::vm::fields::{Field, FieldValue, Shape};

/// Aliases of the x86-64 registers: those of libbpf's `PT_REGS_*` and of bpftrace.
const X86_64: &[(&str, &[&str])] = &[
    ("di", &["parm1", "arg0", "rdi"]),
    ("si", &["parm2", "arg1", "rsi"]),
    ("dx", &["parm3", "arg2", "rdx"]),
    ("cx", &["parm4", "arg3", "rcx"]),
    ("r8", &["parm5", "arg4"]),
    ("r9", &["parm6", "arg5"]),
    ("ax", &["rc", "retval", "ret", "rax"]),
    ("bx", &["rbx"]),
    ("bp", &["fp", "rbp"]),
    ("ip", &["pc", "rip"]),
    ("sp", &["rsp"]),
    ("flags", &["eflags", "rflags"]),
];

/// Aliases of the elements of arm64's `regs`.
const ARM64: &[(u32, &[&str])] = &[
    (0, &["parm1", "arg0", "rc", "retval", "ret"]),
    (1, &["parm2", "arg1"]),
    (2, &["parm3", "arg2"]),
    (3, &["parm4", "arg3"]),
    (4, &["parm5", "arg4"]),
    (5, &["parm6", "arg5"]),
    (6, &["parm7", "arg6"]),
    (7, &["parm8", "arg7"]),
    (29, &["fp"]),
    (30, &["lr"]),
];

/// Fields that are derived from the event's bytes.
const DERIVED: &[&str] = &[
    "data",
    "data_end",
    "data_meta",
    "optval",
    "optval_end",
    "skb_data",
    "skb_data_end",
    "flow_keys",
    "len",
    "size",
];

/// Contexts with a packet.
const PACKETS: &[ContextKind] = &[
    ContextKind::SkBuff,
    ContextKind::XdpMd,
    ContextKind::SkMsg,
    ContextKind::SkReuseport,
];

/// The layout of a context; `None` for a context without fixed fields.
pub(super) fn layout(kind: ContextKind, machine: Arch) -> Option<Layout> {
    let table = spec::layout(kind, machine)?;
    let mut fields: Vec<_> = table.fields.iter().map(of_table).collect();
    if matches!(kind, ContextKind::PtRegs | ContextKind::PerfEvent) {
        name_registers(&mut fields, machine);
    }
    Some(Layout {
        name: table.name.to_owned(),
        fields,
        size: table.size,
        data_offset: table.size,
        hidden: 0,
        context_size: Some(table.size),
        readable: table.size,
        source: LayoutSource::Context,
        defaults: Vec::new(),
        references: Vec::new(),
    })
}

/// The field of a row in the table. The table has no signedness: numbers are unsigned.
fn of_table(field: &spec::Field) -> Field {
    let one = match field.element {
        FieldType::Number(size) => Shape::number(size.into(), false),
        FieldType::Pointer => Shape::Pointer,
    };
    let shape = match field.count {
        1 => one,
        count => one.times(count),
    };
    Field::inline(field.name, field.offset, shape)
}

/// Adds the aliases of registers; in a perf event's sample they are also members of `regs`.
fn name_registers(fields: &mut Vec<Field>, machine: Arch) {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    match machine {
        Arch::X86_64 => {
            for field in fields {
                let found = X86_64.iter().find(|(register, _)| *register == field.name);
                field.aliases = found.map_or_else(Vec::new, |(_, aliases)| names(aliases));
                field.aliases.push(format!("regs.{}", field.name));
            }
        }
        Arch::Arm64 => {
            for field in fields.iter_mut().filter(|field| field.name != "regs") {
                if field.name == "pc" {
                    field.aliases = names(&["ip", "regs.ip"]);
                }
                field.aliases.push(format!("regs.{}", field.name));
            }
            fields.extend((0..31).map(|index| {
                let others = ARM64.iter().find(|(register, _)| *register == index);
                let mut aliases = others.map_or_else(Vec::new, |(_, aliases)| names(aliases));
                aliases.push(format!("regs.x{index}"));
                Field {
                    aliases,
                    ..Field::inline(format!("x{index}"), index * 8, Shape::number(8, false))
                }
            }));
        }
    }
}

/// Why a test can't set this field; `None` if it can.
pub(super) fn derived(field: &str) -> Option<&'static str> {
    DERIVED
        .contains(&field.trim())
        .then_some("it is computed from the event's bytes")
}

/// Checks that some packet context has this field and that the value fits.
pub(super) fn check_packet_field(field: &str, value: &FieldValue) -> Result<(), EventError> {
    let mut known = Vec::new();
    let mut problem = None;
    for layout in PACKETS.iter().filter_map(|kind| layout(*kind, Arch::HOST)) {
        match Values::new(&layout).set(&layout, field, value) {
            Ok(()) => return Ok(()),
            Err(EventError::NoField { .. }) => {
                let names = layout.fields.iter().map(|field| field.name.clone());
                known.extend(names.filter(|name| !DERIVED.contains(&name.as_str())));
            }
            Err(error) => problem = Some(error),
        }
    }
    known.sort();
    known.dedup();
    Err(problem.unwrap_or_else(|| EventError::NoField {
        event: "packet".to_owned(),
        field: field.to_owned(),
        known: nearest_first(field, known),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_their_other_names() {
        let x86 = layout(ContextKind::PtRegs, Arch::X86_64).unwrap();
        assert_eq!(x86.offset("parm1"), Some(112));
        assert_eq!(x86.offset("retval"), Some(80));
        let arm = layout(ContextKind::PtRegs, Arch::Arm64).unwrap();
        assert_eq!(arm.offset("parm2"), Some(8));
        assert_eq!(
            arm.part("regs[30]").unwrap().offset,
            arm.offset("lr").unwrap()
        );
        let perf = layout(ContextKind::PerfEvent, Arch::X86_64).unwrap();
        assert_eq!(perf.part("regs.ip").unwrap().offset, 128);
        assert_eq!(perf.offset("addr"), Some(176));
    }

    #[test]
    fn every_derived_field_is_a_pointer_or_a_length_of_some_context() {
        for name in DERIVED {
            let found = crate::spec::ProgType::ALL.iter().any(|prog_type| {
                layout(prog_type.info().context, Arch::HOST).is_some_and(|l| l.has(name))
            });
            assert!(found, "{name}");
        }
    }
}
