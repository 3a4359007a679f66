//! Loads and stores, by kind of pointer (`check_mem_access`).

mod align;
pub(super) mod insn;
mod legacy;
mod map;
pub(super) mod pointers;
mod region;
mod stack_read;
mod stack_write;
#[cfg(test)]
mod tests;

use super::env::Verifier;
use super::reg::{Kind, RegState};
use super::reject::{VerifyResult, reject};
use super::typed::ObjectAccess;
use crate::isa::Reg;
use crate::spec::PacketAccess;
use crate::spec::helpers::TypeFlags;

pub(crate) use crate::spec::call::Access;

/// A load or store of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryAccess {
    /// The register that holds the address.
    pub base: Reg,
    /// The offset in the instruction.
    pub off: i32,
    /// The size in bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// Whether it loads or stores.
    pub access: Access,
    /// The register that is loaded or stored; `None` for constants and where the value is
    /// not used.
    pub value: Option<Reg>,
    /// The constant that is stored.
    pub constant: Option<i32>,
    /// Whether a load sign-extends.
    pub signed: bool,
    /// Whether alignment is checked strictly, regardless of the options (atomics).
    pub strict: bool,
}

impl MemoryAccess {
    /// The register that a load fills.
    pub(super) fn loaded(&self) -> Option<Reg> {
        match self.access {
            Access::Read => self.value,
            Access::Write => None,
        }
    }
}

impl MemoryAccess {
    /// The access to an object; `off` includes the pointer's fixed offset.
    fn to_object(self, off: i32) -> ObjectAccess {
        ObjectAccess {
            base: self.base,
            off,
            size: self.size,
            access: self.access,
            loads: self.loaded().is_some(),
        }
    }
}

