//! The text of instructions, as printed by the kernel (`kernel/bpf/disasm.c`).
//!
//! The kernel's text lacks information that the loader has replaced before: the pseudo
//! source of a 64-bit immediate and the `fd_array` index of a kfunc. Unless [`Names`]
//! provides a text for them, they are printed in the style of `bpftool prog dump`, so that
//! the [assembler](super::assemble) can read the text back.

use std::fmt;

use super::code::Code;
use super::insn::{CallTarget, Insn, Operand};
use super::names::{Names, NoNames};
use super::raw::RawInsn;
use super::reg::Reg;
use super::table::{Pseudo, Size, Width};

/// An instruction's text, created by [`Insn::text`].
#[derive(Clone, Copy)]
pub struct Text<'a> {
    insn: Insn,
    names: &'a dyn Names,
    opcode: bool,
}

impl Insn {
    /// The kernel's text with the opcode before it: `(b7) r0 = 0`.
    ///
    /// ```
    /// use bpflab::isa::{Insn, NoNames, Operand, Reg, Size};
    ///
    /// let src = Operand::Reg(Reg::R1);
    /// let insn = Insn::Store { size: Size::Dw, base: Reg::R10, off: -8, src };
    /// assert_eq!(insn.text(&NoNames).to_string(), "(7b) *(u64 *)(r10 -8) = r1");
    /// ```
    #[must_use]
    pub const fn text<'a>(&self, names: &'a dyn Names) -> Text<'a> {
        Text {
            insn: *self,
            names,
            opcode: true,
        }
    }
}

impl<'a> Text<'a> {
    /// The text without the opcode. A 64-bit immediate then ends in `ll`, as in LLVM, to
    /// distinguish it from a move.
    #[must_use]
    pub const fn without_opcode(self) -> Text<'a> {
        Text {
            opcode: false,
            ..self
        }
    }
}

/// The text without names and without the opcode.
impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(&NoNames).without_opcode().fmt(f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.opcode {
            write!(f, "({:02x}) ", self.insn.opcode())?;
        }
        match self.insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                write!(f, "{} {} ", Named(width, dst), op.symbol())?;
                match src {
                    Operand::Reg(src) => write!(f, "{}", Named(width, src)),
                    Operand::Imm(imm) => write!(f, "{imm}"),
                }
            }
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => {
                write!(
                    f,
                    "{} = ({}){}",
                    Named(width, dst),
                    from.text(),
                    Named(width, src)
                )
            }
            Insn::Neg { width, dst } => write!(f, "{0} = -{0}", Named(width, dst)),
            Insn::Endian { op, size, dst } => {
                write!(f, "{dst} = {}{} {dst}", op.keyword(), size.bits())
            }
            Insn::AddrSpaceCast { dst, src, to, from } => {
                write!(f, "{dst} = addr_space_cast({src}, {to}, {from})")
            }
            Insn::LoadImm64 { dst, value } => {
                write!(f, "{dst} = {value:#x}")?;
                if self.opcode {
                    Ok(())
                } else {
                    f.write_str(" ll")
                }
            }
            Insn::LoadPseudo { dst, source } => {
                write!(f, "{dst} = ")?;
                match self.names.pseudo(source) {
                    Some(name) => f.write_str(&name),
                    None => source.fmt(f),
                }
            }
            Insn::Load {
                size,
                dst,
                base,
                off,
            } => {
                write!(f, "{dst} = *{}", MemoryOperand(size.text(), base, off))
            }
            Insn::LoadSx {
                from,
                dst,
                base,
                off,
            } => {
                write!(f, "{dst} = *{}", MemoryOperand(from.text(), base, off))
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                write!(f, "*{} = {src}", MemoryOperand(size.text(), base, off))
            }
            Insn::Atomic {
                op,
                width,
                base,
                off,
                src,
            } => {
                let memory = MemoryOperand(width.size().text(), base, off);
                let name = op.kernel_name();
                let digits = if width == Width::W64 { "64" } else { "" };
                if !op.fetches() {
                    write!(f, "lock *{memory} {name} {src}")
                } else if op.compares() {
                    write!(f, "r0 = atomic{digits}_{name}({memory}, r0, {src})")
                } else {
                    write!(f, "{src} = atomic{digits}_{name}({memory}, {src})")
                }
            }
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => {
                write!(
                    f,
                    "{dst} = load_acquire({})",
                    MemoryOperand(size.text(), base, off)
                )
            }
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => {
                write!(
                    f,
                    "store_release({}, {src})",
                    MemoryOperand(size.text(), base, off)
                )
            }
            Insn::LoadPacket { size, index, off } => self.packet(f, size, index, off),
            Insn::Jump { off } => write!(f, "goto pc{off:+}"),
            Insn::JumpLong { off } => write!(f, "gotol pc{off:+}"),
            Insn::JumpIf {
                op,
                width,
                dst,
                src,
                off,
            } => {
                write!(f, "if {} {} ", Named(width, dst), op.symbol())?;
                match src {
                    Operand::Reg(src) => write!(f, "{}", Named(width, src))?,
                    Operand::Imm(imm) => write!(f, "{imm:#x}")?,
                }
                write!(f, " goto pc{off:+}")
            }
            Insn::MayGoto { off } => write!(f, "may_goto pc{off:+}"),
            Insn::Call(target) => self.call(f, target),
            Insn::CallReg { target } => write!(f, "callx {target}"),
            Insn::Exit => f.write_str("exit"),
        }
    }
}

