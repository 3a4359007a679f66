//! Converts an [`Image`] to an [`Object`]: each section is read according to its name and
//! flags (libbpf, `bpf_object__elf_collect`).

use rustc_hash::FxHashMap;

use super::error::{ObjectError, Problem};
use super::externs::{self, kconfig_size};
use super::image::{Binding, DefinedIn, Image, Section, SectionKind, SymbolKind};
use super::maps_data::{self, DataKind};
use super::model::{Code, Entry, Function, Object};
use super::relocs::{self, SectionUse, SymbolTargets};
use super::types::Sections;
use super::{bpftrace, btf_fixup, maps_btf, maps_legacy, resolve, struct_ops};
use crate::btf::{Btf, BtfExt, Kind, Record, Records};
use crate::isa::RawInsn;
use crate::program::{Initial, MapOrigin, Pinning};
use crate::spec::{AttachType, MapType, ProgFlags, Section as SectionName, SectionFlags};
use crate::util::MapId;

/// The section of subprograms.
pub(super) const TEXT: &str = ".text";
/// Global variables of an arena.
const ARENA: &str = ".addr_space.1";
/// Bytes of a slot; BTF.ext offsets are in bytes.
const SLOT: u32 = 8;
/// Bytes of the license that libbpf passes on.
const LICENSE_LEN: usize = 63;

type Result<T> = std::result::Result<T, ObjectError>;

/// Collects an object.
///
/// # Errors
/// Anything that makes the whole object unusable, with section and offset. Errors in single
/// programs are reported when the programs are built.
pub(super) fn collect(file: &str, image: &Image<'_>) -> Result<Object> {
    let mut object = Object::empty(file);
    object.file_size = image.file_size;
    let mut targets = SymbolTargets {
        sections: vec![SectionUse::Nothing; image.sections.len()],
        ..SymbolTargets::default()
    };
    strings(&mut object, image)?;
    code(&mut object, image, &mut targets)?;
    types(&mut object, image, &mut targets)?;
    maps(&mut object, image, &mut targets)?;
    functions(&mut object, image, &targets)?;
    entries(&mut object);
    relocations(&mut object, image, &targets)?;
    resolve::fill_kconfig(&mut object);
    unused(&mut object, image, &targets);
    Ok(object)
}

/// `license` and `version`.
fn strings(object: &mut Object, image: &Image<'_>) -> Result<()> {
    if let Some((_, section)) = image.find("license") {
        let text = section
            .data
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        let text = text.get(..LICENSE_LEN).unwrap_or(text);
        object.license = String::from_utf8_lossy(text).into_owned();
    }
    if let Some((_, section)) = image.find("version") {
        let bytes = <[u8; 4]>::try_from(&*section.data).map_err(|_| {
            let text = format!("{} bytes; a version has 4", section.data.len());
            ObjectError::section("version", 0, Problem::Malformed(text))
        })?;
        object.version = Some(u32::from_le_bytes(bytes));
    }
    Ok(())
}

/// Sections of instructions.
fn code(object: &mut Object, image: &Image<'_>, targets: &mut SymbolTargets) -> Result<()> {
    for (section, used_as) in image.sections.iter().zip(&mut targets.sections) {
        if section.kind != SectionKind::Bits || !section.executable || section.data.is_empty() {
            continue;
        }
        let (insns, rest) = RawInsn::slots(&section.data);
        if !rest.is_empty() {
            let text = format!("{} bytes of code: not a multiple of 8", section.data.len());
            let offset = (section.data.len() - rest.len()) as u64;
            return Err(ObjectError::section(
                &section.name,
                offset,
                Problem::Malformed(text),
            ));
        }
        *used_as = SectionUse::Code(object.code.len());
        object.code.push(Code {
            name: section.name.clone().into_owned(),
            insns,
            ..Code::default()
        });
    }
    Ok(())
}