impl Verifier<'_> {
    /// Checks the access, and sets the loaded register.
    pub(crate) fn check_memory(&mut self, a: &MemoryAccess) -> VerifyResult {
        let reg = *self.reg(a.base);
        self.check_alignment(&reg, a)?;
        // `off` includes the fixed part of the pointer's offset from here on.
        let off = a.off.wrapping_add(reg.off);
        let loaded = match reg.kind {
            Kind::Stack { frame } if reg.flags.is_empty() => {
                self.check_stack_bounds(a.base, off, a.size, a.access)?;
                return match a.access {
                    Access::Read => {
                        self.check_stack_read(a, &reg, frame, off)?;
                        self.narrow_load(a);
                        Ok(())
                    }
                    Access::Write => self.check_stack_write(a, &reg, frame, off),
                };
            }
            Kind::MapKey { map, .. } if reg.flags.is_empty() => {
                if a.access == Access::Write {
                    reject!(
                        EACCES,
                        "write to change key R{} not allowed",
                        a.base.number()
                    );
                }
                let size = self.map(map).map_or(0, |def| def.key_size);
                self.check_region(a.base, off, a.size, size, false)?;
                RegState::UNKNOWN
            }
            Kind::MapValue { map, .. } if reg.flags.is_empty() => {
                self.check_stored(a, "map")?;
                self.check_map_load_store(a, &reg, map, off)?
            }
            Kind::Mem { size } => {
                self.check_mem(a, &reg, size, off)?;
                RegState::UNKNOWN
            }
            Kind::Ctx if reg.flags.is_empty() => {
                self.check_stored(a, "ctx")?;
                match self.check_context(a)? {
                    Some(loaded) => loaded,
                    None => return Ok(()),
                }
            }
            Kind::Packet { .. } | Kind::PacketMeta { .. } if reg.flags.is_empty() => {
                if a.access == Access::Write && !self.may_access_packet(a.access) {
                    reject!(EACCES, "cannot write into packet");
                }
                self.check_stored(a, "packet")?;
                self.check_packet_access(a.base, off, a.size, false)?;
                RegState::UNKNOWN
            }
            Kind::FlowKeys if reg.flags.is_empty() => {
                self.check_stored(a, "flow keys")?;
                self.check_flow_keys(a)?;
                RegState::UNKNOWN
            }
            Kind::Socket | Kind::SockCommon | Kind::TcpSock | Kind::XdpSock
                if reg.flags.is_empty() =>
            {
                if a.access == Access::Write {
                    let name = reg.reg_type();
                    reject!(EACCES, "R{} cannot write into {name}", a.base.number());
                }
                self.check_socket(a)?;
                RegState::UNKNOWN
            }
            Kind::TpBuffer if reg.flags.is_empty() => {
                self.check_tp_buffer(a)?;
                RegState::UNKNOWN
            }
            Kind::Buf => {
                if a.access == Access::Write && reg.flags.contains(TypeFlags::MEM_RDONLY) {
                    let name = reg.reg_type();
                    reject!(EACCES, "R{} cannot write into {name}", a.base.number());
                }
                self.check_buf(a)?;
                RegState::UNKNOWN
            }
            Kind::BtfId { .. } if !reg.maybe_null() => {
                self.check_object_access(&a.to_object(off))?
            }
            Kind::Arena => RegState::UNKNOWN,
            Kind::MapPtr { map, .. } if reg.flags.is_empty() => {
                self.check_map_field(map, &a.to_object(off))?
            }
            _ => {
                let name = reg.reg_type();
                reject!(EACCES, "R{} invalid mem access '{name}'", a.base.number());
            }
        };
        if let Some(to) = a.loaded() {
            *self.reg_mut(to) = loaded;
            self.narrow_load(a);
        }
        Ok(())
    }

    /// Memory returned by a helper or passed to a global function.
    fn check_mem(&mut self, a: &MemoryAccess, reg: &RegState, size: u32, off: i32) -> VerifyResult {
        let (at, name) = (a.base.number(), reg.reg_type());
        if reg.maybe_null() {
            reject!(EACCES, "R{at} invalid mem access '{name}'");
        }
        let read_only = reg.flags.contains(TypeFlags::MEM_RDONLY);
        if a.access == Access::Write && read_only {
            reject!(EACCES, "R{at} cannot write into {name}");
        }
        self.check_stored(a, "mem")?;
        if read_only && reg.flags.contains(TypeFlags::PTR_UNTRUSTED) {
            return Ok(());
        }
        self.check_region(a.base, off, a.size, size, false)
    }

    /// Checks that a store writes no pointer that the loader must not see.
    fn check_stored(&self, a: &MemoryAccess, to: &str) -> VerifyResult {
        let stored = a.value.filter(|_| a.access == Access::Write);
        match stored {
            Some(value) => self.check_pointer_leak(value, to),
            None => Ok(()),
        }
    }

    /// Checks that a register that is written to memory or passed on holds no pointer that the
    /// loader must not see.
    pub(super) fn check_pointer_leak(&self, reg: Reg, to: &str) -> VerifyResult {
        if self.is_pointer_value(self.reg(reg)) {
            reject!(EACCES, "R{} leaks addr into {to}", reg.number());
        }
        Ok(())
    }

    /// Zero- or sign-extends a load of fewer than eight bytes.
    fn narrow_load(&mut self, a: &MemoryAccess) {
        let Some(to) = a.loaded() else { return };
        let reg = self.reg_mut(to);
        if a.size < 8 && reg.is_scalar() {
            if a.signed {
                // A fill keeps the id of the spilled scalar. Linux 6.18 does so even if the sign
                // is extended: it then takes two different numbers for equal.
                if reg.var.umax >> (8 * a.size - 1) != 0 {
                    reg.unlink();
                }
                reg.var = reg.var.to_size_signed(a.size);
            } else {
                reg.var = reg.var.to_size(a.size);
            }
        }
    }

    /// Whether the program may access packet bytes directly in this way
    /// (`may_access_direct_pkt_data`); for a helper, its prototype decides as well.
    pub(crate) fn may_access_packet(&self, access: Access) -> bool {
        match self.program.prog_type.info().packet {
            PacketAccess::None => false,
            PacketAccess::Read => access == Access::Read,
            PacketAccess::Write => true,
        }
    }
}
