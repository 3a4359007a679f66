//! Builds programs from an object.

use std::sync::Arc;

use super::assemble::{Assembled, Assembler};
use super::core::{Relocated, Relocator};
use super::error::{ErrorLocation, ObjectError, Problem};
use super::model::{Entry, Object, unknown};
use super::resolve::{self, Resolved};
use super::target::Target;
use super::untyped::no_type;
use crate::btf::{Btf, FuncInfo, Kind, LineInfo, Linkage};
use crate::isa::RawInsn;
use crate::program::{AttachProgram, CoreAccess, Initial, MapDef, Program, Subprogram};
use crate::spec::MapType;
use crate::spec::context::Arch;
use crate::util::{Pc, TypeId};

/// Program bytes built per byte of file, and the minimum allowed for any file: a small
/// hostile file must not fill the memory.
const BYTES_PER_FILE_BYTE: usize = 8;
const BYTES_FOR_ANY_FILE: usize = 32 << 20;

type Result<T> = std::result::Result<T, ObjectError>;

/// Iterator over an object's programs: [`Object::programs`].
#[derive(Debug)]
pub struct Programs<'o> {
    object: &'o Object,
    prepared: Prepared,
    next: usize,
}

/// Data shared by all programs of an object.
#[derive(Debug)]
struct Prepared {
    maps: Arc<[MapDef]>,
    externs: Vec<Resolved>,
    kernel: Option<Btf>,
    /// Remaining bytes of programs that may be built.
    budget: usize,
}

impl Object {
    /// Builds the programs to be loaded, each on its own: an error in one program doesn't
    /// affect the others.
    ///
    /// ```
    /// # fn main() -> Result<(), bpflab::ObjectError> {
    /// let object = bpflab::Object::open("tests/objects/tail_calls.bpf.o")?;
    /// let programs = object.programs().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(programs.len(), 4);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn programs(&self) -> Programs<'_> {
        Programs {
            object: self,
            prepared: Prepared::new(self),
            next: 0,
        }
    }

    /// Builds the program of this name, even if it is not to be loaded.
    ///
    /// # Errors
    /// There is none of this name, or it has an unresolved reference.
    pub fn program(&self, name: &str) -> Result<Program> {
        let entry = self.entry(name)?;
        Prepared::new(self).program(self, entry)
    }

    /// Builds all programs, even those that are not to be loaded.
    pub(super) fn every_program(&self) -> impl Iterator<Item = Result<Program>> + use<'_> {
        let mut prepared = Prepared::new(self);
        let entries = self.entries.iter();
        entries.map(move |entry| prepared.program(self, entry))
    }

    /// Whether a program is loaded with the object. One that `struct_ops` tables refer to
    /// is loaded if a table is.
    fn loads(&self, entry: &Entry) -> bool {
        if entry.member.is_none() {
            return entry.autoload;
        }
        self.maps.iter().any(|map| {
            let refers = |initial: &Initial| {
                matches!(initial, Initial::Program { name, .. } if *name == entry.name)
            };
            map.map_type == MapType::StructOps && map.autocreate && map.initial.iter().any(refers)
        })
    }
}

impl Iterator for Programs<'_> {
    type Item = Result<Program>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = self.object.entries.get(self.next)?;
            self.next += 1;
            if self.object.loads(entry) {
                return Some(self.prepared.program(self.object, entry));
            }
        }
    }
}

impl Prepared {
    fn new(object: &Object) -> Self {
        let kernel = resolve::kernel(object);
        let externs = resolve::resolve(object, kernel.as_ref());
        let budget = object.file_size.saturating_mul(BYTES_PER_FILE_BYTE);
        Self {
            maps: object.maps.clone().into(),
            externs,
            kernel,
            budget: budget.saturating_add(BYTES_FOR_ANY_FILE),
        }
    }