/// Reads BTF, its externs, and BTF.ext.
fn types(object: &mut Object, image: &Image<'_>, targets: &mut SymbolTargets) -> Result<()> {
    let raw = match image.find(".BTF") {
        Some((_, section)) => match Btf::parse(&section.data) {
            Ok(btf) => Some(btf),
            Err(error) => {
                let text = error.problem.to_string();
                let error =
                    ObjectError::section(".BTF", error.offset as u64, Problem::Btf(text.clone()));
                if needs_btf(image) {
                    return Err(error);
                }
                object.note(".BTF", format!("left out: {text}"));
                None
            }
        },
        None => None,
    };
    (object.externs, targets.externs) = externs::collect(image, raw.as_ref())?;
    let Some(raw) = raw else { return Ok(()) };
    let btf = btf_fixup::complete(image, &raw, &object.externs).map_err(|error| {
        let text = format!("invalid after completion: {}", error.problem);
        ObjectError::section(".BTF", error.offset as u64, Problem::Btf(text))
    })?;
    if let Some((_, section)) = image.find(".BTF.ext") {
        match BtfExt::parse(&section.data, &btf) {
            Ok(ext) => lines(object, &btf, &ext),
            Err(error) => object.note(".BTF.ext", format!("left out: {error}")),
        }
    }
    object.btf_refusal = btf.refusal();
    if let Some(refusal) = &object.btf_refusal {
        let text = format!("refused by the kernel: {refusal}; programs are loaded without it");
        object.note(".BTF", text);
    }
    object.btf = Some(btf);
    Ok(())
}

/// Whether the object requires BTF.
fn needs_btf(image: &Image<'_>) -> bool {
    image
        .sections
        .iter()
        .any(|section| section.name == maps_btf::SECTION || struct_ops::is_section(&section.name))
        || image.symbols.iter().any(super::image::Symbol::is_extern)
}

/// Assigns functions, source lines and CO-RE relocations to their code sections.
fn lines(object: &mut Object, btf: &Btf, ext: &BtfExt) {
    let by_name: FxHashMap<String, usize> = object
        .code
        .iter()
        .enumerate()
        .rev()
        .map(|(index, code)| (code.name.clone(), index))
        .collect();
    let slot = SLOT;
    assign_records(
        &mut object.code,
        &by_name,
        btf,
        &ext.funcs,
        |code, record| {
            let insn_off = record.insn_off / slot;
            code.functions
                .push(crate::btf::FuncInfo { insn_off, ..record });
        },
    );
    assign_records(
        &mut object.code,
        &by_name,
        btf,
        &ext.lines,
        |code, record| {
            let insn_off = record.insn_off / slot;
            code.lines.push(crate::btf::LineInfo { insn_off, ..record });
        },
    );
    assign_records(
        &mut object.code,
        &by_name,
        btf,
        &ext.relocations,
        |code, record| {
            let insn_off = record.insn_off / slot;
            code.core.push(crate::btf::CoreRelo { insn_off, ..record });
        },
    );
    for code in &mut object.code {
        code.functions.sort_by_key(|record| record.insn_off);
        code.lines.sort_by_key(|record| record.insn_off);
        code.core.sort_by_key(|record| record.insn_off);
    }
}

/// Adds each record to its code section.
fn assign_records<T: Record>(
    code: &mut [Code],
    by_name: &FxHashMap<String, usize>,
    btf: &Btf,
    sections: &[Records<T>],
    give: impl Fn(&mut Code, T),
) {
    for section in sections {
        let name = btf.string(section.section).unwrap_or_default();
        let Some(code) = by_name.get(name).and_then(|index| code.get_mut(*index)) else {
            continue;
        };
        for record in &section.records {
            give(code, *record);
        }
    }
}

