//! What the verifier allows a loader: the booleans of `struct bpf_verifier_env` that
//! `bpf_check` derives from the loader's capabilities.

use super::reg::RegState;
use crate::spec::{Arch, Capabilities};

/// The rights of a loader, with the kernel's names.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel's fields")]
pub(crate) struct Privileges {
    /// Subprograms, kfuncs, loops, scalars in stack slots; precision is tracked.
    pub bpf_capable: bool,
    /// The program may let numbers depend on pointers.
    pub allow_ptr_leaks: bool,
    /// The program may read stack bytes that it never wrote.
    pub allow_uninit_stack: bool,
    /// Nothing has to be done against Spectre v1: paths that only speculation takes are not
    /// explored.
    pub bypass_spec_v1: bool,
    /// The same for Spectre v4: loads that overtake a store.
    pub bypass_spec_v4: bool,
    /// Nothing has to be done against Spectre v1 for its arrays. A token does not count there
    /// (`array_map_alloc`, `kernel/bpf/arraymap.c`).
    pub arrays_bypass_spec_v1: bool,
}

impl Privileges {
    /// The rights of a loader with these capabilities, on a machine with the mitigations that
    /// Linux switches on by default.
    pub(super) const fn of(capabilities: Capabilities, has_token: bool, arch: Arch) -> Self {
        let perfmon = capabilities.allow(Capabilities::PERFMON);
        Self {
            bpf_capable: capabilities.allow(Capabilities::BPF),
            allow_ptr_leaks: perfmon,
            allow_uninit_stack: perfmon,
            bypass_spec_v1: perfmon,
            // The firmware of arm64 does it (`bpf_jit_bypass_spec_v4`).
            bypass_spec_v4: perfmon || matches!(arch, Arch::Arm64),
            arrays_bypass_spec_v1: perfmon && !has_token,
        }
    }

    /// A pointer to an object that is gone (`mark_reg_invalid`). As a number it would leak.
    pub(crate) const fn invalid(self) -> RegState {
        if self.allow_ptr_leaks {
            RegState::UNKNOWN
        } else {
            RegState::NOT_INIT
        }
    }
}
