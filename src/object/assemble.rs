//! Assembles programs: a main function, the subprograms that it reaches in libbpf's order,
//! and relocated references (libbpf, `bpf_object__reloc_code`,
//! `bpf_object__relocate_data`).

use rustc_hash::FxHashMap;

use super::error::{ErrorLocation, ObjectError, Problem};
use super::model::{Code, Function, Object, RelocTarget};
use super::resolve::Resolved;
use super::slots;
use crate::isa::{PseudoKind, RawInsn};
use crate::program::MapDef;
use crate::util::MapId;

type Result<T> = std::result::Result<T, ObjectError>;

/// The code of one program.
#[derive(Debug)]
pub(super) struct Assembled {
    pub insns: Vec<RawInsn>,
    /// Each function with its first slot, in ascending order; the main one first.
    pub functions: Vec<(usize, usize)>,
}

/// Input shared by all programs of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assembler<'a> {
    pub object: &'a Object,
    pub maps: &'a [MapDef],
    pub externs: &'a [Resolved],
    /// Maximum number of slots of a program.
    pub limit: usize,
}

/// A function whose references are being relocated.
struct Frame<'a> {
    /// Its first slot in the program.
    start: usize,
    function: &'a Function,
    code: &'a Code,
    /// The next slot to process, from the function's start.
    next: usize,
    /// The next relocation of the section.
    relocation: usize,
}

impl<'a> Assembler<'a> {
    /// Assembles the program whose main function is at `main` in the object's list.
    ///
    /// # Errors
    /// The first reference that can't be relocated, with its location.
    pub fn assemble(self, main: usize, exception_callback: Option<usize>) -> Result<Assembled> {
        let mut assembly = Assembly {
            with: self,
            insns: Vec::new(),
            functions: Vec::new(),
            placed: FxHashMap::default(),
            stack: Vec::new(),
        };
        assembly.append(main)?;
        assembly.relocate()?;
        if let Some(callback) = exception_callback
            && !assembly.placed.contains_key(&callback)
        {
            assembly.append(callback)?;
            assembly.relocate()?;
        }
        Ok(Assembled {
            insns: assembly.insns,
            functions: assembly.functions,
        })
    }

    /// An error at a slot of a function's section.
    pub fn fault(
        &self,
        function: &Function,
        code: &Code,
        slot: usize,
        problem: Problem,
    ) -> ObjectError {
        let line = code
            .lines
            .partition_point(|line| line.insn_off as usize <= slot)
            .checked_sub(1)
            .and_then(|at| code.lines.get(at))
            .filter(|line| line.insn_off as usize >= function.slots.start);
        let source = line.zip(self.object.btf.as_ref()).map(|(line, btf)| {
            let source = line.source(btf);
            format!("{}:{}: {}", source.file, source.line, source.text.trim())
        });
        let place = ErrorLocation::Program {
            name: function.name.clone(),
            section: code.name.clone(),
            offset: (slot * RawInsn::SIZE) as u64,
            source,
        };
        ObjectError::new(place, problem).of(&self.object.file)
    }
}

struct Assembly<'a> {
    with: Assembler<'a>,
    insns: Vec<RawInsn>,
    functions: Vec<(usize, usize)>,
    placed: FxHashMap<usize, usize>,
    stack: Vec<Frame<'a>>,
}

impl<'a> Assembly<'a> {
    /// Appends a function's code and pushes the function on the stack; returns its first
    /// slot.
    fn append(&mut self, index: usize) -> Result<usize> {
        let object = self.with.object;
        let start = self.insns.len();
        let function = object.functions.get(index);
        let found = function.and_then(|function| {
            let code = object.code.get(function.code)?;
            let insns = code.insns.get(function.slots.clone())?;
            Some((function, code, insns))
        });
        let Some((function, code, insns)) = found else {
            return Ok(start);
        };
        if start + insns.len() > self.with.limit {
            let text = format!(
                "with its subprograms more than {} instructions, which is more than is \
                 built from a file of {} bytes",
                self.with.limit, object.file_size
            );
            return Err(self.with.fault(
                function,
                code,
                function.slots.start,
                Problem::TooLarge(text),
            ));
        }
        self.insns.extend(insns);
        self.functions.push((index, start));
        self.placed.insert(index, start);
        let relocation = code
            .relocations
            .partition_point(|relocation| relocation.slot < function.slots.start);
        self.stack.push(Frame {
            start,
            function,
            code,
            next: 0,
            relocation,
        });
        Ok(start)
    }