/// Creates all maps, in libbpf's order: declared ones, data, configuration, `struct_ops`.
fn maps(object: &mut Object, image: &Image<'_>, targets: &mut SymbolTargets) -> Result<()> {
    let btf = object.btf.clone();
    let types = Sections::new(btf.as_ref());
    if let Some((index, section)) = image.find(maps_btf::SECTION) {
        if btf.is_none() {
            return Err(ObjectError::section(maps_btf::SECTION, 0, Problem::NoBtf));
        }
        let declared = maps_btf::collect(&types, section.size)?;
        let mut values = Vec::new();
        for map in declared {
            let id = object.add_map(map.map);
            targets.maps.insert((index, u64::from(map.offset)), id);
            if let Some(start) = map.values {
                let end = u64::from(map.offset) + u64::from(map.size);
                values.push((u64::from(start), end, id));
            }
        }
        set_use(targets, index, SectionUse::Maps);
        targets.values = values;
    }
    for (index, section) in image.sections.iter().enumerate() {
        if section.kind == SectionKind::Bits && maps_legacy::is_section(&section.name) {
            for map in maps_legacy::collect(image, index)? {
                let id = object.add_map(map.map);
                targets.maps.insert((index, map.offset), id);
            }
            set_use(targets, index, SectionUse::Maps);
        }
    }
    arena(object, image, targets)?;
    for (index, section) in image.sections.iter().enumerate() {
        if let Some(kind) = maps_data::kind_of(section)
            && section.size > 0
        {
            let map = maps_data::map(&object.name, section, kind, types.get(&section.name))?;
            let id = object.add_map(map);
            set_use(targets, index, SectionUse::Data(id));
        }
    }
    let size = kconfig_size(&object.externs);
    if size > 0 {
        let map = maps_data::define(
            &object.name,
            externs::KCONFIG,
            size,
            DataKind::ReadOnly,
            types.get(externs::KCONFIG),
            MapOrigin::Kconfig,
        );
        object.add_map(map);
    }
    for (index, section) in image.sections.iter().enumerate() {
        if section.kind == SectionKind::Bits && struct_ops::is_section(&section.name) {
            for table in struct_ops::collect(section, &types)? {
                let id = object.add_map(table.map);
                targets.maps.insert((index, u64::from(table.offset)), id);
            }
        }
    }
    let pinned = object.maps.iter().filter_map(|map| match map.pinning {
        Pinning::Other(number) => Some(format!(
            "map '{}' has pinning {number}, which its own loader gives a meaning; libbpf \
             refuses it (0 and 1, LIBBPF_PIN_BY_NAME, are known), here it is not shared",
            map.name
        )),
        _ => None,
    });
    for text in pinned.collect::<Vec<_>>() {
        object.note(maps_btf::SECTION, text);
    }
    object.globals = maps_data::globals(image, &types, |section| match targets.of(section) {
        SectionUse::Data(map) => Some(map),
        _ => None,
    });
    Ok(())
}

fn set_use(targets: &mut SymbolTargets, section: usize, used_as: SectionUse) {
    if let Some(slot) = targets.sections.get_mut(section) {
        *slot = used_as;
    }
}

/// Sets the initial contents of the arena's map to the arena's global variables.
fn arena(object: &mut Object, image: &Image<'_>, targets: &mut SymbolTargets) -> Result<()> {
    let mut arenas = object
        .maps
        .iter_mut()
        .enumerate()
        .filter(|(_, map)| map.map_type == MapType::Arena);
    let first = arenas.next();
    if let Some((_, second)) = arenas.next() {
        let text = "second arena; an object can have one".to_owned();
        return Err(ObjectError::map(&second.name, Problem::MapDefinition(text)));
    }
    let Some((index, section)) = image
        .find(ARENA)
        .filter(|(_, section)| !section.data.is_empty())
    else {
        return Ok(());
    };
    let Some((id, map)) = first else {
        let text = "arena variables without a map of type arena".to_owned();
        return Err(ObjectError::section(ARENA, 0, Problem::MapDefinition(text)));
    };
    map.initial = vec![Initial::Bytes {
        key: Vec::new(),
        value: std::sync::Arc::from(&*section.data),
    }];
    set_use(targets, index, SectionUse::Data(MapId::from_index(id)));
    Ok(())
}

