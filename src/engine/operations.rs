//! The effect of instructions on registers and memory.

use std::sync::atomic::{Ordering, fence};

use super::checked::{Next, Run, pc};
use crate::isa::{
    AtomicOp, Insn, Operand, Pseudo, Reg, Size, Width, low32, movsx, neg, sign_extend32,
};
use crate::util::TypeId;
use crate::vm::memory::AccessFault;
use crate::vm::{FaultKind, Machine};

impl Run<'_> {
    /// Executes any instruction that neither calls nor returns.
    pub(super) fn operate(
        &mut self,
        machine: &mut Machine,
        at: i64,
        insn: Insn,
    ) -> Result<Next, FaultKind> {
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let result = op.eval(width, self.reg(dst), self.operand(src));
                self.set(dst, result);
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                self.set(dst, movsx(width, from, self.reg(src)));
            }
            Insn::Neg { width, dst } => {
                self.set(dst, neg(width, self.reg(dst)));
            }
            Insn::Endian { op, size, dst } => self.set(dst, op.eval(size, self.reg(dst))),
            Insn::AddrSpaceCast { dst, src, to, .. } => {
                let pointer = self.reg(src);
                self.set(dst, self.image.cast(machine, pointer, to == 1));
            }
            Insn::LoadImm64 { dst, value } => self.set(dst, value),
            Insn::LoadPseudo { dst, source } => {
                let value = self.pseudo(machine, at, source)?;
                self.set(dst, value);
            }
            Insn::Load {
                size,
                dst,
                base,
                off,
            } => {
                let value = self.load(machine, at, self.address(machine, at, base, off), size)?;
                self.set(dst, value.unwrap_or(0));
            }
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                let value = self.load(machine, at, self.address(machine, at, base, off), size)?;
                fence(Ordering::Acquire);
                // Of a missing page nothing is fetched.
                if let Some(value) = value.or((!self.image.is_in_arena(pc(at))).then_some(0)) {
                    self.set(dst, value);
                }
            }
            Insn::LoadSx {
                from,
                dst,
                base,
                off,
            } => {
                let value = self.load(
                    machine,
                    at,
                    self.address(machine, at, base, off),
                    from.size(),
                )?;
                self.set(dst, from.extend(value.unwrap_or(0)));
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let (address, value) = (self.address(machine, at, base, off), self.operand(src));
                let stored = machine.space.store(address, bytes(size), value);
                self.stored(machine, at, stored)?;
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => {
                let (address, value) = (self.address(machine, at, base, off), self.reg(src));
                fence(Ordering::Release);
                let stored = machine.space.store(address, bytes(size), value);
                self.stored(machine, at, stored)?;
            }
            Insn::Atomic {
                op,
                width,
                base,
                off,
                src,
            } => {
                let done = self.atomic(
                    machine,
                    op,
                    width,
                    self.address(machine, at, base, off),
                    src,
                );
                self.stored(machine, at, done)?;
            }
            Insn::LoadPacket { size, index, off } => {
                return Ok(self.load_packet(machine, size, index, off));
            }
            Insn::JumpIf {
                op,
                width,
                dst,
                src,
                off,
            } => {
                if op.eval(width, self.reg(dst), self.operand(src)) {
                    return Ok(Next::Goto(at + 1 + i64::from(off)));
                }
            }
            Insn::Jump { off } => return Ok(Next::Goto(at + 1 + i64::from(off))),
            Insn::JumpLong { off } => return Ok(Next::Goto(at + 1 + i64::from(off))),
            // The caller executes these: they change frames.
            Insn::MayGoto { .. } | Insn::Call(_) | Insn::CallReg { .. } | Insn::Exit => {}
        }
        Ok(Next::Follow)
    }

    /// The number at an address; none if nothing is there, and loads from there are allowed.
    fn load(
        &self,
        machine: &Machine,
        at: i64,
        address: u64,
        size: Size,
    ) -> Result<Option<u64>, FaultKind> {
        match machine.space.load(address, bytes(size)) {
            Ok(value) => Ok(Some(value)),
            Err(fault) => {
                self.image.probe(machine, pc(at), address, fault)?;
                Ok(None)
            }
        }
    }

    fn stored(
        &self,
        machine: &Machine,
        at: i64,
        stored: Result<(), AccessFault>,
    ) -> Result<(), FaultKind> {
        stored.or_else(|fault| self.image.unstored(machine, pc(at), fault))
    }

    pub(super) fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Imm(imm) => sign_extend32(imm),
        }
    }

    fn address(&self, machine: &Machine, at: i64, base: Reg, off: i16) -> u64 {
        let pointer = self.reg(base);
        let in_arena = match self.image.is_in_arena(pc(at)) {
            true => self.image.arena_address(machine, pointer),
            false => None,
        };
        in_arena
            .unwrap_or(pointer)
            .wrapping_add_signed(i64::from(off))
    }

    fn atomic(
        &mut self,
        machine: &Machine,
        op: AtomicOp,
        width: Width,
        address: u64,
        src: Reg,
    ) -> Result<(), AccessFault> {
        let (source, expected) = (self.reg(src), self.reg(Reg::R0));
        let new = |old| op.eval(width, old, source, expected);
        let old = machine.space.update(address, bytes(width.size()), new)?;
        if op.compares() {
            self.set(Reg::R0, old);
        } else if op.fetches() {
            self.set(src, old);
        }
        Ok(())
    }

    /// Legacy packet loads: the bytes in network order, or the end of the program
    /// with 0 where the packet has none there (RFC 9669, section 5.5;
    /// `bpf_skb_load_helper_*`, `net/core/filter.c`).
    fn load_packet(&mut self, machine: &Machine, size: Size, index: Option<Reg>, off: i32) -> Next {
        let index = index.map_or(0, |reg| self.reg(reg));
        let value = packet_number(machine, size, index, off);
        self.set(Reg::R0, value.unwrap_or(0));
        match value {
            Some(_) => Next::Follow,
            None => Next::Exit,
        }
    }

    /// The value of a 64-bit immediate with a pseudo source.
    fn pseudo(&self, machine: &Machine, at: i64, source: Pseudo) -> Result<u64, FaultKind> {
        let map = |index: u32| self.image.maps().get(index as usize).copied();
        let found = match source {
            Pseudo::MapIdx { index } => map(index).and_then(|map| machine.map_address(map)),
            Pseudo::MapIdxValue { index, off } => map(index)
                .and_then(|map| machine.value_address(map, 0))
                .map(|value| value.wrapping_add(u64::from(off))),
            Pseudo::Func { rel } => Some(self.image.function_address(at + 1 + i64::from(rel))),
            Pseudo::BtfId { id, btf_fd: 0 } => self.symbol(machine, id),
            Pseudo::BtfId { .. } | Pseudo::MapFd { .. } | Pseudo::MapValue { .. } => None,
        };
        found.ok_or(FaultKind::NoObject(source))
    }

    /// The address of a kernel variable or function.
    fn symbol(&self, machine: &Machine, id: TypeId) -> Option<u64> {
        let btf = self.image.program().kernel_btf.as_ref()?;
        machine.world.kernel_memory().symbol(btf, id)
    }
}

/// The result of a legacy packet load, if the packet has that many bytes there.
pub(super) fn packet_number(machine: &Machine, size: Size, index: u64, off: i32) -> Option<u64> {
    // The kernel adds 32-bit numbers.
    let at = off.wrapping_add(low32(index).cast_signed());
    let loaded = machine.packet_bytes(at, bytes(size))?;
    let number = loaded.iter();
    Some(number.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

fn bytes(size: Size) -> usize {
    usize::from(size.bytes())
}
