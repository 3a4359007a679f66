//! Addresses, loads and stores. The host's plain loads acquire and its stores release.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Stub, asm};
use super::operand::{At, Opcode};
use super::pins::Pin;
use super::regs::{FIRST, FRAME, Host, RUN, SECOND, host};
use crate::isa::{Operand, Reg, SignedSize, Size};
use crate::jit::layout;
use crate::lower::{MemRef, Target};
use crate::spec::limits::{PAGE_SHIFT, PAGE_SIZE};
use crate::vm::memory::RecentBlocks;

impl Emitter<'_> {
    /// Emits the code that computes the host address of the access by operation `op`; none
    /// if the interpreter's step has to do it. The first spare register may hold a part of
    /// the address, the second is clobbered.
    pub(super) fn address(&mut self, op: Target, mem: MemRef) -> Option<At> {
        Some(match mem {
            MemRef::Stack { off } => At::new(FRAME, off.into()),
            MemRef::Context { off } => At::new(self.pinned(Pin::Context), off.into()),
            MemRef::MapValue { base, off, map } => {
                let base = host(base)?;
                At::indexed(base, self.pinned(Pin::Map(map)), off.into())
            }
            // A run in machine code has a packet if its program uses packet pointers.
            MemRef::Packet { base, off } => {
                let base = host(base)?;
                At::indexed(base, self.pinned(Pin::Packet), off.into())
            }
            MemRef::Table { base, off } => {
                let base = host(base)?;
                let judged = self.stub(Stub::Step(op));
                // Bits 40 to 55 of the address are the index of the entry; the base has the
                // same bits, since regions begin and end far from where they change.
                if self.features.bmi2 {
                    asm!(self ; rorx Rq(FIRST), Rq(base), 40);
                } else {
                    asm!(self ; mov Rq(FIRST), Rq(base) ; shr Rq(FIRST), 40);
                }
                asm!(self
                    ; movzx Rd(FIRST), Rw(FIRST)
                    ; mov Rq(SECOND), [Rq(RUN) + Self::deltas()]
                );
                let entry = At {
                    base: SECOND,
                    index: Some(FIRST),
                    scale: 3,
                    off: 0,
                };
                self.with_memory(Opcode::load(Size::Dw), FIRST, entry);
                asm!(self ; test Rq(FIRST), Rq(FIRST) ; jz =>judged);
                At::indexed(base, FIRST, off.into())
            }
            MemRef::Kernel { base, off, size } => {
                let base = host(base)?;
                let judged = self.stub(Stub::Step(op));
                self.with_memory(Opcode::LEA, FIRST, At::new(base, off.into()));
                asm!(self
                    ; mov Rd(SECOND), Rd(FIRST)
                    ; and Rd(SECOND), RecentBlocks::INDEX.into()
                    ; add Rq(SECOND), [Rq(RUN) + layout::RECENT]
                    ; sub Rq(FIRST), [Rq(SECOND) + RecentBlocks::START.into()]
                    ; cmp Rq(FIRST), [Rq(SECOND) + RecentBlocks::limit(size).into()]
                    ; jae =>judged
                    ; add Rq(FIRST), [Rq(SECOND) + RecentBlocks::HOST.into()]
                );
                At::new(FIRST, 0)
            }
            MemRef::Arena { base, off, size } => {
                self.in_arena(op, host(base)?, off, size)?;
                At::new(FIRST, 0)
            }
            MemRef::Checked { .. } => return None,
        })
    }

    /// The first spare register = the host address of an access to the arena. The interpreter's
    /// step does it if a page is missing, and if the access may be to two pages.
    fn in_arena(&mut self, op: Target, base: Host, off: i16, size: Size) -> Option<()> {
        let pages = &self.lowered.arena()?.pages;
        let last = (pages.bytes().len() as u64).checked_sub(size.bytes().into())?;
        let judged = self.stub(Stub::Step(op));
        asm!(self ; mov Rd(FIRST), Rd(base));
        self.constant(
            SECOND,
            (i64::from(off) - i64::from(pages.start())).cast_unsigned(),
        );
        asm!(self ; add Rq(FIRST), Rq(SECOND));
        self.constant(SECOND, last);
        asm!(self ; cmp Rq(FIRST), Rq(SECOND) ; ja =>judged);
        if size != Size::B {
            let last = PAGE_SIZE.cast_signed() - i32::from(size.bytes());
            asm!(self
                ; mov Rd(SECOND), Rd(FIRST)
                ; and Rd(SECOND), PAGE_SIZE.cast_signed() - 1
                ; cmp Rd(SECOND), last
                ; ja =>judged
            );
        }
        asm!(self
            ; mov Rq(SECOND), Rq(FIRST)
            ; shr Rq(SECOND), PAGE_SHIFT.cast_signed()
            ; add Rq(SECOND), [Rq(RUN) + layout::ARENA]
            ; cmp BYTE [Rq(SECOND)], 0
            ; je =>judged
        );
        self.constant(SECOND, pages.bytes().host_address());
        asm!(self ; add Rq(FIRST), Rq(SECOND));
        Some(())
    }

    /// `dst` = the arena pointer in `src`, converted; false if the interpreter's step has to do
    /// it.
    pub(super) fn cast(&mut self, dst: Reg, src: Reg, to_user: bool) -> bool {
        let (Some(dst), Some(src), Some(arena)) = (host(dst), host(src), self.lowered.arena())
        else {
            return false;
        };
        let half = if to_user { arena.user } else { arena.region };
        self.constant(FIRST, half);
        asm!(self ; mov Rd(SECOND), Rd(src) ; add Rq(FIRST), Rq(SECOND));
        if to_user {
            asm!(self ; test Rd(SECOND), Rd(SECOND));
        } else {
            asm!(self ; test Rq(src), Rq(src));
        }
        // Null stays null.
        asm!(self ; cmovz Rq(FIRST), Rq(SECOND) ; mov Rq(dst), Rq(FIRST));
        true
    }

    /// The register that holds a pin: one of the function's spare registers, or the first
    /// spare one within an operation, which may hold it already.
    fn pinned(&mut self, pin: Pin) -> Host {
        if let Some(host) = self.pins.get(pin) {
            return host;
        }
        if self.held != Some(pin) {
            self.pin(pin, FIRST);
            self.held = Some(pin);
        }
        FIRST
    }

    /// Loads a pin.
    fn pin(&mut self, pin: Pin, to: Host) {
        let from = match pin {
            Pin::Packet => Self::packet(),
            Pin::Context => Self::context(),
            Pin::Map(map) => {
                let map = self.lowered.maps().get(usize::from(map));
                return self.constant(to, map.map_or(0, |map| map.delta));
            }
        };
        self.with_memory(Opcode::load(Size::Dw), to, At::new(RUN, from));
    }

    /// Loads the function's spare registers.
    pub(super) fn load_pins(&mut self) {
        for (pin, to) in self.pins.iter() {
            self.pin(pin, to);
        }
    }

    /// `dst` = the bytes at `mem`, zero-extended; false if the interpreter's step has to do
    /// it.
    pub(super) fn load(&mut self, op: Target, size: Size, dst: Reg, mem: MemRef) -> bool {
        let (Some(dst), Some(at)) = (host(dst), self.address(op, mem)) else {
            return false;
        };
        self.with_memory(Opcode::load(size), dst, at);
        true
    }

    /// `dst` = the bytes at `mem`, sign-extended; false as for `load`.
    pub(super) fn load_signed(
        &mut self,
        op: Target,
        from: SignedSize,
        dst: Reg,
        mem: MemRef,
    ) -> bool {
        let (Some(dst), Some(at)) = (host(dst), self.address(op, mem)) else {
            return false;
        };
        self.with_memory(Opcode::load_signed(from.size()), dst, at);
        true
    }

    /// The bytes at `mem` = the low bytes of `src`; false as for `load`.
    pub(super) fn store(&mut self, op: Target, size: Size, mem: MemRef, src: Operand) -> bool {
        let Some(at) = self.address(op, mem) else {
            return false;
        };
        match src {
            Operand::Imm(imm) => {
                self.with_memory(Opcode::store_imm(size), 0, at);
                match size {
                    Size::B => self.code.push_i8(imm as i8),
                    Size::H => self.code.push_i16(imm as i16),
                    Size::W | Size::Dw => self.code.push_i32(imm),
                }
            }
            Operand::Reg(src) => {
                let src = self.source(src, SECOND);
                self.with_memory(Opcode::store(size), src, at);
            }
        }
        true
    }
}
