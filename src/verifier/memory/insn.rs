//! The instructions that access memory.

use super::{Access, MemoryAccess};
use crate::isa::{AtomicOp, Operand, Reg, SignedSize, Size, Width};
use crate::spec::call::TypeFlags;
use crate::verifier::env::Verifier;
use crate::verifier::facts::Through;
use crate::verifier::reg::{Kind, RegState};
use crate::verifier::reject::{VerifyResult, reject};

/// Memory that the verifier did not check, or that only the mocked kernel provides: a load
/// may not find any.
const UNCHECKED: TypeFlags = TypeFlags::PTR_UNTRUSTED
    .union(TypeFlags::MEM_USER)
    .union(TypeFlags::MEM_RDONLY)
    .union(TypeFlags::MEM_PERCPU);

/// The memory operand of an instruction.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct MemoryOperand {
    pub base: Reg,
    pub off: i16,
    pub size: Size,
}

impl MemoryOperand {
    fn access(self, access: Access, value: Option<Reg>) -> MemoryAccess {
        MemoryAccess {
            base: self.base,
            off: self.off.into(),
            size: self.size.bytes().into(),
            access,
            value,
            constant: None,
            signed: false,
            strict: false,
        }
    }
}

impl Verifier<'_> {
    /// Checks `dst = *(uN *)(base + off)` (`check_load_mem`).
    pub(in crate::verifier) fn check_load(
        &mut self,
        dst: Reg,
        operand: MemoryOperand,
        signed: Option<SignedSize>,
        strict: bool,
    ) -> VerifyResult {
        self.check_read(operand.base)?;
        self.check_write(dst)?;
        let kind = *self.reg(operand.base);
        self.check_memory(&MemoryAccess {
            signed: signed.is_some(),
            strict,
            ..operand.access(Access::Read, Some(dst))
        })?;
        self.pointers.check(self.position.pc(), &kind, !strict)?;
        self.note_access(&kind, operand.off);
        if !self.reg(dst).is_scalar() {
            return Ok(());
        }
        let context = match signed {
            Some(_) => "ldsx",
            None if strict => "atomic_load",
            None => "ldx",
        };
        self.keep_consistent(dst, context)
    }

    /// Checks `*(uN *)(base + off) = src` (`check_store_reg`, and `do_check_insn` for
    /// constants).
    pub(in crate::verifier) fn check_store(
        &mut self,
        operand: MemoryOperand,
        src: Operand,
        strict: bool,
    ) -> VerifyResult {
        if let Operand::Reg(src) = src {
            self.check_read(src)?;
        }
        self.check_read(operand.base)?;
        let kind = *self.reg(operand.base);
        self.check_memory(&MemoryAccess {
            constant: src.imm(),
            strict,
            ..operand.access(Access::Write, src.reg())
        })?;
        self.pointers.check(self.position.pc(), &kind, false)?;
        self.note_access(&kind, operand.off);
        Ok(())
    }

    /// Checks `dst = load_acquire(base + off)`.
    pub(in crate::verifier) fn check_load_acquire(
        &mut self,
        dst: Reg,
        operand: MemoryOperand,
    ) -> VerifyResult {
        let pointer = *self.reg(operand.base);
        self.check_load(dst, operand, None, true)?;
        // The base may be the destination.
        self.check_atomic_pointer(operand.base, "loads from")?;
        self.forget_unfetched(&pointer, dst);
        Ok(())
    }

    /// On a missing page of an arena an atomic operation fetches nothing: the register keeps what
    /// it had, all 64 bits of it. The kernel takes it for a number of the operation's size
    /// (docs/findings.md).
    fn forget_unfetched(&mut self, pointer: &RegState, dst: Reg) {
        if pointer.kind == Kind::Arena {
            self.set_unknown(dst);
        }
    }

    /// Checks `store_release(base + off, src)`.
    pub(in crate::verifier) fn check_store_release(
        &mut self,
        operand: MemoryOperand,
        src: Reg,
    ) -> VerifyResult {
        self.check_store(operand, Operand::Reg(src), true)?;
        self.check_atomic_pointer(operand.base, "stores into")
    }

    /// Checks a read-modify-write: like a load, which may fill a register, then a store
    /// (`check_atomic_rmw`).
    pub(in crate::verifier) fn check_atomic(
        &mut self,
        op: AtomicOp,
        width: Width,
        base: Reg,
        off: i16,
        src: Reg,
    ) -> VerifyResult {
        let size = width.size();
        let operand = MemoryOperand { base, off, size };
        self.check_read(src)?;
        self.check_read(base)?;
        if op.compares() {
            self.check_read(Reg::R0)?;
            self.check_pointer_leak(Reg::R0, "mem")?;
        }
        self.check_pointer_leak(src, "mem")?;
        self.check_atomic_pointer(base, "stores into")?;
        // The x86-64 JIT makes loops of these, which can't skip a missing page.
        let loops = matches!(
            op,
            AtomicOp::FetchAnd | AtomicOp::FetchOr | AtomicOp::FetchXor
        );
        if loops && self.reg(base).kind == Kind::Arena {
            let at = base.number();
            reject!(EACCES, "BPF_ATOMIC stores into R{at} arena is not allowed");
        }
        let pointer = *self.reg(base);
        self.note_access(&pointer, off);
        let loaded = op.old(src);
        if let Some(loaded) = loaded {
            self.check_write(loaded)?;
            self.set_unknown(loaded);
        }
        let access = |access, value| MemoryAccess {
            strict: true,
            ..operand.access(access, value)
        };
        self.check_memory(&access(Access::Read, None))?;
        if let Some(loaded) = loaded {
            self.check_memory(&access(Access::Read, Some(loaded)))?;
            self.forget_unfetched(&pointer, loaded);
        }
        self.check_memory(&access(Access::Write, None))
    }

    /// Checks that an atomic accesses the program's own memory (`atomic_ptr_type_ok`).
    fn check_atomic_pointer(&self, base: Reg, what: &str) -> VerifyResult {
        let reg = self.reg(base);
        let foreign = match reg.kind {
            Kind::Packet { .. } | Kind::PacketMeta { .. } => true,
            Kind::Ctx
            | Kind::FlowKeys
            | Kind::Socket
            | Kind::SockCommon
            | Kind::TcpSock
            | Kind::XdpSock => reg.flags.is_empty(),
            _ => false,
        };
        if foreign {
            let (at, name) = (base.number(), reg.reg_type());
            reject!(EACCES, "BPF_ATOMIC {what} R{at} {name} is not allowed");
        }
        Ok(())
    }

    /// Records the memory that is accessed, for the engines.
    fn note_access(&mut self, reg: &RegState, off: i16) {
        let var = reg
            .var
            .value()
            .and_then(|var| i32::try_from(var.cast_signed()).ok());
        let total = var.and_then(|var| var.checked_add(reg.off)?.checked_add(off.into()));
        let current = self.state.current();
        let through = match (reg.kind, total) {
            (Kind::Stack { frame }, Some(off)) if usize::from(frame) == current => {
                Through::Stack { off }
            }
            (Kind::Ctx, Some(off)) => Through::Context { off },
            (Kind::MapValue { map, .. }, _) if !map.inner => Through::MapValue { map: map.id },
            (Kind::Packet { .. }, _) => Through::Packet,
            (Kind::Arena, _) => Through::Arena,
            (Kind::BtfId { .. } | Kind::MapPtr { .. }, _) => Through::Kernel,
            (Kind::Mem { .. }, _) if reg.flags.intersects(UNCHECKED) => Through::Kernel,
            _ => Through::Other,
        };
        self.facts.see_access(self.pc(), through);
    }
}
