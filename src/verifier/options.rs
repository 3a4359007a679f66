//! Options of a verification.

use std::num::NonZeroU32;

use super::verdict::LogLevel;
use crate::program::Program;
use crate::spec::limits::MAX_CPUS;
use crate::spec::{AttachType, Capabilities, KernelConfig, MapType, Token};
use crate::util::with;

/// Options of a verification.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options {
    /// The contents of the log; the error line is always included.
    pub log: LogLevel,
    /// Whether every access has to be aligned, as for CPUs without unaligned access
    /// (`BPF_F_STRICT_ALIGNMENT`; a program's own flags can request this, too).
    pub strict_alignment: bool,
    /// The number of possible CPUs (`nr_cpu_ids`), the bound of `bpf_get_smp_processor_id`;
    /// by default the kernel's maximum.
    pub cpus: Option<NonZeroU32>,
    /// The configuration and lockdown state of the kernel, which decide the helpers
    /// available, and its backports; by default all helpers, and no backports.
    pub kernel: KernelConfig,
    /// The capabilities of the loader; by default all of them. Without `CAP_BPF` the kernel's
    /// `unprivileged_bpf_disabled` is taken to be 0.
    pub capabilities: Capabilities,
    /// The loader's BPF token; by default none. The capabilities are then those in the token's user
    /// namespace, and count only for what the token permits. For the rest the loader is an ordinary
    /// user.
    pub token: Option<Token>,
    /// Whether a verdict is to depend as little as possible on what was pruned and explored before:
    /// unwritten stack subsumes unwritten stack only, a path ends where the bounds show that no run
    /// goes on, and no loop makes a scalar unknown. No kernel does that.
    pub(crate) order_free: bool,
}

impl Options {
    with! {
        with_log(log: LogLevel);
        with_strict_alignment(strict_alignment: bool);
        with_cpus(cpus: impl Into<Option<NonZeroU32>>);
        with_kernel(kernel: KernelConfig);
        with_capabilities(capabilities: Capabilities);
        with_token(token: impl Into<Option<Token>>);
    }

    /// The capabilities that count where the token has to permit it (`bpf_token_capable`).
    fn where_permitted(&self, permits: impl FnOnce(Token) -> bool) -> Capabilities {
        match self.token {
            Some(token) if !permits(token) => Capabilities::empty(),
            _ => self.capabilities,
        }
    }

    /// The capabilities that count when the program is loaded (`bpf_prog_load`,
    /// `kernel/bpf/syscall.c`).
    pub(super) fn loader_of(&self, program: &Program) -> Capabilities {
        let attach_type = program.expected_attach_type.map_or(0, AttachType::number);
        let attach_type = program.member().unwrap_or(attach_type);
        self.where_permitted(|token| token.permits_program(program.prog_type, attach_type))
    }

    /// The capabilities that count when a map of this type is created (`map_create`).
    pub(super) fn creator_of(&self, map_type: MapType) -> Capabilities {
        self.where_permitted(|token| token.permits_map(map_type))
    }

    /// Whether the loader may load BTF (`bpf_btf_load`).
    pub(super) fn loads_btf(&self) -> bool {
        let loader = self.where_permitted(Token::permits_btf);
        loader.allow(Capabilities::BPF)
    }

    /// The number of possible CPUs.
    pub(crate) fn cpus(&self) -> u32 {
        self.cpus.map_or(MAX_CPUS, NonZeroU32::get)
    }
}
