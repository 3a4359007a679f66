//! The engines, in the order of the table's columns.

use bpflab::harness::EngineKind;

use super::engine::{Absent, Engine, Loaded};
use super::installed::Peer;
use super::llvmbpf::{LLVMBPF, Llvmbpf};
use super::native::Native;
use super::ours::Ours;
use super::programs::Program;
use super::rbpf::Rbpf;
use super::sbpf::Sbpf;
use super::ubpf::{UBPF, Ubpf};

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Checked,
    Interp,
    Jit,
    Kernel,
    Native,
    RbpfInterp,
    RbpfJit,
    SbpfInterp,
    SbpfJit,
    UbpfInterp,
    UbpfJit,
    Llvmbpf,
}

impl Column {
    pub const ALL: [Self; 12] = [
        Self::Checked,
        Self::Interp,
        Self::Jit,
        Self::Kernel,
        Self::Native,
        Self::RbpfInterp,
        Self::RbpfJit,
        Self::SbpfInterp,
        Self::SbpfJit,
        Self::UbpfInterp,
        Self::UbpfJit,
        Self::Llvmbpf,
    ];

    /// Its title in the table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Interp => "interp",
            Self::Jit => "jit",
            Self::Kernel => "kernel",
            Self::Native => "native C",
            Self::RbpfInterp => "rbpf interp",
            Self::RbpfJit => "rbpf jit",
            Self::SbpfInterp => "sbpf interp",
            Self::SbpfJit => "sbpf jit",
            Self::UbpfInterp => "uBPF interp",
            Self::UbpfJit => "uBPF jit",
            Self::Llvmbpf => "llvmbpf",
        }
    }

    /// When it checks that a memory access is in bounds.
    pub const fn checks_memory(self) -> &'static str {
        match self {
            Self::Checked
            | Self::RbpfInterp
            | Self::SbpfInterp
            | Self::SbpfJit
            | Self::UbpfInterp => "each access",
            Self::Interp | Self::Jit | Self::Kernel => "before the run",
            Self::Native | Self::RbpfJit | Self::UbpfJit | Self::Llvmbpf => "never",
        }
    }

    /// The peer whose library it needs.
    pub const fn peer(self) -> Option<Peer> {
        match self {
            Self::UbpfInterp | Self::UbpfJit => Some(UBPF),
            Self::Llvmbpf => Some(LLVMBPF),
            _ => None,
        }
    }

    /// Whether a library that it needs is named.
    pub fn is_installed(self) -> bool {
        self.peer().is_none_or(|peer| peer.missing().is_none())
    }

    /// Returns the engine.
    pub fn engine(self) -> Box<dyn Engine> {
        match self {
            Self::Checked => Box::new(Ours(EngineKind::Checked)),
            Self::Interp => Box::new(Ours(EngineKind::Interp)),
            Self::Jit => Box::new(Ours(EngineKind::Jit)),
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            Self::Kernel => Box::new(super::kernel::Kernel::new()),
            #[cfg(not(all(feature = "kernel", target_os = "linux")))]
            Self::Kernel => Box::new(Missing("this build has no feature `kernel`")),
            Self::Native => Box::new(Native::new()),
            Self::RbpfInterp => Box::new(Rbpf { is_jit: false }),
            Self::RbpfJit => Box::new(Rbpf { is_jit: true }),
            Self::SbpfInterp => Box::new(Sbpf { is_jit: false }),
            Self::SbpfJit => Box::new(Sbpf { is_jit: true }),
            Self::UbpfInterp => Box::new(Ubpf { is_jit: false }),
            Self::UbpfJit => Box::new(Ubpf { is_jit: true }),
            Self::Llvmbpf => Box::new(Llvmbpf),
        }
    }
}

/// An engine that is missing in this build.
#[derive(Debug)]
struct Missing(&'static str);

impl Engine for Missing {
    fn load(&self, _: &Program) -> Result<Box<dyn Loaded>, Absent> {
        Err(self.0.to_owned())
    }
}
