//! Layouts from BTF, from format files and from the table of system calls, compared
//! for every tracepoint of the running kernel.

use std::collections::BTreeMap;
use std::process::Command;

use super::context;
use super::layout::Layout;
use crate::btf::{Btf, Kind};
use crate::sample;
use crate::shared::is_emulated;
use crate::shared::{Need, skip};
use crate::spec::ProgType;
use crate::spec::context::Arch;
use crate::vm::fields::{Field, Shape, Storage};

/// The format file of every tracepoint, by `(group, name)`, read from a tracefs in a private
/// mount namespace: the machine's mounts are unchanged.
fn formats() -> Result<BTreeMap<(String, String), String>, String> {
    const SCRIPT: &str = "mount -t tracefs none /sys/kernel/tracing || exit 3
        cd /sys/kernel/tracing/events || exit 3
        for f in */*/format; do echo \"### $f\"; cat $f; done";
    if is_emulated() {
        return Err("starting processes may hang in an emulator".to_owned());
    }
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", SCRIPT])
        .output()
        .map_err(|error| format!("no unshare: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("no private tracefs (root?): {error}"));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let files = text.split("### ").skip(1).filter_map(|file| {
        let (path, format) = file.split_once('\n')?;
        let mut parts = path.split('/');
        Some(((parts.next()?.into(), parts.next()?.into()), format.into()))
    });
    Ok(files.collect())
}

fn kernel_btf() -> Result<Btf, String> {
    let bytes = std::fs::read("/sys/kernel/btf/vmlinux").map_err(|e| e.to_string())?;
    Btf::parse(&bytes).map_err(|error| error.to_string())
}

/// The data that must agree: name, offset, size, storage.
fn essence(layout: &Layout) -> Vec<(&str, u32, u32, Storage)> {
    let fields = layout.fields.iter().filter(|field| field.name != "ent");
    fields
        .map(|field| (&*field.name, field.offset, field.size(), field.storage))
        .collect()
}

/// Whether two shapes have the same type, as far as both are known.
fn shapes_agree(a: &Field, b: &Field) -> bool {
    fn agree(a: &Shape, b: &Shape) -> bool {
        match (a, b) {
            (Shape::Opaque { .. } | Shape::Struct { .. }, _)
            | (_, Shape::Opaque { .. } | Shape::Struct { .. }) => true,
            (Shape::Array { element: x, .. }, Shape::Array { element: y, .. }) => {
                x.size() == y.size() && agree(x, y)
            }
            // The sign of an enum may differ: the format file has the result of
            // is_signed_type(), BTF what the values need.
            (Shape::Int { size: x, .. }, Shape::Int { size: y, .. }) => x == y,
            // typedefs hide pointers and chars from the format file.
            (x, y) => x.size() == y.size(),
        }
    }
    a.storage != Storage::Inline || agree(&a.shape, &b.shape)
}

#[test]
fn btf_and_format_files_agree() {
    let (formats, btf) = match formats().and_then(|formats| Ok((formats, kernel_btf()?))) {
        Ok(found) => found,
        Err(why) => return skip(Need::Kernel, why),
    };
    let (mut same, mut unknown, mut sizes) = (0, Vec::new(), Vec::new());
    for ((group, name), text) in formats.iter().step_by(sample::step()) {
        let format = Layout::from_format(group, text).unwrap_or_else(|error| panic!("{error}"));
        if group == "syscalls" {
            continue;
        }
        match Layout::from_btf(&btf, group, name) {
            Err(error) => unknown.push(error.to_string()),
            Ok(layout) => {
                assert_eq!(essence(&layout), essence(&format), "{group}/{name}");
                let fields = layout.fields.iter().filter(|field| field.name != "ent");
                for (a, b) in fields.zip(&format.fields) {
                    assert!(shapes_agree(a, b), "{group}/{name}: {a:?} {b:?}");
                }
                let (a, b) = (&layout, &format);
                assert_eq!(
                    (a.readable, a.hidden),
                    (b.readable, b.hidden),
                    "{group}/{name}"
                );
                if (a.size, a.data_offset) != (b.size, b.data_offset) {
                    sizes.push(format!(
                        "{group}/{name}: {} {} {} {}",
                        a.size, b.size, a.data_offset, b.data_offset
                    ));
                }
                same += 1;
            }
        }
    }
    eprintln!("{same} tracepoints agree, {} are not in BTF", unknown.len());
    for error in &unknown {
        eprintln!("  {error}");
    }
    assert!(sizes.is_empty(), "{sizes:#?}");
    let others = unknown.iter().filter(|error| !error.contains(" ftrace/"));
    assert!(same > 20 * others.count(), "{unknown:#?}");
}

/// The kernel's architecture; under an emulator it is not the test's.
fn kernel_arch(btf: &Btf) -> Arch {
    let registers = btf.find("pt_regs", Kind::Struct);
    if registers.is_some_and(|ty| btf.field(ty.id(), "r15").is_ok()) {
        Arch::X86_64
    } else {
        Arch::Arm64
    }
}

#[test]
fn contexts_are_laid_out_as_the_kernels_btf_says() {
    let btf = match kernel_btf() {
        Ok(btf) => btf,
        Err(why) => return skip(Need::Kernel, why),
    };
    let arch = kernel_arch(&btf);
    let mut checked = 0;
    for prog_type in ProgType::ALL {
        let Some(layout) = context::layout(prog_type.info().context, arch) else {
            continue;
        };
        let Some(ty) = btf.find(&layout.name, Kind::Struct) else {
            continue;
        };
        if ty.size() == Some(0) {
            continue; // bpf_raw_tracepoint_args is a flexible array
        }
        assert_eq!(ty.size(), Some(layout.size), "{}", layout.name);
        for field in &layout.fields {
            let path = match layout.name.as_str() {
                "bpf_perf_event_data" if field.offset < layout.size - 16 => {
                    format!("regs.{}", field.name)
                }
                _ => field.name.clone(),
            };
            let what = format!("{}.{path}", layout.name);
            let found = btf.field(ty.id(), &path).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(u64::from(field.offset) * 8, found.bit_offset, "{what}");
            // Of the 8 bytes of a segment register, BTF names the lower two.
            let segment = matches!(field.name.as_str(), "cs" | "ss") && found.bit_size == 16;
            let bits = u64::from(field.size()) * 8;
            assert!(bits == found.bit_size || segment, "{what}");
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked}");
}

#[test]
fn the_table_of_system_calls_agrees_with_format_files() {
    let formats = match formats() {
        Ok(found) => found,
        Err(why) => return skip(Need::Kernel, why),
    };
    let btf = match kernel_btf() {
        Ok(btf) => btf,
        Err(why) => return skip(Need::Kernel, why),
    };
    let arch = kernel_arch(&btf);
    let (mut same, mut unknown) = (0, Vec::new());
    for ((group, name), text) in formats
        .iter()
        .filter(|((group, _), _)| group.ends_with("syscalls"))
    {
        let format = Layout::from_format(group, text).unwrap_or_else(|error| panic!("{error}"));
        let Ok(table) = Layout::of_tracepoint(group, name, None, arch) else {
            unknown.push(name);
            continue;
        };
        assert_eq!(essence(&table), essence(&format), "{group}/{name}");
        for (a, b) in table.fields.iter().zip(&format.fields) {
            assert_eq!(
                (&a.shape, &a.aliases),
                (&b.shape, &b.aliases),
                "{group}/{name}"
            );
        }
        assert_eq!(
            (table.readable, table.context_size),
            (format.readable, format.context_size),
            "{group}/{name}"
        );
        same += 1;
    }
    eprintln!("{same} system-call tracepoints agree, not in the table: {unknown:?}");
    assert!(same > 600 && unknown.is_empty());
}

#[test]
fn every_tracepoint_in_btf_has_its_arguments() {
    let btf = match kernel_btf() {
        Ok(btf) => btf,
        Err(why) => return skip(Need::Kernel, why),
    };
    let (mut named, mut all) = (0, 0);
    let typedefs = btf.types().filter(|ty| ty.kind() == Kind::Typedef);
    for name in typedefs.filter_map(|ty| ty.name().strip_prefix("btf_trace_")) {
        let layout = Layout::of_raw_tracepoint(&btf, name).unwrap_or_else(|e| panic!("{e}"));
        let fields = &layout.fields;
        assert!(fields.iter().all(|field| field.end() <= layout.size));
        all += 1;
        named += usize::from(fields.iter().all(|field| !field.name.starts_with("arg")));
    }
    eprintln!("{all} raw tracepoints, {named} with names for all arguments");
    assert!(all > 500 && named * 10 > all * 9, "{named} of {all}");
    let switch = Layout::of_raw_tracepoint(&btf, "sched_switch").unwrap();
    assert_eq!(
        ["preempt", "prev", "next", "prev_state"].map(|name| switch.offset(name)),
        [0, 8, 16, 24].map(Some)
    );
}
