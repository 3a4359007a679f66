//! Translates instructions to operations.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::access::Accesses;
use super::bindings::Bindings;
use super::effect::effect;
use super::exception::exception_callback;
use super::fresh::fresh;
use super::fuse::fuse;
use super::known::{self, CPU};
use super::logarithm::logarithms;
use super::lowered::{BoundArena, Callee, Exceptions, Function, Helper, Keys, Lowered, Overlay};
use super::op::{MemRef, Op, Order, Target};
use super::ranges::apply::ranges;
use super::zeroing::zeroing;
use super::{LowerError, Passes};
use crate::isa::{CallTarget, Code, Insn, Operand, Pseudo, Reg};
use crate::program::{MapDef, Program};
use crate::spec::helpers::{Effects, id::sk_assign};
use crate::spec::kfuncs::THROW;
use crate::spec::{MapType, helpers, limits};
use crate::util::{HelperId, MapId, Pc, TypeId};
use crate::verifier::Verified;
use crate::vm::MapHandle;
use crate::vm::helpers::body;
use crate::vm::kfuncs;

/// Lowers a program and binds it to a machine.
///
/// # Errors
/// [`LowerError`] where the program uses a feature of the checked interpreter alone.
pub fn lower(
    verified: &Verified,
    bindings: Bindings<'_>,
    passes: Passes,
) -> Result<Lowered, LowerError> {
    let program = verified.program();
    let code = verified.code();
    let kept = Kept::of(verified, passes)?;
    let mut lowering = Lowering {
        program,
        code,
        bindings,
        accesses: Accesses::new(verified, code, bindings, passes),
        functions: functions(verified, bindings, &kept.pcs)?,
        kept: &kept,
        helpers: Vec::new(),
        helper_index: FxHashMap::default(),
        kfunc_index: FxHashMap::default(),
        known: Vec::new(),
        arena: arena(bindings),
        throws: false,
        passes,
    };
    let mut ops = vec![Op::Exit; kept.pcs.len()];
    let mut next = kept.ordinals.iter().skip(1);
    for (((pc, ordinal), op), after) in kept.pcs.iter().zip(&kept.ordinals).zip(&mut ops).zip(1..) {
        let following = (next.next() == Some(&(ordinal + 1))).then_some(after);
        lowering.translate(*pc, following, op)?;
    }
    let Lowering {
        accesses,
        functions,
        helpers,
        known,
        arena,
        throws,
        ..
    } = lowering;
    let (maps, context, deferred, reads_kernel) = accesses.into_parts();
    let mut lowered = Lowered {
        program: Arc::clone(program),
        space: bindings.machine.space.id(),
        reads_kernel,
        exceptions: throws.then(|| exceptions(program, &functions)),
        ops,
        effects: Vec::new(),
        pcs: kept.pcs,
        ordinals: kept.ordinals,
        functions,
        helpers,
        maps,
        arena,
        context,
        cpus: bindings.machine.world.cpus(),
        known,
        notes: Vec::new(),
        logarithms: Vec::new(),
        overlay: Overlay::default(),
    };
    if passes.contains(Passes::FRESH) && !deferred.is_empty() {
        let at = |(pc, map)| Some((lowered.op_at(pc)?, map));
        let deferred: Vec<_> = deferred.into_iter().filter_map(at).collect();
        fresh(&mut lowered, &deferred);
    }
    if passes.contains(Passes::RANGES) {
        ranges(&mut lowered);
    }
    lowered.effects = lowered.ops.iter().map(effect).collect();
    if passes.contains(Passes::ZEROING) {
        zeroing(&mut lowered, verified);
    }
    if passes.contains(Passes::LOGARITHM) {
        lowered.logarithms = logarithms(&lowered);
    }
    if passes.contains(Passes::FUSE) {
        lowered.overlay = fuse(&lowered);
    }
    Ok(lowered)
}

/// Where a program that throws exceptions continues.
fn exceptions(program: &Program, functions: &[Function]) -> Exceptions {
    let number = |start: Pc| functions.binary_search_by_key(&start, |f| f.start).ok();
    let callback = exception_callback(program).and_then(number);
    Exceptions {
        callback: callback.and_then(|number| u16::try_from(number).ok()),
    }
}

/// The program's arena, of which it has at most one.
fn arena(bindings: Bindings<'_>) -> Option<BoundArena> {
    let mut maps = bindings.maps.iter();
    let (pages, region, user) = maps.find_map(|map| bindings.machine.bound_arena(*map))?;
    Some(BoundArena {
        pages,
        region,
        user,
    })
}

