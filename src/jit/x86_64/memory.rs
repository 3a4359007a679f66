//! Places, loads and stores. The host's plain loads acquire and its stores release.

use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::emitter::{Emitter, Stub, asm};
use super::regs::{FIRST, FRAME, Host, RUN, SECOND, host};
use crate::isa::{Operand, Reg, SignedSize, Size};
use crate::lower::{Place, Target};

/// Where an access goes in the host: a register and what is added to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub base: Host,
    pub off: i32,
}

impl Emitter<'_> {
    /// The code that finds where the access of the operation `op` goes; none where the
    /// interpreter's step has to do it. The first spare register holds the address, the
    /// second is lost.
    pub(super) fn place(&mut self, op: Target, place: Place) -> Option<At> {
        Some(match place {
            Place::Stack { off } => At {
                base: FRAME,
                off: off.into(),
            },
            Place::Context { off } => {
                asm!(self ; mov Rq(FIRST), [Rq(RUN) + Self::context()]);
                At {
                    base: FIRST,
                    off: off.into(),
                }
            }
            Place::MapValue { base, off, map } => {
                let delta = self.lowered.maps().get(usize::from(map))?.delta;
                let base = host(base)?;
                self.constant(FIRST, delta);
                asm!(self ; add Rq(FIRST), Rq(base));
                At {
                    base: FIRST,
                    off: off.into(),
                }
            }
            Place::Packet { base, off } | Place::Table { base, off } => {
                let base = host(base)?;
                let judged = self.stub(Stub::Step(op));
                // Bits 40 to 55 of the address say which entry it is.
                asm!(self
                    ; lea Rq(FIRST), [Rq(base) + i32::from(off)]
                    ; mov Rq(SECOND), Rq(FIRST)
                    ; shr Rq(SECOND), 40
                    ; movzx Rd(SECOND), Rw(SECOND)
                    ; shl Rd(SECOND), 3
                    ; add Rq(SECOND), [Rq(RUN) + Self::deltas()]
                    ; mov Rq(SECOND), [Rq(SECOND)]
                    ; test Rq(SECOND), Rq(SECOND)
                    ; jz =>judged
                    ; add Rq(FIRST), Rq(SECOND)
                );
                At {
                    base: FIRST,
                    off: 0,
                }
            }
            Place::Checked { .. } => return None,
        })
    }

    /// `dst` = the bytes at `place`, zero-extended; false where the interpreter's step
    /// has to do it.
    pub(super) fn load(&mut self, op: Target, size: Size, dst: Reg, place: Place) -> bool {
        let (Some(dst), Some(At { base, off })) = (host(dst), self.place(op, place)) else {
            return false;
        };
        match size {
            Size::B => asm!(self ; movzx Rd(dst), BYTE [Rq(base) + off]),
            Size::H => asm!(self ; movzx Rd(dst), WORD [Rq(base) + off]),
            Size::W => asm!(self ; mov Rd(dst), DWORD [Rq(base) + off]),
            Size::Dw => asm!(self ; mov Rq(dst), QWORD [Rq(base) + off]),
        }
        true
    }

    /// `dst` = the bytes at `place`, their sign extended; false as of `load`.
    pub(super) fn load_signed(
        &mut self,
        op: Target,
        from: SignedSize,
        dst: Reg,
        place: Place,
    ) -> bool {
        let (Some(dst), Some(At { base, off })) = (host(dst), self.place(op, place)) else {
            return false;
        };
        match from {
            SignedSize::S8 => asm!(self ; movsx Rq(dst), BYTE [Rq(base) + off]),
            SignedSize::S16 => asm!(self ; movsx Rq(dst), WORD [Rq(base) + off]),
            SignedSize::S32 => asm!(self ; movsxd Rq(dst), DWORD [Rq(base) + off]),
        }
        true
    }

    /// The bytes at `place` = the low bytes of `src`; false as of `load`.
    pub(super) fn store(&mut self, op: Target, size: Size, place: Place, src: Operand) -> bool {
        let Some(At { base, off }) = self.place(op, place) else {
            return false;
        };
        match src {
            Operand::Imm(imm) => match size {
                Size::B => asm!(self ; mov BYTE [Rq(base) + off], imm as i8),
                Size::H => asm!(self ; mov WORD [Rq(base) + off], imm as i16),
                Size::W => asm!(self ; mov DWORD [Rq(base) + off], imm),
                Size::Dw => asm!(self ; mov QWORD [Rq(base) + off], imm),
            },
            Operand::Reg(src) => {
                let src = self.source(src, SECOND);
                match size {
                    Size::B => asm!(self ; mov BYTE [Rq(base) + off], Rb(src)),
                    Size::H => asm!(self ; mov WORD [Rq(base) + off], Rw(src)),
                    Size::W => asm!(self ; mov DWORD [Rq(base) + off], Rd(src)),
                    Size::Dw => asm!(self ; mov QWORD [Rq(base) + off], Rq(src)),
                }
            }
        }
        true
    }
}
