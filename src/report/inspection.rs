//! The contents of an object file: `bpflab inspect`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::datum::Datum;
use super::map_summary::MapSummary;
use super::table::{Table, section};
use crate::object::{Entry, ExternKind, Global, KconfigKind, Object};
use crate::program::{MapOrigin, Program};

/// The contents of an object. Its fields are the keys of `bpflab inspect --json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// Path or name of the file.
    pub object: String,
    /// libbpf's name for it.
    pub name: String,
    /// License; empty if there is none.
    pub license: String,
    /// The kernel version in its `version` section, which old kernels need.
    pub version: Option<u32>,
    /// Its BTF, if it has one.
    pub btf: Option<BtfSummary>,
    /// Programs, by section and position.
    pub programs: Vec<ProgramSummary>,
    /// Maps; a map's index is its number in instructions.
    pub maps: Vec<MapSummary>,
    /// Global variables with their initial values.
    pub globals: Vec<GlobalSummary>,
    /// Externs: what the kernel or another object defines.
    pub externs: Vec<ExternSummary>,
    /// Number of relocations of each kind.
    pub relocations: BTreeMap<&'static str, usize>,
    /// The relocations, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relocation_list: Option<Vec<RelocationRow>>,
    /// Notes for the author, such as skipped sections.
    pub notes: Vec<NoteRow>,
}

/// Sizes of the BTF.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BtfSummary {
    /// Types, without `void`.
    pub types: u32,
    /// Bytes of strings.
    pub string_bytes: u32,
    /// Function records of the programs.
    pub functions: usize,
    /// Line records of the programs.
    pub lines: usize,
}

/// A program.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ProgramSummary {
    /// Name of the C function.
    pub name: String,
    /// Section.
    pub section: String,
    /// Program type; none if the section's name does not determine it.
    pub prog_type: Option<&'static str>,
    /// Attach type, for program types that have one.
    pub expected_attach_type: Option<&'static str>,
    /// Attach target.
    pub attach_target: Option<String>,
    /// Flags that it is loaded with.
    pub flags: Vec<&'static str>,
    /// Instruction slots with subprograms; of the main function alone if the program can't be
    /// relocated.
    pub insns: usize,
    /// The subprograms that it calls.
    pub subprograms: Vec<String>,
    /// Whether it is loaded with the object.
    pub autoload: bool,
    /// Why it can't be relocated, if so.
    pub error: Option<String>,
}

/// A global variable.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct GlobalSummary {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: String,
    /// The map that holds the section.
    pub map: String,
    /// Its offset in that map's value.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Its type as C writes it.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// Whether it is `static`.
    #[serde(rename = "static")]
    pub is_static: bool,
    /// The initial value.
    pub value: Datum,
}

/// An extern: a symbol that the object declares and does not define.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ExternSummary {
    /// Its name.
    pub name: String,
    /// `kconfig`, `kernel_variable`, `kernel_function` or `elsewhere`.
    pub kind: &'static str,
    /// Whether it may be missing.
    pub weak: bool,
    /// Its type as C writes it.
    #[serde(rename = "type")]
    pub ty: Option<String>,
}

/// A relocation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RelocationRow {
    /// The section of the instruction; the program for CO-RE.
    pub section: String,
    /// The instruction, in slots from the section's start, for CO-RE from the
    /// program's.
    pub insn: usize,
    /// The kind of target: `call`, `function`, `map`, `data`, `extern`, `core`, or `broken`.
    pub kind: &'static str,
    /// The name of the target; for CO-RE the access as in C.
    pub target: String,
    /// CO-RE: whether the kernel's types lack the target.
    pub poisoned: bool,
}

/// A note on a section.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NoteRow {
    /// The section; empty for the object as a whole.
    pub section: String,
    /// One sentence.
    pub text: String,
}

