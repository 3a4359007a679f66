//! Finds the sites: the inputs and outputs of each instruction.

use super::calls::{self, Callee, Extent, Returns, Role, Signature};
use super::context::is_changing;
use super::dataflow::{Kind, Owner, State};
use super::error::Reason;
use super::liveness::Liveness;
use super::site::{
    AccessedState, Field, FieldLocation, Length, Moment, Site, What, Whose, argument,
};
use crate::isa::{CallTarget, Insn, Reg, RegSet, Size};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::spec::{CallReplay, MapFlags};
use crate::util::{MapId, Pc};

/// Limit in bytes for a field whose size is only known at run time.
const MOST_COUNTED: u16 = 4096;
/// Limit in bytes for a field of known size.
pub(super) const MOST_FIXED: u32 = 8192;

/// A ring-buffer record that both forms zero when it is reserved: the former contents of the
/// ring buffer are no input worth comparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clear {
    /// The call that reserves the record.
    pub(super) pc: Pc,
    /// Its size in bytes.
    pub(super) size: u32,
}

/// A tail call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The call.
    pub pc: Pc,
    /// The prog array that it uses.
    pub map: MapId,
}

/// The sites and related instructions of a program.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sites: Vec<Site>,
    pub(super) clears: Vec<Clear>,
    pub(super) jumps: Vec<Jump>,
    /// The number of bytes of the context that the program reads, from its start.
    pub(super) context: u32,
}

/// Visits the instructions one after another.
pub(super) struct Finder<'p> {
    pub(super) program: &'p Program,
    pub(super) liveness: &'p Liveness<'p>,
    pub(super) found: Found,
}

/// An instruction with the states around it.
pub(super) struct At<'a> {
    pub(super) pc: Pc,
    pub(super) insn: Insn,
    pub(super) before: &'a State,
    pub(super) after: &'a State,
}

impl At<'_> {
    /// The field in a register with this meaning; none if the instruction has no such value, or
    /// if its value depends on the kernel's addresses.
    pub(super) fn output(&self, what: What) -> Option<Field> {
        let field = Field::of(self.insn, what)?;
        let is_logged = |reg: Reg| {
            let is_set = !matches!(what, What::Argument(_)) || self.before.defined().contains(reg);
            is_set && self.before.reg(reg).is_comparable()
        };
        field
            .value_registers()
            .iter()
            .all(is_logged)
            .then_some(field)
    }
}

