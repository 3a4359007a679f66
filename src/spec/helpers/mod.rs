//! Helper functions by number, with the C declaration, the argument kinds that the verifier
//! checks, and the programs that may call them.
//!
//! All facts are in one table (`for_each_helper`). This module expands the columns with
//! declarations and rules, the virtual machine the column with implementations.

mod built;
mod kinds;
mod scope;
mod table;

use bitflags::bitflags;

use super::replay::{CallReplay, CallReplayRule, column};
use crate::util::HelperId;
pub use kinds::{Arg, ArgKind, Detail, Ret, RetKind, TypeFlags};
pub use scope::{Caller, Scope};
pub(crate) use table::for_each_helper;

bitflags! {
    /// Effects of a call, for all callers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Effects: u8 {
        /// Acquires a reference, which is the result (`is_acquire_function`).
        /// `map_lookup_elem` on a map of sockets does, too.
        const ACQUIRES = 1 << 0;
        /// The result is the argument cast to another type, and refers to the same object
        /// (`is_ptr_cast_function`).
        const CASTS = 1 << 1;
        /// Invalidates packet pointers (`bpf_helper_changes_pkt_data`,
        /// `net/core/filter.c`).
        const CHANGES_PACKET = 1 << 2;
        /// Calls a subprogram before it returns.
        const CALLS_BACK = 1 << 3;
        /// Schedules a subprogram for a later call.
        const CALLS_BACK_LATER = 1 << 4;
    }
}

bitflags! {
    /// Attributes of a prototype.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Attributes: u8 {
        /// Only for programs with a GPL-compatible license.
        const GPL_ONLY = 1 << 0;
        /// Memory arguments may be packet memory.
        const PKT_ACCESS = 1 << 1;
        /// Only for programs that may sleep.
        const MIGHT_SLEEP = 1 << 2;
        /// Only for functions on the kernel's allow-list of this helper (`allowed`).
        const ALLOW_LIST = 1 << 3;
        /// Calls keep the caller's registers (`allow_fastcall`).
        const FASTCALL = 1 << 4;
        /// Requires `CAP_BPF` at load.
        const NEEDS_BPF = 1 << 5;
        /// Requires `CAP_PERFMON` at load.
        const NEEDS_PERFMON = 1 << 6;
    }
}

/// The rules for calls of a helper by some programs (`struct bpf_func_proto`).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Prototype {
    /// The arguments, in `r1` and following; at most five.
    pub args: &'static [Arg],
    /// The result, in `r0`.
    pub ret: Ret,
    /// Its attributes.
    pub attributes: Attributes,
    /// The programs that it applies to.
    pub scopes: &'static [Scope],
}

impl Prototype {
    /// Whether a call releases a reference.
    #[must_use]
    pub fn releases(&self) -> bool {
        self.args
            .iter()
            .any(|arg| arg.flags.contains(TypeFlags::OBJ_RELEASE))
    }
}

/// A helper function.
#[derive(Clone, Copy, Debug)]
pub struct Helper {
    /// Its number.
    pub id: HelperId,
    /// Its name, without `bpf_`.
    pub name: &'static str,
    /// The C type of the result, with a trailing space or star before the name: `"void *"`.
    pub returns: &'static str,
    /// The parameters in C, without parentheses.
    pub parameters: &'static str,
    /// Effects of a call.
    pub effects: Effects,
    /// How a recording treats a call; `None` if that follows from the prototype.
    replay: Option<CallReplayRule>,
    /// Its prototypes; the first with a scope that covers the caller applies.
    pub prototypes: &'static [Prototype],
}