    fn program(&mut self, object: &Object, entry: &Entry) -> Result<Program> {
        let Some(prog_type) = entry.prog_type else {
            return Err(no_type(object, entry));
        };
        if let (Some(refusal), Some(_)) = (&object.btf_refusal, &entry.member) {
            let text = format!("the kernel refuses it ({refusal}), and struct_ops needs it");
            let name = entry.name.clone();
            let error = ObjectError::new(ErrorLocation::Entry { name }, Problem::Btf(text));
            return Err(error.of(&object.file));
        }
        if let Some(kernel) = &self.kernel
            && object.attach_program_of(entry).is_none()
            && let Some(target) = entry.btf_target()
            && Target::is_bundled(kernel)
            && resolve::attach_btf_id(entry, kernel).is_none()
        {
            let text = format!("the bundled types lack `{target}`; give a kernel's BTF");
            let name = entry.name.clone();
            let error = ObjectError::new(ErrorLocation::Entry { name }, Problem::Btf(text));
            return Err(error.of(&object.file));
        }
        let (attach_prog, attach_btf_id) = self.attach_target(object, entry)?;
        let assembler = Assembler {
            object,
            maps: &self.maps,
            externs: &self.externs,
            limit: self.budget / RawInsn::SIZE,
        };
        let mut code = assembler.assemble(entry.function, entry.exception_callback)?;
        let accesses = relocate_core(assembler, self.kernel.as_ref(), &mut code)?;
        let debug = Debug::new(object, &code);
        self.budget = self
            .budget
            .saturating_sub(debug.bytes() + code.insns.len() * RawInsn::SIZE);

        let kernel = self.kernel.clone().or_else(|| object.btf.clone());
        let subprograms = subprograms(object, &code, &debug);
        let attach_target = match &entry.member {
            Some((ty, member)) => Some(format!("{ty}.{member}")),
            None => entry.attach_target.clone(),
        };
        Ok(Program {
            name: entry.name.clone(),
            section: entry.section.clone(),
            prog_type,
            expected_attach_type: entry.expected_attach_type,
            attach_target,
            attach_btf_id,
            attach_prog,
            flags: entry.flags,
            arch: object.btf.as_ref().and_then(Arch::of).unwrap_or(Arch::HOST),
            license: object.license.clone(),
            insns: code.insns,
            subprograms,
            maps: self.maps.clone(),
            btf: object.btf.clone(),
            kernel_btf: kernel,
            func_info: debug.functions,
            lines: debug.lines,
            accesses,
            btf_refused: object.btf_refusal.is_some(),
        })
    }
}

impl Prepared {
    /// What a program attaches to by BTF: a type of another program's, or of the kernel's.
    fn attach_target(
        &self,
        object: &Object,
        entry: &Entry,
    ) -> Result<(AttachProgram, Option<TypeId>)> {
        let Some(target) = object.attach_program_of(entry) else {
            let kernel = self.kernel.as_ref().or(object.btf.as_ref());
            let id = kernel.and_then(|kernel| resolve::attach_btf_id(entry, kernel));
            return Ok((AttachProgram::None, id));
        };
        let name = entry.attach_target.as_deref().unwrap_or_default();
        let btf = target.program.btf.as_ref();
        let function = btf.and_then(|btf| btf.find(name, Kind::Func));
        let Some(function) = function else {
            let known = target.functions.iter();
            let known = known.filter_map(|it| Some(btf?.get(it.type_id)?.name()));
            let what = "the target program has no function of this name";
            let location = ErrorLocation::Entry {
                name: entry.name.clone(),
            };
            return Err(ObjectError::new(location, unknown(what, known)).of(&object.file));
        };
        Ok((
            AttachProgram::Known(Arc::clone(target)),
            Some(function.id()),
        ))
    }
}

