//! The kernel's interface to BPF programs (Linux 6.18 on x86-64), as tables.
//!
//! Nothing here runs anything: a row states a fact, and the layers above expand the columns
//! that they use. The object loader reads section names and map types, the virtual machine
//! binds helper bodies, the verifier reads argument kinds, context fields and return
//! ranges. Facts that a running kernel can report were compared with one.

mod attach_type;
pub mod call;
pub mod constants;
pub mod context;
mod flags;
pub mod helpers;
pub mod iterator;
mod kernel_config;
pub mod kfuncs;
pub mod limits;
pub mod lsm;
mod map_type;
mod map_use;
mod numbered;
mod prog_type;
mod replay;
mod section;
pub mod syscalls;
pub mod tracepoint;
pub mod tracepoint_argument;

pub use attach_type::AttachType;
pub use flags::*;
pub use kernel_config::{BuildOptions, KernelConfig, Lockdown};
pub use map_type::{EntriesRule, Holds, KeyRule, MapType, MapTypeInfo, ValueRule};
pub use map_use::{MapMismatch, ValueField};
pub use prog_type::{
    AttachRule, ContextKind, Family, PacketAccess, ProgType, ProgTypeInfo, ReturnRule, Traits,
};
pub(crate) use replay::CALLS_BACK_LATER;
pub use replay::{CallReplay, CallReplayRule};
pub use section::{Section, SectionFlags, SectionRule, section_rules};
