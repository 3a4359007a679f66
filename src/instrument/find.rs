//! Finds the sites: the inputs and outputs of each instruction.

use super::calls::{self, Callee, Extent, Returns, Role, Signature};
use super::dataflow::{Kind, Owner, State};
use super::error::Reason;
use super::liveness::Liveness;
use super::site::{AccessedState, Field, FieldLocation, Flow, Length, Moment, Site, What, Whose};
use crate::isa::{CallTarget, Insn, Operand, Reg, RegSet, Size};
use crate::program::Program;
use crate::spec::CallReplay;
use crate::spec::helpers::id;
use crate::util::{MapId, Pc};

/// Limit in bytes for a field whose size is only known at run time.
const MOST_COUNTED: u16 = 4096;
/// Limit in bytes for a field of known size.
const MOST_FIXED: u32 = 8192;

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
struct At<'a> {
    pc: Pc,
    before: &'a State,
    after: &'a State,
}

impl Finder<'_> {
    /// Visits the next instruction.
    pub(super) fn see(
        &mut self,
        pc: Pc,
        insn: Insn,
        before: &State,
        after: &State,
    ) -> Result<(), Reason> {
        let at = At { pc, before, after };
        match insn {
            Insn::Load {
                size,
                dst,
                base,
                off,
            }
            | Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => self.load(&at, dst, base, off, size),
            Insn::LoadSx {
                from,
                dst,
                base,
                off,
            } => self.load(&at, dst, base, off, from.size()),
            Insn::Store {
                size,
                base,
                off,
                src,
            } => self.store(&at, base, off, size, src),
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => self.store(&at, base, off, size, Operand::Reg(src)),
            Insn::Atomic { .. } => self.atomic(&at, insn),
            Insn::Call(target) => self.call(&at, target),
            Insn::LoadPacket { .. } => Err(Reason::Instruction("packets are not recorded")),
            _ => Ok(()),
        }
    }

    fn load(
        &mut self,
        at: &At<'_>,
        dst: Reg,
        base: Reg,
        off: i16,
        size: Size,
    ) -> Result<(), Reason> {
        let accesses = match at.before.reg(base) {
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
        let field = Field {
            flow: Flow::Input,
            what: What::Loaded,
            location: FieldLocation::Register(dst),
            length: Length::Fixed(size.bytes().into()),
        };
        self.site(at, Moment::After, accesses, vec![field]);
        Ok(())
    }

    fn store(
        &mut self,
        at: &At<'_>,
        base: Reg,
        off: i16,
        size: Size,
        src: Operand,
    ) -> Result<(), Reason> {
        let Some(accesses) = written(at.before.reg(base).moved_by(off))? else {
            return Ok(());
        };
        let location = match src {
            Operand::Reg(src) if at.before.reg(src).is_comparable() => {
                Some(FieldLocation::Register(src))
            }
            Operand::Reg(_) => None,
            Operand::Imm(imm) => Some(FieldLocation::Constant(imm)),
        };
        let fields = location.map(|location| output(What::Stored, location, size));
        self.site(at, Moment::Before, accesses, fields.into_iter().collect());
        Ok(())
    }

    fn atomic(&mut self, at: &At<'_>, insn: Insn) -> Result<(), Reason> {
        let Insn::Atomic {
            op,
            width,
            base,
            off,
            src,
        } = insn
        else {
            return Ok(());
        };
        let Some(accesses) = written(at.before.reg(base).moved_by(off))? else {
            return Ok(());
        };
        if accesses == AccessedState::World {
            return Err(Reason::Instruction("an atomic operation on kernel memory"));
        }
        let size = width.size();
        let given = [
            (What::Operand, src, true),
            (What::Expected, Reg::R0, op.compares()),
        ];
        let given = given
            .into_iter()
            .filter(|(_, reg, used)| *used && at.before.reg(*reg).is_comparable());
        let fields = given.map(|(what, reg, _)| output(what, FieldLocation::Register(reg), size));
        self.site(at, Moment::Before, accesses, fields.collect());
        if let Some(old) = op.old(src) {
            let field = Field {
                flow: Flow::Input,
                what: What::Old,
                location: FieldLocation::Register(old),
                length: Length::Fixed(size.bytes().into()),
            };
            self.site(at, Moment::After, accesses, vec![field]);
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
        let accesses = match signature.replay {
            CallReplay::Skip | CallReplay::Effect => AccessedState::World,
            CallReplay::Override | CallReplay::Repeat => AccessedState::Own,
        };
        let given = self.given(at, &signature)?;
        for fields in split(given) {
            self.site(at, Moment::Before, accesses, fields);
        }
        if signature.replay == CallReplay::Repeat {
            return Ok(());
        }
        let mut taken: Vec<Field> = result(&signature).into_iter().collect();
        taken.extend(self.filled(at, &signature)?);
        for fields in split(taken) {
            self.site(at, Moment::After, accesses, fields);
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
            let kind = at.before.reg(reg);
            let field = match role {
                Role::Number
                    if logs && at.before.defined().contains(reg) && kind.is_comparable() =>
                {
                    Some(output(
                        What::Argument(number),
                        FieldLocation::Register(reg),
                        Size::Dw,
                    ))
                }
                Role::Given(extent) if logs && kind != Kind::Constant => self
                    .memory(at, signature, reg, *extent)?
                    .map(|(location, length)| Field {
                        flow: Flow::Output,
                        what: What::Given(number),
                        location,
                        length,
                    }),
                Role::Submitted => Some(self.submitted(kind, reg, number)?),
                _ => None,
            };
            fields.extend(field);
        }
        Ok(fields)
    }

    /// A submitted record: all of it; the pointer must be at its start.
    fn submitted(&self, kind: Kind, reg: Reg, number: u8) -> Result<Field, Reason> {
        let Kind::Record {
            size: Some(size),
            off: Some(0),
        } = kind
        else {
            return Err(Reason::Instruction("a ring-buffer record of unknown size"));
        };
        Ok(Field {
            flow: Flow::Output,
            what: What::Given(number),
            location: FieldLocation::Memory {
                pointer: reg,
                frame: None,
                align: 8,
                plain: true,
                whose: Whose::Run,
            },
            length: fixed(size)?,
        })
    }

    /// The inputs by a call, besides its result.
    fn filled(&self, at: &At<'_>, signature: &Signature) -> Result<Vec<Field>, Reason> {
        let mut fields = Vec::new();
        for (number, (reg, role)) in (1..).zip(Reg::ARGUMENTS.into_iter().zip(&signature.roles)) {
            let Role::Filled(extent) = role else { continue };
            let Some((location, length)) = self.memory(at, signature, reg, *extent)? else {
                continue;
            };
            fields.push(Field {
                flow: Flow::Input,
                what: What::Filled(number),
                location,
                length,
            });
        }
        Ok(fields)
    }

    /// The memory in an argument; `None` for null.
    fn memory(
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
        let location = FieldLocation::Memory {
            pointer: reg,
            frame,
            align,
            plain,
            whose: whose(at.before.reg(reg)),
        };
        Ok(Some((location, length)))
    }

    /// Adds a site.
    fn site(&mut self, at: &At<'_>, moment: Moment, accesses: AccessedState, fields: Vec<Field>) {
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
        self.found.sites.push(Site {
            // Too many sites are reported when all have been found.
            number: u16::try_from(self.found.sites.len()).unwrap_or(u16::MAX),
            pc: at.pc,
            moment,
            accesses,
            fields,
            free,
            spillable: spillable.filter(|reg| *reg != Reg::FP).collect(),
        });
    }
}

const ARENA: Reason = Reason::Instruction("arenas are shared memory");

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

/// The result of a call.
fn result(signature: &Signature) -> Option<Field> {
    let r0 = Reg::R0;
    let (what, location, bytes) = match signature.returns {
        Returns::Nothing | Returns::Private => return None,
        Returns::Number | Returns::Kernel => (What::Result, FieldLocation::Register(r0), 8),
        Returns::Value | Returns::Record | Returns::Memory => {
            (What::Found, FieldLocation::NonNull(r0), 1)
        }
    };
    Some(Field {
        flow: Flow::Input,
        what,
        location,
        length: Length::Fixed(bytes),
    })
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

fn output(what: What, location: FieldLocation, size: Size) -> Field {
    Field {
        flow: Flow::Output,
        what,
        location,
        length: Length::Fixed(size.bytes().into()),
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