impl Inspection {
    /// Inspects an object; lists each relocation if `relocations` is set.
    #[must_use]
    pub fn new(object: &Object, relocations: bool) -> Self {
        let entries = object.entries().iter();
        let loaded: Vec<_> = entries
            .clone()
            .map(|entry| object.program(entry.name()))
            .collect();
        let programs: Vec<&Program> = loaded.iter().flatten().collect();
        let rows = relocation_rows(object, &programs);
        let mut counts = BTreeMap::new();
        for row in &rows {
            *counts.entry(row.kind).or_insert(0) += 1;
        }
        Self {
            object: object.file().to_owned(),
            name: object.name().to_owned(),
            license: object.license().to_owned(),
            version: object.version(),
            btf: object.btf().map(|btf| BtfSummary {
                types: btf.count().saturating_sub(1),
                string_bytes: btf.string_end(),
                functions: programs.iter().map(|program| program.func_info.len()).sum(),
                lines: programs.iter().map(|program| program.lines.len()).sum(),
            }),
            programs: entries
                .zip(&loaded)
                .map(|(entry, loaded)| ProgramSummary::new(entry, loaded.as_ref()))
                .collect(),
            maps: object
                .maps()
                .iter()
                .map(|map| MapSummary::new(map, object.btf()))
                .collect(),
            globals: globals(object),
            externs: externs(object),
            relocations: counts,
            relocation_list: relocations.then_some(rows),
            notes: object
                .notes()
                .iter()
                .map(|note| NoteRow {
                    section: note.section.clone(),
                    text: note.text.clone(),
                })
                .collect(),
        }
    }
}

impl ProgramSummary {
    fn new<E: fmt::Display>(entry: &Entry, loaded: Result<&Program, &E>) -> Self {
        let subprograms = loaded
            .iter()
            .flat_map(|program| program.subprograms.iter().skip(1));
        Self {
            name: entry.name().to_owned(),
            section: entry.section().to_owned(),
            prog_type: entry.prog_type().map(|prog_type| prog_type.name()),
            expected_attach_type: entry.expected_attach_type().map(|ty| ty.name()),
            attach_target: entry.attach_target().map(ToOwned::to_owned),
            flags: entry.flags().iter_names().map(|(name, _)| name).collect(),
            insns: loaded.map_or(entry.slots(), |program| program.insns.len()),
            subprograms: subprograms.map(|sub| sub.name.clone()).collect(),
            autoload: entry.autoload(),
            error: loaded.err().map(ToString::to_string),
        }
    }
}

impl GlobalSummary {
    fn new(object: &Object, global: &Global) -> Self {
        let map = object.maps().get(global.map.index());
        let start = global.offset as usize;
        let initial = map.and_then(|map| map.initial_value(&0u32.to_le_bytes()));
        let initial = initial
            .and_then(|value| value.get(start..))
            .unwrap_or_default();
        let mut bytes = initial.to_vec();
        bytes.resize(global.size as usize, 0);
        Self {
            name: global.name.clone(),
            section: match map.map(|map| &map.origin) {
                Some(MapOrigin::Section(section)) => section.clone(),
                _ => String::new(),
            },
            map: map.map(|map| map.name.clone()).unwrap_or_default(),
            offset: global.offset,
            size: global.size,
            ty: object
                .btf()
                .zip(global.ty)
                .map(|(btf, ty)| btf.type_name(ty)),
            is_static: !global.global,
            value: Datum::new(object.btf(), global.ty, &bytes),
        }
    }
}

/// The variables, sorted by map and offset.
fn globals(object: &Object) -> Vec<GlobalSummary> {
    let mut globals: Vec<&Global> = object.globals().iter().collect();
    globals.sort_by_key(|global| (global.map, global.offset));
    let summaries = globals
        .into_iter()
        .map(|global| GlobalSummary::new(object, global));
    summaries.collect()
}

fn externs(object: &Object) -> Vec<ExternSummary> {
    let externs = object.externs().iter();
    externs
        .map(|external| ExternSummary {
            name: external.name.clone(),
            kind: match &external.kind {
                ExternKind::Kconfig(_) => "kconfig",
                ExternKind::KernelVariable { .. } => "kernel_variable",
                ExternKind::KernelFunction { .. } => "kernel_function",
                _ => "elsewhere",
            },
            weak: external.weak,
            ty: match (&external.kind, object.btf(), external.type_id) {
                (ExternKind::KernelFunction { prototype }, Some(btf), _) => {
                    btf.c_declaration(*prototype, &external.name).ok()
                }
                (_, Some(btf), Some(ty)) => Some(btf.type_name(ty)),
                (ExternKind::Kconfig(variable), ..) => Some(kconfig_type(variable.kind).to_owned()),
                _ => None,
            },
        })
        .collect()
}