/// Finds the functions of each section by its symbols.
fn functions(object: &mut Object, image: &Image<'_>, targets: &SymbolTargets) -> Result<()> {
    let mut has_function = vec![false; object.code.len()];
    for symbol in &image.symbols {
        let (SymbolKind::Function, DefinedIn::Section(section)) = (symbol.kind, symbol.defined_in)
        else {
            continue;
        };
        let SectionUse::Code(code) = targets.of(section) else {
            continue;
        };
        let fault = |text: String| {
            let text = format!("function '{}' {text}", symbol.name);
            let name = image.section_name(section);
            ObjectError::section(name, symbol.value, Problem::Malformed(text))
        };
        let size = RawInsn::SIZE as u64;
        if symbol.size == 0 || symbol.size % size != 0 || symbol.value % size != 0 {
            return Err(fault(format!("has {} bytes of code", symbol.size)));
        }
        let end = symbol.value.checked_add(symbol.size);
        let room = image.section(section).map_or(0, |section| section.size);
        let Some(end) = end.filter(|end| *end <= room) else {
            return Err(fault(format!("ends past the section's {room:#x} bytes")));
        };
        let slot = |byte: u64| usize::try_from(byte / size).unwrap_or(usize::MAX);
        object.functions.push(Function {
            name: symbol.name.clone().into_owned(),
            code,
            slots: slot(symbol.value)..slot(end),
            local: symbol.binding == Binding::Local,
        });
        if let Some(has) = has_function.get_mut(code) {
            *has = true;
        }
    }
    // Code without function symbols, as old compilers emit it: one function.
    let bare = has_function.iter().enumerate().filter(|(_, has)| !**has);
    for (code, _) in bare {
        let Some(section) = object.code.get(code) else {
            continue;
        };
        let (name, len) = (section.name.clone(), section.insns.len());
        object.functions.push(Function {
            name: name.clone(),
            code,
            slots: 0..len,
            local: false,
        });
        object.note(
            &name,
            "no function symbols: the whole section is one program",
        );
    }
    object
        .functions
        .sort_by_key(|function| (function.code, function.slots.start, function.slots.end));
    Ok(())
}

/// Finds the program entry points: the global functions outside of `.text`.
fn entries(object: &mut Object) {
    let mut notes = Vec::new();
    for (index, function) in object.functions.iter().enumerate() {
        let Some(code) = object.code.get(function.code) else {
            continue;
        };
        if code.name == TEXT {
            continue;
        }
        if function.local {
            let text = format!(
                "'{}' is static: a subprogram here, refused by libbpf",
                function.name
            );
            notes.push((code.name.clone(), text));
            continue;
        }
        let of_bpftrace = bpftrace::libbpf_name(&code.name);
        let known = SectionName::classify(of_bpftrace.as_deref().unwrap_or(&code.name));
        if known.is_none() {
            let text = format!(
                "no section name that libbpf knows: program '{}' has no type",
                function.name
            );
            notes.push((code.name.clone(), text));
        }
        object
            .entries
            .push(entry(index, function, &code.name, known));
    }
    for (section, text) in notes {
        object.note(&section, text);
    }
    // bpftrace writes no license, and loads all of its programs as GPL.
    let of_bpftrace = |code: &Code| bpftrace::libbpf_name(&code.name).is_some();
    if object.license.is_empty() && object.code.iter().any(of_bpftrace) {
        "GPL".clone_into(&mut object.license);
    }
}

