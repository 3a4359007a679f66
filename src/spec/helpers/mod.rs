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

use super::call::{ArgSpec, CallSpec, Callers, Preconditions};
pub use super::call::{Effects, TypeFlags};
use super::capabilities::Capabilities;
use super::replay::{CallReplay, CallReplayRule, column};
use crate::util::HelperId;
pub use kinds::{Arg, ArgKind, Detail, FILTER_VALUE, Ret, RetKind, SOCKET_VALUE};
pub use scope::{Caller, Scope};
pub(crate) use table::for_each_helper;

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
    /// The arguments in the kernel's notation, in `r1` and following; at most five.
    pub args: &'static [Arg],
    /// What a call demands of the arguments.
    pub arguments: &'static [ArgSpec],
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
        self.arguments.iter().any(ArgSpec::releases)
    }

    /// The capabilities that the program's loader needs for a call.
    #[must_use]
    pub fn needed(&self) -> Capabilities {
        let needs = |attribute| self.attributes.contains(attribute);
        let mut needed = Capabilities::empty();
        needed.set(Capabilities::BPF, needs(Attributes::NEEDS_BPF));
        needed.set(Capabilities::PERFMON, needs(Attributes::NEEDS_PERFMON));
        needed
    }
}

/// A helper function.
#[derive(Clone, Copy, Debug)]
pub struct Helper {
    /// Its number.
    pub id: HelperId,
    /// Its name, without `bpf_`.
    pub name: &'static str,
    /// Its name in the kernel: `bpf_map_lookup_elem`.
    pub kernel_name: &'static str,
    /// The C type of the result, with a trailing space or star before the name: `"void *"`.
    pub returns: &'static str,
    /// The parameters in C, without parentheses.
    pub parameters: &'static str,
    /// Effects of a call, for all callers.
    pub effects: Effects,
    /// How a recording treats a call; `None`: as an override if it gets a map, otherwise it is
    /// skipped.
    replay: Option<CallReplayRule>,
    /// Its prototypes; the first with a scope that covers the caller applies.
    pub prototypes: &'static [Prototype],
}

impl Helper {
    /// The prototype for this caller; `None` if the program's type cannot call the helper,
    /// its loader has not the capabilities for it, or the kernel lacks it. License,
    /// allow-lists and sleeping are not checked.
    #[must_use]
    pub fn prototype(&self, caller: &Caller<'_>) -> Option<&'static Prototype> {
        if !caller.kernel.has_helper(self.id) || !caller.has_helpers() {
            return None;
        }
        let mut prototypes = self.prototypes.iter();
        prototypes
            .find(|prototype| prototype.scopes.iter().any(|scope| scope.covers(caller)))
            .filter(|prototype| caller.capabilities.allow(prototype.needed()))
    }

    /// A call by one of its prototypes.
    #[must_use]
    pub fn call(&self, prototype: &Prototype) -> CallSpec {
        let mut effects = self.effects;
        let attributes = prototype.attributes;
        effects.set(Effects::RELEASES, prototype.releases());
        effects.set(
            Effects::MIGHT_SLEEP,
            attributes.contains(Attributes::MIGHT_SLEEP),
        );
        effects.set(Effects::FASTCALL, attributes.contains(Attributes::FASTCALL));
        let mut call = CallSpec {
            name: self.kernel_name,
            arguments: prototype.arguments,
            result: prototype.ret.spec(),
            effects,
            iterator: None,
            callers: Callers::Scopes(prototype.scopes),
            replay: column::SKIP,
        };
        call.replay = self.replay.unwrap_or_else(|| match call.map_argument() {
            Some(_) => Ok(CallReplay::Override),
            None => Ok(CallReplay::Skip),
        });
        call
    }

    /// Whether a call reads all argument registers, whatever its prototype has: the kernel's
    /// prototype of `bpf_trace_printk` does not have the arguments for the format.
    pub(crate) fn is_variadic(&self) -> bool {
        self.id == id::trace_printk
    }

    /// The declaration in C, without a semicolon:
    /// `void *bpf_map_lookup_elem(struct bpf_map *map, const void *key)`.
    #[must_use]
    pub fn declaration(&self) -> String {
        format!("{}{}({})", self.returns, self.kernel_name, self.parameters)
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

macro_rules! kernel_name {
    (r#loop) => {
        "bpf_loop"
    };
    ($name:ident) => {
        concat!("bpf_", stringify!($name))
    };
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

macro_rules! arg {
    ($arg:ident ($($detail:tt)?) $($flag:ident)*) => {
        Arg {
            kind: ArgKind::$arg,
            flags: TypeFlags::empty()$(.union(TypeFlags::$flag))*,
            detail: detail!($($detail)?),
        }
    };
}

macro_rules! prototypes {
    ($(
        ($($arg:ident $(($arg_detail:tt))? $(| $arg_flag:ident)*),*)
        -> $ret:ident $(($ret_detail:tt))? $(| $ret_flag:ident)*,
        [$($attribute:ident)*] for [$($scope:ident)*];
    )*) => {
        &[$({
            const ATTRIBUTES: Attributes =
                Attributes::empty()$(.union(Attributes::$attribute))*;
            Prototype {
                args: &[$(arg!($arg ($($arg_detail)?) $($arg_flag)*)),*],
                arguments: &[$({
                    const ARG: Arg = arg!($arg ($($arg_detail)?) $($arg_flag)*);
                    const LIST: &Preconditions =
                        &ARG.preconditions(ATTRIBUTES.contains(Attributes::PKT_ACCESS));
                    ArgSpec {
                        nullable: ARG.nullable(),
                        preconditions: LIST.as_slice(),
                    }
                }),*],
                ret: Ret {
                    kind: RetKind::$ret,
                    flags: TypeFlags::empty()$(.union(TypeFlags::$ret_flag))*,
                    detail: detail!($($ret_detail)?),
                },
                attributes: ATTRIBUTES,
                scopes: &[$(scope::$scope),*],
            }
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
            name: kernel_name!($name).split_at("bpf_".len()).1,
            kernel_name: kernel_name!($name),
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
