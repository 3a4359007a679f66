//! Loads and stores, each kind of pointer by its own rule.

use super::env::Verifier;
use super::reg::RegState;
use super::reject::{Checked, reject};
use crate::isa::Reg;

/// What an instruction or a helper does with memory (`enum bpf_access_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A load or store of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryAccess {
    /// The register that holds the address.
    pub base: Reg,
    /// The offset in the instruction.
    pub off: i32,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// Whether it loads or stores.
    pub access: Access,
    /// The register that is loaded or stored; none for constants and where the number
    /// does not matter.
    pub value: Option<Reg>,
    /// Whether a load extends the sign.
    pub signed: bool,
    /// Whether alignment is checked strictly whatever the options say (atomics).
    pub strict: bool,
}

impl Verifier<'_> {
    /// Whether the access is allowed, and what the loaded register holds afterwards
    /// (`check_mem_access`).
    pub(crate) fn check_memory(&mut self, _access: &MemoryAccess) -> Checked {
        reject!(ENOTSUPP, "memory is not supported by bpflab yet")
    }

    /// Bytes `off + [0, size)` of an object of `mem_size` bytes, the register's offset
    /// included (`check_mem_region_access`): what the messages call "allowed memory
    /// range". `zero` allows accesses of no bytes.
    pub(crate) fn check_region(
        &mut self,
        _reg: Reg,
        _off: i32,
        _size: u32,
        _mem_size: u32,
        _zero: bool,
    ) -> Checked {
        reject!(ENOTSUPP, "memory is not supported by bpflab yet")
    }

    /// Bytes of a map's value, fields that only helpers may touch excepted
    /// (`check_map_access`).
    pub(crate) fn check_map_access(
        &mut self,
        _reg: Reg,
        _off: i32,
        _size: u32,
        _zero: bool,
    ) -> Checked {
        reject!(ENOTSUPP, "memory is not supported by bpflab yet")
    }

    /// Whether the map may be read or written by programs (`check_map_access_type`).
    pub(crate) fn check_map_access_type(
        &mut self,
        _reg: Reg,
        _off: i32,
        _size: u32,
        _access: Access,
    ) -> Checked {
        reject!(ENOTSUPP, "memory is not supported by bpflab yet")
    }

    /// Bytes of the packet that comparisons with its end have covered
    /// (`check_packet_access`).
    pub(crate) fn check_packet_access(
        &mut self,
        _reg: Reg,
        _off: i32,
        _size: u32,
        _zero: bool,
    ) -> Checked {
        reject!(ENOTSUPP, "memory is not supported by bpflab yet")
    }

    /// Whether the program may touch packet bytes directly in this way
    /// (`may_access_direct_pkt_data`).
    pub(crate) fn may_access_packet(&mut self, _for_helper: bool, _access: Access) -> bool {
        false
    }

    /// A pointer whose offset has to be what the object's start has, or fixed at least
    /// (`__check_ptr_off_reg`).
    pub(crate) fn check_pointer_offset(
        &mut self,
        _reg: &RegState,
        _number: Reg,
        _fixed_ok: bool,
    ) -> Checked {
        reject!(ENOTSUPP, "memory is not supported by bpflab yet")
    }
}
