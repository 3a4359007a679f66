//! Addresses, loads and stores.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, asm};
use super::labels::Stub;
use super::regs::{CONTEXT, DELTAS, FIRST, FRAME, Host, RUN, SECOND, THIRD, host};
use crate::isa::{Operand, Reg, SignedSize, Size, Width};
use crate::jit::layout;
use crate::lower::{MemRef, Notes, Order, Target};
use crate::spec::limits::{PAGE_SHIFT, PAGE_SIZE, STACK_SIZE};
use crate::vm::memory::RecentBlocks;

/// The host address of an access: a register and an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub base: Host,
    pub off: Off,
}

/// The offset of an address.
#[derive(Debug, Clone, Copy)]
pub(super) enum Off {
    /// A constant.
    Imm(i32),
    /// A register.
    Reg(Host),
}

/// A field of the run.
pub(super) const fn field(offset: i32) -> At {
    At {
        base: RUN,
        off: Off::Imm(offset),
    }
}

/// A load or store in the form that its address allows.
macro_rules! access {
    ($emitter:expr, $size:expr, $at:expr, $scaled:ident, $unscaled:ident, $family:ident($reg:expr)) => {{
        let at: At = $at;
        let (base, size) = (at.base, $size);
        match at.off {
            Off::Reg(index) => asm!($emitter ; $scaled $family($reg), [X(base), X(index)]),
            Off::Imm(off) => match Form::of(off, size) {
                Form::Scaled(off) => asm!($emitter ; $scaled $family($reg), [X(base), off]),
                Form::Unscaled(off) => asm!($emitter ; $unscaled $family($reg), [X(base), off]),
                Form::Far => {
                    $emitter.add(FIRST, base, off.into());
                    asm!($emitter ; $scaled $family($reg), [X(FIRST)]);
                }
            },
        }
    }};
}

/// The form of a constant offset.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// A multiple of the size.
    Scaled(u32),
    /// Any small number.
    Unscaled(i32),
    /// Added by a separate instruction.
    Far,
}

impl Form {
    fn of(off: i32, size: Size) -> Self {
        let size = u32::from(size.bytes());
        match u32::try_from(off) {
            Ok(off) if off.is_multiple_of(size) && off / size < 1 << 12 => Self::Scaled(off),
            _ if (-256..256).contains(&off) => Self::Unscaled(off),
            _ => Self::Far,
        }
    }
}