/// The instructions that become operations. An instruction that falls through is followed
/// by its successor, and a call that never returns by an exit.
struct Kept {
    pcs: Vec<Pc>,
    /// How many instructions precede each.
    ordinals: Vec<u32>,
    /// For each slot the operation, or [`NONE`].
    index: Vec<Target>,
    /// Those after calls that never return, since the function throws an exception.
    unreached: Vec<Pc>,
}

const NONE: Target = Target::MAX;

impl Kept {
    fn of(verified: &Verified, passes: Passes) -> Result<Self, LowerError> {
        let (code, dead_code_goes) = (verified.code(), passes.contains(Passes::DEAD_CODE));
        let mut kept = Self {
            pcs: Vec::with_capacity(code.len()),
            ordinals: Vec::with_capacity(code.len()),
            index: vec![NONE; code.len()],
            unreached: Vec::new(),
        };
        let (mut at, mut after) = (0, 0);
        for (slot, pc) in code.slots().iter().zip((0..).map(Pc)) {
            if slot.is_none() && code.is_second_slot(pc) {
                continue;
            }
            let ordinal = after;
            after += 1;
            if dead_code_goes && !verified.is_reachable(pc) {
                if !kept.ends_with_call(code, pc) {
                    continue;
                }
                kept.unreached.push(pc);
            } else if slot.is_none() {
                // Only dead code can be undecodable.
                return Err(LowerError::Unsupported(pc));
            }
            kept.pcs.push(pc);
            kept.ordinals.push(ordinal);
            if let Some(index) = kept.index.get_mut(pc.index()) {
                *index = at;
            }
            at += 1;
        }
        Ok(kept)
    }

    /// Whether the last instruction is a call of a function that returns to `pc`.
    fn ends_with_call(&self, code: &Code, pc: Pc) -> bool {
        let last = self.pcs.last().filter(|last| code.next(**last) == pc);
        last.is_some_and(|last| {
            let is_call = |insn| matches!(insn, Insn::Call(CallTarget::Subprogram { .. }));
            code.insn(*last).is_some_and(is_call) && !self.unreached.contains(last)
        })
    }

    /// The index of the operation at `pc`.
    fn index(&self, pc: Pc) -> Option<Target> {
        let index = self.index.get(pc.index()).copied();
        index.filter(|index| *index != NONE)
    }
}

/// The functions among the instructions that are kept.
fn functions(
    verified: &Verified,
    bindings: Bindings<'_>,
    kept: &[Pc],
) -> Result<Vec<Function>, LowerError> {
    let program = verified.program();
    let stacks = verified.stacks();
    let number = |n: usize| Target::try_from(n).map_err(|_| LowerError::TooLarge);
    let index = |pc: Pc| kept.partition_point(|at| *at < pc);
    let mut functions = Vec::with_capacity(stacks.len());
    for (at, &(start, depth)) in stacks.iter().enumerate() {
        let after = stacks.get(at + 1).map(|next| next.0);
        let (entry, end) = (index(start), after.map_or(kept.len(), index));
        if entry == end {
            continue; // never called
        }
        let depth = u16::try_from(depth).map_err(|_| LowerError::TooLarge)?;
        let stack = depth.next_multiple_of(8);
        if usize::from(stack) > limits::STACK_SIZE {
            return Err(LowerError::Unsupported(start));
        }
        let name = program.subprogram(start).map_or(&program.name, |s| &s.name);
        functions.push(Function {
            entry: number(entry)?,
            end: number(end)?,
            start,
            stack,
            zeroed: Box::from([(stack, 0)]),
            frame_escapes: bindings.escaping.frame_escapes(start),
            frame_name: Arc::from(format!("stack of {name}")),
        });
    }
    Ok(functions)
}

/// The state of a lowering.
struct Lowering<'a> {
    program: &'a Program,
    code: &'a Code,
    bindings: Bindings<'a>,
    accesses: Accesses<'a>,
    kept: &'a Kept,
    functions: Vec<Function>,
    helpers: Vec<Helper>,
    helper_index: FxHashMap<HelperId, u16>,
    kfunc_index: FxHashMap<TypeId, u16>,
    known: Vec<u8>,
    arena: Option<BoundArena>,
    throws: bool,
    passes: Passes,
}

