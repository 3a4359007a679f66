//! The data of an opened object. It is collected once from the
//! [`Image`](super::image::Image), which can then be dropped; relocation reads it each time
//! programs are built.

use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

use super::error::Problem;
use super::kconfig::{self, Kconfig};
use super::target::Target;
use crate::btf::{Btf, CoreRelo, FuncInfo, LineInfo, Refusal};
use crate::isa::RawInsn;
use crate::program::{MapDef, TargetProgram};
use crate::spec::{AttachType, ProgFlags, ProgType};
use crate::util::{MapId, TypeId, base_name};

/// An opened BPF object: programs, maps, global variables and externs, which can be
/// selected and changed until programs are built from it.
///
/// It follows libbpf's conventions: the meaning of section names, the subprograms appended
/// to a program, map names, poisoned instructions.
///
/// ```
/// use bpflab::Object;
///
/// let mut object = Object::open("tests/objects/map_kinds.bpf.o")?;
/// object.map_mut("entries")?.set_max_entries(64)?;
/// for program in object.programs() {
///     let program = program?;
///     assert_eq!(program.name, "use_maps");
///     println!("{} has {} instructions", program.name, program.insns.len());
/// }
/// # Ok::<(), bpflab::ObjectError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Object {
    /// Path or name as it was opened, for messages.
    pub(super) file: String,
    /// libbpf's name of the object: no directory, up to the first dot, 15 bytes.
    pub(super) name: String,
    /// Bytes of the file.
    pub(super) file_size: usize,
    pub(super) license: String,
    pub(super) version: Option<u32>,
    pub(super) code: Vec<Code>,
    /// By section and position.
    pub(super) functions: Vec<Function>,
    pub(super) entries: Vec<Entry>,
    pub(super) maps: Vec<MapDef>,
    pub(super) externs: Vec<Extern>,
    pub(super) globals: Vec<Global>,
    pub(super) btf: Option<Btf>,
    /// Why the kernel refuses the BTF, if it does.
    pub(super) btf_refusal: Option<Refusal>,
    pub(super) notes: Vec<Note>,
    pub(super) kconfig: Kconfig,
    pub(super) ksyms: FxHashMap<String, u64>,
    pub(super) target: Target,
    /// The program that the object's programs attach to.
    pub(super) attach_program: Option<Arc<TargetProgram>>,
    /// Maps to which instructions refer by file descriptor.
    pub(super) descriptors: FxHashMap<i32, MapId>,
}

/// A section of instructions, with the records and relocations for it. Positions are slots
/// from the section's start.
#[derive(Debug, Clone, Default)]
pub(super) struct Code {
    pub name: String,
    pub insns: Vec<RawInsn>,
    /// In ascending order of slots.
    pub relocations: Vec<Reloc>,
    /// `func_info`, in ascending order, offsets in slots.
    pub functions: Vec<FuncInfo>,
    /// `line_info`, in ascending order, offsets in slots.
    pub lines: Vec<LineInfo>,
    /// CO-RE relocations, in ascending order, offsets in slots.
    pub core: Vec<CoreRelo>,
}

/// A function: a range of slots of a section.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub name: String,
    /// Index in [`Object::code`].
    pub code: usize,
    /// Its slots.
    pub slots: Range<usize>,
    /// `static`.
    pub local: bool,
}

/// A relocation of an instruction, with its symbol resolved.
#[derive(Debug, Clone)]
pub(super) struct Reloc {
    pub slot: usize,
    pub target: RelocTarget,
}

/// The target of an instruction's relocation.
#[derive(Debug, Clone)]
pub(super) enum RelocTarget {
    /// A call: the function at this slot, `imm + 1` slots further on.
    Call { code: usize, slot: usize },
    /// The address of the function at this byte, `imm` bytes further on.
    Function { code: usize, offset: u64 },
    /// A map.
    Map(MapId),
    /// A byte of a section that became a map; the instruction's `imm` is added.
    Data { map: MapId, offset: u64 },
    /// Index in [`Object::externs`].
    Extern(usize),
    /// An invalid target: an error of the programs that contain it.
    Broken(Box<Problem>),
}

/// A function that a hook calls: the main function of a program.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Index in [`Object::functions`].
    pub(super) function: usize,
    /// Name of the C function.
    pub(super) name: String,
    /// Section without a leading `?`.
    pub(super) section: String,
    /// Instruction slots of the main function alone.
    pub(super) slots: usize,
    pub(super) autoload: bool,
    pub(super) prog_type: Option<ProgType>,
    pub(super) expected_attach_type: Option<AttachType>,
    pub(super) attach_target: Option<String>,
    pub(super) flags: ProgFlags,
    /// `struct_ops`: the type whose member it implements, and the member.
    pub(super) member: Option<(String, String)>,
    /// Index in [`Object::functions`] of its exception callback.
    pub(super) exception_callback: Option<usize>,
}

