//! The loop over operations.

#![allow(unsafe_code)] // accesses that the verifier proved to be in bounds

use std::sync::atomic::{Ordering, fence};

use smallvec::SmallVec;

use super::super::operations::packet_number;
use super::run::{Next, Run, Stop};
use crate::isa::{AtomicOp, Operand, Reg, Size, Width, low32, movsx, neg, sign_extend32};
use crate::lower::{CPU, Keys, MemRef, Op, Order, Target};
use crate::spec::helpers::id;
use crate::vm::memory::{AccessFault, RecentBlocks, raw};
use crate::vm::{FaultKind, HelperProblem, Machine};

/// The resolved target of an access.
enum Host {
    /// Bytes that only this run uses.
    Own(u64),
    /// Bytes that other programs may use, too.
    Shared(u64),
    /// An address of the machine, to be checked.
    Judged(u64),
}

impl Run<'_> {
    /// Executes operations from `at` on until only `floor` frames are left; returns r0.
    pub(crate) fn execute(
        &mut self,
        machine: &mut Machine,
        at: Target,
        floor: usize,
    ) -> Result<u64, Stop> {
        let mut at = at;
        loop {
            let Some(&op) = self.lowered.ops().get(at as usize) else {
                return Err(self.fault(at, FaultKind::OutOfProgram(-1)));
            };
            self.count(at)?;
            at = match self.step(machine, at, op)? {
                Next::Follow => at + 1,
                Next::Goto(to) => to,
                Next::Exit => match self.exit(machine, floor) {
                    Some(back) => back,
                    None => return Ok(self.host.regs[0]),
                },
            };
        }
    }

    pub(crate) fn step(&mut self, machine: &mut Machine, at: Target, op: Op) -> Result<Next, Stop> {
        match op {
            Op::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let result = op.eval(width, self.reg(dst), self.operand(src));
                self.set(dst, result);
            }
            Op::MovSx {
                width,
                from,
                dst,
                src,
            } => self.set(dst, movsx(width, from, self.reg(src))),
            Op::Neg { width, dst } => self.set(dst, neg(width, self.reg(dst))),
            Op::Endian { op, size, dst } => self.set(dst, op.eval(size, self.reg(dst))),
            Op::LoadImm { dst, value } => self.set(dst, value),
            Op::Cast { dst, src, to_user } => {
                let pointer = self.image.cast(machine, self.reg(src), to_user);
                self.set(dst, pointer);
            }
            Op::Load {
                size,
                dst,
                mem,
                order,
            } => {
                let value = self.load(machine, at, mem, size)?;
                if order == Order::Acquire {
                    fence(Ordering::Acquire);
                }
                if let Some(value) = value.or((!op.may_fetch_nothing()).then_some(0)) {
                    self.set(dst, value);
                }
            }
            Op::LoadSx { from, dst, mem } => {
                let value = self.load(machine, at, mem, from.size())?;
                self.set(dst, from.extend(value.unwrap_or(0)));
            }
            Op::LoadPointer { size, dst, off } => {
                let value = self.load_pointer(machine, at, size, off)?;
                self.set(dst, value);
            }
            Op::Store {
                size,
                mem,
                src,
                order,
            } => {
                if order == Order::Release {
                    fence(Ordering::Release);
                }
                self.store(machine, at, mem, size, self.operand(src))?;
            }
            Op::Atomic {
                op,
                width,
                mem,
                src,
            } => {
                let old = self.atomic(machine, at, op, width, mem, src)?;
                if let Some(old) = old
                    && let Some(reg) = op.old(src)
                {
                    self.set(reg, old);
                }
            }
            Op::LoadPacket { size, index, off } => {
                return Ok(self.load_packet(machine, size, index, off));
            }
            Op::Jump { target } => return Ok(Next::Goto(target)),
            Op::JumpIf {
                op,
                width,
                dst,
                src,
                target,
            } => {
                if op.eval(width, self.reg(dst), self.operand(src)) {
                    return Ok(Next::Goto(target));
                }
            }
            Op::MayGoto { target } => {
                if !self.may_loop() {
                    return Ok(Next::Goto(target));
                }
            }
            Op::CallHelper { helper } | Op::Throw { helper } => {
                self.call_helper(machine, at, helper)?;
            }
            Op::Lookup { map, key, .. } => {
                let value = self.look_up(machine, at, map, key)?;
                self.set(Reg::R0, value);
            }
            Op::Known { which } => {
                let value = self.known.get(usize::from(which));
                self.set(Reg::R0, value.copied().unwrap_or_default());
            }
            Op::CallFunction { function } => {
                return Ok(Next::Goto(self.call(at, function)?));
            }
            Op::TailCall => return self.tail_call(machine, at),
            Op::Exit => return Ok(Next::Exit),
        }
        Ok(Next::Follow)
    }

    pub(super) const fn reg(&self, reg: Reg) -> u64 {
        self.host.regs[reg.number() as usize]
    }

    pub(super) const fn set(&mut self, reg: Reg, value: u64) {
        self.host.regs[reg.number() as usize] = value;
    }

    fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(imm) => sign_extend32(imm),
        }
    }

    /// The machine address of a memory reference.
    fn address(&self, machine: &Machine, mem: MemRef) -> u64 {
        let (base, off) = match mem {
            MemRef::Arena { base, off, .. } => {
                let pointer = self.reg(base);
                let in_arena = self.image.arena_address(machine, pointer);
                (in_arena.unwrap_or(pointer), off.into())
            }
            MemRef::Stack { off } => (self.reg(Reg::FP), off.into()),
            MemRef::Context { off } => (self.context_address, off.into()),
            MemRef::MapValue { base, off, .. }
            | MemRef::Packet { base, off }
            | MemRef::Table { base, off }
            | MemRef::Kernel { base, off, .. }
            | MemRef::Checked { base, off } => (self.reg(base), i64::from(off)),
        };
        base.wrapping_add_signed(off)
    }

    /// Resolves a memory reference.
    fn host(&self, machine: &Machine, mem: MemRef) -> Host {
        let address = self.address(machine, mem);
        let in_table = |own: fn(u64) -> Host| match self.delta(address) {
            0 => Host::Judged(address),
            delta => own(address.wrapping_add(delta)),
        };
        match mem {
            MemRef::Stack { off } => Host::Own(self.host.frame_end.wrapping_add_signed(off.into())),
            MemRef::Context { off } => Host::Own(self.host.context.wrapping_add(off.into())),
            MemRef::MapValue { map, .. } => {
                let map = self.lowered.maps().get(usize::from(map));
                let delta = map.map_or(0, |map| map.delta);
                Host::Shared(address.wrapping_add(delta))
            }
            MemRef::Packet { .. } => in_table(Host::Own),
            MemRef::Table { .. } => in_table(Host::Shared),
            MemRef::Kernel { size, .. } => {
                let host = self.recent(address, size);
                host.map_or(Host::Judged(address), Host::Shared)
            }
            MemRef::Arena { .. } | MemRef::Checked { .. } => Host::Judged(address),
        }
    }

    /// The difference from an address to its host address; 0 if the access has to be
    /// checked.
    fn delta(&self, address: u64) -> u64 {
        let entry = self.host.deltas + (address >> 40 & 0xffff) * 8;
        // SAFETY: the table has an entry for each of the 65,536 slots, and lives as long as
        // the machine, which only this run uses.
        unsafe { raw::load_own(entry, Size::Dw) }
    }

    /// The host address of a load from a recently read kernel object.
    fn recent(&self, address: u64, size: Size) -> Option<u64> {
        let entry = self.recent + (address & u64::from(RecentBlocks::INDEX));
        // SAFETY: the table has an entry for each index, and lives as long as the machine,
        // which only this run uses.
        let word = |offset: u8| unsafe { raw::load_own(entry + u64::from(offset), Size::Dw) };
        let offset = address.wrapping_sub(word(RecentBlocks::START));
        let is_inside = offset < word(RecentBlocks::limit(size));
        is_inside.then(|| word(RecentBlocks::HOST).wrapping_add(offset))
    }

    /// The number in memory; none if nothing is there, and loads from there are allowed.
    fn load(
        &self,
        machine: &Machine,
        at: Target,
        mem: MemRef,
        size: Size,
    ) -> Result<Option<u64>, Stop> {
        Ok(Some(match self.host(machine, mem) {
            // SAFETY: the verifier proved that the access is in bounds of a live object;
            // nothing else uses these bytes.
            Host::Own(host) => unsafe { raw::load_own(host, size) },
            // SAFETY: in bounds, as above, or of an object that the table of recently read
            // ones keeps alive.
            Host::Shared(host) => unsafe { raw::load(host, size) },
            Host::Judged(address) => match machine.space.load(address, size.bytes().into()) {
                Ok(value) => value,
                Err(fault) => {
                    let pc = self.lowered.pc(at);
                    let probed = self.image.probe(machine, pc, address, fault);
                    probed.map_err(|kind| self.fault(at, kind))?;
                    return Ok(None);
                }
            },
        }))
    }

    fn store(
        &self,
        machine: &Machine,
        at: Target,
        mem: MemRef,
        size: Size,
        value: u64,
    ) -> Result<(), Stop> {
        match self.host(machine, mem) {
            // SAFETY: as in `load`.
            Host::Own(host) => unsafe { raw::store_own(host, size, value) },
            // SAFETY: as in `load`.
            Host::Shared(host) => unsafe { raw::store(host, size, value) },
            Host::Judged(address) => {
                let stored = machine.space.store(address, size.bytes().into(), value);
                return stored.or_else(|fault| self.unstored(machine, at, fault));
            }
        }
        Ok(())
    }

    /// The result of a store or an atomic operation that is not allowed.
    fn unstored(&self, machine: &Machine, at: Target, fault: AccessFault) -> Result<(), Stop> {
        let nothing = self.image.unstored(machine, self.lowered.pc(at), fault);
        nothing.map_err(|kind| self.fault(at, kind))
    }

    /// Returns the old value; none if nothing is there (an arena).
    fn atomic(
        &self,
        machine: &Machine,
        at: Target,
        op: AtomicOp,
        width: Width,
        mem: MemRef,
        src: Reg,
    ) -> Result<Option<u64>, Stop> {
        let (source, expected) = (self.reg(src), self.reg(Reg::R0));
        if let Host::Own(host) | Host::Shared(host) = self.host(machine, mem) {
            // SAFETY: as in `load`.
            let old = unsafe { raw::operate(host, op, width, source, expected) };
            if old.is_some() {
                return Ok(old);
            }
        }
        // The checked access reports an unaligned atomic.
        let new = |old| op.eval(width, old, source, expected);
        let size = width.size().bytes().into();
        let address = self.address(machine, mem);
        match machine.space.update(address, size, new) {
            Ok(old) => Ok(Some(old)),
            Err(fault) => self.unstored(machine, at, fault).map(|()| None),
        }
    }

    /// The result of a look-up of the key at a memory reference.
    pub(crate) fn look_up(
        &self,
        machine: &Machine,
        at: Target,
        map: u16,
        key: MemRef,
    ) -> Result<u64, Stop> {
        let Some(map) = self.lowered.maps().get(usize::from(map)) else {
            return Ok(0);
        };
        let cpu = self.known[usize::from(CPU)];
        let Keys::Other { size } = map.keys else {
            let index = self.load(machine, at, key, Size::W)?;
            return Ok(map.at_index(cpu, low32(index.unwrap_or(0))));
        };
        let mut bytes = SmallVec::<[u8; 64]>::from_elem(0, size as usize);
        match self.host(machine, key) {
            // SAFETY: the verifier proved that the whole key is in bounds of a live
            // object.
            Host::Own(host) | Host::Shared(host) => unsafe { raw::read(host, &mut bytes) },
            Host::Judged(address) => {
                let read = machine.space.read_into(address, &mut bytes);
                read.map_err(|fault| {
                    let problem = HelperProblem::Access { arg: 2, fault };
                    let helper = id::map_lookup_elem;
                    self.fault(at, FaultKind::Helper { helper, problem })
                })?;
            }
        }
        Ok(map.at_key(cpu, &bytes))
    }

    /// The pointer in a field of the context.
    pub(super) fn load_pointer(
        &self,
        machine: &Machine,
        at: Target,
        size: Size,
        off: u16,
    ) -> Result<u64, Stop> {
        let address = self.context_address.wrapping_add(off.into());
        let loaded = machine.space.load(address, size.bytes().into());
        loaded.map_err(|fault| self.fault(at, fault.into()))
    }

    /// A legacy packet load.
    pub(super) fn load_packet(
        &mut self,
        machine: &Machine,
        size: Size,
        index: Option<Reg>,
        off: i32,
    ) -> Next {
        let index = index.map_or(0, |reg| self.reg(reg));
        let value = packet_number(machine, size, index, off);
        self.set(Reg::R0, value.unwrap_or(0));
        match value {
            Some(_) => Next::Follow,
            None => Next::Exit,
        }
    }
}
