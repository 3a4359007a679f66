//! Accesses through the context, and through pointers loaded from it: sockets, flow keys,
//! buffers of tracepoints and iterators (`check_ctx_access` and its siblings).

use super::attach_target::shown_name;
use super::context_argument::{self, Argument};
use super::env::Verifier;
use super::log::log;
use super::memory::{Access, MemoryAccess};
use super::references::{Reference, ReferenceKind};
use super::reg::{Kind, ObjectType, RegState};
use super::reject::{Reject, VerifyResult, reject};
use super::scalar::Scalar;
use crate::btf;
use crate::isa::Reg;
use crate::spec::context::{self, FLOW_KEYS, Mode, Object, Yield};
use crate::spec::helpers::TypeFlags;
use crate::spec::limits::MAX_FUNC_ARGS;
use crate::spec::lsm;
use crate::util::{Errno, TypeId};

impl Verifier<'_> {
    /// Checks an access through the context; returns the loaded register, `None` for a
    /// store.
    pub(crate) fn check_context(&mut self, a: &MemoryAccess) -> VerifyResult<Option<RegState>> {
        let reg = *self.reg(a.base);
        self.check_pointer_offset(&reg, a.base, false)?;
        let off = reg.off.wrapping_add(a.off);
        let mode = mode(a);
        let place = u32::try_from(off).ok();
        let program = self.program;
        let found = place.and_then(|off| {
            let (ty, attach) = (program.prog_type, self.attach_type());
            let needed = context::needed(ty, off, mode);
            context::check(ty, attach, program.arch, off, a.size, mode)
                .filter(|_| self.caller.capabilities.allow(needed))
                .filter(|_| !self.lacks_operations())
        });
        let invalid = || {
            let size = a.size;
            let text = format!("invalid bpf_context access off={off} size={size}");
            Reject::new(Errno::EACCES, text)
        };
        let (Some(found), Some(place)) = (found, place) else {
            return Err(match (self.attach, place) {
                // The kernel checks this first, whatever else is wrong.
                (Some(target), Some(off)) if is_array_read(a, off) && !off.is_multiple_of(8) => {
                    let text = format!("func '{}' offset {off} is not multiple of 8", target.name);
                    Reject::new(Errno::EACCES, text).and(invalid())
                }
                _ => invalid(),
            });
        };
        let value = match self.loaded(found, place, a.size) {
            Ok(value) => value,
            Err(why) if why.errno() == Errno::EACCES => return Err(why.and(invalid())),
            Err(why) => return Err(why),
        };
        let held = |reference: &Reference| {
            reference.kind == ReferenceKind::Object && reference.id == value.ref_id
        };
        if value.ref_id != 0 && !self.state.refs.newest_first().any(held) {
            reject!(
                EACCES,
                "invalid bpf_context access off={off}. Reference may already be released"
            );
        }
        self.requires.context(place.saturating_add(a.size));
        if a.access == Access::Write {
            return Ok(None);
        }
        Ok(Some(value))
    }

    /// The register after a load of this field.
    fn loaded(&mut self, found: Yield, off: u32, size: u32) -> VerifyResult<RegState> {
        let none = TypeFlags::empty();
        let (kind, flags) = match found {
            Yield::Scalar => return Ok(RegState::UNKNOWN),
            Yield::Packet => (Kind::Packet { range: 0 }, none),
            Yield::PacketEnd => (Kind::PacketEnd, none),
            Yield::PacketMeta => (Kind::PacketMeta { range: 0 }, none),
            Yield::Socket => (Kind::Socket, none),
            Yield::SocketOrNull => (Kind::Socket, TypeFlags::PTR_MAYBE_NULL),
            Yield::SockCommonOrNull => (Kind::SockCommon, TypeFlags::PTR_MAYBE_NULL),
            Yield::FlowKeys => (Kind::FlowKeys, none),
            Yield::TracepointBuffer => (Kind::TpBuffer, none),
            Yield::Kernel(name) => {
                let id = self.kernel_struct(name);
                (
                    Kind::BtfId {
                        ty: ObjectType::kernel(id),
                    },
                    TypeFlags::PTR_TRUSTED,
                )
            }
            Yield::Argument(_) => return self.argument(off, size),
        };
        Ok(self.fresh_pointer(kind, flags))
    }

    /// A pointer loaded from the context. A nullable one gets a new id, so that a null
    /// check of one copy holds for all.
    fn fresh_pointer(&mut self, kind: Kind, flags: TypeFlags) -> RegState {
        let mut reg = RegState::pointer(kind, flags);
        if reg.maybe_null() {
            reg.id = self.new_id();
        }
        reg
    }

    /// The structure of this name in the kernel's BTF; `void` without BTF.
    pub(crate) fn kernel_struct(&self, name: &str) -> TypeId {
        let btf = self.program.kernel_btf.as_ref();
        let found = btf.and_then(|btf| btf.find(name, btf::Kind::Struct));
        found.map_or(TypeId(0), |ty| ty.id())
    }

    /// An argument of the attach target.
    fn argument(&mut self, off: u32, size: u32) -> VerifyResult<RegState> {
        let Some(target) = self.attach else {
            reject!(
                EFAULT,
                "a program without an attach target has no arguments"
            );
        };
        let argument = context_argument::at(target, self.program, off, size)?;
        Ok(match argument {
            Argument::Scalar => RegState::UNKNOWN,
            Argument::Result => {
                let (min, max) = lsm::return_range(target.name);
                RegState::scalar(low_half(min, max))
            }
            Argument::Buffer(flags) => self.fresh_pointer(Kind::Buf, flags),
            Argument::Object { id, flags, number } => {
                if let Some(number) = number {
                    let ty = self.program.kernel_btf.as_ref().map(|btf| btf.ty(id));
                    let (kind, name) = ty.map_or(("", ""), |ty| (ty.kind().name(), shown_name(ty)));
                    log!(
                        self,
                        "func '{}' arg{number} has btf_id {id} type {kind} '{name}'\n",
                        target.name
                    );
                }
                let ty = ObjectType::kernel(self.promoted(id));
                let argument = context_argument::number_at(target.prototype, off);
                let mut reg = self.fresh_pointer(Kind::BtfId { ty }, flags);
                reg.ref_id = self.argument_references.of(argument);
                reg
            }
        })
    }

    /// A load from a socket; stores are rejected (`check_sock_access`).
    pub(crate) fn check_socket(&mut self, a: &MemoryAccess) -> VerifyResult {
        let reg = self.reg(a.base);
        let off = reg.off.wrapping_add(a.off);
        if reg.var.smin < 0 {
            reject!(
                EACCES,
                "R{} min value is negative, either use unsigned index or do a if (index >=0) \
                 check.",
                a.base.number()
            );
        }
        let object = match reg.kind {
            Kind::SockCommon => Some(Object::SockCommon),
            Kind::Socket => Some(Object::Socket),
            Kind::TcpSock => Some(Object::TcpSock),
            Kind::XdpSock => Some(Object::XdpSock),
            _ => None,
        };
        let valid = reg.flags.is_empty()
            && a.access == Access::Read
            && object
                .zip(u32::try_from(off).ok())
                .is_some_and(|(object, off)| object.check(off, a.size));
        if !valid {
            reject!(
                EACCES,
                "R{} invalid {} access off={off} size={}",
                a.base.number(),
                reg.reg_type(),
                a.size
            );
        }
        let field = object
            .zip(u32::try_from(off).ok())
            .and_then(|(object, off)| Some((object.layout().at(off)?, off)));
        if let Some((field, off)) = field
            && field.element.size() == 8
            && field.offset != off
        {
            // The access is valid, but the kernel fails to convert it.
            reject!(
                EFAULT,
                "verifier bug: error during ctx access conversion (0)"
            );
        }
        Ok(())
    }

    /// An access to `struct bpf_flow_keys`.
    pub(crate) fn check_flow_keys(&mut self, a: &MemoryAccess) -> VerifyResult {
        let off = self.reg(a.base).off.wrapping_add(a.off);
        let end = u32::try_from(off)
            .ok()
            .and_then(|off| off.checked_add(a.size));
        if end.is_none_or(|end| end > FLOW_KEYS.size) {
            let size = a.size;
            reject!(EACCES, "invalid access to flow keys off={off} size={size}");
        }
        Ok(())
    }

    /// An access to the buffer of a writable raw tracepoint. Its size is checked at attach
    /// time.
    pub(crate) fn check_tp_buffer(&mut self, a: &MemoryAccess) -> VerifyResult {
        let off = self.reg(a.base).off.wrapping_add(a.off);
        let end = self.check_buffer_offset("tracepoint", a.base, off, a.size)?;
        self.requires.tracepoint_buffer(end);
        Ok(())
    }

    /// An access to a buffer passed by an iterator.
    pub(crate) fn check_buf(&mut self, a: &MemoryAccess) -> VerifyResult {
        let reg = self.reg(a.base);
        if a.access == Access::Write && reg.flags.contains(TypeFlags::MEM_RDONLY) {
            reject!(
                EACCES,
                "R{} cannot write into {}",
                a.base.number(),
                reg.reg_type()
            );
        }
        let off = reg.off.wrapping_add(a.off);
        self.check_buffer_access(a.base, off, a.size, false)
    }

    /// An access to such a buffer. Its size is checked at attach time
    /// (`check_buffer_access`).
    pub(crate) fn check_buffer_access(
        &mut self,
        number: Reg,
        off: i32,
        size: u32,
        _zero: bool,
    ) -> VerifyResult {
        let read_only = self.reg(number).flags.contains(TypeFlags::MEM_RDONLY);
        let name = if read_only { "rdonly" } else { "rdwr" };
        let end = self.check_buffer_offset(name, number, off, size)?;
        self.requires.buffer(read_only, end);
        Ok(())
    }

    /// The end of an access at a constant offset from a buffer's start
    /// (`__check_buffer_access`).
    fn check_buffer_offset(
        &self,
        name: &str,
        number: Reg,
        off: i32,
        size: u32,
    ) -> VerifyResult<u32> {
        let var = &self.reg(number).var;
        let Ok(start) = u32::try_from(off) else {
            reject!(
                EACCES,
                "R{} invalid {name} buffer access: off={off}, size={size}",
                number.number()
            );
        };
        if var.value() != Some(0) {
            reject!(
                EACCES,
                "R{} invalid variable buffer offset: off={off}, var_off={}",
                number.number(),
                var.bits
            );
        }
        Ok(start.saturating_add(size))
    }
}