impl Text<'_> {
    fn packet(
        &self,
        f: &mut fmt::Formatter<'_>,
        size: Size,
        index: Option<Reg>,
        off: i32,
    ) -> fmt::Result {
        write!(f, "r0 = *({} *)skb[", size.text())?;
        match index {
            Some(index) => write!(f, "{index} + {off}]"),
            None => write!(f, "{off}]"),
        }
    }

    fn call(&self, f: &mut fmt::Formatter<'_>, target: CallTarget) -> fmt::Result {
        match target {
            CallTarget::Subprogram { rel } => write!(f, "call pc{rel:+}"),
            CallTarget::Helper(id) => {
                let name = self.names.helper(id);
                let name = name.as_deref().unwrap_or(UNKNOWN_HELPER);
                write!(f, "call {name}#{}", id.0.cast_signed())
            }
            CallTarget::Kfunc { id, fd_index } => {
                let number = id.0.cast_signed();
                match self.names.kfunc(id, fd_index) {
                    Some(name) => write!(f, "call {name}#{number}"),
                    None if fd_index == 0 => write!(f, "call {UNKNOWN_KFUNC}#{number}"),
                    None => write!(f, "call {UNKNOWN_KFUNC}#{number} {FD_INDEX}{fd_index}"),
                }
            }
        }
    }
}

/// Name printed for an unknown helper.
pub(super) const UNKNOWN_HELPER: &str = "unknown";
/// Name printed for an unknown kfunc.
pub(super) const UNKNOWN_KFUNC: &str = "kernel-function";
/// Printed before the `fd_array` index of an unnamed kfunc.
pub(super) const FD_INDEX: &str = "fd_idx=";

/// In `bpftool`'s style; a map is printed by descriptor, as it has no id yet.
impl fmt::Display for Pseudo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MapFd { fd } => write!(f, "map[fd:{fd}]"),
            Self::MapValue { fd, off } => write!(f, "map[fd:{fd}][0]+{off}"),
            Self::MapIdx { index } => write!(f, "map[idx:{index}]"),
            Self::MapIdxValue { index, off } => write!(f, "map[idx:{index}][0]+{off}"),
            Self::BtfId { id, btf_fd: 0 } => write!(f, "btf[id:{id}]"),
            Self::BtfId { id, btf_fd } => write!(f, "btf[fd:{btf_fd}][id:{id}]"),
            Self::Func { rel } => write!(f, "subprog[{rel:+}]"),
        }
    }
}