/// A variable or function that the object declares and does not define.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Extern {
    /// Its name.
    pub name: String,
    /// `__weak`: it may be missing; its value is then 0.
    pub weak: bool,
    /// Kind of symbol.
    pub kind: ExternKind,
    /// Its `BTF_KIND_VAR` or `BTF_KIND_FUNC`.
    pub type_id: Option<TypeId>,
}

/// Kind of an extern.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternKind {
    /// A value of the kernel's configuration (`__kconfig`).
    Kconfig(kconfig::Variable),
    /// A kernel variable (`__ksym`). Without a type (`void`) it is an address from
    /// kallsyms; otherwise it comes from the kernel's BTF.
    KernelVariable {
        /// Type without qualifiers and typedefs; none for `void`.
        ty: Option<TypeId>,
    },
    /// A kfunc (`__ksym`).
    KernelFunction {
        /// Its prototype.
        prototype: TypeId,
    },
    /// A variable or function of another object, which must be linked to this one.
    Elsewhere,
}

/// A variable of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Global {
    /// Name; static variables of functions are `function.variable`.
    pub name: String,
    /// The map that contains it.
    pub map: MapId,
    /// Its first byte in the map's value.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Its type.
    pub ty: Option<TypeId>,
    /// Whether other objects see it.
    pub global: bool,
}

/// A note for an object's author; not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The section concerned; empty for the object as a whole.
    pub section: String,
    /// One sentence.
    pub text: String,
}

impl Object {
    /// An empty object.
    pub(super) fn empty(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            name: short_name(file),
            file_size: 0,
            license: String::new(),
            version: None,
            code: Vec::new(),
            functions: Vec::new(),
            entries: Vec::new(),
            maps: Vec::new(),
            externs: Vec::new(),
            globals: Vec::new(),
            btf: None,
            btf_refusal: None,
            notes: Vec::new(),
            kconfig: Kconfig::default(),
            ksyms: FxHashMap::default(),
            target: Target::default(),
            attach_program: None,
            descriptors: FxHashMap::default(),
        }
    }

    /// Adds a note about a section.
    pub(super) fn note(&mut self, section: &str, text: impl Into<String>) {
        self.notes.push(Note {
            section: section.to_owned(),
            text: text.into(),
        });
    }

    /// The function that contains a slot of a section.
    pub(super) fn function_at(&self, code: usize, slot: usize) -> Option<usize> {
        let after = self
            .functions
            .partition_point(|f| (f.code, f.slots.start) <= (code, slot));
        let index = after.checked_sub(1)?;
        let function = self.functions.get(index)?;
        (function.code == code && function.slots.contains(&slot)).then_some(index)
    }

    /// A function and its section.
    pub(super) fn code_of(&self, function: usize) -> Option<(&Function, &Code)> {
        let function = self.functions.get(function)?;
        Some((function, self.code.get(function.code)?))
    }

    /// Adds a map.
    pub(super) fn add_map(&mut self, map: MapDef) -> MapId {
        let id = MapId::from_index(self.maps.len());
        self.maps.push(map);
        id
    }
}

/// libbpf's name for an object: the file name without directory, up to the first dot,
/// truncated as in the kernel.
fn short_name(file: &str) -> String {
    let base = base_name(file);
    let stem = base.split('.').next().unwrap_or(base);
    prefix(stem, crate::spec::limits::OBJECT_NAME_LEN - 1).to_owned()
}

/// At most the first `len` bytes of a text, whole characters only.
pub(super) fn prefix(text: &str, len: usize) -> &str {
    let mut end = len.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// An unknown-name problem that lists the existing names.
pub(super) fn unknown<'a>(what: &'static str, known: impl Iterator<Item = &'a str>) -> Problem {
    let known = known.map(ToOwned::to_owned).collect();
    Problem::Unknown {
        what,
        known: super::error::Known(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_name_is_libbpfs() {
        for (file, name) in [
            ("write_hist.bpf.o", "write_hist"),
            ("/usr/lib/bpf/a.o", "a"),
            ("./.hidden", ""),
            ("a_name_longer_than_fifteen.o", "a_name_longer_t"),
            ("äöüäöüäöü", "äöüäöüä"),
        ] {
            assert_eq!(short_name(file), name, "{file}");
        }
    }
}