impl Finder<'_> {
    /// Visits the next instruction.
    pub(super) fn see(&mut self, at: &At<'_>) -> Result<(), Reason> {
        match at.insn {
            Insn::Load {
                base, off, size, ..
            }
            | Insn::LoadAcquire {
                base, off, size, ..
            } => self.load(at, base, off, size),
            Insn::LoadSx {
                base, off, from, ..
            } => self.load(at, base, off, from.size()),
            Insn::Store { base, off, .. } | Insn::StoreRelease { base, off, .. } => {
                self.store(at, base, off)
            }
            Insn::Atomic { base, off, .. } => self.atomic(at, base, off),
            Insn::Call(target) => self.call(at, target),
            Insn::LoadPacket { .. } => Err(Reason::Instruction("packets are not recorded")),
            _ => Ok(()),
        }
    }

    fn load(&mut self, at: &At<'_>, base: Reg, off: i16, size: Size) -> Result<(), Reason> {
        let accesses = match at.before.reg(base) {
            Kind::Context(_) if is_changing(self.program.prog_type) => AccessedState::World,
            Kind::Context(start) => {
                let end = start
                    .and_then(|start| u32::try_from(start + i32::from(off)).ok())
                    .map(|start| start + u32::from(size.bytes()));
                self.found.context = self.found.context.max(end.unwrap_or(0));
                return Ok(());
            }
            Kind::Nothing
            | Kind::Frame { .. }
            | Kind::Constant
            | Kind::Record { .. }
            | Kind::Private => return Ok(()),
            Kind::Value(_) | Kind::Own => AccessedState::Own,
            Kind::Scalar(_) | Kind::Map(_) | Kind::Kernel | Kind::Function(_) | Kind::Unknown => {
                AccessedState::World
            }
            Kind::Arena => return Err(ARENA),
        };
        let loaded = Field::of(at.insn, What::Loaded);
        self.add(at, Moment::After, accesses, loaded.into_iter().collect());
        Ok(())
    }

    fn store(&mut self, at: &At<'_>, base: Reg, off: i16) -> Result<(), Reason> {
        let Some(accesses) = self.written(at.before.reg(base).moved_by(off))? else {
            return Ok(());
        };
        let stored = at.output(What::Stored);
        self.add(at, Moment::Before, accesses, stored.into_iter().collect());
        Ok(())
    }

    /// The state that a store changes; `None` for the run's private memory.
    fn written(&self, kind: Kind) -> Result<Option<AccessedState>, Reason> {
        match kind {
            Kind::Context(_) if is_changing(self.program.prog_type) => {
                Ok(Some(AccessedState::World))
            }
            kind => written(kind),
        }
    }

    fn atomic(&mut self, at: &At<'_>, base: Reg, off: i16) -> Result<(), Reason> {
        let Some(accesses) = self.written(at.before.reg(base).moved_by(off))? else {
            return Ok(());
        };
        if accesses == AccessedState::World {
            return Err(Reason::Instruction("an atomic operation on kernel memory"));
        }
        let given = [What::Operand, What::Expected];
        let given = given.into_iter().filter_map(|what| at.output(what));
        self.add(at, Moment::Before, accesses, given.collect());
        if let Some(old) = Field::of(at.insn, What::Old) {
            self.add(at, Moment::After, accesses, vec![old]);
        }
        Ok(())
    }

    fn call(&mut self, at: &At<'_>, target: CallTarget) -> Result<(), Reason> {
        let Callee::Outside(signature) = calls::callee(self.program, target)? else {
            return Ok(());
        };
        self.check_callback(at, &signature)?;
        if target == CallTarget::Helper(id::tail_call) {
            let map = at.before.map(&signature);
            let map = map.ok_or(Reason::Instruction("the map is unknown"))?;
            let (pc, map) = (at.pc, map.id);
            self.found.jumps.push(Jump { pc, map });
        }
        let accesses = accesses(&signature);
        let given = self.given(at, &signature)?;
        for fields in split(given) {
            self.add(at, Moment::Before, accesses, fields);
        }
        if signature.replay == CallReplay::Repeat {
            return Ok(());
        }
        let result = result(&signature).and_then(|what| Field::of(at.insn, what));
        let mut taken: Vec<Field> = result.into_iter().collect();
        taken.extend(self.filled(at, &signature)?);
        for fields in split(taken) {
            self.add(at, Moment::After, accesses, fields);
        }
        if let (Returns::Record, Kind::Record { size, .. }) =
            (signature.returns, at.after.reg(Reg::R0))
        {
            let size = size.ok_or(Reason::Instruction("a ring-buffer record of unknown size"))?;
            self.found.clears.push(Clear { pc: at.pc, size });
        }
        Ok(())
    }

    /// A helper that iterates over a map calls back in the map's order.
    fn check_callback(&self, at: &At<'_>, signature: &Signature) -> Result<(), Reason> {
        let iterates = signature.callback.is_some() && signature.roles.contains(&Role::Map);
        let map = at.before.map(signature);
        let map = map.and_then(|map| map.definition(self.program));
        let ordered = map.is_some_and(|map| {
            use crate::spec::MapType::{Array, PercpuArray};
            matches!(map.map_type, Array | PercpuArray)
        });
        if iterates && !ordered {
            return Err(Reason::Helper {
                name: "for_each_map_elem".to_owned(),
                why: "the order of a hash table's entries depends on the kernel",
            });
        }
        Ok(())
    }

    /// The outputs before a call.
    fn given(&self, at: &At<'_>, signature: &Signature) -> Result<Vec<Field>, Reason> {
        let mut fields = Vec::new();
        let logs = matches!(signature.replay, CallReplay::Override | CallReplay::Effect);
        for (number, (reg, role)) in (1..).zip(Reg::ARGUMENTS.into_iter().zip(&signature.roles)) {
            let field = match role {
                Role::Number if logs => at.output(What::Argument(number)),
                Role::Given(_) if logs && at.before.reg(reg) != Kind::Constant => {
                    self.memory(at, signature, What::Given(number))?
                }
                Role::Submitted => self.memory(at, signature, What::Given(number))?,
                _ => None,
            };
            fields.extend(field);
        }
        Ok(fields)
    }

    /// The inputs by a call, besides its result.
    fn filled(&self, at: &At<'_>, signature: &Signature) -> Result<Vec<Field>, Reason> {
        let numbers = (1..).zip(&signature.roles);
        let filled = numbers.filter(|(_, role)| matches!(role, Role::Filled(_)));
        let fields = filled.map(|(number, _)| self.memory(at, signature, What::Filled(number)));
        fields.filter_map(Result::transpose).collect()
    }

    /// The field for the memory that a call's argument points to; none for null, and if the
    /// call does not access the memory in this direction.
    pub(super) fn memory(
        &self,
        at: &At<'_>,
        signature: &Signature,
        what: What,
    ) -> Result<Option<Field>, Reason> {
        let (What::Given(number) | What::Filled(number)) = what else {
            return Ok(None);
        };
        let role = usize::from(number).checked_sub(1);
        let role = role.and_then(|index| signature.roles.get(index));
        let (Some(reg), Some(role)) = (argument(number), role) else {
            return Ok(None);
        };
        let found = match (what, role) {
            (What::Given(_), Role::Given(extent)) | (What::Filled(_), Role::Filled(extent)) => {
                self.extent(at, signature, reg, *extent)?
            }
            (What::Given(_), Role::Submitted) => Some(submitted(at.before.reg(reg), reg)?),
            _ => None,
        };
        Ok(found.map(|(location, length)| Field {
            flow: what.flow(),
            what,
            location,
            length,
        }))
    }

    /// Location and size of the memory in an argument; `None` for null.
    fn extent(
        &self,
        at: &At<'_>,
        signature: &Signature,
        reg: Reg,
        extent: Extent,
    ) -> Result<Option<(FieldLocation, Length)>, Reason> {
        let (frame, align, plain) = match at.before.reg(reg) {
            Kind::Scalar(Some(0)) => return Ok(None),
            Kind::Frame {
                owner: Owner::Own,
                off: Some(off),
            } => (Some(off), 8, true),
            Kind::Frame { off, .. } => (None, off.map_or(1, alignment), true),
            Kind::Record { .. } | Kind::Constant => (None, 8, true),
            // It may point to a stack.
            Kind::Own | Kind::Private => (None, 1, true),
            Kind::Value(map) => {
                let map = map.definition(self.program);
                if map.is_some_and(|map| map.flags.contains(MapFlags::WRONLY_PROG)) {
                    return Err(Reason::Instruction(
                        "programs can't read the map (BPF_F_WRONLY_PROG), so what it fills is unknown",
                    ));
                }
                (None, 8, map.is_some_and(|map| map.special.is_empty()))
            }
            Kind::Arena => return Err(ARENA),
            _ => (None, 1, false),
        };
        let length = match at.before.extent(self.program, signature, reg, extent) {
            Some(0) => return Ok(None),
            Some(bytes) => fixed(bytes)?,
            None => match (extent, Reg::from_number(reg.number() + 1)) {
                (Extent::Next, Some(count)) => Length::Counted {
                    count,
                    most: MOST_COUNTED,
                },
                _ => return Err(Reason::Instruction("the map is unknown")),
            },
        };
        // A helper copies what can't be loaded.
        let splits_pointer = match (frame, length) {
            (Some(off), Length::Fixed(bytes)) => at.before.splits_pointer(off, bytes),
            _ => false,
        };
        let location = FieldLocation::Memory {
            pointer: reg,
            frame,
            align,
            plain: plain && !splits_pointer,
            whose: whose(at.before.reg(reg)),
        };
        Ok(Some((location, length)))
    }

    /// Adds a site.
    fn add(&mut self, at: &At<'_>, moment: Moment, accesses: AccessedState, fields: Vec<Field>) {
        // Too many sites are reported when all have been found.
        let number = u16::try_from(self.found.sites.len()).unwrap_or(u16::MAX);
        let site = self.site(at, number, moment, accesses, fields);
        self.found.sites.push(site);
    }

    /// A site, with the registers that its code may use.
    pub(super) fn site(
        &self,
        at: &At<'_>,
        number: u16,
        moment: Moment,
        accesses: AccessedState,
        fields: Vec<Field>,
    ) -> Site {
        let (live, state) = match moment {
            Moment::Before => (self.liveness.before(at.pc), at.before),
            Moment::After => (self.liveness.after(at.pc), at.after),
        };
        let named = fields.iter().fold(RegSet::EMPTY, |named, field| {
            let named = named.union(field.value_registers());
            match moment {
                Moment::Before => named.union(field.memory_registers()),
                // The call has clobbered them; they were saved.
                Moment::After => named,
            }
        });
        let used = live.union(named).with(Reg::FP);
        let free = Reg::ALL
            .into_iter()
            .filter(|reg| !used.contains(*reg))
            .collect();
        let spillable = Reg::ALL.into_iter().filter(|reg| {
            live.contains(*reg) && state.defined().contains(*reg) && !named.contains(*reg)
        });
        Site {
            number,
            pc: at.pc,
            moment,
            accesses,
            fields,
            free,
            spillable: spillable.filter(|reg| *reg != Reg::FP).collect(),
        }
    }
}

