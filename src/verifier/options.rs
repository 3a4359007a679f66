//! How a program is verified.

use std::num::NonZeroU32;

use super::verdict::LogLevel;
use crate::spec::KernelConfig;
use crate::spec::limits::MAX_CPUS;

/// How a program is verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// What the log holds; the error line is there anyway.
    pub log: LogLevel,
    /// Whether memory has to be aligned as on a machine that can't do otherwise
    /// (`BPF_F_STRICT_ALIGNMENT`; a program's own flags ask for it, too).
    pub strict_alignment: bool,
    /// How many CPUs the machine may have (`nr_cpu_ids`), which bounds the number that a
    /// program gets of its own; by default as many as a kernel is built for.
    pub cpus: Option<NonZeroU32>,
    /// How the kernel that is meant was built and locked down, which decides what helpers
    /// there are; by default it has all of them.
    pub kernel: KernelConfig,
}

impl Options {
    /// How many CPUs the machine may have.
    pub(crate) fn cpus(&self) -> u32 {
        self.cpus.map_or(MAX_CPUS, NonZeroU32::get)
    }
}