    /// Relocates the functions on the stack, the last one first: the first call of a
    /// subprogram appends the subprogram and suspends its caller.
    fn relocate(&mut self) -> Result<()> {
        while let Some(mut frame) = self.stack.pop() {
            let mut callee = None;
            while frame.next < frame.function.slots.len() {
                let slot = frame.function.slots.start + frame.next;
                let at = frame.start + frame.next;
                let Some(&insn) = self.insns.get(at) else {
                    break;
                };
                let target = self.target(&mut frame, slot);
                let called = self
                    .reference(&frame, slot, at, insn, target)
                    .map_err(|problem| {
                        self.with.fault(frame.function, frame.code, slot, problem)
                    })?;
                frame.next += 1 + usize::from(insn.opcode == slots::LOAD_64);
                if let Some(function) = called {
                    match self.placed.get(&function) {
                        Some(&start) => self.point(at, start),
                        None => {
                            callee = Some((function, at));
                            break;
                        }
                    }
                }
            }
            if let Some((function, at)) = callee {
                self.stack.push(frame);
                let start = self.append(function)?;
                self.point(at, start);
            }
        }
        Ok(())
    }

    /// The relocation of a slot; advances the frame past it.
    fn target(&self, frame: &mut Frame<'a>, slot: usize) -> Option<&'a RelocTarget> {
        let mut found = None;
        while let Some(relocation) = frame.code.relocations.get(frame.relocation)
            && relocation.slot <= slot
        {
            if relocation.slot == slot {
                found = Some(&relocation.target);
            }
            frame.relocation += 1;
        }
        found
    }

    /// Relocates an instruction; returns the function that it refers to, if any.
    fn reference(
        &mut self,
        frame: &Frame<'a>,
        slot: usize,
        at: usize,
        insn: RawInsn,
        target: Option<&RelocTarget>,
    ) -> std::result::Result<Option<usize>, Problem> {
        let wide = insn.opcode == slots::LOAD_64;
        if wide && target.is_some() && frame.next + 1 >= frame.function.slots.len() {
            let text = "64-bit immediate load is cut off by the end of the function".to_owned();
            return Err(Problem::Relocation(text));
        }
        let imm = i64::from(insn.imm);
        match target {
            None if slots::calls_subprogram(insn) => self
                .function(frame.function.code, slot as i64 + imm + 1)
                .map(Some),
            None if slots::loads_function(insn) => Err(Problem::Relocation(
                "function address without a relocation".to_owned(),
            )),
            None if slots::names_descriptor(insn) => self.descriptor(at, insn).map(|()| None),
            None => Ok(None),
            Some(RelocTarget::Broken(problem)) => Err((**problem).clone()),
            Some(RelocTarget::Call { code, slot }) => {
                if insn.src() != slots::SUBPROGRAM {
                    let text = format!("call of a function with source {}, not 1", insn.src());
                    return Err(Problem::Relocation(text));
                }
                self.function(*code, *slot as i64 + imm + 1).map(Some)
            }
            Some(RelocTarget::Function { code, offset }) => {
                let byte = i64::try_from(*offset)
                    .unwrap_or(i64::MAX)
                    .saturating_add(imm);
                let size = RawInsn::SIZE as i64;
                if byte % size != 0 {
                    let text = format!("address of byte {byte}: no instruction begins there");
                    return Err(Problem::Relocation(text));
                }
                let function = self.function(*code, byte / size)?;
                self.set(at, insn.with_src(PseudoKind::Func.src()));
                Ok(Some(function))
            }
            Some(RelocTarget::Map(map)) => {
                self.map(at, insn, *map, PseudoKind::MapIdx);
                Ok(None)
            }
            Some(RelocTarget::Data { map, offset }) => {
                let offset = i64::try_from(*offset)
                    .unwrap_or(i64::MAX)
                    .saturating_add(imm);
                let offset = i32::try_from(offset).map_err(|_| {
                    Problem::Relocation(format!("offset {offset:#x} in global data"))
                })?;
                self.second(at, offset);
                self.map(at, insn, *map, PseudoKind::MapIdxValue);
                Ok(None)
            }
            Some(RelocTarget::Extern(index)) => self.external(at, insn, *index).map(|()| None),
        }
    }

    /// The function that begins at a slot of a section.
    fn function(&self, code: usize, slot: i64) -> std::result::Result<usize, Problem> {
        let object = self.with.object;
        let found = usize::try_from(slot).ok().and_then(|slot| {
            let index = object.function_at(code, slot)?;
            (object.functions.get(index)?.slots.start == slot).then_some(index)
        });
        found.ok_or_else(|| {
            let section = object.code.get(code).map_or("?", |code| &*code.name);
            let offset = slot.saturating_mul(RawInsn::SIZE as i64);
            Problem::Relocation(format!(
                "no function begins at offset {offset:#x} of section '{section}', which it refers to"
            ))
        })
    }

    /// Sets the target of a call or function address to a slot of the program.
    fn point(&mut self, at: usize, start: usize) {
        // Both are below the limit, far below what 32 bits represent.
        let distance = start as i64 - at as i64 - 1;
        if let (Some(insn), Ok(imm)) = (self.insns.get_mut(at), i32::try_from(distance)) {
            insn.imm = imm;
        }
    }

    fn set(&mut self, at: usize, insn: RawInsn) {
        if let Some(slot) = self.insns.get_mut(at) {
            *slot = insn;
        }
    }

    /// Sets the immediate of the second slot.
    fn second(&mut self, at: usize, imm: i32) {
        if let Some(slot) = self.insns.get_mut(at + 1) {
            slot.imm = imm;
        }
    }

    /// Replaces a descriptor by the map that was defined for it.
    fn descriptor(&mut self, at: usize, insn: RawInsn) -> std::result::Result<(), Problem> {
        let Some(&map) = self.with.object.descriptors.get(&insn.imm) else {
            let fd = insn.imm;
            return Err(Problem::Unresolved(format!(
                "refers to a map by descriptor {fd}, which only the process that wrote the \
                 object had (bpftrace before 0.18 does so): say what map it is \
                 (define_descriptor)"
            )));
        };
        let kind = if insn.src() == PseudoKind::MapFd.src() {
            PseudoKind::MapIdx
        } else {
            PseudoKind::MapIdxValue
        };
        self.map(at, insn, map, kind);
        Ok(())
    }

    /// Refers a 64-bit immediate to a map, or poisons both slots if the map isn't created.
    fn map(&mut self, at: usize, insn: RawInsn, map: MapId, kind: PseudoKind) {
        let made = self
            .with
            .maps
            .get(map.index())
            .is_some_and(|map| map.autocreate);
        if made {
            let insn = insn.with_src(kind.src()).with_imm(map.0.cast_signed());
            self.set(at, insn);
        } else {
            let poison = slots::poisoned_map(map.index());
            self.set(at, poison);
            self.set(at + 1, poison);
        }
    }

    fn external(
        &mut self,
        at: usize,
        insn: RawInsn,
        index: usize,
    ) -> std::result::Result<(), Problem> {
        let name = || {
            self.with
                .object
                .externs
                .get(index)
                .map_or("?", |ext| &*ext.name)
        };
        let is_call = insn.opcode == slots::CALL;
        match self.with.externs.get(index) {
            Some(Resolved::Unresolved(problem)) => {
                let text = format!("extern '{}': {problem}", name());
                return Err(match problem {
                    Problem::Kconfig(_) => Problem::Kconfig(text),
                    _ => Problem::Unresolved(text),
                });
            }
            Some(Resolved::InBtf(id)) if is_call => {
                let insn = insn.with_src(slots::KFUNC).with_imm(id.0.cast_signed());
                self.set(at, RawInsn { off: 0, ..insn });
            }
            Some(Resolved::Missing) if is_call => self.set(at, slots::poisoned_kfunc(index)),
            _ if is_call => {
                let text = format!("call target '{}' is not a function", name());
                return Err(Problem::Relocation(text));
            }
            Some(Resolved::InBtf(id)) => {
                let insn = insn
                    .with_src(PseudoKind::BtfId.src())
                    .with_imm(id.0.cast_signed());
                self.set(at, insn);
                self.second(at, 0);
            }
            Some(Resolved::Kconfig { map, offset }) => {
                self.second(at, offset.cast_signed());
                self.map(at, insn, *map, PseudoKind::MapIdxValue);
            }
            Some(Resolved::Address(address)) => self.address(at, insn, *address),
            Some(Resolved::Missing) | None => self.address(at, insn, 0),
        }
        Ok(())
    }

    /// Sets a number in both slots.
    fn address(&mut self, at: usize, insn: RawInsn, address: u64) {
        let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
        self.set(at, insn.with_imm(i32::from_le_bytes([a, b, c, d])));
        self.second(at, i32::from_le_bytes([e, f, g, h]));
    }
}