const ARENA: Reason = Reason::Instruction("arenas are shared memory");

/// The state that a call accesses.
pub(super) const fn accesses(signature: &Signature) -> AccessedState {
    match signature.replay {
        CallReplay::Skip | CallReplay::Effect => AccessedState::World,
        CallReplay::Override | CallReplay::Repeat => AccessedState::Own,
    }
}

/// The state that a store changes; `None` for the run's private memory.
fn written(kind: Kind) -> Result<Option<AccessedState>, Reason> {
    Ok(match kind {
        Kind::Value(_) | Kind::Own => Some(AccessedState::Own),
        Kind::Kernel => Some(AccessedState::World),
        Kind::Nothing
        | Kind::Scalar(_)
        | Kind::Frame { .. }
        | Kind::Constant
        | Kind::Record { .. }
        | Kind::Private => None,
        Kind::Context(_) => {
            return Err(Reason::Instruction(
                "a store to the context acts on the kernel",
            ));
        }
        Kind::Arena => return Err(ARENA),
        Kind::Map(_) | Kind::Function(_) | Kind::Unknown => {
            return Err(Reason::Instruction(
                "a store through a pointer that may be the kernel's or the program's",
            ));
        }
    })
}

/// The owner of the memory that a pointer leads to.
const fn whose(kind: Kind) -> Whose {
    match kind {
        Kind::Frame { .. } | Kind::Record { .. } | Kind::Constant | Kind::Private => Whose::Run,
        Kind::Value(map) if !map.inner => Whose::Value(map.id),
        _ => Whose::Unknown,
    }
}

