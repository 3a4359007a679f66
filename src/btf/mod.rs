//! BTF, the BPF type format: types, strings and `.BTF.ext`.
//!
//! [`Btf`] stores the type table as words and an index of offsets into it; [`Type`] is a
//! borrowed view of one type. So opening the kernel's own BTF (127,000 types) takes
//! milliseconds and no allocation per type.
//!
//! The format is described in the kernel's `Documentation/bpf/btf.rst` and defined
//! by `include/uapi/linux/btf.h`.

mod blob;
mod builder;
mod check;
mod dedup;
mod dump;
mod edit;
mod error;
mod ext;
mod fuzz;
mod kind;
mod layout;
mod leaves;
mod lookup;
mod modules;
mod names;
mod part;
mod path;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod reduce;
mod refusal;
mod special;
mod types;
mod value;

pub use blob::Btf;
pub use builder::{Builder, IdMap};
pub use dump::DumpError;
pub use edit::Editor;
pub use error::{BtfError, Problem, TypeFault};
pub use ext::{BtfExt, CoreRelo, FuncInfo, LineInfo, Record, Records, SourceLine};
#[doc(hidden)]
pub use fuzz::exercise;
pub use kind::Kind;
pub use layout::{LayoutError, POINTER_SIZE};
pub(crate) use leaves::Leaf;
pub use names::essential_name;
pub use part::PartIds;
pub use path::{Field, PathError};
#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(crate) use reduce::KnownKinds;
pub use refusal::Refusal;
pub use special::{FieldKind, SpecialField, SpecialFields};
pub use types::{Array, Encoding, Enumerator, Int, Linkage, Member, Param, Type, Variable};
pub use value::{SetError, Value, ValueError, ValueProblem};

#[cfg(test)]
pub(crate) mod clang;
#[cfg(test)]
pub(crate) mod tests;