fn entry(
    index: usize,
    function: &Function,
    section: &str,
    known: Option<SectionName<'_>>,
) -> Entry {
    let says = known.map_or(SectionFlags::empty(), |known| known.rule.flags);
    let mut flags = ProgFlags::empty();
    flags.set(ProgFlags::SLEEPABLE, says.contains(SectionFlags::SLEEPABLE));
    flags.set(
        ProgFlags::XDP_HAS_FRAGS,
        says.contains(SectionFlags::XDP_FRAGS),
    );
    Entry {
        function: index,
        name: function.name.clone(),
        section: section.strip_prefix('?').unwrap_or(section).to_owned(),
        slots: function.slots.len(),
        autoload: known.map_or(!section.starts_with('?'), |known| known.autoload),
        prog_type: known.map(|known| known.rule.prog_type),
        expected_attach_type: known.and_then(|known| {
            // libbpf attaches these through a multi-uprobe link if the kernel supports it,
            // and sets the attach type at load.
            let usdt = says.contains(SectionFlags::USDT);
            let usdt = usdt.then_some(AttachType::TraceUprobeMulti);
            usdt.or(known.rule.attach_type)
        }),
        attach_target: known
            .and_then(|known| known.target)
            .filter(|target| !target.is_empty())
            .map(ToOwned::to_owned),
        flags,
        member: None,
        exception_callback: None,
    }
}

/// Relocations of code, of maps and of `struct_ops` tables.
fn relocations(object: &mut Object, image: &Image<'_>, targets: &SymbolTargets) -> Result<()> {
    for table in &image.relocations {
        let Some(section) = image.section(table.target) else {
            continue;
        };
        match targets.of(table.target) {
            SectionUse::Code(index) => {
                let Some(code) = object.code.get_mut(index) else {
                    continue;
                };
                code.relocations =
                    relocs::of_code(image, targets, &section.name, &code.insns, &table.entries)?;
            }
            SectionUse::Maps => {
                relocs::of_maps(object, image, targets, table.target, &table.entries)?;
            }
            _ if struct_ops::is_section(&section.name) => {
                relocs::of_tables(object, image, targets, table.target, &table.entries)?;
            }
            _ if is_known(section) => {}
            _ => object.note(
                &section.name,
                "holds addresses, which no BPF loader fills in: they are 0 when programs run",
            ),
        }
    }
    exception_callbacks(object);
    Ok(())
}

/// `__exception_cb(function)`: a declaration tag on the main function.
fn exception_callbacks(object: &mut Object) {
    const TAG: &str = "exception_callback:";
    let Some(btf) = &object.btf else { return };
    let mut tags = btf
        .own_types()
        .filter(|ty| ty.kind() == Kind::DeclTag && ty.component().is_none())
        .filter_map(|ty| Some((ty.target()?.name(), ty.name().strip_prefix(TAG)?)))
        .peekable();
    if tags.peek().is_none() {
        return;
    }
    let in_text = object.functions.iter().enumerate().filter(|(_, function)| {
        !function.local
            && object
                .code
                .get(function.code)
                .is_some_and(|code| code.name == TEXT)
    });
    let callbacks: FxHashMap<&str, usize> = in_text
        .map(|(index, function)| (&*function.name, index))
        .collect();
    let of: FxHashMap<&str, usize> = tags
        .filter_map(|(main, name)| Some((main, *callbacks.get(name)?)))
        .collect();
    for entry in &mut object.entries {
        entry.exception_callback = of.get(&*entry.name).copied();
    }
}

/// Adds notes about sections that are ignored.
fn unused(object: &mut Object, image: &Image<'_>, targets: &SymbolTargets) {
    for (index, section) in image.sections.iter().enumerate() {
        if targets.of(index) == SectionUse::Nothing && section.size > 0 && !is_known(section) {
            object.note(&section.name, "an unknown section, skipped");
        }
    }
}

/// Whether the section is used, or ignored by all loaders.
fn is_known(section: &Section<'_>) -> bool {
    let name = section.name.strip_prefix(".rel").unwrap_or(&section.name);
    let by_name = name.starts_with(".debug_")
        || matches!(
            name,
            "license" | "version" | ".BTF" | ".BTF.ext" | ".eh_frame"
        )
        || struct_ops::is_section(name);
    by_name || !matches!(section.kind, SectionKind::Bits | SectionKind::Zeroed)
}
