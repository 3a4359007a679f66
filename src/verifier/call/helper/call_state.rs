//! The results of the arguments checked so far (`struct bpf_call_arg_meta`).

use std::fmt;

use crate::btf::SpecialField;
use crate::isa::Reg;
use crate::spec::helpers::{Effects, Prototype, helper};
use crate::util::HelperId;
use crate::verifier::reg::{MapRef, ObjectType};

/// A helper call whose arguments are being checked.
#[derive(Debug)]
pub(super) struct Call {
    /// The helper.
    pub id: HelperId,
    /// The helper's prototype for this program.
    pub prototype: &'static Prototype,
    /// The map, and the id of an inner map.
    pub map: Option<(MapRef, u32)>,
    /// The stack memory that the call overwrites: its pointer, and its size in bytes.
    pub filled: Option<(Reg, u32)>,
    /// The argument that is released.
    pub released: Option<Reg>,
    /// The reference id of an argument, or 0.
    pub ref_id: u32,
    /// The dynptr that the returned memory belongs to.
    pub dynptr_id: u32,
    /// The size of the memory that is returned, in bytes.
    pub allocated: u32,
    /// The maximum of the last size argument.
    pub size_max: u64,
    /// The kptr that is exchanged.
    pub kptr: Option<SpecialField>,
    /// The per-CPU object in the arguments, and whether it is a kptr.
    pub percpu: Option<(ObjectType, bool)>,
    /// The callback.
    pub callback: Option<u32>,
    /// Whether the call may move the packet.
    pub changes_packet: bool,
    /// The key, if it is constant and the map is an array.
    pub key: Option<u64>,
}

impl Call {
    pub(super) fn new(id: HelperId, prototype: &'static Prototype) -> Self {
        Self {
            id,
            prototype,
            map: None,
            filled: None,
            released: None,
            ref_id: 0,
            dynptr_id: 0,
            allocated: 0,
            size_max: 0,
            kptr: None,
            percpu: None,
            callback: None,
            changes_packet: helper(id)
                .is_some_and(|helper| helper.effects.contains(Effects::CHANGES_PACKET)),
            key: None,
        }
    }
}

/// A helper in a message: `bpf_map_lookup_elem#1` (`func_id_name`,
/// `kernel/bpf/disasm.c`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Named(pub HelperId);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match (self.0.0, helper(self.0)) {
            (0, _) => "bpf_unspec",
            (_, Some(helper)) => return write!(f, "bpf_{}#{}", helper.name, self.0),
            _ => "unknown",
        };
        write!(f, "{name}#{}", self.0.0.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_named_as_in_the_log() {
        let text = |id| Named(HelperId(id)).to_string();
        assert_eq!(text(1), "bpf_map_lookup_elem#1");
        assert_eq!(text(0), "bpf_unspec#0");
        assert_eq!(text(1234), "unknown#1234");
        assert_eq!(text(u32::MAX - 2), "unknown#-3");
    }
}