impl Helper {
    /// The prototype for this caller; `None` if the program's type cannot call the helper,
    /// or the kernel lacks it. Capabilities, license, allow-lists and sleeping are not
    /// checked.
    #[must_use]
    pub fn prototype(&self, caller: &Caller<'_>) -> Option<&'static Prototype> {
        if !caller.kernel.has_helper(self.id) {
            return None;
        }
        self.prototypes
            .iter()
            .find(|prototype| prototype.scopes.iter().any(|scope| scope.covers(caller)))
    }

    /// How a recording treats a call with this prototype.
    ///
    /// # Errors
    /// Why a program with such a call can't be recorded.
    pub fn replay(&self, prototype: &Prototype) -> CallReplayRule {
        let gets_map = || {
            let mut kinds = prototype.args.iter().map(|arg| arg.kind);
            kinds.any(|kind| kind == ArgKind::ConstMapPtr)
        };
        self.replay.unwrap_or_else(|| {
            Ok(if gets_map() {
                CallReplay::Override
            } else {
                CallReplay::Skip
            })
        })
    }

    /// The declaration in C, without a semicolon:
    /// `void *bpf_map_lookup_elem(struct bpf_map *map, const void *key)`.
    #[must_use]
    pub fn declaration(&self) -> String {
        format!("{}bpf_{}({})", self.returns, self.name, self.parameters)
    }
}

/// Number of helpers, which is also the highest number.
pub const COUNT: u32 = 211;

/// All helpers, by ascending number.
#[must_use]
pub fn helpers() -> &'static [Helper] {
    &HELPERS
}

/// The helper with this number.
#[must_use]
pub fn helper(id: HelperId) -> Option<&'static Helper> {
    HELPERS.get(id.index().checked_sub(1)?)
}

/// The helper of this name, with or without `bpf_`.
#[must_use]
pub fn helper_by_name(name: &str) -> Option<&'static Helper> {
    let name = name.strip_prefix("bpf_").unwrap_or(name);
    HELPERS.iter().find(|helper| helper.name == name)
}

/// A name of the table without the prefix of raw identifiers.
const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

macro_rules! detail {
    () => {
        Detail::None
    };
    ($size:literal) => {
        Detail::Size($size)
    };
    ($name:ident) => {
        Detail::Struct(stringify!($name))
    };
}

macro_rules! prototypes {
    ($(
        ($($arg:ident $(($arg_detail:tt))? $(| $arg_flag:ident)*),*)
        -> $ret:ident $(($ret_detail:tt))? $(| $ret_flag:ident)*,
        [$($attribute:ident)*] for [$($scope:ident)*];
    )*) => {
        &[$(Prototype {
            args: &[$(Arg {
                kind: ArgKind::$arg,
                flags: TypeFlags::empty()$(.union(TypeFlags::$arg_flag))*,
                detail: detail!($($arg_detail)?),
            }),*],
            ret: Ret {
                kind: RetKind::$ret,
                flags: TypeFlags::empty()$(.union(TypeFlags::$ret_flag))*,
                detail: detail!($($ret_detail)?),
            },
            attributes: Attributes::empty()$(.union(Attributes::$attribute))*,
            scopes: &[$(scope::$scope),*],
        }),*]
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

macro_rules! define {
    ($(
        $number:literal $name:ident = $($body:ident)::+,
        $returns:literal $parameters:literal [$($effect:ident)*] $(as $replay:ident)?
        { $($prototypes:tt)* }
    )*) => {
        static HELPERS: [Helper; COUNT as usize] = [$(Helper {
            id: HelperId($number),
            name: plain(stringify!($name)),
            returns: $returns,
            parameters: $parameters,
            effects: Effects::empty()$(.union(Effects::$effect))*,
            replay: optional!($(column::$replay)?),
            prototypes: prototypes! { $($prototypes)* },
        }),*];

        /// The helper numbers, as constants with the helpers' names.
        #[allow(non_upper_case_globals, reason = "the names are the kernel's, as in BPF_FUNC_map_lookup_elem")]
        pub mod id {
            use super::HelperId;
            $(
                #[doc = concat!("Number ", $number, "; takes `(", $parameters, ")`.")]
                pub const $name: HelperId = HelperId($number);
            )*
        }
    };
}

for_each_helper!(define);

#[cfg(test)]
mod tests;