/// Whether this is an aligned load from the array of arguments.
fn is_array_read(a: &MemoryAccess, off: u32) -> bool {
    let end = usize::try_from(off).is_ok_and(|off| off < 8 * MAX_FUNC_ARGS);
    a.access == Access::Read && end && off.is_multiple_of(a.size)
}

const fn mode(a: &MemoryAccess) -> Mode {
    match (a.access, a.signed) {
        (Access::Write, _) => Mode::Write,
        (Access::Read, true) => Mode::ReadSigned,
        (Access::Read, false) => Mode::Read,
    }
}

/// A scalar with these signed bounds in the lower half and in the whole register
/// (`__mark_reg_s32_range`).
fn low_half(min: i32, max: i32) -> Scalar {
    Scalar {
        smin: min.into(),
        smax: max.into(),
        smin32: min,
        smax32: max,
        ..Scalar::UNKNOWN
    }
    .synced()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::isa::assemble;
    use crate::program::Program;
    use crate::spec::ProgType;
    use crate::verifier::{Options, verify};

    fn message(prog_type: ProgType, text: &str) -> String {
        let program = Program::new("p", prog_type, assemble(text).unwrap());
        verify(&Arc::new(program), &Options::default())
            .verdict
            .message
    }

    #[test]
    fn a_context_is_touched_where_and_as_it_may_be() {
        let load = |off: i32| format!("r2 = *(u32 *)(r1 {off:+})\nr0 = 0\nexit");
        let invalid = |off| format!("invalid bpf_context access off={off} size=4");
        assert_eq!(message(ProgType::Xdp, &load(12)), "");
        assert_eq!(message(ProgType::Xdp, &load(24)), invalid(24));
        assert_eq!(message(ProgType::Xdp, &load(-4)), invalid(-4));
        // The kernel accepts a negative offset here, and reads before the record.
        assert_eq!(message(ProgType::Tracepoint, &load(-4)), invalid(-4));
        let store = "*(u32 *)(r1 + 0) = 1\nr0 = 0\nexit";
        assert_eq!(message(ProgType::Xdp, store), invalid(0));
        let moved = "r1 += 4\nr2 = *(u32 *)(r1 + 0)\nr0 = 0\nexit";
        assert_eq!(
            message(ProgType::Xdp, moved),
            "dereference of modified ctx ptr R1 off=4 disallowed"
        );
    }

    #[test]
    fn a_socket_is_looked_at_before_it_is_used() {
        let text = |check: &str, off: i32| {
            format!("r2 = *(u64 *)(r1 + 168)\n{check}r3 = *(u32 *)(r2 {off:+})\nr0 = 0\nexit")
        };
        let check = "if r2 != 0 goto +2\nr0 = 0\nexit\n";
        let of = |text: &str| message(ProgType::SchedCls, text);
        assert_eq!(
            of(&text("", 4)),
            "R2 invalid mem access 'sock_common_or_null'"
        );
        assert_eq!(of(&text(check, 4)), "");
        assert_eq!(
            of(&text(check, 8)),
            "R2 invalid sock_common access off=8 size=4"
        );
    }

    #[test]
    fn buffers_and_flow_keys_have_their_own_words() {
        let text = |first: i32, off: i32| {
            format!("r2 = *(u64 *)(r1 + {first})\nr3 = *(u32 *)(r2 {off:+})\nr0 = 0\nexit")
        };
        assert_eq!(
            message(ProgType::FlowDissector, &text(144, 54)),
            "invalid access to flow keys off=54 size=4"
        );
        let writable = ProgType::RawTracepointWritable;
        assert_eq!(message(writable, &text(0, 4000)), "");
        assert_eq!(
            message(writable, &text(0, -4)),
            "R2 invalid tracepoint buffer access: off=-4, size=4"
        );
    }
}