/// Prints the second operand of a store: constants in decimal.
impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reg(reg) => reg.fmt(f),
            Self::Imm(imm) => imm.fmt(f),
        }
    }
}

/// A register with the name for a width: `r1` or `w1`.
struct Named(Width, Reg);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0.letter(), self.1.number())
    }
}

/// A memory operand, without the star: `(u64 *)(r10 -8)`.
struct MemoryOperand(&'static str, Reg, i16);

impl fmt::Display for MemoryOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} *)({} {:+})", self.0, self.1, self.2)
    }
}

/// The text of a program, one instruction per line: `0: (b7) r0 = 0`. An invalid slot is
/// printed as a `.quad`, with the reason in a comment.
///
/// ```
/// use bpflab::isa::{NoNames, RawInsn, disassemble};
///
/// let slots = [RawInsn::new(0xb7, 0, 0, 0, 0), RawInsn::new(0x95, 0, 0, 0, 0)];
/// assert_eq!(disassemble(&slots, &NoNames), "0: (b7) r0 = 0\n1: (95) exit\n");
/// ```
#[must_use]
pub fn disassemble(slots: &[RawInsn], names: &dyn Names) -> String {
    use fmt::Write;

    let mut text = String::new();
    for (pc, insn) in Code::new(slots).iter() {
        // Writing to a string cannot fail.
        let _ = match insn {
            Ok(insn) => writeln!(text, "{pc}: {}", insn.text(names)),
            Err(error) => {
                let count = if error.has_second_slot() { 2 } else { 1 };
                let mut comment = format!(" // {error}");
                slots
                    .iter()
                    .skip(pc.index())
                    .take(count)
                    .zip(pc.0..)
                    .try_for_each(|(raw, pc)| {
                        let word = u64::from_le_bytes(raw.to_bytes());
                        writeln!(
                            text,
                            "{pc}: .quad {word:#018x}{}",
                            std::mem::take(&mut comment)
                        )
                    })
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::assemble;
    use super::*;
    use crate::util::TypeId;

    /// Returns a name for everything, as in a verifier's log.
    struct Loaded;

    impl Names for Loaded {
        fn kfunc(&self, id: TypeId, _fd_index: i16) -> Option<Cow<'_, str>> {
            (id == TypeId(7)).then_some("bpf_obj_new_impl".into())
        }

        fn pseudo(&self, _source: Pseudo) -> Option<Cow<'_, str>> {
            Some("0xffff888104365200".into())
        }
    }

    /// One instruction per line: its text without names, and its text in a loaded program.
    #[test]
    fn what_the_kernel_has_replaced_is_printed_as_the_names_say() {
        let cases = [
            ("(18) r1 = map[fd:3]", "(18) r1 = 0xffff888104365200"),
            ("(18) r1 = map[idx:3][0]+8", "(18) r1 = 0xffff888104365200"),
            ("(18) r1 = btf[fd:5][id:9]", "(18) r1 = 0xffff888104365200"),
            ("(18) r1 = subprog[+5]", "(18) r1 = 0xffff888104365200"),
            (
                "(85) call kernel-function#7 fd_idx=1",
                "(85) call bpf_obj_new_impl#7",
            ),
            ("(85) call kernel-function#8", "(85) call kernel-function#8"),
            ("(85) call unknown#-3", "(85) call unknown#-3"),
        ];
        for (plain, loaded) in cases {
            let slots = assemble(plain).unwrap();
            assert_eq!(disassemble(&slots, &NoNames), format!("0: {plain}\n"));
            assert_eq!(disassemble(&slots, &Loaded), format!("0: {loaded}\n"));
        }
    }

    #[test]
    fn what_is_no_instruction_is_a_number() {
        let slots = [
            RawInsn::new(0xff, 1, 2, 3, 4),
            RawInsn::new(0x95, 0, 0, 0, 0),
        ];
        assert_eq!(
            disassemble(&slots, &NoNames),
            "0: .quad 0x00000004000321ff // instruction 0 (opcode 0xff): \
             no instruction has this opcode\n1: (95) exit\n"
        );
    }
}