/// Applies the CO-RE relocations of a program's functions.
fn relocate_core(
    assembler: Assembler<'_>,
    kernel: Option<&Btf>,
    code: &mut Assembled,
) -> Result<Vec<CoreAccess>> {
    let object = assembler.object;
    let mut accesses = Vec::new();
    let Some(local) = &object.btf else {
        return Ok(accesses);
    };
    let targets = [kernel.unwrap_or(local).clone()];
    let mut relocator = Relocator::new(local, &targets);
    for &(index, start) in &code.functions {
        let Some((function, section)) = object.code_of(index) else {
            continue;
        };
        let first = function.slots.start;
        let insns = code
            .insns
            .get_mut(start..start + function.slots.len())
            .unwrap_or_default();
        for record in range(&section.core, &function.slots, |record| record.insn_off) {
            let at = record.insn_off as usize - first;
            let done = relocator.relocate(insns, at, record).map_err(|error| {
                let text = format!("CO-RE relocation of {}: {}", error.access, error.fault);
                assembler.fault(function, section, first + at, Problem::Relocation(text))
            })?;
            accesses.push(CoreAccess {
                pc: Pc::from_index(start + at),
                path: done.access,
                poisoned: !matches!(done.result, Relocated::Value(_)),
            });
        }
    }
    Ok(accesses)
}

/// The records of a function's slots; the section's records are in ascending order.
fn range<'r, T>(
    records: &'r [T],
    slots: &std::ops::Range<usize>,
    slot: impl Fn(&T) -> u32,
) -> &'r [T] {
    let from = records.partition_point(|record| (slot(record) as usize) < slots.start);
    let to = records.partition_point(|record| (slot(record) as usize) < slots.end);
    records.get(from..to).unwrap_or_default()
}

/// A program's BTF.ext records, with offsets in the program's slots.
struct Debug {
    functions: Vec<FuncInfo>,
    lines: Vec<LineInfo>,
}

impl Debug {
    fn new(object: &Object, assembled: &Assembled) -> Self {
        let mut functions = Vec::with_capacity(assembled.functions.len());
        let mut lines = Vec::new();
        for &(index, start) in &assembled.functions {
            let Some((function, code)) = object.code_of(index) else {
                continue;
            };
            let first = function.slots.start;
            let moved = |insn_off: u32| {
                let slot = (insn_off as usize).saturating_sub(first) + start;
                u32::try_from(slot).unwrap_or(u32::MAX)
            };
            let info = range(&code.functions, &function.slots, |info| info.insn_off);
            let own = info.first().filter(|info| info.insn_off as usize == first);
            functions.extend(own.map(|info| FuncInfo {
                insn_off: moved(info.insn_off),
                ..*info
            }));
            let own = range(&code.lines, &function.slots, |line| line.insn_off);
            lines.extend(own.iter().map(|line| LineInfo {
                insn_off: moved(line.insn_off),
                ..*line
            }));
        }
        // The kernel requires a record for every function or none at all.
        if functions.len() != assembled.functions.len() {
            functions.clear();
        }
        Self { functions, lines }
    }

    fn bytes(&self) -> usize {
        self.functions.len() * size_of::<FuncInfo>() + self.lines.len() * size_of::<LineInfo>()
    }
}

fn subprograms(object: &Object, assembled: &Assembled, debug: &Debug) -> Vec<Subprogram> {
    let types = debug.functions.iter().map(|info| Some(info.ty));
    let types = types.chain(std::iter::repeat(None));
    assembled
        .functions
        .iter()
        .zip(types)
        .map(|(&(index, start), type_id)| Subprogram {
            name: object
                .functions
                .get(index)
                .map(|function| function.name.clone())
                .unwrap_or_default(),
            start: Pc::from_index(start),
            type_id,
            global: type_id.is_some_and(|id| is_global(object, id)),
        })
        .collect()
}

fn is_global(object: &Object, id: TypeId) -> bool {
    let ty = object.btf.as_ref().and_then(|btf| btf.get(id));
    ty.and_then(|ty| ty.linkage()) == Some(Linkage::Global)
}
