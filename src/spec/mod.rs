//! The kernel's interface to BPF programs (Linux 6.18 on x86-64): types of programs, maps and
//! attachment, flags, and the kernel's configuration.

// Tables: a row states a fact, and the layers above expand the columns that they use. The object
// loader reads section names and map types, the virtual machine binds helper bodies, the verifier
// reads argument kinds, context fields and return ranges. Facts that a running kernel can report
// were compared with one. The hidden modules and items are for this project's tests and
// benchmarks: they may change in any version.

mod attach_name;
mod attach_type;
#[doc(hidden)]
pub mod call;
mod capabilities;
mod command;
#[doc(hidden)]
pub mod constants;
#[doc(hidden)]
pub mod context;
mod flags;
#[doc(hidden)]
pub mod helpers;
#[doc(hidden)]
pub mod iterator;
mod kernel_config;
#[doc(hidden)]
pub mod kfuncs;
#[doc(hidden)]
pub mod limits;
#[doc(hidden)]
pub mod lsm;
mod map_type;
mod map_use;
mod numbered;
#[doc(hidden)]
pub mod object;
mod prog_type;
mod replay;
mod section;
#[doc(hidden)]
pub mod since;
#[doc(hidden)]
pub mod struct_ops;
#[doc(hidden)]
pub mod syscalls;
mod token;
#[doc(hidden)]
pub mod tracepoint;
#[doc(hidden)]
pub mod tracepoint_argument;

pub use attach_type::AttachType;
pub use capabilities::{Capabilities, UnknownCapability};
pub use command::BpfCommand;
#[doc(inline)]
pub use context::Arch;
pub use flags::{MapFlags, ProgFlags, TestRunFlags, UpdateFlags};
pub use kernel_config::{Backports, BuildOptions, KernelConfig, Lockdown};
pub use map_type::MapType;
pub use prog_type::{ContextKind, ProgType};
pub use token::{Token, TokenError};

#[doc(hidden)]
pub use attach_name::{AttachName, attach_target, nearest_section};
#[doc(hidden)]
pub use flags::{
    BtfPrintFlags, CTXLEN_MASK, CURRENT_CPU, CURRENT_NETNS, CopyFlags, CsumFlags, INDEX_MASK,
    RedirectFlags, RingbufFlags, RingbufQuery, StackFlags, StorageFlags, StoreFlags, TimerFlags,
};
#[doc(hidden)]
pub use map_type::{EntriesRule, Holds, KeyRule, MapTypeInfo, ValueRule};
#[doc(hidden)]
pub use map_use::{MapMismatch, ValueField};
#[doc(hidden)]
pub use prog_type::{AttachRule, Family, PacketAccess, ProgTypeInfo, ReturnRule, Traits};
pub(crate) use replay::CALLS_BACK_LATER;
#[doc(hidden)]
pub use replay::{CallReplay, CallReplayRule};
#[doc(hidden)]
pub use section::{Section, SectionFlags, SectionRule, section_rules};