impl Lowering<'_> {
    /// Sets `made` to the operation for the instruction at `pc`; `following` is the one for the
    /// next instruction. It is written in place: a copy would read what was just written in other
    /// pieces, for which the host waits.
    fn translate(
        &mut self,
        pc: Pc,
        following: Option<Target>,
        made: &mut Op,
    ) -> Result<(), LowerError> {
        if self.kept.unreached.contains(&pc) {
            *made = Op::Exit;
            return Ok(());
        }
        let unsupported = LowerError::Unsupported(pc);
        let code = self.code;
        let insn = code.slots().get(pc.index()).and_then(Option::as_ref);
        let insn = insn.ok_or(LowerError::Unsupported(pc))?;
        match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                *made = Op::Alu {
                    op,
                    width,
                    dst,
                    src,
                }
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                *made = Op::MovSx {
                    width,
                    from,
                    dst,
                    src,
                }
            }
            Insn::Neg { width, dst } => *made = Op::Neg { width, dst },
            Insn::Endian { op, size, dst } => *made = Op::Endian { op, size, dst },
            Insn::LoadImm64 { dst, value } => *made = Op::LoadImm { dst, value },
            Insn::LoadPseudo { dst, source } => {
                *made = Op::LoadImm {
                    dst,
                    value: self.pseudo(pc, source)?,
                }
            }
            Insn::Load { dst, .. } => {
                self.accesses.load(pc, insn, dst, Order::Relaxed, made)?;
            }
            Insn::LoadAcquire { dst, .. } => {
                self.accesses.load(pc, insn, dst, Order::Acquire, made)?;
            }
            Insn::LoadSx { from, dst, .. } => {
                *made = Op::LoadSx {
                    from,
                    dst,
                    mem: self.accesses.mem(pc, insn)?,
                }
            }
            Insn::Store { size, src, .. } => {
                *made = Op::Store {
                    size,
                    mem: self.accesses.mem(pc, insn)?,
                    src,
                    order: Order::Relaxed,
                }
            }
            Insn::StoreRelease { size, src, .. } => {
                *made = Op::Store {
                    size,
                    mem: self.accesses.mem(pc, insn)?,
                    src: Operand::Reg(src),
                    order: Order::Release,
                }
            }
            Insn::Atomic { op, width, src, .. } => {
                *made = Op::Atomic {
                    op,
                    width,
                    mem: self.accesses.mem(pc, insn)?,
                    src,
                }
            }
            Insn::LoadPacket { size, index, off } => *made = Op::LoadPacket { size, index, off },
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                *made = Op::Jump {
                    target: self.target(pc, insn)?,
                }
            }
            Insn::JumpIf {
                op,
                width,
                dst,
                src,
                ..
            } => match (self.target(pc, insn), following) {
                (Ok(target), Some(_)) => {
                    *made = Op::JumpIf {
                        op,
                        width,
                        dst,
                        src,
                        target,
                    }
                }
                // One side is dead.
                (Ok(target), None) | (Err(_), Some(target)) => *made = Op::Jump { target },
                (Err(error), None) => return Err(error),
            },
            Insn::MayGoto { .. } => {
                *made = Op::MayGoto {
                    target: self.target(pc, insn)?,
                }
            }
            Insn::Call(CallTarget::Helper(helpers::id::tail_call)) => *made = Op::TailCall,
            Insn::Call(CallTarget::Helper(id)) => {
                // Recorded even if inlined: a run with a mock of this helper may not start.
                let helper = self.helper(id)?;
                let known = self.known(id).or_else(|| self.look_up(pc, id));
                *made = known.unwrap_or(Op::CallHelper { helper });
            }
            Insn::Call(CallTarget::Subprogram { .. }) => {
                *made = Op::CallFunction {
                    function: self.function(pc, insn)?,
                }
            }
            Insn::Exit => *made = Op::Exit,
            Insn::Call(CallTarget::Kfunc { id, fd_index: 0 }) => *made = self.kfunc(pc, id)?,
            Insn::AddrSpaceCast { dst, src, to, .. } => {
                *made = Op::Cast {
                    dst,
                    src,
                    to_user: to == 1,
                }
            }
            Insn::Call(CallTarget::Kfunc { .. }) | Insn::CallReg { .. } => return Err(unsupported),
        }
        let falls = !matches!(made, Op::Jump { .. } | Op::Throw { .. } | Op::Exit);
        if falls && following.is_none() {
            return Err(unsupported);
        }
        Ok(())
    }

    /// The operation that a jump at `pc` goes to.
    fn target(&self, pc: Pc, insn: &Insn) -> Result<Target, LowerError> {
        let slot = insn.jump_target(pc).and_then(|to| u32::try_from(to).ok());
        let target = slot.and_then(|slot| self.kept.index(Pc(slot)));
        target.ok_or(LowerError::Unsupported(pc))
    }

    /// The number of the function that an instruction at `pc` calls.
    fn function(&self, pc: Pc, insn: &Insn) -> Result<u16, LowerError> {
        let slot = insn.subprogram_target(pc);
        let slot = slot.and_then(|to| u32::try_from(to).ok());
        let found = slot.and_then(|slot| {
            let start = Pc(slot);
            self.functions
                .binary_search_by_key(&start, |f| f.start)
                .ok()
        });
        found
            .and_then(|number| u16::try_from(number).ok())
            .ok_or(LowerError::Unsupported(pc))
    }

    /// The index of a helper.
    fn helper(&mut self, id: HelperId) -> Result<u16, LowerError> {
        if let Some(index) = self.helper_index.get(&id) {
            return Ok(*index);
        }
        let effects = helpers::helper(id).map(|helper| helper.effects);
        let index = self.add_helper(Helper {
            callee: Callee::Helper(id),
            body: body(id),
            moves_pointers: id == sk_assign
                || effects.is_some_and(|e| e.contains(Effects::CHANGES_PACKET)),
        })?;
        self.helper_index.insert(id, index);
        Ok(index)
    }

    /// The operation for a call of a kfunc.
    fn kfunc(&mut self, pc: Pc, id: TypeId) -> Result<Op, LowerError> {
        let callee = kfuncs::Callee::of(self.program, id, 0);
        let callee = callee.ok_or(LowerError::Unsupported(pc))?;
        let throws = &**callee.name() == THROW;
        self.throws |= throws;
        let helper = match self.kfunc_index.get(&id) {
            Some(index) => *index,
            None => self.add_kfunc(id, callee)?,
        };
        Ok(match throws {
            true => Op::Throw { helper },
            false => Op::CallHelper { helper },
        })
    }

    fn add_kfunc(&mut self, id: TypeId, callee: kfuncs::Callee) -> Result<u16, LowerError> {
        let effects = callee.id().map(|id| id.row().effects);
        let index = self.add_helper(Helper {
            callee: Callee::Kfunc(callee),
            body: None,
            moves_pointers: effects.is_none_or(|e| e.contains(Effects::CHANGES_PACKET)),
        })?;
        self.kfunc_index.insert(id, index);
        Ok(index)
    }

    fn add_helper(&mut self, helper: Helper) -> Result<u16, LowerError> {
        let index = u16::try_from(self.helpers.len()).map_err(|_| LowerError::TooLarge)?;
        self.helpers.push(helper);
        Ok(index)
    }

    /// The operation for a helper whose result is constant during a run.
    fn known(&mut self, id: HelperId) -> Option<Op> {
        let which = known::which(id).filter(|_| self.passes.contains(Passes::KNOWN))?;
        if !self.known.contains(&which) {
            self.known.push(which);
        }
        Some(Op::Known { which })
    }

    /// The operation for a look-up in a known map.
    fn look_up(&mut self, pc: Pc, id: HelperId) -> Option<Op> {
        if id != helpers::id::map_lookup_elem || !self.passes.contains(Passes::LOOKUP) {
            return None;
        }
        let (map, keys) = self.accesses.look_up(pc)?;
        if !matches!(keys, Keys::Index { .. }) && !self.known.contains(&CPU) {
            self.known.push(CPU);
        }
        let key = MemRef::Table {
            base: Reg::R2,
            off: 0,
        };
        Some(Op::Lookup {
            map,
            key,
            is_there: false,
        })
    }

    /// The value of a 64-bit immediate with a pseudo source.
    fn pseudo(&self, pc: Pc, source: Pseudo) -> Result<u64, LowerError> {
        let found = match source {
            Pseudo::MapIdx { index } => self
                .map(MapId(index))
                .and_then(|map| self.bindings.machine.map_address(map)),
            Pseudo::MapIdxValue { index, off } => self
                .map(MapId(index))
                .and_then(|map| self.bindings.machine.value_address(map, 0))
                .map(|value| value.wrapping_add(u64::from(off))),
            Pseudo::Func { .. } => {
                let insn = self.code.insn(pc);
                let to = insn.and_then(|insn| insn.subprogram_target(pc));
                to.map(|to| self.bindings.functions.plus(to.cast_unsigned()))
            }
            Pseudo::BtfId { id, btf_fd: 0 } => {
                let kernel = self.bindings.machine.world.kernel_memory();
                let btf = self.program.kernel_btf.as_ref();
                btf.and_then(|btf| kernel.symbol(btf, id))
            }
            Pseudo::BtfId { .. } | Pseudo::MapFd { .. } | Pseudo::MapValue { .. } => None,
        };
        found.ok_or(LowerError::Map(pc))
    }

    /// The machine's map for one of the program's, if it has the verified shape: a map that
    /// several objects share is created by the first.
    fn map(&self, id: MapId) -> Option<MapHandle> {
        let handle = self.bindings.maps.get(id.index()).copied()?;
        let (there, verified) = (
            self.bindings.machine.map(handle)?.def(),
            self.program.map(id)?,
        );
        let shape = |def: &MapDef| (def.map_type, def.key_size, def.value_size, def.flags);
        // A perf event array may be created for all CPUs; nothing depends on its size.
        let entries =
            there.map_type == MapType::PerfEventArray || there.max_entries == verified.max_entries;
        (shape(there) == shape(verified) && entries).then_some(handle)
    }
}