/// How the result of a call is logged.
pub(super) const fn result(signature: &Signature) -> Option<What> {
    match signature.returns {
        Returns::Nothing | Returns::Private => None,
        Returns::Number | Returns::Kernel => Some(What::Result),
        Returns::Value | Returns::Record | Returns::Memory => Some(What::Found),
    }
}

/// A submitted record: all of it; the pointer must be at its start.
fn submitted(kind: Kind, reg: Reg) -> Result<(FieldLocation, Length), Reason> {
    let Kind::Record {
        size: Some(size),
        off: Some(0),
    } = kind
    else {
        return Err(Reason::Instruction("a ring-buffer record of unknown size"));
    };
    let location = FieldLocation::Memory {
        pointer: reg,
        frame: None,
        align: 8,
        plain: true,
        whose: Whose::Run,
    };
    Ok((location, fixed(size)?))
}

/// The largest power of two, up to 8, that divides an offset.
const fn alignment(off: i16) -> u8 {
    match off.trailing_zeros() {
        0 => 1,
        1 => 2,
        2 => 4,
        _ => 8,
    }
}

fn fixed(bytes: u32) -> Result<Length, Reason> {
    if bytes > MOST_FIXED {
        return Err(Reason::TooLarge(bytes));
    }
    Ok(Length::Fixed(bytes))
}

/// Splits fields into entries: a field of variable size ends an entry, so that the offsets of
/// those before it are known.
fn split(fields: Vec<Field>) -> Vec<Vec<Field>> {
    let mut entries = Vec::new();
    let (counted, mut entry): (Vec<Field>, Vec<Field>) = fields
        .into_iter()
        .partition(|field| matches!(field.length, Length::Counted { .. }));
    for field in counted {
        entry.push(field);
        entries.push(std::mem::take(&mut entry));
    }
    if !entry.is_empty() {
        entries.push(entry);
    }
    entries
}