impl Emitter<'_> {
    /// Emits the code that computes the host address of the access by operation `op`; none
    /// if the interpreter's step has to do it. The first two spare registers may hold the
    /// address.
    pub(super) fn address(&mut self, op: Target, mem: MemRef) -> Option<At> {
        self.address_from(Stub::Step(op), mem, None)
    }

    /// The same with the machine address in this register instead of `mem`'s own, and with
    /// the stub for an access that has to be checked.
    pub(super) fn address_from(
        &mut self,
        judged: Stub,
        mem: MemRef,
        base: Option<Host>,
    ) -> Option<At> {
        let in_register = |reg| base.unwrap_or(host(reg));
        Some(match mem {
            MemRef::Stack { off } => At {
                base: FRAME,
                off: Off::Imm(i32::from(off) + STACK_SIZE as i32),
            },
            MemRef::Context { off } => At {
                base: CONTEXT,
                off: Off::Imm(off.into()),
            },
            MemRef::MapValue { base, off, map } => {
                let delta = self.lowered.maps().get(usize::from(map))?.delta;
                self.constant(FIRST, delta.wrapping_add_signed(off.into()));
                At {
                    base: FIRST,
                    off: Off::Reg(in_register(base)),
                }
            }
            // A run in machine code has a packet if its program uses packet pointers.
            MemRef::Packet { base, off } => {
                let address = self.plus(in_register(base), off);
                self.load_from(SECOND, field(layout::PACKET));
                At {
                    base: address,
                    off: Off::Reg(SECOND),
                }
            }
            MemRef::Table { base, off } => {
                let address = self.plus(in_register(base), off);
                let judged = self.stub(judged);
                // Bits 40 to 55 of the address are the index of the entry.
                asm!(self
                    ; ubfx X(SECOND), X(address), 40, 16
                    ; ldr X(SECOND), [X(DELTAS), X(SECOND), lsl 3]
                    ; cbz X(SECOND), =>judged
                );
                At {
                    base: address,
                    off: Off::Reg(SECOND),
                }
            }
            MemRef::Kernel { base, off, size } => {
                let address = self.plus(in_register(base), off);
                let judged = self.stub(judged);
                let entry = |off: u8| At {
                    base: SECOND,
                    off: Off::Imm(off.into()),
                };
                self.load_from(THIRD, field(layout::RECENT));
                asm!(self
                    ; and XSP(SECOND), X(address), u64::from(RecentBlocks::INDEX)
                    ; add X(SECOND), X(SECOND), X(THIRD)
                );
                self.load_from(THIRD, entry(RecentBlocks::START));
                asm!(self ; sub X(FIRST), X(address), X(THIRD));
                self.load_from(THIRD, entry(RecentBlocks::limit(size)));
                asm!(self ; cmp X(FIRST), X(THIRD) ; b.hs =>judged);
                self.load_from(SECOND, entry(RecentBlocks::HOST));
                At {
                    base: FIRST,
                    off: Off::Reg(SECOND),
                }
            }
            MemRef::Arena { base, off, size } => {
                self.in_arena(judged, in_register(base), off, size)?
            }
            MemRef::Checked { .. } => return None,
        })
    }

    /// The host address of an access to the arena. The interpreter's step does it if a page is
    /// missing, and if the access may be to two pages.
    fn in_arena(&mut self, judged: Stub, base: Host, off: i16, size: Size) -> Option<At> {
        let pages = &self.lowered.arena()?.pages;
        let last = (pages.bytes().len() as u64).checked_sub(size.bytes().into())?;
        let judged = self.stub(judged);
        asm!(self ; mov W(FIRST), W(base));
        self.add(FIRST, FIRST, i64::from(off) - i64::from(pages.start()));
        self.constant(SECOND, last);
        asm!(self ; cmp X(FIRST), X(SECOND) ; b.hi =>judged);
        if size != Size::B {
            let last = PAGE_SIZE - u32::from(size.bytes());
            asm!(self ; and WSP(SECOND), W(FIRST), PAGE_SIZE - 1);
            self.constant(THIRD, last.into());
            asm!(self ; cmp X(SECOND), X(THIRD) ; b.hi =>judged);
        }
        self.constant(THIRD, pages.present_address());
        asm!(self
            ; lsr X(SECOND), X(FIRST), PAGE_SHIFT.into()
            ; ldrb W(SECOND), [X(THIRD), X(SECOND)]
            ; cbz W(SECOND), =>judged
        );
        self.constant(SECOND, pages.bytes().host_address());
        Some(At {
            base: FIRST,
            off: Off::Reg(SECOND),
        })
    }

    /// `dst` = the arena pointer in `src`, converted; false if the interpreter's step has to do
    /// it.
    pub(super) fn cast(&mut self, dst: Reg, src: Reg, to_user: bool) -> bool {
        let Some(arena) = self.lowered.arena() else {
            return false;
        };
        let (dst, src) = (host(dst), host(src));
        self.constant(FIRST, if to_user { arena.user } else { arena.region });
        asm!(self ; mov W(SECOND), W(src) ; add X(FIRST), X(FIRST), X(SECOND));
        // Null stays null.
        if to_user {
            asm!(self ; cmp WSP(SECOND), 0);
        } else {
            asm!(self ; cmp XSP(src), 0);
        }
        asm!(self ; csel X(dst), X(SECOND), X(FIRST), eq);
        true
    }

    /// The register with `base + off`: [`FIRST`] unless `off` is 0.
    fn plus(&mut self, base: Host, off: i16) -> Host {
        match off {
            0 => base,
            off => {
                self.add(FIRST, base, off.into());
                FIRST
            }
        }
    }

    /// A register with the address of an access that must be aligned: if it may not be, the
    /// interpreter's step executes the operation.
    pub(super) fn aligned(&mut self, op: Target, size: Size, mem: MemRef) -> Option<Host> {
        let At { base, off } = self.address(op, mem)?;
        let address = match off {
            Off::Imm(0) => base,
            Off::Imm(off) => {
                self.add(FIRST, base, off.into());
                FIRST
            }
            Off::Reg(index) => {
                asm!(self ; add X(FIRST), X(base), X(index));
                FIRST
            }
        };
        if size != Size::B && !self.lowered.note(op).contains(Notes::ALIGNED) {
            let (judged, mask) = (self.stub(Stub::Step(op)), u64::from(size.bytes()) - 1);
            asm!(self ; tst X(address), mask ; b.ne =>judged);
        }
        Some(address)
    }

    /// `dst` = the bytes at `mem`, zero-extended; false if the interpreter's step has to do
    /// it.
    pub(super) fn load(
        &mut self,
        op: Target,
        size: Size,
        dst: Reg,
        mem: MemRef,
        order: Order,
    ) -> bool {
        let dst = host(dst);
        if order == Order::Acquire {
            let Some(address) = self.aligned(op, size, mem) else {
                return false;
            };
            match size {
                Size::B => asm!(self ; ldarb W(dst), [X(address)]),
                Size::H => asm!(self ; ldarh W(dst), [X(address)]),
                Size::W => asm!(self ; ldar W(dst), [X(address)]),
                Size::Dw => asm!(self ; ldar X(dst), [X(address)]),
            }
            return true;
        }
        let Some(at) = self.address(op, mem) else {
            return false;
        };
        self.load_sized(size, dst, at);
        true
    }

    /// `dst` = the bytes at `at`, zero-extended.
    pub(super) fn load_sized(&mut self, size: Size, dst: Host, at: At) {
        match size {
            Size::B => access!(self, size, at, ldrb, ldurb, W(dst)),
            Size::H => access!(self, size, at, ldrh, ldurh, W(dst)),
            Size::W => access!(self, size, at, ldr, ldur, W(dst)),
            Size::Dw => access!(self, size, at, ldr, ldur, X(dst)),
        }
    }

    /// The bytes at `at` = the low bytes of `src`.
    pub(super) fn store_sized(&mut self, size: Size, src: Host, at: At) {
        match size {
            Size::B => access!(self, size, at, strb, sturb, W(src)),
            Size::H => access!(self, size, at, strh, sturh, W(src)),
            Size::W => access!(self, size, at, str, stur, W(src)),
            Size::Dw => access!(self, size, at, str, stur, X(src)),
        }
    }

    /// `dst` = the 8 bytes at `at`.
    pub(super) fn load_from(&mut self, dst: Host, at: At) {
        self.load_sized(Size::Dw, dst, at);
    }

    /// The 8 bytes at `at` = `src`.
    pub(super) fn store_to(&mut self, src: Host, at: At) {
        self.store_sized(Size::Dw, src, at);
    }

    /// `dst` = the bytes at `mem`, sign-extended; false as for `load`.
    pub(super) fn load_signed(
        &mut self,
        op: Target,
        from: SignedSize,
        dst: Reg,
        mem: MemRef,
    ) -> bool {
        let (dst, size) = (host(dst), from.size());
        let Some(at) = self.address(op, mem) else {
            return false;
        };
        match from {
            SignedSize::S8 => access!(self, size, at, ldrsb, ldursb, X(dst)),
            SignedSize::S16 => access!(self, size, at, ldrsh, ldursh, X(dst)),
            SignedSize::S32 => access!(self, size, at, ldrsw, ldursw, X(dst)),
        }
        true
    }

    /// The bytes at `mem` = the low bytes of `src`; false as for `load`.
    pub(super) fn store(
        &mut self,
        op: Target,
        size: Size,
        mem: MemRef,
        src: Operand,
        order: Order,
    ) -> bool {
        if order == Order::Release {
            let Some(address) = self.aligned(op, size, mem) else {
                return false;
            };
            let src = self.operand(src, Width::W64, THIRD);
            match size {
                Size::B => asm!(self ; stlrb W(src), [X(address)]),
                Size::H => asm!(self ; stlrh W(src), [X(address)]),
                Size::W => asm!(self ; stlr W(src), [X(address)]),
                Size::Dw => asm!(self ; stlr X(src), [X(address)]),
            }
            return true;
        }
        let Some(at) = self.address(op, mem) else {
            return false;
        };
        // Only 8-byte stores use the upper half.
        let width = if size == Size::Dw {
            Width::W64
        } else {
            Width::W32
        };
        let src = self.operand(src, width, THIRD);
        self.store_sized(size, src, at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_the_form_that_fits() {
        assert_eq!(Form::of(0, Size::Dw), Form::Scaled(0));
        assert_eq!(Form::of(4095 * 8, Size::Dw), Form::Scaled(4095 * 8));
        assert_eq!(Form::of(4096 * 8, Size::Dw), Form::Far);
        assert_eq!(Form::of(4, Size::Dw), Form::Unscaled(4));
        assert_eq!(Form::of(255, Size::H), Form::Unscaled(255));
        assert_eq!(Form::of(257, Size::H), Form::Far);
        assert_eq!(Form::of(257, Size::B), Form::Scaled(257));
        assert_eq!(Form::of(-256, Size::W), Form::Unscaled(-256));
        assert_eq!(Form::of(-257, Size::W), Form::Far);
    }
}
