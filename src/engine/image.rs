//! A loaded program: decoded once, its maps bound to those of a machine.

use std::sync::{Arc, OnceLock};

use super::attached::{AttachedFunction, Attachment};
use super::cells::Threaded;
use super::counting::Counting;
use super::native::Native;
use crate::coverage::{Counts, Meter};
use crate::isa::{CallTarget, Code, DecodeError, Insn};
use crate::lower::{Bindings, EscapingFrames, Lowered, Passes, lower};
use crate::program::Program;
use crate::util::{Pc, TypeId};
use crate::verifier::{Through, Verified};
use crate::vm::kfuncs::Callee;
use crate::vm::maps::Kind;
use crate::vm::memory::{AccessFault, Address, Problem, Region, SharedBytes, SpaceFull};
use crate::vm::{EngineKind, Fallback, Fault, FaultKind, Machine, MapHandle, RanOn};

/// Which loads from unmapped addresses read 0.
#[derive(Debug, Clone)]
enum Probes {
    /// None: they fault.
    Nowhere,
    /// All.
    Everywhere,
    /// Those at these instructions, in their order.
    At(Vec<Pc>),
}

impl Probes {
    fn at(&self, pc: Pc) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Everywhere => true,
            Self::At(pcs) => pcs.binary_search(&pc).is_ok(),
        }
    }
}

/// What a compiler made of the operations when it was first asked for; none if it can't.
type Lazy<T> = OnceLock<Option<T>>;

/// The compilers of the fast engines. Each compiles a program when the engine first needs it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Compilers {
    /// To cells, for the fast interpreter.
    pub cells: Option<fn(&Lowered) -> Option<Threaded>>,
    /// To machine code.
    pub native: Option<fn(&Lowered, Counting) -> Option<Native>>,
}

/// A loaded program.
#[derive(Debug)]
pub struct Image {
    program: Arc<Program>,
    code: Arc<Code>,
    escaping: EscapingFrames,
    maps: Vec<MapHandle>,
    /// The arena whose pointers the program casts.
    arena: Option<MapHandle>,
    functions: Address,
    frame_names: Vec<Arc<str>>,
    /// The kfuncs that it calls.
    kfuncs: Vec<((TypeId, i16), Callee)>,
    lowered: Option<Arc<Lowered>>,
    threaded: Lazy<Threaded>,
    /// Machine code that counts instructions, and code that does not.
    native: [Lazy<Native>; 2],
    compilers: Compilers,
    probes: Probes,
    /// The loads and stores to the arena, in their order.
    in_arena: Vec<Pc>,
    /// Why there are no operations, if so.
    unverified: Fallback,
    /// Counts what the checked interpreter executes, if coverage is measured.
    meter: Option<Arc<Meter>>,
    /// Functions to which other programs are attached.
    attached: Vec<AttachedFunction>,
    /// The image without them.
    unattached: Option<Arc<Self>>,
}

impl Image {
    /// Prepares `program` to run on `machine`; `maps` are the machine's maps, in the order
    /// of the program's. An instruction that can't be decoded faults when it is reached.
    ///
    /// # Errors
    /// [`SpaceFull`] when the machine has no address left for its functions.
    pub fn new(
        program: Arc<Program>,
        maps: Vec<MapHandle>,
        machine: &mut Machine,
    ) -> Result<Self, SpaceFull> {
        let code = Arc::new(Code::new(&program.insns));
        Self::decoded(program, code, maps, machine)
    }

    /// Prepares a program with these instructions.
    fn decoded(
        program: Arc<Program>,
        code: Arc<Code>,
        maps: Vec<MapHandle>,
        machine: &mut Machine,
    ) -> Result<Self, SpaceFull> {
        let functions = Region::opaque(format!("function of {}", program.name));
        let stack_of = |name: &str| Arc::from(format!("stack of {name}"));
        let mut frame_names: Vec<_> = program
            .subprograms
            .iter()
            .map(|sub| stack_of(&sub.name))
            .collect();
        if frame_names.is_empty() {
            frame_names.push(stack_of(&program.name));
        }
        let is_arena = |map: &&MapHandle| {
            let map = machine.map(**map);
            map.is_some_and(|map| matches!(map.kind(), Kind::Arena(_)))
        };
        let kfuncs = callees(&program, &code);
        Ok(Self {
            escaping: EscapingFrames::of(&code),
            code,
            arena: maps.iter().find(is_arena).copied(),
            maps,
            functions: machine.space.insert(functions)?,
            frame_names,
            kfuncs,
            lowered: None,
            threaded: OnceLock::new(),
            native: [OnceLock::new(), OnceLock::new()],
            compilers: Compilers::default(),
            probes: Probes::Nowhere,
            in_arena: Vec::new(),
            unverified: Fallback::Unjudged,
            meter: None,
            attached: Vec::new(),
            unattached: None,
            program,
        })
    }