const fn kconfig_type(kind: KconfigKind) -> &'static str {
    match kind {
        KconfigKind::Bool => "bool",
        KconfigKind::Tristate => "enum libbpf_tristate",
        KconfigKind::Char => "char",
        KconfigKind::Int => "int",
        KconfigKind::Text => "char[]",
    }
}

fn relocation_rows(object: &Object, programs: &[&Program]) -> Vec<RelocationRow> {
    let elf = object.relocations().map(|relocation| RelocationRow {
        section: relocation.section.to_owned(),
        insn: relocation.slot,
        kind: relocation.kind.name(),
        target: relocation.target,
        poisoned: false,
    });
    let core = programs.iter().flat_map(|program| {
        let accesses = program.accesses.iter();
        accesses.map(|access| RelocationRow {
            section: program.name.clone(),
            insn: access.pc.index(),
            kind: "core",
            target: access.path.clone(),
            poisoned: access.poisoned,
        })
    });
    elf.chain(core).collect()
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "object {}", self.object)?;
        let mut about = Table::default();
        match self.license.as_str() {
            "" => about.row(["license", "none"]),
            license => about.row(["license", license]),
        }
        if let Some(version) = self.version {
            about.row(["version".to_owned(), format!("{version:#x}")]);
        }
        match &self.btf {
            Some(btf) => about.row([
                "BTF".to_owned(),
                format!(
                    "{} types, {} bytes of strings, functions: {}, lines: {}",
                    btf.types, btf.string_bytes, btf.functions, btf.lines
                ),
            ]),
            None => about.row(["BTF", "none"]),
        }
        let counts = self.relocations.iter();
        let counts: Vec<_> = counts
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        if !counts.is_empty() {
            about.row(["relocations".to_owned(), counts.join(", ")]);
        }
        write!(f, "{about}")?;
        section(
            f,
            "programs",
            self.programs.iter().map(ProgramSummary::cells),
        )?;
        for program in &self.programs {
            if let Some(error) = &program.error {
                writeln!(f, "  {} can't be loaded: {error}", program.name)?;
            }
        }
        section(f, "maps", self.maps.iter().map(MapSummary::cells))?;
        section(
            f,
            "global variables",
            self.globals.iter().map(GlobalSummary::cells),
        )?;
        section(f, "externs", self.externs.iter().map(ExternSummary::cells))?;
        let list = self.relocation_list.iter().flatten();
        section(f, "relocations", list.map(RelocationRow::cells))?;
        let notes = self.notes.iter();
        section(
            f,
            "notes",
            notes.map(|note| vec![note.section.clone(), note.text.clone()]),
        )
    }
}

impl ProgramSummary {
    fn cells(&self) -> Vec<String> {
        let mut kind = self.prog_type.unwrap_or("unknown type").to_owned();
        if let Some(attach) = self.expected_attach_type {
            kind = format!("{kind}/{attach}");
        }
        let mut rest = Vec::new();
        if let Some(target) = &self.attach_target {
            rest.push(format!("on {target}"));
        }
        if !self.flags.is_empty() {
            rest.push(self.flags.join("|").to_lowercase());
        }
        if !self.subprograms.is_empty() {
            rest.push(format!("calls {}", self.subprograms.join(", ")));
        }
        if !self.autoload {
            rest.push("not loaded".to_owned());
        }
        vec![
            self.name.clone(),
            self.section.clone(),
            kind,
            format!("{} insns", self.insns),
            rest.join(", "),
        ]
    }
}

impl GlobalSummary {
    fn cells(&self) -> Vec<String> {
        let storage = if self.is_static { "static " } else { "" };
        vec![
            format!("{}+{}", self.section, self.offset),
            format!("{storage}{}", self.ty.as_deref().unwrap_or("?")),
            self.name.clone(),
            format!("{} bytes", self.size),
            format!("= {}", self.value),
        ]
    }
}

impl ExternSummary {
    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.kind.replace('_', " "),
            self.ty.clone().unwrap_or_default(),
            if self.weak { "weak" } else { "" }.to_owned(),
        ]
    }
}

impl RelocationRow {
    fn cells(&self) -> Vec<String> {
        vec![
            format!("{} insn {}", self.section, self.insn),
            self.kind.to_owned(),
            self.target.clone(),
            if self.poisoned {
                "not in the kernel's types"
            } else {
                ""
            }
            .to_owned(),
        ]
    }
}
