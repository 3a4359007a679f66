//! Calls of helpers and kfuncs: what a call demands of its arguments, what it returns and
//! does, and which programs may make it.
//!
//! The tables keep the kernel's notation: [helpers](super::helpers) have argument types with
//! flags, [kfuncs](super::kfuncs) have C parameters and `KF_…` flags. Both yield a
//! [`CallSpec`], whose arguments are lists of [`Precondition`]s. The verifier checks the list,
//! a report says which precondition was violated, and the recorder and the injector take from
//! it the memory that a call fills.
//!
//! ```
//! use bpflab::spec::helpers::{Caller, helper_by_name};
//! use bpflab::spec::{ProgType, kfuncs};
//!
//! let update = helper_by_name("map_update_elem").unwrap();
//! let update = update.call(update.prototype(&Caller::of(ProgType::Xdp)).unwrap());
//! let key = update.arguments[1].region().unwrap();
//! assert_eq!(key.to_string(), "memory of the map's key size that is read");
//!
//! let read = kfuncs::by_name("bpf_copy_from_user_str").unwrap().row().call();
//! let text = read.arguments[0].region().unwrap();
//! assert_eq!(text.to_string(), "memory of the size in the next argument that is overwritten");
//! ```

mod function;
mod iterator;
mod precondition;
mod register;

pub use function::{ArgSpec, CallSpec, Callers, Effects, ResultKind, ResultSpec};
pub use iterator::{IteratorKind, IteratorStep};
pub(super) use precondition::Preconditions;
pub use precondition::{Access, DynptrUse, Extent, Precondition, Region};
pub use register::{RegKind, RegType, RegTypes, TypeFlags};