    /// Prepares a verified program to run on `machine`, also on the fast engines if it can
    /// be lowered.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn verified(
        verified: &Verified,
        maps: Vec<MapHandle>,
        machine: &mut Machine,
        passes: Passes,
    ) -> Result<Self, SpaceFull> {
        let (program, code) = (verified.program().clone(), verified.code().clone());
        let image = Self::decoded(program, code, maps, machine)?;
        let bindings = Bindings {
            machine,
            maps: image.maps(),
            functions: image.functions(),
            escaping: &image.escaping,
        };
        let lowered = lower(verified, bindings, passes).ok().map(Arc::new);
        let through_kernel = |pc: &Pc| verified.through(*pc) == Some(Through::Kernel);
        let probes = image.code.iter().map(|(pc, _)| pc).filter(through_kernel);
        let probes = Probes::At(probes.collect());
        let in_arena = |pc: &Pc| verified.through(*pc) == Some(Through::Arena);
        let in_arena = image.code.iter().map(|(pc, _)| pc).filter(in_arena);
        Ok(Self {
            lowered,
            probes,
            in_arena: in_arena.collect(),
            unverified: Fallback::Unlowered,
            ..image
        })
    }

    /// Sets whether all loads from unmapped addresses read 0, like the kernel's loads
    /// through BTF pointers (`BPF_PROBE_MEM`, `bpf_convert_ctx_accesses`): for programs whose
    /// BTF pointers the verifier did not determine.
    #[must_use]
    pub fn probing(self, probes: bool) -> Self {
        let probes = if probes {
            Probes::Everywhere
        } else {
            self.probes
        };
        Self { probes, ..self }
    }

    /// Marks the program as rejected; a program without operations is otherwise unjudged.
    #[must_use]
    pub fn rejected(self) -> Self {
        Self {
            unverified: Fallback::Rejected,
            ..self
        }
    }

    /// Counts what runs execute from now on. Only the checked interpreter counts, so it runs the
    /// program whichever engine is chosen.
    pub(crate) fn count_with(&mut self, meter: Option<Meter>) {
        self.meter = meter.map(Arc::new);
    }

    /// The same program with these functions to which others are attached.
    pub(crate) fn with_attached(this: &Arc<Self>, attached: Vec<AttachedFunction>) -> Arc<Self> {
        let plain = this.unattached.as_ref().unwrap_or(this);
        if attached.is_empty() {
            return Arc::clone(plain);
        }
        let starts: Vec<Pc> = attached.iter().map(|function| function.start).collect();
        let lowered = plain
            .lowered()
            .map(|lowered| lowered.with_attached(&starts));
        Arc::new(Self {
            program: Arc::clone(&plain.program),
            code: Arc::clone(&plain.code),
            escaping: plain.escaping.clone(),
            maps: plain.maps.clone(),
            arena: plain.arena,
            functions: plain.functions,
            frame_names: plain.frame_names.clone(),
            kfuncs: plain.kfuncs.clone(),
            lowered: lowered.and_then(Result::ok).map(Arc::new),
            threaded: OnceLock::new(),
            native: [OnceLock::new(), OnceLock::new()],
            compilers: plain.compilers,
            probes: plain.probes.clone(),
            in_arena: plain.in_arena.clone(),
            unverified: plain.unverified,
            meter: plain.meter.clone(),
            attached,
            unattached: Some(Arc::clone(plain)),
        })
    }

    /// What is attached to the function at a slot.
    #[inline]
    pub(super) fn attached_at(&self, start: i64) -> Option<&Attachment> {
        let mut attached = self.attached.iter();
        let found = attached.find(|function| i64::from(function.start.0) == start);
        found.map(|function| &function.attachment)
    }

    /// The operations, if a fast engine may run them now, and the block with the context's bytes.
    /// `images` are the loaded programs.
    ///
    /// # Errors
    /// Why the checked interpreter has to run the program: [`Lowered::may_start`] has reasons, and
    /// the programs in the place of its functions must be as fast.
    pub(super) fn may_start_fast<'m>(
        &self,
        images: &[Arc<Self>],
        machine: &'m Machine,
        context: u64,
    ) -> Result<(&Lowered, &'m SharedBytes), Fallback> {
        let lowered = self.fast()?;
        let bytes = lowered.may_start(machine, context)?;
        for function in &self.attached {
            let Attachment::Replaced(program) = function.attachment else {
                continue;
            };
            let extension = images.get(program.index()).ok_or(Fallback::Attached)?;
            let starts = extension.may_start_fast(images, machine, context);
            starts.map_err(|_| Fallback::Attached)?;
        }
        Ok((lowered, bytes))
    }

    /// The counters of executed instructions, if coverage is measured.
    pub(super) fn counts(&self) -> Option<&Counts> {
        self.meter.as_ref().map(|meter| &meter.counts)
    }

    /// The engine that runs the program if this one was chosen, unless an event or a mock
    /// requires the checked interpreter.
    #[must_use]
    pub fn ran_on(&self, chosen: EngineKind) -> RanOn {
        self.ran_on_with(chosen, Counting::Exact)
    }

    /// The same for runs that count instructions or not.
    pub(super) fn ran_on_with(&self, chosen: EngineKind, counting: Counting) -> RanOn {
        match (chosen, self.fast()) {
            (EngineKind::Checked, _) => RanOn::chosen(chosen),
            (_, Err(why)) => RanOn::checked(why),
            (EngineKind::Jit, Ok(_)) if self.native(counting).is_none() => RanOn {
                engine: EngineKind::Interp,
                fallback: Some(Fallback::NoCode),
            },
            _ => RanOn::chosen(chosen),
        }
    }

    /// The operations, if fast engines run the program.
    fn fast(&self) -> Result<&Lowered, Fallback> {
        let lowered = self.lowered().ok_or(self.unverified)?;
        match self.meter {
            Some(_) => Err(Fallback::Measured),
            None => Ok(lowered),
        }
    }

    /// Whether a load whose access is not allowed goes on, and reads nothing: from unmapped
    /// addresses if the program has probe loads, or from a missing page of an arena. The machine
    /// records the access. All engines use this function, so all read the same.
    #[cold]
    pub(super) fn probe(
        &self,
        machine: &Machine,
        pc: Pc,
        address: u64,
        fault: AccessFault,
    ) -> Result<(), FaultKind> {
        let bears = self.probes.at(pc) && fault.is_unmapped(address);
        if !bears && fault.problem != Problem::NoPage && !self.is_in_arena(pc) {
            return Err(fault.into());
        }
        machine.note_probed(|| self.fault(pc, fault.into()));
        Ok(())
    }

    /// Whether an instruction accesses the arena, on all paths: what is not there reads 0 and
    /// can't be written, also behind the arena's end.
    pub(super) fn is_in_arena(&self, pc: Pc) -> bool {
        self.in_arena.binary_search(&pc).is_ok()
    }

    /// Where an access through an arena pointer goes: the address has 32 bits, whatever the
    /// program computed with it.
    pub(super) fn arena_address(&self, machine: &Machine, pointer: u64) -> Option<u64> {
        machine.arena_address(self.arena?, pointer)
    }

    /// The result of a store or an atomic operation that is not allowed: to a missing page of an
    /// arena it does nothing. The machine records the access.
    #[cold]
    pub(super) fn unstored(
        &self,
        machine: &Machine,
        pc: Pc,
        fault: AccessFault,
    ) -> Result<(), FaultKind> {
        let is_there = fault.problem == Problem::Misaligned;
        if is_there || fault.problem != Problem::NoPage && !self.is_in_arena(pc) {
            return Err(fault.into());
        }
        machine.note_probed(|| self.fault(pc, fault.into()));
        Ok(())
    }

    /// Converts an arena pointer (`addr_space_cast`).
    pub(super) fn cast(&self, machine: &Machine, pointer: u64, to_user: bool) -> u64 {
        let cast = self
            .arena
            .map(|arena| machine.cast(arena, pointer, to_user));
        cast.flatten().unwrap_or(pointer)
    }

    /// The functions whose frames escape.
    pub(crate) const fn escaping(&self) -> &EscapingFrames {
        &self.escaping
    }

    /// The region whose offsets are the program's functions.
    pub(crate) const fn functions(&self) -> Address {
        self.functions
    }

    /// The operations of a verified program, for the fast engines.
    #[must_use]
    pub fn lowered(&self) -> Option<&Lowered> {
        self.lowered.as_deref()
    }

    /// Sets the compilers, which are called when an engine first needs its code.
    #[must_use]
    pub(crate) fn compiled_by(self, compilers: Compilers) -> Self {
        Self { compilers, ..self }
    }

    /// The machine code for a lowered program, if there is any.
    #[inline]
    pub(crate) fn native(&self, counting: Counting) -> Option<&Native> {
        let [exact, off] = &self.native;
        let native = match counting {
            Counting::Exact => exact,
            Counting::Off => off,
        };
        let compile = || (self.compilers.native?)(self.lowered()?, counting);
        native.get_or_init(compile).as_ref()
    }

    /// The machine code that was compiled so far.
    #[cfg(feature = "jit")]
    pub(crate) fn natives(&self) -> impl Iterator<Item = &Native> {
        self.native
            .iter()
            .filter_map(|native| native.get()?.as_ref())
    }

    /// The program.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The machine's maps, in the order of the program's.
    #[must_use]
    pub fn maps(&self) -> &[MapHandle] {
        &self.maps
    }

    /// The cells of a lowered program, in optimised builds.
    pub(super) fn threaded(&self) -> Option<&Threaded> {
        let compile = || (self.compilers.cells?)(self.lowered()?);
        self.threaded.get_or_init(compile).as_ref()
    }

    /// The instruction at a slot, if one begins there.
    pub(crate) fn insn_at(&self, pc: Pc) -> Option<Insn> {
        self.code.insn(pc)
    }

    /// The instruction at a slot; `None` outside of the program and in the middle
    /// of a 64-bit immediate.
    #[inline]
    pub(super) fn insn(&self, at: i64) -> Option<Result<Insn, DecodeError>> {
        self.code.get(Pc(u32::try_from(at).ok()?))
    }

    /// A fault at an instruction.
    #[cold]
    pub(crate) fn fault(&self, pc: Pc, kind: FaultKind) -> Box<Fault> {
        let insn = match self.code.get(pc) {
            Some(Ok(insn)) => insn.text(&*self.program).to_string(),
            Some(Err(error)) => format!("{:?}", error.raw),
            None => "none".into(),
        };
        Box::new(Fault::at(&self.program, pc, insn, kind))
    }

    /// The register value that points to the function at a slot.
    #[must_use]
    pub fn function_address(&self, at: i64) -> u64 {
        self.functions.plus(at.cast_unsigned())
    }

    /// The name of the function that a register points to, if it is one of this program.
    #[must_use]
    pub fn function_name(&self, register: u64) -> Option<&str> {
        let at = u32::try_from(self.function_at(register)?).ok()?;
        let function = self.program.subprogram(Pc(at));
        Some(function.map_or(&self.program.name, |function| &function.name))
    }

    /// The slot of the function that a register points to.
    pub(super) fn function_at(&self, register: u64) -> Option<i64> {
        let at = Address::from_register(register)?;
        let ours = at.region() == self.functions.region()
            && at.generation() == self.functions.generation();
        (ours && self.insn(at.offset()).is_some()).then_some(at.offset())
    }

    /// The kfuncs that it calls.
    pub fn kfuncs(&self) -> impl Iterator<Item = &Callee> {
        self.kfuncs.iter().map(|(_, callee)| callee)
    }

    /// The kfunc that a call names.
    pub(super) fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<&Callee> {
        let mut known = self.kfuncs.iter();
        let found = known.find(|(number, _)| *number == (id, fd_index));
        found.map(|(_, callee)| callee)
    }

    /// Whether the frame of the function at a slot escapes.
    pub(super) fn frame_escapes(&self, at: i64) -> bool {
        u32::try_from(at).map_or(true, |at| self.escaping.frame_escapes(Pc(at)))
    }

    /// The name in messages of the stack frame of the function that contains a slot.
    pub(super) fn frame_name(&self, at: i64) -> Option<&Arc<str>> {
        let pc = Pc::from_index(usize::try_from(at).unwrap_or_default());
        let after = self
            .program
            .subprograms
            .partition_point(|sub| sub.start <= pc);
        self.frame_names.get(after.saturating_sub(1))
    }
}

/// The kfuncs that a program calls, each once.
fn callees(program: &Program, code: &Code) -> Vec<((TypeId, i16), Callee)> {
    let mut found: Vec<((TypeId, i16), Callee)> = Vec::new();
    for (_, insn) in code.insns() {
        let Insn::Call(CallTarget::Kfunc { id, fd_index }) = insn else {
            continue;
        };
        if found.iter().any(|(known, _)| *known == (id, fd_index)) {
            continue;
        }
        let callee = Callee::of(program, id, fd_index);
        found.extend(callee.map(|callee| ((id, fd_index), callee)));
    }
    found
}
